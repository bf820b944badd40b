/** The files of a model at a hub: their paths, lengths and digests at one commit. */
import type { IncomingHttpHeaders } from 'node:http';
import Type, { type Static, type TSchema } from 'typebox';
import { Check } from 'typebox/schema';
import { downloadText, type FetchLimits } from '../download.ts';
import { SourceError } from '../source-error.ts';
import type { HubClient } from './client.ts';
import { BLOB } from './digest.ts';
import { type HubName, isCommit } from './name.ts';

/** One file of a model. */
export interface HubFile {
  /** The path from the model's folder on, with `/` between its parts. */
  readonly path: string;
  readonly bytes: number;
  /**
   * The name of the file's content: the hex sha256 of a large file, the hex object id of git of any other. It is also
   * the name of its blob in the cache.
   */
  readonly blob: string;
}

/** The place to list, and the bounds of it. */
interface ListOrder {
  readonly client: HubClient;
  readonly name: HubName;
  /** The name of the model in messages. */
  readonly source: string;
  readonly limits: FetchLimits;
  readonly signal: AbortSignal;
}

/** The longest document that the hub sends about a repository, in bytes: it names all files of the repository. */
const MAX_DOCUMENT_BYTES = 8 * 2 ** 20;
/** The most pages of a listing, each of a thousand files at the public hub. No model has as many files. */
const MAX_PAGES = 10;

const InfoSchema = Type.Object({ sha: Type.String({ pattern: '^[0-9a-f]{40}$' }) });

const EntrySchema = Type.Object({
  type: Type.String(),
  path: Type.String(),
  oid: Type.String(),
  size: Type.Optional(Type.Integer({ minimum: 0 })),
  lfs: Type.Optional(Type.Object({ oid: Type.String(), size: Type.Integer({ minimum: 0 }) })),
});

/**
 * Returns the commit that the revision of a model stands for now.
 *
 * @throws SourceError when there is no such revision.
 */
export async function commitOf(order: ListOrder): Promise<string> {
  const { repository, revision } = order.name;
  if (isCommit(revision)) return revision;
  const path = `api/models/${repository}/revision/${encodeURIComponent(revision)}`;
  return (await document(order, path, InfoSchema)).value.sha;
}

/**
 * Returns the files in the folder of a model, and with `isDeep` those in the folders in it.
 *
 * @throws SourceError when they cannot be listed, or are too many.
 */
export async function filesAt(order: ListOrder, commit: string, isDeep = true): Promise<HubFile[]> {
  const { repository, folder } = order.name;
  const subtree = folder === '' ? '' : `/${encodeURIComponent(folder)}`;
  const path = `api/models/${repository}/tree/${commit}${subtree}`;
  const files: HubFile[] = [];
  let query = `?recursive=${isDeep}&expand=false`;
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { value, next } = await document(order, path + query, Type.Array(EntrySchema));
    files.push(...value.flatMap((entry) => fileOf(entry, order)));
    if (next === undefined) return files;
    query = next;
  }
  throw new SourceError(`${order.source}: more than ${MAX_PAGES} pages of files`);
}

/** Returns an entry as a file of the model; an empty list for folders, and for files outside of the model's folder. */
function fileOf(
  { type, path, oid, size = 0, lfs }: Static<typeof EntrySchema>,
  { name, source }: ListOrder,
): HubFile[] {
  const prefix = name.folder === '' ? '' : `${name.folder}/`;
  if (type !== 'file' || !path.startsWith(prefix)) return [];
  const blob = lfs?.oid ?? oid;
  if (!BLOB.test(blob)) throw new SourceError(`${source}: its listing has a file without a digest`);
  return [{ path: path.slice(prefix.length), bytes: lfs?.size ?? size, blob }];
}

/** Returns a JSON document of the hub, and the query of the page that follows it. */
async function document<Schema extends TSchema>(
  { client, name: { repository }, source, limits, signal }: ListOrder,
  path: string,
  schema: Schema,
): Promise<{ value: Static<Schema>; next: string | undefined }> {
  const { body, told } = await client.get(path, { what: source, repository, signal });
  const text = await downloadText({ body }, { limits, signal, what: source }, MAX_DOCUMENT_BYTES);
  const value: unknown = parsed(text);
  if (!Check(schema, value)) throw new SourceError(`${source}: what the hub says about it makes no sense`);
  return { value: value as Static<Schema>, next: nextQuery(told) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the query in the link to the next page; undefined on the last page. The rest of the link does not count: it
 * may name the public hub where a mirror is asked, and the token must not go anywhere else.
 */
function nextQuery({ link }: IncomingHttpHeaders): string | undefined {
  const [, url] = /<([^>]*)>\s*;[^,<]*\brel="?next"?/.exec(String(link ?? '')) ?? [];
  const base = 'https://hub.invalid';
  return url !== undefined && URL.canParse(url, base) ? new URL(url, base).search : undefined;
}
