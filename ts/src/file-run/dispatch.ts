/**
 * The assignment of rows to servers: rows go to the servers that answer, and no server holds a row that another could
 * answer.
 */
import { serverName } from '../network/reach.ts';
import { Refusal } from '../refusal.ts';
import type { Asked } from './asked.ts';
import type { Outcome } from './decider.ts';
import { faultIn } from './fault.ts';
import { BAD_REQUEST, BUSY, post, problemOf, type Received, type Sent } from './post.ts';
import type { Problem } from './row.ts';
import type { Server } from './server.ts';

/** A row on which servers fail this many times is at fault itself. */
const MAX_FAILURES = 3;

/** The server preferred for a row's state gets the row unless the best one is more than this many times faster. */
const OWN_SERVER_WORTH = 2;

/** The shortest timeout of a second server that is asked about a row which the first has refused. */
const SECOND_OPINION_MS = 2000;

interface DispatchOptions {
  readonly servers: readonly Server[];
  readonly headers: Readonly<Record<string, string>>;
  /** The time without an answer from any server after which the run ends, in milliseconds. */
  readonly giveUpMs: number;
  /** Reports a server that is of no use now to the person who started the run. */
  readonly tell: (line: string) => void;
}

/** A request under way. */
interface Attempt {
  readonly server: Server;
  readonly startMs: number;
  readonly controller: AbortController;
  /** Whether the response is no longer wanted. */
  isOver: boolean;
}

/** A row without an outcome. */
interface Job {
  readonly sent: Sent;
  readonly asked: readonly Asked[];
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (reason: unknown) => void;
  /** The requests for this row: at most two, the second at another server if the first takes too long. */
  attempts: Attempt[];
  /** The number of failures of each server on this row: refusals, and responses in time that were no valid answer. */
  readonly failures: Map<Server, number>;
  /** The first server's refusal of the row, kept until another server has been asked as well. */
  refusal: { readonly by: Attempt; readonly problem: Problem } | undefined;
  /** The number of requests for this row that timed out. */
  cuts: number;
}

export class Dispatch {
  readonly #options: DispatchOptions;
  readonly #open = new Set<Job>();
  /** The rows that no server has now, in the order in which they are given out. */
  #waiting: Job[] = [];
  #timer: NodeJS.Timeout | undefined;
  #answeredMs = 0;
  /** The message of the last failed server. */
  #lastWords: string | undefined;
  #end: { readonly reason: unknown } | undefined;

  constructor(options: DispatchOptions) {
    this.#options = options;
  }

