/** The file names that a model from elsewhere may have. */
import { SourceError } from './source-error.ts';

/** The most names of a folder: more than any model has. Each name costs a file on this disk. */
const MAX_NAMES = 1000;
const MAX_DEPTH = 8;
/** Control characters, and the characters and endings that have a meaning on Windows. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not get through.
const FORBIDDEN = /[\u0000-\u001f\u007f<>:"|?*\\]|[. ]$/;
const DEVICES = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[\d¹²³]) *(\.|$)/i;

/** Returns `name` if a model folder may have that name on every system, else `model`. */
export function modelFolderName(name: string): string {
  return /^[a-z0-9][\w.-]{0,63}$/i.test(name) ? name : 'model';
}

/** The names of one folder's files: each of them is safe, and no two are the same, even where case is ignored. */
export class FolderNames {
  readonly #spellings = new Map<string, { readonly path: string; readonly isFolder: boolean }>();

  /**
   * Adds a file or folder, and returns its path with `/` between its parts; an empty path is the folder itself.
   *
   * @throws SourceError when the name leads out of the folder, is impossible on some system, or was there before, and
   * when there are too many names.
   */
  add(name: string, kind: 'file' | 'folder'): string {
    const parts = safeParts(name);
    for (let length = 1; length < parts.length; length += 1) this.#note(parts.slice(0, length).join('/'), 'parent');
    const path = parts.join('/');
    if (path !== '') this.#note(path, kind);
    else if (kind === 'file') throw new SourceError(`a file with the name ${JSON.stringify(name)}`);
    return path;
  }

  #note(path: string, kind: 'file' | 'folder' | 'parent'): void {
    // The detour by the upper case makes names equal that only macOS takes for equal: ß and ss, ſ and s.
    const key = path.toUpperCase().toLowerCase().normalize('NFC');
    const known = this.#spellings.get(key);
    const isFolder = kind !== 'file';
    if (known === undefined) this.#spellings.set(key, { path, isFolder });
    else if (!isFolder || !known.isFolder || known.path !== path) {
      throw new SourceError(`${shown(path)} is there twice${known.path === path ? '' : `, as ${shown(known.path)}`}`);
    }
    if (this.#spellings.size > MAX_NAMES) throw new SourceError(`more than ${MAX_NAMES} files`);
  }
}

function safeParts(name: string): string[] {
  const parts = name.replace(/\/$/, '').split('/');
  // tar writes `./` in front of the names in the current folder.
  const inside = parts[0] === '.' ? parts.slice(1) : parts;
  const isSafe = inside.every((part) => part !== '' && part !== '..' && !FORBIDDEN.test(part) && !DEVICES.test(part));
  if (!isSafe || name.length > 400 || inside.length > MAX_DEPTH) {
    throw new SourceError(`a file may not have the name ${shown(name)}`);
  }
  return inside;
}

function shown(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
}
