/** Puts the installers next to the archives of a release: `node scripts/release/installers.mjs`. */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { addressInstallers } from './address.mjs';
import { ARCHIVES } from './archive.mjs';
import { asProgram } from './command.mjs';

await asProgram(import.meta.url, () => {
  mkdirSync(ARCHIVES, { recursive: true });
  for (const name of ['install.sh', 'install.ps1']) copyFileSync(join('deploy', name), join(ARCHIVES, name));
  addressInstallers(ARCHIVES);
});
