/** The store of files on a web server. */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { publicLookup, type Resolve, requirePublicHost } from './addresses.ts';
import { isLoopbackName, publicSource } from './location.ts';
import { reason, SourceError } from './source-error.ts';
import type { Opened, OpenOptions, Store } from './store.ts';

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);
/** The default of `answerMs`. */
const ANSWER_MS = 30_000;

interface WebStoreOptions {
  readonly url: URL;
  /** Whether a redirect may lead to plain HTTP. */
  readonly allowHttp: boolean;
  /** Longest wait for a connection and the headers of an answer. */
  readonly answerMs?: number;
  readonly resolve?: Resolve;
}

/** The store of the file at a URL, and of the files next to it. */
export class WebStore implements Store {
  readonly #url: URL;
  readonly #options: WebStoreOptions;

  constructor(options: WebStoreOptions) {
    this.#url = options.url;
    this.#options = options;
  }

  async open(path: string | undefined, { etag, signal }: OpenOptions): Promise<Opened | 'unchanged'> {
    let url = path === undefined ? this.#url : this.#beside(path);
    for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
      const answer = await this.#get(url, { etag, signal });
      if (REDIRECTS.has(answer.statusCode) && answer.headers.location !== undefined) {
        answer.destroy();
        url = this.#redirected(url, answer.headers.location);
        continue;
      }
      return this.#opened(url, answer);
    }
    throw new SourceError(`${publicSource(this.#url.href)}: more than ${MAX_REDIRECTS} redirects`, { isAway: true });
  }

  /** Returns the URL of a file next to the location. The query stays, since it may be the key to the whole folder. */
  #beside(path: string): URL {
    const parts = path.split('/').map(encodeURIComponent);
    const url = new URL(parts.join('/'), this.#url);
    url.search = this.#url.search;
    return url;
  }

  /**
   * Returns the URL that a redirect leads to. Apart from the server of `model` itself, that must be a public address:
   * the person who set `model` has not chosen it.
   *
   * @throws SourceError when the redirect is not followed.
   */
  #redirected(from: URL, location: string): URL {
    if (!URL.canParse(location, from.href)) throw this.#failed(from, 'redirects to what is not a URL');
    const url = new URL(location, from);
    const isSafe = url.protocol === 'https:' || (url.protocol === 'http:' && this.#mayBePlain(from, url));
    if (!isSafe) throw this.#failed(from, `redirects to ${publicSource(url.href)}, which is not https://`);
    if (url.origin !== this.#url.origin) {
      try {
        requirePublicHost(url.hostname);
      } catch (error) {
        throw this.#failed(from, reason(error));
      }
    }
    return url;
  }

  #mayBePlain(from: URL, to: URL): boolean {
    return this.#options.allowHttp || (from.protocol === 'http:' && isLoopbackName(to.hostname));
  }

  #get(url: URL, { etag, signal }: OpenOptions): Promise<IncomingMessage> {
    const isOwn = url.origin === this.#url.origin;
    const headers: Record<string, string> = { 'accept-encoding': 'identity', 'user-agent': 'svc' };
    if (etag !== undefined) headers['if-none-match'] = etag;
    const options: RequestOptions = { headers, signal, agent: false };
    // Credentials go only to the server that they were set for.
    const { username, password } = this.#url;
    if (isOwn && username !== '') options.auth = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    if (!isOwn) options.lookup = publicLookup(this.#options.resolve);
    return this.#answer(url, options);
  }

  #answer(url: URL, options: RequestOptions): Promise<IncomingMessage> {
    const bare = new URL(url);
    bare.username = bare.password = '';
    const answerMs = this.#options.answerMs ?? ANSWER_MS;
    return new Promise((resolve, reject) => {
      const request = url.protocol === 'https:' ? httpsRequest(bare, options) : httpRequest(bare, options);
      const timer = setTimeout(() => request.destroy(new Error(`no answer within ${answerMs / 1000} s`)), answerMs);
      request.on('response', resolve);
      request.on('error', (error) => {
        options.signal?.aborted ? reject(error) : reject(this.#failed(url, reason(error), error));
      });
      request.on('close', () => {
        clearTimeout(timer);
        // This has no effect when the request was answered or has failed.
        reject(this.#failed(url, 'no answer'));
      });
      request.on('response', () => clearTimeout(timer));
      request.end();
    });
  }

  #opened(url: URL, answer: IncomingMessage): Opened | 'unchanged' {
    const { statusCode = 0, headers } = answer;
    if (statusCode === 200) {
      const bytes = headers['content-length'];
      return { body: answer, etag: headers.etag, bytes: bytes === undefined ? undefined : Number(bytes) };
    }
    answer.destroy();
    if (statusCode === 304) return 'unchanged';
    throw this.#failed(url, `status ${statusCode}`);
  }

  #failed(url: URL, problem: string, cause?: unknown): SourceError {
    return new SourceError(`${publicSource(url.href)}: ${problem}`, { isAway: !(cause instanceof SourceError), cause });
  }
}
