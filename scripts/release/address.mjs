/** The address of the repository in what a release packs: its installers, and the links of its packages. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

/** The address in the installers before they are packed for a release. */
const NOBODY = 'https://github.com/svc/server';

/** Returns the address of the repository: that of the workflow that makes this release, if one does. */
export function repositoryUrl() {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
  return server && name ? `${server}/${name}` : NOBODY;
}

/** Makes the installers in a folder look for releases in the repository whose workflow makes this one, if one does. */
export function addressInstallers(folder) {
  for (const file of readdirSync(folder).filter((entry) => /^install\.(sh|ps1)$/.test(entry))) {
    const path = join(folder, file);
    const text = readFileSync(path, 'utf8');
    if (!text.includes(NOBODY)) throw new Error(`${file} does not look for releases at ${NOBODY}`);
    writeFileSync(path, text.replaceAll(NOBODY, repositoryUrl()));
  }
}
