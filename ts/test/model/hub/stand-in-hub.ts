/**
 * A hub on this machine that speaks the protocol of the public one, as the client library of that one uses it: revisions,
 * trees in pages, files that lie on another server, gates, limits. A system test holds it to that library.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Ending } from '../../temporary-folder.ts';
import { type Content, smallContent } from './large-content.ts';

/** A file of a commit. */
interface StoredFile {
  readonly content: Content;
  /** The object id of git: that of the content, or of the pointer to a large file. */
  readonly oid: string;
  readonly isLarge: boolean;
}

type Files = ReadonlyMap<string, StoredFile>;

/** The readers of a repository: everybody, holders of a token for it, or those who have accepted its terms. */
export type Access = 'public' | 'private' | 'gated';

interface Repository {
  access: Access;
  readonly commits: Map<string, Files>;
  readonly refs: Map<string, string>;
}

/** A request that the hub, or the server with its large files, has got. */
export interface Seen {
  readonly server: 'hub' | 'storage';
  readonly method: string;
  readonly url: string;
  readonly authorization: string | undefined;
  readonly range: string | undefined;
}

export interface HubOptions {
  /** The number of entries on a page of a tree. */
  readonly pageSize?: number;
  /**
   * Where the files lie: large ones `elsewhere`, on a server with another origin; or all of them `here`, behind a
   * redirect without a host.
   */
  readonly storage?: 'elsewhere' | 'here';
}

/** An answer in place of the right one. */
export type Fault = (request: IncomingMessage, response: ServerResponse) => void;

const LARGE = /\.(onnx|safetensors|bin|onnx_data|onnx\.data)$/;

export class StandInHub {
  readonly url: string;
  readonly storageUrl: string;
  readonly requests: Seen[] = [];
  /** The repositories that the holder of a token may read, by token. */
  readonly tokens = new Map<string, readonly string[]>();
  /** The faults of the next requests for files and listings at the hub, one each. */
  readonly faults: Fault[] = [];
  /** The faults of the next requests for the contents of large files. */
  readonly storageFaults: Fault[] = [];
  /** Contents that are sent in place of those with a sha256. */
  readonly forged = new Map<string, Content>();
  /** Headers that all answers about files have in addition. */
  extraHeaders: Readonly<Record<string, string>> = {};
  /** The number of bytes of contents that were handed to sockets. */
  sentBytes = 0;
  /** The milliseconds between two parts of a content. */
  pauseMs = 0;
  readonly #repositories = new Map<string, Repository>();
  readonly #options: HubOptions;
  readonly #servers: readonly Server[];