  /**
   * Returns the outcome of one row.
   *
   * @throws The reason with which the run has ended.
   */
  async decide(sent: Sent, asked: readonly Asked[]): Promise<Outcome> {
    this.throwIfEnded();
    if (this.#open.size === 0) this.#answeredMs = performance.now();
    return new Promise((resolve, reject) => {
      const job: Job = { sent, asked, resolve, reject, attempts: [], failures: new Map(), refusal: undefined, cuts: 0 };
      this.#open.add(job);
      this.#waiting.push(job);
      this.schedule();
    });
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  throwIfEnded(): void {
    if (this.#end !== undefined) throw this.#end.reason;
  }

  /** Rejects all open rows, and all later ones, with `reason`. */
  end(reason: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = { reason };
    clearTimeout(this.#timer);
    for (const job of this.#open) {
      leave(job.attempts);
      job.reject(reason);
    }
    this.#open.clear();
    this.#waiting = [];
  }

  /**
   * Records a response that concerns the server and not the row: the server rests for a while, and is named if it fails
   * again and again.
   */
  setBack(server: Server, received: Received): void {
    const { status, retryAfterMs } = received;
    const what = whatItSays(received);
    const isMany = server.failed();
    server.lastWords = what;
    server.rest(retryAfterMs);
    this.#lastWords = `${serverName(server.url)}: ${problemOf(received).message}`;
    if (status !== 200 && status < 500 && !BUSY.has(status)) {
      server.refusal = `${serverName(server.url)} ${what}`;
      // Every server refuses all requests, so each further row would end the same way.
      const isEverybody = this.#options.servers.every(({ refusal }) => refusal !== undefined);
      if (isEverybody) this.end(new Refusal(server.refusal));
    }
    if (status === 0 ? server.isLongSilent : isMany && !BUSY.has(status)) this.#name(server, what);
  }

  /**
   * Gives rows to the servers that have room now, and sets a timer for the next time at which there may be something to
   * do.
   */
  schedule(): void {
    if (this.#end !== undefined) return;
    const now = performance.now();
    const { giveUpMs } = this.#options;
    if (this.#open.size > 0 && now - this.#answeredMs >= giveUpMs) this.#giveUp();
    if (this.#hasRoom(now)) this.#waiting = this.#waiting.filter((job) => !this.#started(job, now));
    const takeoverMs = this.#hasRoom(now) ? this.#takeOver(now) : Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
    if (this.#open.size === 0) return;
    const rests = this.#options.servers.map(({ restsUntilMs }) => restsUntilMs).filter((ms) => ms > now);
    const nextMs = Math.min(this.#answeredMs + giveUpMs, takeoverMs, ...rests);
    this.#timer = setTimeout(() => this.schedule(), Math.ceil(nextMs - now));
  }

  #hasRoom(now: number): boolean {
    return this.#options.servers.some((server) => server.hasRoom(now));
  }

  #giveUp(): void {
    const held = [...this.#open].flatMap(({ attempts }) => attempts)[0];
    const what = held === undefined ? undefined : `${serverName(held.server.url)}: no answer`;
    const seconds = Math.round(this.#options.giveUpMs / 1000);
    this.end(new Refusal(`no server has answered for ${seconds} s; ${this.#lastWords ?? what}`));
  }

  #started(job: Job, now: number): boolean {
    if (job.refusal !== undefined && !this.#isAnotherWell(job, now)) {
      this.#settle(job, job.refusal.by, { problem: job.refusal.problem });
      return true;
    }
    const server = this.#serverFor(job, now);
    if (server !== undefined) this.#start(job, server, now);
    return server !== undefined;
  }

  /**
   * Returns the server for `job`: among the servers with room that have failed on it least often, the one that would be
   * done first, or the one preferred for the row's state if it is fast enough. Undefined if only servers without room
   * have failed on it less often: then the row waits for them.
   */
  #serverFor({ sent, failures }: Job, now: number): Server | undefined {
    const { servers } = this.#options;
    const present = servers.filter((server) => server.isPresent(now));
    const counts = (present.length > 0 ? present : servers).map((server) => failures.get(server) ?? 0);
    const least = Math.min(...counts);
    const free = servers.filter((server) => server.hasRoom(now) && (failures.get(server) ?? 0) <= least);
    const bytes = sent.body.length;
    const [best] = free.toSorted((one, other) => one.finishMs(bytes) - other.finishMs(bytes) || one.busy - other.busy);
    const own = servers[Number.parseInt(sent.state.slice(0, 8), 16) % servers.length];
    if (best === undefined || own === undefined || !free.includes(own)) return best;
    const [ownMs, bestMs] = [own, best].map(({ pace }) => pace.expectedMs(bytes));
    return (ownMs ?? 0) <= OWN_SERVER_WORTH * (bestMs ?? ownMs ?? 0) ? own : best;
  }

  /**
   * Gives rows that a server has held for too long to other servers with room as well, and returns the time at which
   * the next row will be held too long.
   */
  #takeOver(now: number): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const job of this.#open) {
      const [attempt] = job.attempts;
      if (attempt === undefined || job.attempts.length > 1) continue;
      const bytes = job.sent.body.length;
      const others = this.#options.servers.filter(
        (each) => each !== attempt.server && each.hasRoom(now) && !job.failures.has(each),
      );
      const [server] = others.toSorted((one, other) => one.finishMs(bytes) - other.finishMs(bytes));
      if (server === undefined) continue;
      const dueMs = attempt.startMs + server.pace.takeoverMs(bytes);
      if (dueMs <= now) this.#start(job, server, now);
      else nextMs = Math.min(nextMs, dueMs);
    }
    return nextMs;
  }

  #start(job: Job, server: Server, startMs: number): void {
    const attempt = { server, startMs, controller: new AbortController(), isOver: false };
    job.attempts.push(attempt);
    server.busy += 1;
    void this.#run(job, attempt);
  }

  async #run(job: Job, attempt: Attempt): Promise<void> {
    const { server, controller } = attempt;
    const { headers } = this.#options;
    const bytes = job.sent.body.length;
    // A second server's answer to a refused row is not worth a long wait.
    const timeoutMs = job.refusal
      ? Math.max(SECOND_OPINION_MS, server.pace.takeoverMs(bytes))
      : server.pace.timeoutMs(bytes, job.cuts);
    const received = await post(job.sent, { url: server.url, headers, timeoutMs, controller });
    server.busy -= 1;
    job.attempts = job.attempts.filter((each) => each !== attempt);
    if (!attempt.isOver) this.#received(job, attempt, received);
    this.schedule();
  }

  #received(job: Job, attempt: Attempt, received: Received): void {
    const { server, startMs } = attempt;
    const { status, text } = received;
    if (status === 200) {
      const fault = faultIn(text, job.asked);
      if (fault === undefined) {
        server.pace.answered(job.sent.body.length, performance.now() - startMs);
        this.#settle(job, attempt, { body: text });
      } else this.#failed(job, server, { ...received, text: fault });
    } else if (BAD_REQUEST.has(status)) {
      this.#refused(job, attempt, problemOf(received));
    } else if (status >= 500 && !BUSY.has(status)) {
      this.#failed(job, server, received);
    } else {
      if (attempt.controller.signal.aborted) job.cuts += 1;
      this.setBack(server, received);
      this.#wait(job);
    }
  }

  /**
   * Ends a row with its outcome and aborts its other requests. A server that had the row before `by` and was overtaken
   * gets fewer requests.
   */
  #settle(job: Job, by: Attempt, outcome: Outcome): void {
    const now = performance.now();
    this.#answeredMs = now;
    this.#open.delete(job);
    by.server.answered();
    if (job.refusal !== undefined) this.#judge(job.refusal, outcome);
    this.#lastWords = undefined;
    const late = job.attempts.filter(({ startMs }) => startMs < by.startMs);
    leave(job.attempts);
    for (const { server, startMs } of late) {
      if (server.overtaken(job.sent.body.length, now - startMs)) server.rest();
      if (server.isLongSilent) this.#name(server, 'does not answer in time');
    }
    job.resolve(outcome);
  }

