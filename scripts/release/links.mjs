/** Links of Markdown pages that leave the repository: to files of the same package, or to the repository's own pages. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesUnder } from '../stamp.mjs';
import { repositoryUrl } from './address.mjs';
import { VERSION } from './platforms.mjs';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));

/** A link that is neither an address nor a place on the same page, and a picture in HTML. */
const LOCAL_LINK = /(?<=\]\()(?!\w+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))/g;
const LOCAL_PICTURE = /(?<=\b(?:src|srcset)=")(?!\w+:)([^"]+)(?=")/g;

/**
 * Returns a page with each link to a file that the package lacks turned into a link to that file in the repository, at
 * the version of the package; pictures in HTML always come from there.
 *
 * @param text - The page.
 * @param path - Its path in the repository.
 * @param isPacked - Whether the package has the file with a path of the repository.
 */
export function packedPage(text, path, isPacked) {
  const fileOf = (link, target) => {
    const file = posix.normalize(posix.join(posix.dirname(path), target));
    if (!existsSync(join(REPOSITORY, file))) throw new Error(`${path} links to ${link}, and there is no ${file}`);
    return file;
  };
  const linked = text.replace(LOCAL_LINK, (link, target, fragment = '') => {
    const file = fileOf(link, target);
    return isPacked(file) ? link : `${repositoryUrl()}/blob/v${VERSION}/${file}${fragment}`;
  });
  // Registries show a page of the package without the files beside it.
  return linked.replace(LOCAL_PICTURE, (link) => `${repositoryUrl()}/raw/v${VERSION}/${fileOf(link, link)}`);
}

/**
 * Turns the links of all Markdown pages in a package's folder.
 *
 * @param folder - The folder of the package.
 * @param root - The folder of the repository that the package's files come from.
 */
export function packLinks(folder, root = '.') {
  const isPacked = (file) => {
    const own = posix.relative(root, file);
    return !own.startsWith('..') && existsSync(join(folder, own));
  };
  for (const file of filesUnder(folder).filter((name) => name.endsWith('.md'))) {
    const path = posix.join(root, relative(folder, file).replaceAll('\\', '/'));
    writeFileSync(file, packedPage(readFileSync(file, 'utf8'), path, isPacked));
  }
}
