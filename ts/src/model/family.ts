/** The families of models, each known by one file of its folder. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A family, and the file that a folder was known by. */
export interface Family {
  readonly name: string;
  readonly file: string;
}

/** The form in which models of a family are published. */
interface Form extends Family {
  /** Whether the content of the file, a JSON object, is that of the family. */
  readonly isIt: (content: Readonly<Record<string, unknown>>) => boolean;
}

/** The longest file that a family is known by, in bytes. */
export const MAX_FAMILY_FILE_BYTES = 16 * 2 ** 20;

/** All forms. Of several that fit, the first counts, so forms with a file of their own stand in front. */
const FORMS: readonly Form[] = [
  { name: 'shared-state', file: 'config.json', isIt: ({ layout }) => layout === 'shared-state' },
  {
    name: 'pair',
    file: 'config.json',
    isIt: ({ layout, special_ids: specialIds, ...config }) =>
      layout === 'pair' ||
      (layout === undefined &&
        specialIds === undefined &&
        ['architectures', 'model_type', 'id2label'].some((key) => config[key] !== undefined)),
  },
  {
    name: 'marker',
    file: 'config.json',
    isIt: ({ layout, special_ids: specialIds }) =>
      layout === 'marker' || (layout === undefined && specialIds !== undefined),
  },
];

/** The files by which a family can be known. */
export const FAMILY_FILES: readonly string[] = [...new Set(FORMS.map(({ file }) => file))];

/** Returns the family of the model in a folder; undefined when it is of none. */
export async function familyOf(folder: string): Promise<Family | undefined> {
  for (const { name, file, isIt } of FORMS) {
    const content = await objectIn(join(folder, file));
    if (content !== undefined && isIt(content)) return { name, file };
  }
  return undefined;
}

/** Returns the JSON object in a file; undefined when there is none, or the file is too long. */
export async function objectIn(path: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    if ((await stat(path)).size > MAX_FAMILY_FILE_BYTES) return undefined;
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