  private constructor(servers: readonly [Server, Server], options: HubOptions) {
    const [hub, storage] = servers;
    this.#servers = servers;
    this.#options = options;
    this.url = `http://127.0.0.1:${(hub.address() as AddressInfo).port}`;
    this.storageUrl = `http://localhost:${(storage.address() as AddressInfo).port}`;
    hub.on('request', (request, response) => this.#answer('hub', request, response));
    storage.on('request', (request, response) => this.#answer('storage', request, response));
  }

  static async start(test: Ending, options: HubOptions = {}): Promise<StandInHub> {
    const servers = [createServer(), createServer()] as const;
    for (const server of servers) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const hub = new StandInHub(servers, options);
    test.after(() => hub.stop());
    return hub;
  }

  stop(): void {
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  /** Adds a commit with these files, all of them, and lets a branch stand for it. Returns the commit. */
  publish(
    id: string,
    files: Readonly<Record<string, string | Buffer | Content>>,
    { branch = 'main', access }: { readonly branch?: string; readonly access?: Access } = {},
  ): string {
    const repository = this.#repositories.get(id) ?? { access: 'public', commits: new Map(), refs: new Map() };
    this.#repositories.set(id, repository);
    if (access !== undefined) repository.access = access;
    const stored = Object.entries(files).map(([path, file]) => [path, storedFile(path, file)] as const);
    const number = repository.commits.size;
    const commit = sha1(JSON.stringify([id, number, stored.map(([path, { oid }]) => [path, oid])]));
    repository.commits.set(commit, new Map(stored.toSorted(([a], [b]) => (a < b ? -1 : 1))));
    repository.refs.set(branch, commit);
    return commit;
  }

  /** Returns the requests for contents of files at the hub, by path and without the query. */
  get resolved(): string[] {
    const files = this.requests.filter(({ server, method }) => server === 'hub' && method === 'GET');
    return files.flatMap(({ url }) => /\/resolve\/[^/]+\/(.*)$/.exec(url)?.[1] ?? []);
  }

  #answer(server: Seen['server'], request: IncomingMessage, response: ServerResponse): void {
    const { method = '', url = '/', headers } = request;
    this.requests.push({ server, method, url, authorization: headers.authorization, range: headers.range });
    const fault = (server === 'hub' ? this.faults : this.storageFaults).shift();
    const { pathname, searchParams } = new URL(url, this.url);
    const parts = pathname.split('/').slice(1);
    const route = parts[0] === 'api' ? parts[1] : parts[2];
    if (fault !== undefined) fault(request, response);
    else if (server === 'storage') this.#sendStored(parts[0] ?? '', request, response);
    else if (route === 'models') this.#api(parts.slice(2), { searchParams, request, response });
    else if (route === 'resolve-cache') this.#resolveCache(parts.slice(3), request, response);
    else if (route === 'resolve') this.#resolve(parts, request, response);
    else refuse(response, 404);
  }

  #api(
    [org, name, kind = 'revision', revision = 'main', ...rest]: readonly string[],
    asked: { searchParams: URLSearchParams; request: IncomingMessage; response: ServerResponse },
  ): void {
    const { searchParams, request, response } = asked;
    const id = `${org}/${name}`;
    const repository = this.#readable(id, request, response);
    if (repository === undefined) return;
    const found = commitIn(repository, decodeURIComponent(revision), response);
    if (found === undefined) return;
    const { commit, files } = found;
    if (kind === 'tree') {
      this.#tree(files, { folder: decodeURIComponent(rest.join('/')), searchParams, request, response });
      return;
    }
    const siblings = [...files.keys()].map((rfilename) => ({ rfilename }));
    json(response, {
      _id: 'id',
      id,
      modelId: id,
      sha: commit,
      private: repository.access === 'private',
      siblings,
      tags: [],
    });
  }

  #tree(
    files: Files,
    asked: { folder: string; searchParams: URLSearchParams; request: IncomingMessage; response: ServerResponse },
  ): void {
    const { folder, searchParams, request, response } = asked;
    const prefix = folder === '' ? '' : `${folder}/`;
    const all = entriesIn(files, { prefix, isRecursive: searchParams.get('recursive') === 'true' });
    if (all.length === 0 && folder !== '') {
      refuse(response, 404, 'EntryNotFound', `${folder} does not exist`);
      return;
    }
    const { pageSize = 1000 } = this.#options;
    const first = Number(searchParams.get('cursor') ?? 0);
    if (first + pageSize < all.length) {
      const next = new URL(request.url ?? '', this.url);
      next.searchParams.set('cursor', String(first + pageSize));
      response.setHeader('link', `<${next.href}>; rel="next"`);
    }
    json(response, all.slice(first, first + pageSize));
  }

  #resolve(parts: readonly string[], request: IncomingMessage, response: ServerResponse): void {
    const [org, name, , revision = '', ...path] = parts;
    const found = this.#file(`${org}/${name}`, { revision, path: path.join('/') }, request, response);
    if (found === undefined) return;
    const { commit, file } = found;
    for (const [header, value] of Object.entries({ ...this.#headersOf(commit, file), ...this.extraHeaders })) {
      response.setHeader(header, value);
    }
    if (this.#options.storage === 'here') {
      const target = `/api/resolve-cache/models/${org}/${name}/${commit}/${path.join('/')}`;
      response.writeHead(307, { location: target }).end();
    } else if (file.isLarge) {
      response.writeHead(302, { location: `${this.storageUrl}/${file.content.sha256}?signature=s3cret` }).end();
    } else this.#send(file.content, request, response);
  }

  #resolveCache(parts: readonly string[], request: IncomingMessage, response: ServerResponse): void {
    const [org, name, revision = '', ...path] = parts;
    const found = this.#file(`${org}/${name}`, { revision, path: path.join('/') }, request, response);
    if (found === undefined) return;
    for (const [header, value] of Object.entries(this.#headersOf(found.commit, found.file)))
      response.setHeader(header, value);
    this.#send(found.file.content, request, response);
  }

  #headersOf(commit: string, { content, oid, isLarge }: StoredFile): Record<string, string> {
    const etag = `"${isLarge ? content.sha256 : oid}"`;
    const linked = { 'x-linked-etag': etag, 'x-linked-size': String(content.bytes) };
    return { 'x-repo-commit': commit, etag, 'accept-ranges': 'bytes', ...(isLarge && linked) };
  }

  #file(
    id: string,
    { revision, path }: { readonly revision: string; readonly path: string },
    request: IncomingMessage,
    response: ServerResponse,
  ): { readonly commit: string; readonly file: StoredFile } | undefined {
    const repository = this.#readable(id, request, response, 'files');
    if (repository === undefined) return undefined;
    const found = commitIn(repository, decodeURIComponent(revision), response);
    if (found === undefined) return undefined;
    const file = found.files.get(decodeURIComponent(path));
    if (file !== undefined) return { commit: found.commit, file };
    response.setHeader('x-repo-commit', found.commit);
    refuse(response, 404, 'EntryNotFound', 'Entry not found');
    return undefined;
  }