  /**
   * Ends the row with the refusal, unless a server that works well may still answer it: the limits of servers may
   * differ.
   */
  #refused(job: Job, attempt: Attempt, problem: Problem): void {
    this.#answeredMs = performance.now();
    job.failures.set(attempt.server, 1);
    if (job.refusal !== undefined || !this.#isAnotherWell(job, this.#answeredMs)) {
      this.#settle(job, attempt, { problem: job.refusal?.problem ?? problem });
    } else {
      job.refusal = { by: attempt, problem };
      this.#wait(job);
    }
  }

  #isAnotherWell({ failures }: Job, now: number): boolean {
    return this.#options.servers.some((server) => server.isWell(now) && !failures.has(server));
  }

  /** Decides a refusal by the row's outcome: a server that refuses a row which another answers is at fault itself. */
  #judge({ by: { server }, problem }: NonNullable<Job['refusal']>, outcome: Outcome): void {
    if (outcome.problem !== undefined) server.answered();
    else if (server.failed()) {
      server.rest();
      this.#name(server, `refuses what others answer: ${problem.message}`);
    }
  }

  /** Records that the server has answered, but not with an answer to the row. */
  #failed(job: Job, server: Server, received: Received): void {
    const { failures } = job;
    failures.set(server, (failures.get(server) ?? 0) + 1);
    const now = performance.now();
    const isEverybody = this.#options.servers.every((each) => failures.has(each) || !each.isPresent(now));
    const isMany = server.failed();
    if (isMany || isEverybody) server.rest(received.retryAfterMs);
    if (isMany) this.#name(server, whatItSays(received));
    const { message } = problemOf(received);
    this.#lastWords = `${serverName(server.url)}: ${message}`;
    const total = [...failures.values()].reduce((sum, count) => sum + count, 0);
    if (total >= MAX_FAILURES && isEverybody && job.attempts.length === 0) {
      this.#open.delete(job);
      job.resolve({ problem: problemOf(received) });
    } else this.#wait(job);
  }

  #wait(job: Job): void {
    if (this.#end === undefined && job.attempts.length === 0) this.#waiting.unshift(job);
  }

  #name(server: Server, what: string): void {
    if (!server.claimNaming()) return;
    this.#options.tell(`${serverName(server.url)}: ${what}; it rests, and is asked again later`);
  }
}

function leave(attempts: readonly Attempt[]): void {
  for (const attempt of attempts) {
    attempt.isOver = true;
    attempt.controller.abort();
  }
}

function whatItSays(received: Received): string {
  const { status } = received;
  const { message } = problemOf(received);
  if (status === 0) return message;
  return status === 200 ? `gives a ${message}` : `answers ${status}: ${message}`;
}
