/** The list of a model's files with their digests, as `svc model manifest` writes it and a source offers it. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/schema';
import { canBeKnown, FAMILY_FILES, knownFamily, MAX_FAMILY_FILE_BYTES, NO_FAMILY_FILE, objectIn } from './family.ts';
import { digestsOf, type FileDigest } from './file-digest.ts';
import { FolderNames } from './folder-names.ts';
import { SourceError } from './source-error.ts';

/** The longest manifest, in bytes. It has a few lines for each file, so this is room for thousands of files. */
export const MAX_MANIFEST_BYTES = 2 ** 20;

const DigestSchema = Type.Object({
  bytes: Type.Integer({ minimum: 0 }),
  sha256: Type.String({ pattern: '^[0-9a-fA-F]{64}$' }),
});

const ManifestSchema = Type.Object({
  name: Type.String(),
  version: Type.String(),
  files: Type.Record(Type.String(), DigestSchema),
});

const manifestCheck = Compile(ManifestSchema);

export type Manifest = Static<typeof ManifestSchema>;

/**
 * Returns the manifest in `text`.
 *
 * @throws SourceError when `text` is no manifest, or names a file that no model may have.
 */
export function parseManifest(text: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new SourceError('the manifest is not JSON');
  }
  if (!manifestCheck.Check(value)) {
    const [, [problem]] = manifestCheck.Errors(value) as [boolean, { instancePath?: string; message?: string }[]];
    throw new SourceError(`the manifest: ${problem?.instancePath || 'it'} ${problem?.message ?? 'is wrong'}`);
  }
  const names = new FolderNames();
  for (const path of Object.keys(value.files)) names.add(path, 'file');
  if (!canBeKnown(Object.keys(value.files))) throw new SourceError(`the manifest names ${NO_FAMILY_FILE}`);
  for (const file of FAMILY_FILES) requireConfigSize(file, value.files[file]?.bytes ?? 0);
  return value;
}

/** Returns the manifest of a model folder as text: the same folder always has the same text. */
export async function manifestText(folder: string, signal?: AbortSignal): Promise<string> {
  const { name, version } = await namesOf(folder);
  const digests = Object.entries(await digestsOf(folder, signal)).filter(([path]) => path !== MANIFEST_FILE);
  const files: Record<string, FileDigest> = Object.fromEntries(digests);
  return `${JSON.stringify({ name, version, files }, null, 2)}\n`;
}

/** The file name of a manifest in the folder that it describes. */
export const MANIFEST_FILE = 'manifest.json';

/**
 * Returns the name and version in the file that a model folder is known by, as the engine takes them; both are empty
 * when the file cannot be read.
 *
 * @throws SourceError when the file is longer than any `config.json`.
 */
export async function namesOf(folder: string): Promise<{ name: string; version: string }> {
  for (const file of FAMILY_FILES) requireConfigSize(file, await lengthOf(join(folder, file)));
  const { file = 'config.json' } = (await knownFamily(folder)) ?? {};
  const { name, version } = (await objectIn(join(folder, file))) ?? {};
  return { name: typeof name === 'string' ? name : '', version: typeof version === 'string' ? version : '' };
}

function requireConfigSize(file: string, bytes: number): void {
  if (bytes > MAX_FAMILY_FILE_BYTES) throw new SourceError(`${file}: more than ${MAX_FAMILY_FILE_BYTES} bytes`);
}

async function lengthOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}
