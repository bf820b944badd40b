/** Decisions by servers: each row is one request, over connections that stay open. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { decisionHeaders, decisionUrl } from '../decision-url.ts';
import { errorCode } from '../exclusive-file.ts';
import { Refusal } from '../refusal.ts';
import { STATE_HEADER, stateDigest } from '../state-header.ts';
import { type Decider, type DecisionText, type Outcome, requestBody } from './decider.ts';

export interface ServersOptions {
  readonly urls: readonly string[];
  /** Requests at once at each server. */
  readonly concurrency: number;
  /** How long no server may answer before the run ends. */
  readonly giveUpMs: number;
  readonly config: Config;
}

/** Statuses that say something of the request itself. */
const BAD_REQUEST = new Set([400, 413, 422]);

/** Statuses that pass. */
const BUSY = new Set([408, 425, 429, 502, 503, 504]);

/** A request that a server fails on so often is at fault itself. */
const MAX_FAILURES = 3;

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/** Longer than any server lets a request wait and run. */
const ANSWER_TIMEOUT_MS = 180_000;
const HEALTH_TIMEOUT_MS = 5000;

interface Server {
  readonly url: URL;
  busy: number;
  /** Pauses in a row. */
  pauses: number;
  /** It is let alone until then. */
  restsUntilMs: number;
}

/** A response as it came; status 0 when there was none. */
interface Received {
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs: number | undefined;
}

/**
 * The servers at `urls`.
 *
 * @throws Refusal when one of them is no address, or two of them say that they have different models.
 */
export async function decideThere(options: ServersOptions, stop: AbortSignal): Promise<Decider> {
  const digests = await Promise.all(options.urls.map((url) => modelDigest(decisionUrl(url))));
  const known = digests.filter((digest) => digest !== undefined);
  const other = digests.findIndex((digest) => digest !== undefined && digest !== known[0]);
  if (other >= 0)
    throw new Refusal(`${options.urls[other]}: has another model than ${options.urls[digests.indexOf(known[0])]}`);
  return new Servers(options, stop, known[0] === undefined ? null : `graph ${known[0]}`);
}

/** The digest in a server's health record; undefined when it does not tell, or cannot be reached now. */
async function modelDigest(endpoint: URL): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
    const { sha256 } = (await (await fetch(new URL('../health', endpoint), { signal })).json()) as { sha256?: unknown };
    return typeof sha256 === 'string' ? sha256 : undefined;
  } catch {
    return undefined;
  }
}

class Servers implements Decider {
  readonly window: number;
  readonly model: string | null;
  readonly #servers: readonly Server[];
  readonly #options: ServersOptions;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #stop: AbortSignal;
  readonly #open = new Set<AbortController>();
  #waiting: (() => void)[] = [];
  #answeredMs = performance.now();

  constructor(options: ServersOptions, stop: AbortSignal, model: string | null) {
    this.#options = options;
    this.model = model;
    this.#servers = options.urls.map((url) => ({ url: decisionUrl(url), busy: 0, pauses: 0, restsUntilMs: 0 }));
    this.#headers = { ...decisionHeaders(options.config), accept: 'application/json' };
    // A row that takes long does not keep the servers waiting for those behind it.
    this.window = 4 * options.concurrency * options.urls.length;
    this.#stop = stop;
    stop.addEventListener('abort', () => {
      for (const controller of this.#open) controller.abort();
      this.#wake();
    });
  }

  async decide(request: DecisionText): Promise<Outcome> {
    const body = requestBody(request);
    const state = stateDigest(request.stateJson);
    for (let failures = 0; ; ) {
      const server = await this.#free(state);
      const response = await this.#send(server, { body, state });
      this.#release(server);
      if (response.status === 200) {
        [server.pauses, this.#answeredMs] = [0, performance.now()];
        return { body: response.text };
      }
      if (BAD_REQUEST.has(response.status)) {
        this.#answeredMs = performance.now();
        return { problem: problemOf(response) };
      }
      if (response.status !== 0 && response.status < 500 && !BUSY.has(response.status)) {
        throw new Refusal(`${server.url.origin} answers ${response.status}: ${problemOf(response).message}`);
      }
      if (response.status >= 500 && !BUSY.has(response.status)) failures += 1;
      if (failures === MAX_FAILURES) return { problem: problemOf(response) };
      this.#pause(server, response);
    }
  }

  async close(): Promise<void> {}

  /** A server that takes one more request: for equal states the same one, if it can. */
  async #free(state: string): Promise<Server> {
    for (;;) {
      this.#stop.throwIfAborted();
      const now = performance.now();
      const free = this.#servers.filter(
        ({ busy, restsUntilMs }) => busy < this.#options.concurrency && restsUntilMs <= now,
      );
      const own = this.#servers[Number.parseInt(state.slice(0, 8), 16) % this.#servers.length];
      const server = own && free.includes(own) ? own : free.toSorted((one, other) => one.busy - other.busy)[0];
      if (server) {
        server.busy += 1;
        return server;
      }
      await this.#change(now);
    }
  }

