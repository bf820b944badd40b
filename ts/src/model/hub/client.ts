/**
 * Requests to a hub: with the token, which goes to nobody else, within the rules for redirects, and no sooner than the
 * hub allows.
 */
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { retryAfterMsIn } from '../../network/retry-after.ts';
import { publicLookup } from '../addresses.ts';
import { MAX_MESSAGE_CHARS, reason, SourceError } from '../source-error.ts';
import { answerOf, MAX_REDIRECTS, redirectOf, redirectTarget } from '../web-answer.ts';
import { type Refused, refusedBy } from './refused.ts';

/** The longest wait that the hub may ask for before its next answer; a longer one ends the fetch for that time. */
const MAX_PAUSE_MS = 60_000;
const MAX_TRIES = 5;
/** The waits where the hub does not say how long: they double from the first one on. */
const FIRST_PAUSE_MS = 1000;
/** The statuses of a server that may be well again a moment later. */
const PASSING: ReadonlySet<number | undefined> = new Set([408, 500, 502, 503, 504]);
/** The longest pause that is believed. A hub that asks for more is asked once a day, and no timer is as long as a year. */
const LONGEST_PAUSE_MS = 24 * 60 * 60_000;
/** The text in the place of the token. */
const MASK = '[secret]';

export interface HubClientOptions {
  /** The address of the hub; paths are added to its own path. */
  readonly endpoint: URL;
  readonly token: { reveal(): string } | undefined;
  /** Whether redirects may lead to plain HTTP. */
  readonly allowHttp: boolean;
  /** The longest wait for the headers of an answer, in milliseconds. */
  readonly answerMs?: number;
  /** Waits until the hub may be asked again; tests pass their own. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
  /** Whether a redirect may lead to a URL although that is not public; tests pass their own. */
  readonly isTrusted?: (url: URL) => boolean;
}

/** A request, with what an error is about. */
export interface Asked {
  /** The object of the request in messages: the model's name, and a file of it. */
  readonly what: string;
  /** The repository, for advice about who may read it. */
  readonly repository: string;
  readonly signal: AbortSignal;
  /** The first byte of a file that is wanted; 0 asks for all of it. */
  readonly from?: number;
}

/** An answer with a body, which the caller reads or destroys. */
export interface HubAnswer {
  readonly status: number;
  readonly body: IncomingMessage;
  /** The headers of the hub's own answer: a file may come from another server, to which the hub has redirected. */
  readonly told: IncomingHttpHeaders;
}

export class HubClient {
  readonly #options: HubClientOptions;

  constructor(options: HubClientOptions) {
    this.#options = options;
  }

  /**
   * Returns the answer to `GET`, with the status 200 or 206.
   *
   * @param path - The path from the endpoint on, encoded, with a query where there is one.
   * @throws SourceError for every other answer, or for none.
   */
  async get(path: string, asked: Asked): Promise<HubAnswer> {
    const { endpoint, pause = wait } = this.#options;
    const url = new URL(`${endpoint.href.replace(/\/$/, '')}/${path}`);
    for (let tries = 1; ; tries += 1) {
      const { answer, told } = await this.#followed(url, asked);
      const { statusCode: status = 0 } = answer;
      if (status === 200 || status === 206) return { status, body: answer, told };
      answer.destroy();
      const pauseMs = pauseOf(answer, FIRST_PAUSE_MS * 2 ** (tries - 1));
      const isLast = tries === MAX_TRIES || (pauseMs ?? 0) > MAX_PAUSE_MS;
      if (pauseMs === undefined || (isLast && !isLimit(answer))) throw this.#refused(answer, asked);
      if (isLast) throw limited(asked, status, pauseMs);
      await pause(pauseMs, asked.signal);
      asked.signal.throwIfAborted();
    }
  }

  /**
   * Returns the text without the token, which a hub may send back in anything that it says: as the name of a host it
   * comes in small letters, and a message that was cut may end in the beginning of it.
   */
  withoutToken(text: string): string {
    const token = this.#options.token?.reveal();
    if (token === undefined) return text;
    const masked = text.replace(new RegExp(token.replace(/[^\w]/g, '\\$&'), 'gi'), MASK);
    return text.length < MAX_MESSAGE_CHARS ? masked : withoutBeginning(masked, token);
  }

