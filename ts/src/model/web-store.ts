/** The store of files on a web server. */
import type { IncomingMessage, RequestOptions } from 'node:http';
import { publicLookup, type Resolve } from './addresses.ts';
import { publicSource } from './location.ts';
import { reason, SourceError } from './source-error.ts';
import type { Opened, OpenOptions, Store } from './store.ts';
import { ANSWER_MS, answerOf, MAX_REDIRECTS, redirectOf, redirectTarget } from './web-answer.ts';

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
      const location = redirectOf(answer);
      if (location !== undefined) {
        answer.destroy();
        url = this.#redirected(url, location);
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

  #redirected(from: URL, location: string): URL {
    try {
      return redirectTarget(from, location, { own: this.#url, allowHttp: this.#options.allowHttp });
    } catch (error) {
      throw this.#failed(from, reason(error));
    }
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

  async #answer(url: URL, options: RequestOptions): Promise<IncomingMessage> {
    try {
      return await answerOf(url, options, this.#options.answerMs ?? ANSWER_MS);
    } catch (error) {
      throw options.signal?.aborted ? error : this.#failed(url, reason(error), error);
    }
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