  /** Resolves when a request has ended, a server has rested, or all is over. */
  async #change(now: number): Promise<void> {
    const rests = this.#servers.map(({ restsUntilMs }) => restsUntilMs - now).filter((ms) => ms > 0);
    const end = new AbortController();
    const woken = new Promise<void>((resolve) => this.#waiting.push(resolve));
    const rested = rests.length === 0 ? [] : [sleep(Math.min(...rests), undefined, { signal: end.signal })];
    await Promise.race([woken, ...rested]);
    end.abort();
    await Promise.allSettled(rested);
  }

  #release(server: Server): void {
    server.busy -= 1;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** All requests that find it busy at the same time are one reason for one pause. */
  #pause(server: Server, response: Received): void {
    const now = performance.now();
    if (now - this.#answeredMs > this.#options.giveUpMs) {
      const what = `${server.url.origin}: ${problemOf(response).message}`;
      throw new Refusal(`no server has answered for ${Math.round(this.#options.giveUpMs / 1000)} s; ${what}`);
    }
    if (server.restsUntilMs > now) return;
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** server.pauses) * (0.5 + Math.random() / 2);
    server.pauses += 1;
    server.restsUntilMs = now + Math.min(response.retryAfterMs ?? pauseMs, this.#options.giveUpMs);
  }

  async #send(server: Server, sent: { readonly body: Buffer; readonly state: string }): Promise<Received> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new Error('no answer')), ANSWER_TIMEOUT_MS);
    this.#open.add(controller);
    try {
      const response = await fetch(server.url, {
        method: 'POST',
        body: sent.body,
        headers: { ...this.#headers, [STATE_HEADER]: sent.state },
        redirect: 'manual',
        signal: controller.signal,
      });
      const retryAfterMs = retryAfter(response.headers.get('retry-after'));
      return { status: response.status, text: await response.text(), retryAfterMs };
    } catch (error) {
      this.#stop.throwIfAborted();
      const cause = error instanceof Error ? (error.cause ?? error) : error;
      return { status: 0, text: errorCode(cause) || String(cause), retryAfterMs: undefined };
    } finally {
      clearTimeout(timer);
      this.#open.delete(controller);
    }
  }
}

/** Seconds, or a date; undefined when it is neither. Nobody is waited for longer than an hour. */
function retryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), 3_600_000);
}

function problemOf({ status, text }: Received): { readonly code: string; readonly message: string } {
  try {
    const { detail } = JSON.parse(text) as {
      readonly detail: { readonly error_type: string; readonly message: string };
    };
    return { code: String(detail.error_type), message: String(detail.message) };
  } catch {
    const code = status === 0 ? 'no_answer' : `http_${status}`;
    return { code, message: text.trim().slice(0, 500).replaceAll(/\s+/g, ' ') || code };
  }
}
