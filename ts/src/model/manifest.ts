/** The list of a model's files with their digests, as `svc model manifest` writes it and a source offers it. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/schema';
import { digestsOf, type FileDigest } from './file-digest.ts';
import { FolderNames } from './folder-names.ts';
import { SourceError } from './source-error.ts';

/** The longest manifest, in bytes. It has a few lines for each file, so this is room for thousands of files. */
export const MAX_MANIFEST_BYTES = 2 ** 20;

/** The longest `config.json`, which is read at once. Even with calibrations of thousands of questions it is shorter. */
const MAX_CONFIG_BYTES = 16 * 2 ** 20;

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
  const config = Object.hasOwn(value.files, 'config.json') ? value.files['config.json'] : undefined;
  if (config === undefined) throw new SourceError('the manifest names no config.json');
  requireConfigSize(config.bytes);
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
 * Returns the name and version in a model folder's `config.json`, as the engine takes them; both are empty when the
 * file cannot be read.
 *
 * @throws SourceError when the file is longer than any `config.json`.
 */
export async function namesOf(folder: string): Promise<{ name: string; version: string }> {
  const file = join(folder, 'config.json');
  requireConfigSize(
    await stat(file).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  const text = await readFile(file, 'utf8').catch(() => '{}');
  const config: unknown = parseOrNothing(text);
  const { name, version } = (typeof config === 'object' && config !== null ? config : {}) as Record<string, unknown>;
  return { name: typeof name === 'string' ? name : '', version: typeof version === 'string' ? version : '' };
}

function requireConfigSize(bytes: number): void {
  if (bytes > MAX_CONFIG_BYTES) throw new SourceError(`config.json: more than ${MAX_CONFIG_BYTES} bytes`);
}

function parseOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