  /** Returns a repository that the caller may read; answers with the reason otherwise. */
  #readable(
    id: string,
    request: IncomingMessage,
    response: ServerResponse,
    what: 'data' | 'files' = 'data',
  ): Repository | undefined {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    const mayRead = token === undefined ? undefined : this.tokens.get(token);
    if (token !== undefined && mayRead === undefined) {
      refuse(response, 401, undefined, 'Invalid credentials in Authorization header');
      return undefined;
    }
    const repository = this.#repositories.get(id);
    const isKnown = mayRead?.includes(id) ?? false;
    if (repository === undefined || (repository.access === 'private' && !isKnown)) {
      refuse(response, token === undefined ? 401 : 404, 'RepoNotFound', 'Repository not found');
      return undefined;
    }
    if (repository.access === 'gated' && what === 'files' && !isKnown) {
      const terms = `Access to model ${id} is restricted. You must have access to it and be authenticated to access it.`;
      refuse(response, token === undefined ? 401 : 403, 'GatedRepo', terms);
      return undefined;
    }
    return repository;
  }

  #sendStored(sha256: string, request: IncomingMessage, response: ServerResponse): void {
    const all = [...this.#repositories.values()].flatMap(({ commits }) => [...commits.values()]);
    const file = all.flatMap((files) => [...files.values()]).find(({ content }) => content.sha256 === sha256);
    if (file === undefined) refuse(response, 404);
    else this.#send(this.forged.get(sha256) ?? file.content, request, response);
  }

  #send(content: Content, { method, headers: { range } }: IncomingMessage, response: ServerResponse): void {
    const [, from] = /^bytes=(\d+)-$/.exec(range ?? '') ?? [];
    const first = Number(from ?? 0);
    if (first > 0 && first >= content.bytes) {
      response.writeHead(416, { 'content-range': `bytes */${content.bytes}` }).end();
      return;
    }
    const part = { 'content-range': `bytes ${first}-${content.bytes - 1}/${content.bytes}` };
    response.writeHead(from === undefined ? 200 : 206, {
      'content-length': content.bytes - first,
      ...(from !== undefined && part),
    });
    if (method === 'HEAD') response.end();
    else pipeline(Readable.from(this.#paced(content.from(first))), response).catch(() => {});
  }

  async *#paced(chunks: Iterable<Buffer>): AsyncGenerator<Buffer, void> {
    for (const chunk of chunks) {
      if (this.pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, this.pauseMs));
      this.sentBytes += chunk.length;
      yield chunk;
    }
  }
}

function storedFile(path: string, file: string | Buffer | Content): StoredFile {
  const isText = typeof file === 'string' || Buffer.isBuffer(file);
  const content = isText ? smallContent(file) : file;
  const isLarge = !isText || LARGE.test(path);
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${content.sha256}\nsize ${content.bytes}\n`;
  return { content, oid: gitId(isText && !isLarge ? smallContent(file).buffer : Buffer.from(pointer)), isLarge };
}

/** Returns the entries of a tree under a prefix, in the order of their paths. */
function entriesIn(files: Files, { prefix, isRecursive }: { prefix: string; isRecursive: boolean }): object[] {
  const found = new Map<string, object>();
  for (const [path, { content, oid, isLarge }] of files) {
    if (!path.startsWith(prefix)) continue;
    const folders = path.slice(prefix.length).split('/').slice(0, -1);
    for (const [at] of folders.entries()) {
      const folder = prefix + folders.slice(0, at + 1).join('/');
      if (isRecursive || at === 0) found.set(folder, { type: 'directory', oid: sha1(folder), size: 0, path: folder });
    }
    if (!isRecursive && folders.length > 0) continue;
    const lfs = { oid: content.sha256, size: content.bytes, pointerSize: 134 };
    found.set(path, { type: 'file', oid, size: content.bytes, ...(isLarge && { lfs }), path });
  }
  return [...found.values()];
}

function commitIn(
  { commits, refs }: Repository,
  revision: string,
  response: ServerResponse,
): { readonly commit: string; readonly files: Files } | undefined {
  const commit = refs.get(revision) ?? revision;
  const files = commits.get(commit);
  if (files !== undefined) return { commit, files };
  refuse(response, 404, 'RevisionNotFound', `Invalid rev id: ${revision}`);
  return undefined;
}

function refuse(response: ServerResponse, status: number, code?: string, message = 'Not Found'): void {
  if (code !== undefined) response.setHeader('x-error-code', code);
  response.writeHead(status, { 'x-error-message': message, 'content-type': 'application/json' });
  response.end(response.req.method === 'HEAD' ? undefined : JSON.stringify({ error: message }));
}

function json(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

function sha1(text: string | Buffer): string {
  return createHash('sha1').update(text).digest('hex');
}

function gitId(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
}
