/**
 * Puts the installers beside the archives of a release: `node scripts/release/installers.mjs URL` writes them with URL, the
 * page of the repository that releases, as the place where they look for releases.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** What the installers have as long as nobody has released them. */
const NOBODY = 'https://github.com/svc/server';

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
// Read when the working folder is the root's.
const { RELEASE } = await import('./platforms.mjs');

const [url = ''] = process.argv.slice(2);
if (!/^https:\/\/[\w.-]+\/[\w./-]*\w$/.test(url)) {
  process.stderr.write('usage: node scripts/release/installers.mjs https://HOST/OWNER/REPOSITORY\n');
  process.exit(1);
}
const folder = join(RELEASE, 'archives');
mkdirSync(folder, { recursive: true });
for (const name of ['install.sh', 'install.ps1']) {
  const text = readFileSync(join('deploy', name), 'utf8');
  if (!text.includes(NOBODY)) throw new Error(`deploy/${name} does not look for releases at ${NOBODY}`);
  writeFileSync(join(folder, name), text.replaceAll(NOBODY, url), { mode: 0o755 });
}