  #refused(answer: IncomingMessage, { what, repository }: Asked): SourceError {
    const { endpoint, token } = this.#options;
    const refused: Refused = {
      answer,
      page: `${endpoint.href.replace(/\/$/, '')}/${repository}`,
      hasToken: token !== undefined,
    };
    return new SourceError(`${what}: ${refusedBy(refused)}`, { isAway: true });
  }

  async #followed(start: URL, asked: Asked): Promise<{ answer: IncomingMessage; told: IncomingHttpHeaders }> {
    const { endpoint: own, allowHttp } = this.#options;
    let [url, told]: [URL, IncomingHttpHeaders] = [start, {}];
    for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
      const answer = await this.#answer(url, asked);
      if (url.origin === own.origin) told = { ...told, ...answer.headers };
      const location = redirectOf(answer);
      if (location === undefined) return { answer, told };
      answer.destroy();
      try {
        url = this.#trusted(url, location) ?? redirectTarget(url, location, { own, allowHttp });
      } catch (error) {
        throw new SourceError(`${asked.what}: ${url.host}: ${reason(error)}`, { isAway: true });
      }
    }
    throw new SourceError(`${asked.what}: more than ${MAX_REDIRECTS} redirects`, { isAway: true });
  }

  #trusted(from: URL, location: string): URL | undefined {
    const url = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
    return url !== undefined && this.#options.isTrusted?.(url) ? url : undefined;
  }

  async #answer(url: URL, { what, signal, from = 0 }: Asked): Promise<IncomingMessage> {
    const { endpoint, token, answerMs, isTrusted } = this.#options;
    const isOwn = url.origin === endpoint.origin;
    const headers = {
      'accept-encoding': 'identity',
      'user-agent': 'svc',
      ...(from > 0 && { range: `bytes=${from}-` }),
      ...(isOwn && token !== undefined && { authorization: `Bearer ${token.reveal()}` }),
    };
    const options: RequestOptions = { headers, signal, agent: false };
    if (!isOwn && !isTrusted?.(url)) options.lookup = publicLookup();
    try {
      return await answerOf(url, options, answerMs);
    } catch (error) {
      if (signal.aborted) throw error;
      const isAway = !(error instanceof SourceError);
      throw new SourceError(`${what}: ${url.host}: ${reason(error)}`, { isAway, cause: error });
    }
  }
}

/** Returns the text without the beginning of the token at its end. */
function withoutBeginning(text: string, token: string): string {
  const [end, small] = [text.toLowerCase(), token.toLowerCase()];
  for (let length = token.length - 1; length > 0; length -= 1) {
    if (end.endsWith(small.slice(0, length))) return text.slice(0, -length) + MASK;
  }
  return text;
}

/** Waits, or ends early when `signal` fires. */
function wait(ms: number, signal: AbortSignal): Promise<unknown> {
  return delay(ms, undefined, { signal }).catch(() => {});
}

function limited({ what }: Asked, status: number, retryMs: number): SourceError {
  const problem = `the hub limits requests (status ${status}); the next may come in ${Math.ceil(retryMs / 1000)} s`;
  return new SourceError(`${what}: ${problem}`, { isAway: true, retryMs });
}

/** Whether an answer says that the hub limits requests. */
function isLimit({ statusCode, headers }: Answered): boolean {
  return statusCode === 429 || (statusCode === 503 && retryAfterMsIn(headers['retry-after']) !== undefined);
}

type Answered = Pick<IncomingMessage, 'statusCode' | 'headers'>;

/**
 * Returns how many milliseconds a hub wants to be left alone, a second more than it says, since it rounds, and at most
 * a day; undefined when the same request would get the same answer after any wait.
 *
 * @param untoldMs - The wait where the hub limits requests, or has a fault that passes, and does not say for how long.
 */
export function pauseOf({ statusCode, headers }: Answered, untoldMs: number): number | undefined {
  const { ratelimit, 'retry-after': retryAfter } = headers;
  const laterMs = retryAfterMsIn(retryAfter);
  const later = laterMs && Math.ceil(laterMs / 1000);
  const seconds = statusCode === 429 ? (remainingSeconds(ratelimit) ?? later) : later;
  if (seconds !== undefined && (statusCode === 429 || statusCode === 503)) {
    return Math.min((seconds + 1) * 1000, LONGEST_PAUSE_MS);
  }
  return statusCode === 429 || PASSING.has(statusCode) ? untoldMs : undefined;
}

/** Returns the seconds until the limit of `RateLimit: "api";r=0;t=55` is reset; undefined while requests are left. */
function remainingSeconds(header: string | string[] | undefined): number | undefined {
  const [, left, seconds] = /;\s*r\s*=\s*(\d+)\s*;\s*t\s*=\s*(\d+)/.exec(String(header ?? '')) ?? [];
  return left !== undefined && Number(left) === 0 ? Number(seconds) : undefined;
}
