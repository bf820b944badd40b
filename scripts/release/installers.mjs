/**
 * Puts the installers beside the archives of a release: `node scripts/release/installers.mjs URL` writes them with URL, the
 * page of the repository that releases, as the place where they look for releases.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ARCHIVES } from './archive.mjs';
import { asProgram } from './command.mjs';

/** What the installers have as long as nobody has released them. */
const NOBODY = 'https://github.com/svc/server';

await asProgram(import.meta.url, ([url = '']) => {
  if (!/^https:\/\/[\w.-]+\/[\w./-]*\w$/.test(url)) throw new Error('give https://HOST/OWNER/REPOSITORY');
  mkdirSync(ARCHIVES, { recursive: true });
  for (const name of ['install.sh', 'install.ps1']) {
    const text = readFileSync(join('deploy', name), 'utf8');
    if (!text.includes(NOBODY)) throw new Error(`deploy/${name} does not look for releases at ${NOBODY}`);
    writeFileSync(join(ARCHIVES, name), text.replaceAll(NOBODY, url), { mode: 0o755 });
  }
});
