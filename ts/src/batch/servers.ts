/** Decisions by servers: each row is one request, over connections that stay open. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { decisionHeaders, decisionUrl } from '../decision-url.ts';
import { errorCode } from '../exclusive-file.ts';
import { Refusal } from '../refusal.ts';
import { STATE_HEADER, stateDigest } from '../state-header.ts';
import { type Decider, type DecisionText, type Outcome, requestBody } from './decider.ts';
import { PROBES, type Probed, requireSameAnswers } from './probes.ts';

export interface ServersOptions {
  readonly urls: readonly string[];
  /** Requests at once at each server. */
  readonly concurrency: number;
  /** How long no server may answer before the run ends. */
  readonly giveUpMs: number;
  /** Whether neither the digests of the models nor the answers to the probes are compared. */
  readonly mayDiffer: boolean;
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
/** A server that does not answer a probe by then at the start is compared when it gets its first row. */
const FIRST_PROBE_TIMEOUT_MS = 10_000;

interface Server {
  readonly url: URL;
  busy: number;
  /** Pauses in a row. */
  pauses: number;
  /** It is let alone until then. */
  restsUntilMs: number;
  /** Whether its answers were compared with those of the others; it gets no row before. */
  isCompared: boolean;
  /** The probes that are under way. */
  probing: Promise<Probed | Received> | undefined;
}

/** What a server is sent. */
interface Sent {
  readonly body: Buffer;
  /** The digest of the state. */
  readonly state: string;
  /** Of a probe, by which the server's log tells it from a row. */
  readonly id?: string;
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
 * @throws Refusal when one of them is no address, or two of them have different models or give different answers.
 */
export async function decideThere(options: ServersOptions, stop: AbortSignal): Promise<Decider> {
  const digests = await Promise.all(options.urls.map((url) => modelDigest(decisionUrl(url))));
  const known = digests.filter((digest) => digest !== undefined);
  const other = digests.findIndex((digest) => digest !== undefined && digest !== known[0]);
  if (other >= 0 && !options.mayDiffer)
    throw new Refusal(
      `${options.urls[other]}: has another model than ${options.urls[digests.indexOf(known[0])]}; ` +
        '--allow-different-servers asks both all the same',
    );
  const servers = new Servers(options, stop, known[0] === undefined || other >= 0 ? null : `graph ${known[0]}`);
  await servers.compare();
  return servers;
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
  /** The answers that those of every other server must be. */
  #reference: Probed | undefined;
  #answeredMs = performance.now();

  constructor(options: ServersOptions, stop: AbortSignal, model: string | null) {
    this.#options = options;
    this.model = model;
    const isCompared = options.mayDiffer || options.urls.length === 1;
    const server = { busy: 0, pauses: 0, restsUntilMs: 0, isCompared, probing: undefined };
    this.#servers = options.urls.map((url) => ({ ...server, url: decisionUrl(url) }));
    this.#headers = { ...decisionHeaders(options.config), accept: 'application/json' };
    // A row that takes long does not keep the servers waiting for those behind it.
    this.window = 4 * options.concurrency * options.urls.length;
    this.#stop = stop;
    stop.addEventListener('abort', () => {
      for (const controller of this.#open) controller.abort();
      this.#wake();
    });
  }

  /**
   * Compares the answers of the servers that can be asked now. The others are compared before they get a row.
   *
   * @throws Refusal when two of them differ.
   */
  async compare(): Promise<void> {
    const open = this.#servers.filter(({ isCompared }) => !isCompared);
    const all = await Promise.all(open.map((server) => this.#probe(server, FIRST_PROBE_TIMEOUT_MS)));
    for (const [index, server] of open.entries()) this.#note(server, all[index]);
  }

  /** What a server answers to the probes; the response that is none, where there is one. */
  async #probe(server: Server, timeoutMs?: number): Promise<Probed | Received> {
    const answers: string[] = [];
    for (const { id, ...probe } of PROBES) {
      const sent = { body: requestBody(probe), state: stateDigest(probe.stateJson), id };
      const response = await this.#send(server, sent, timeoutMs);
      if (BAD_REQUEST.has(response.status)) {
        const { message } = problemOf(response);
        throw new Refusal(
          `${server.url.origin} refuses a probe: ${message}; --allow-different-servers asks it without`,
        );
      }
      if (response.status !== 200) return response;
      answers.push(response.text);
    }
    return { url: server.url.origin, answers };
  }

  #note(server: Server, probed: Probed | Received | undefined): void {
    if (probed === undefined || !('answers' in probed)) return;
    this.#reference ??= probed;
    requireSameAnswers(this.#reference, probed);
    server.isCompared = true;
  }

  /** The answer to a row of a server, which is compared before it is asked for the first time. */
  async #ask(server: Server, sent: Omit<Sent, 'id'>): Promise<Received> {
    if (!server.isCompared) {
      server.probing ??= this.#probe(server).finally(() => {
        server.probing = undefined;
      });
      const probed = await server.probing;
      if (!('answers' in probed)) return probed;
      this.#note(server, probed);
    }
    return this.#send(server, sent);
  }

  async decide(request: DecisionText): Promise<Outcome> {
    const body = requestBody(request);
    const state = stateDigest(request.stateJson);
    for (let failures = 0; ; ) {
      const server = await this.#free(state);
      const response = await this.#ask(server, { body, state });
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

  async #send(server: Server, sent: Sent, timeoutMs = ANSWER_TIMEOUT_MS): Promise<Received> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new Error('no answer')), timeoutMs);
    this.#open.add(controller);
    try {
      const response = await fetch(server.url, {
        method: 'POST',
        body: sent.body,
        headers: { ...this.#headers, [STATE_HEADER]: sent.state, ...(sent.id && { 'x-request-id': sent.id }) },
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
