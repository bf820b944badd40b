#!/usr/bin/env node
import { existsSync } from 'node:fs';

const cli = new URL('../dist/app/cli.js', import.meta.url);
if (existsSync(cli)) {
  const { main } = await import(cli.href);
  await main(process.argv.slice(2));
} else {
  process.stderr.write('svc is not built yet: run npm run build first\n');
  process.exitCode = 1;
}
