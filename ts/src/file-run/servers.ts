/** Decisions by servers: each row is one request, over connections that stay open. */
import { setTimeout as sleep } from 'node:timers/promises';
import { decisionHeaders, decisionUrl } from '../network/decision-url.ts';
import { reach, serverName } from '../network/reach.ts';
import { stateDigest } from '../network/state-header.ts';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';
import { type Asked, askedQuestions } from './asked.ts';
import { type Decider, type DecisionText, type Outcome, requestBody } from './decider.ts';
import { Dispatch } from './dispatch.ts';
import { faultIn } from './fault.ts';
import { inTime } from './in-time.ts';
import { BAD_REQUEST, post, problemOf, type Received, type Sent } from './post.ts';
import { PROBES, type Probed, requireSameAnswers } from './probes.ts';
import { Server } from './server.ts';

export interface ServersOptions {
  readonly urls: readonly string[];
  /** The number of requests at once at each server. */
  readonly concurrency: number;
  /** The time without an answer from any server after which the run ends, in milliseconds. */
  readonly giveUpMs: number;
  /** Whether the comparison of the models' digests and of the answers to the probes is skipped. */
  readonly mayDiffer: boolean;
  readonly config: Config;
  /** Reports a server that is of no use now to the person who started the run. */
  readonly tell: (line: string) => void;
}

const HEALTH_TIMEOUT_MS = 5000;

/** The timeout of the first try of a probe; each further try doubles it, up to the longest one. */
const FIRST_PROBE_TIMEOUT_MS = 10_000;
const LONGEST_PROBE_TIMEOUT_MS = 180_000;

/** The longest wait of the start for the answers to the probes. */
const START_MS = 10_000;

/**
 * Connects to the servers at `urls` and returns a decider that asks them.
 *
 * @throws Refusal when a URL is not an address, or two servers have different models or give different answers.
 */
export async function serversDecider(options: ServersOptions, stop: AbortSignal): Promise<Decider> {
  const digests = await inTime(options.urls.map((url) => modelDigest(decisionUrl(url))));
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

/**
 * Returns the digest in a server's health record; undefined if the record has none or the server cannot be reached now.
 */
async function modelDigest(endpoint: URL): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
    const response = await reach(new URL('../health', endpoint), { signal });
    const { sha256 } = (await response.json()) as { sha256?: unknown };
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
  readonly #dispatch: Dispatch;
  /** Aborts the probes when the run ends. */
  readonly #ended = new AbortController();
  /** The reference answers that every other server's answers must match. */
  #reference: Probed | undefined;
  /** The parsed questions of the last request, kept because the next request has the same ones. */
  #asked: { readonly json: string; readonly questions: readonly Asked[] } = { json: '', questions: [] };

  constructor(options: ServersOptions, stop: AbortSignal, model: string | null) {
    const { urls, concurrency, giveUpMs, tell } = options;
    this.#options = options;
    this.model = model;
    const isCompared = options.mayDiffer || urls.length === 1;
    const limits = { concurrency, longestRestMs: giveUpMs, isCompared };
    this.#servers = urls.map((url) => new Server({ url, ...limits }));
    this.#headers = { ...decisionHeaders(options.config), accept: 'application/json' };
    // The window is wide enough that one slow row does not keep the servers waiting for the rows behind it.
    this.window = 4 * concurrency * urls.length;
    this.#dispatch = new Dispatch({ servers: this.#servers, headers: this.#headers, giveUpMs, tell });
    if (stop.aborted) this.#end(stop.reason);
    else stop.addEventListener('abort', () => this.#end(stop.reason));
  }

  async decide(request: DecisionText): Promise<Outcome> {
    const { stateJson, questionsJson } = request;
    if (this.#asked.json !== questionsJson) {
      this.#asked = { json: questionsJson, questions: askedQuestions(questionsJson) };
    }
    const sent = { body: requestBody(request), state: stateDigest(stateJson) };
    return this.#dispatch.decide(sent, this.#asked.questions);
  }

  async close(): Promise<void> {
    this.#end(new Refusal('the batch is over'));
  }

  #end(reason: unknown): void {
    this.#ended.abort();
    this.#dispatch.end(reason);
  }

  /**
   * Compares the answers of the servers that answer now. The others are compared before they get a row.
   *
   * @throws Refusal when two of them differ.
   */
  async compare(): Promise<void> {
    const open = this.#servers.filter(({ isCompared }) => !isCompared);
    const first = open.map(async (server) => {
      await this.#tryComparing(server, FIRST_PROBE_TIMEOUT_MS);
      if (!server.isCompared) void this.#keepComparing(server);
      return server.isCompared || undefined;
    });
    await inTime(first, START_MS);
    this.#dispatch.throwIfEnded();
    for (const server of this.#servers) {
      const { url, lastWords = 'no answer yet' } = server;
      if (server.isCompared || !server.claimNaming()) continue;
      this.#options.tell(`${serverName(url)}: ${lastWords}; it gets no rows until it answers the probes`);
    }
  }

  async #keepComparing(server: Server): Promise<void> {
    for (let timeoutMs = FIRST_PROBE_TIMEOUT_MS; !server.isCompared; ) {
      const restMs = Math.max(0, server.restsUntilMs - performance.now());
      await sleep(restMs, undefined, { signal: this.#ended.signal }).catch(() => {});
      if (this.#ended.signal.aborted || this.#dispatch.hasEnded) return;
      timeoutMs = Math.min(LONGEST_PROBE_TIMEOUT_MS, 2 * timeoutMs);
      await this.#tryComparing(server, timeoutMs);
    }
  }

  async #tryComparing(server: Server, timeoutMs: number): Promise<void> {
    try {
      const probed = await this.#probe(server, timeoutMs);
      if (this.#ended.signal.aborted) return;
      if ('answers' in probed) this.#note(server, probed);
      else this.#dispatch.setBack(server, probed);
    } catch (error) {
      this.#end(error);
    }
  }

  /** Returns the server's answers to the probes, or its first response that is no answer. */
  async #probe(server: Server, timeoutMs: number): Promise<Probed | Received> {
    const answers: string[] = [];
    for (const { id, ...probe } of PROBES) {
      const sent = { body: requestBody(probe), state: stateDigest(probe.stateJson), id };
      const response = await this.#send(server, sent, timeoutMs);
      if (BAD_REQUEST.has(response.status)) {
        const { message } = problemOf(response);
        throw new Refusal(
          `${serverName(server.url)} refuses a probe: ${message}; --allow-different-servers asks it without`,
        );
      }
      if (response.status !== 200) return response;
      const fault = faultIn(response.text, askedQuestions(probe.questionsJson));
      if (fault !== undefined) return { ...response, text: fault };
      answers.push(response.text);
    }
    return { url: serverName(server.url), answers };
  }

  async #send(server: Server, sent: Sent, timeoutMs: number): Promise<Received> {
    const controller = new AbortController();
    const leave = () => controller.abort();
    const { signal } = this.#ended;
    signal.addEventListener('abort', leave);
    const received = await post(sent, { url: server.url, headers: this.#headers, timeoutMs, controller });
    signal.removeEventListener('abort', leave);
    return received;
  }

  #note(server: Server, probed: Probed): void {
    this.#reference ??= probed;
    requireSameAnswers(this.#reference, probed);
    server.isCompared = true;
    server.answered();
    this.#dispatch.schedule();
  }
}
