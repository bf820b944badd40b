/** Decisions by servers: each row is one request, over connections that stay open. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { decisionHeaders, decisionUrl } from '../decision-url.ts';
import { Refusal } from '../refusal.ts';
import { stateDigest } from '../state-header.ts';
import { type Asked, askedQuestions } from './asked.ts';
import { type Decider, type DecisionText, type Outcome, requestBody } from './decider.ts';
import { Dispatch } from './dispatch.ts';
import { faultIn } from './fault.ts';
import { BAD_REQUEST, post, problemOf, type Received, type Sent } from './post.ts';
import { PROBES, type Probed, requireSameAnswers } from './probes.ts';
import { Server } from './server.ts';

export interface ServersOptions {
  readonly urls: readonly string[];
  /** Requests at once at each server. */
  readonly concurrency: number;
  /** How long no server may answer before the run ends. */
  readonly giveUpMs: number;
  /** Whether neither the digests of the models nor the answers to the probes are compared. */
  readonly mayDiffer: boolean;
  readonly config: Config;
  /** Tells who started the run of a server that is no use now. */
  readonly tell: (line: string) => void;
}

const HEALTH_TIMEOUT_MS = 5000;

/** An answer to a probe is waited for so long at first, and then longer. */
const FIRST_PROBE_TIMEOUT_MS = 10_000;
const LONGEST_PROBE_TIMEOUT_MS = 180_000;

/** Once one server has told what is asked at the start, the others have so many times as long, and at least so long. */
const GRACE = 3;
const SHORTEST_GRACE_MS = 1000;

/** The longest that the start waits for the answers to the probes. */
const START_MS = 10_000;

/**
 * The servers at `urls`.
 *
 * @throws Refusal when one of them is no address, or two of them have different models or give different answers.
 */
export async function decideThere(options: ServersOptions, stop: AbortSignal): Promise<Decider> {
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
  readonly #dispatch: Dispatch;
  /** Ends with the run. */
  readonly #ended = new AbortController();
  /** The answers that those of every other server must be. */
  #reference: Probed | undefined;
  /** The questions of the last request, which are those of the next one too. */
  #asked: { readonly json: string; readonly questions: readonly Asked[] } = { json: '', questions: [] };

  constructor(options: ServersOptions, stop: AbortSignal, model: string | null) {
    const { urls, concurrency, giveUpMs, tell } = options;
    this.#options = options;
    this.model = model;
    const isCompared = options.mayDiffer || urls.length === 1;
    const limits = { concurrency, longestRestMs: giveUpMs, isCompared };
    this.#servers = urls.map((url) => new Server({ url, ...limits }));
    this.#headers = { ...decisionHeaders(options.config), accept: 'application/json' };
    // A row that takes long does not keep the servers waiting for those behind it.
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
   * Compares the answers of the servers that can be asked now. The others are compared before they get a row.
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
      this.#options.tell(`${url.origin}: ${lastWords}; it gets no rows until it answers the probes`);
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

  /** What a server answers to the probes; the response that is none, where there is one. */
  async #probe(server: Server, timeoutMs: number): Promise<Probed | Received> {
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
      const fault = faultIn(response.text, askedQuestions(probe.questionsJson));
      if (fault !== undefined) return { ...response, text: fault };
      answers.push(response.text);
    }
    return { url: server.url.origin, answers };
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

/**
 * What all of `tries` come to, undefined for those that come to nothing in time: once one has come to something, the others
 * have a little longer than it took, and no longer than `mostMs` in all.
 */
async function inTime<Value>(
  tries: readonly Promise<Value | undefined>[],
  mostMs = Number.POSITIVE_INFINITY,
): Promise<(Value | undefined)[]> {
  const startMs = performance.now();
  const found: (Value | undefined)[] = tries.map(() => undefined);
  await new Promise<void>((resolve) => {
    let timer = Number.isFinite(mostMs) ? setTimeout(resolve, mostMs) : undefined;
    let isFirst = true;
    const each = tries.map(async (one, at) => {
      found[at] = await one;
      if (found[at] === undefined || !isFirst) return;
      isFirst = false;
      clearTimeout(timer);
      timer = setTimeout(resolve, Math.max(SHORTEST_GRACE_MS, GRACE * (performance.now() - startMs)));
    });
    void Promise.all(each).then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
  return [...found];
}
