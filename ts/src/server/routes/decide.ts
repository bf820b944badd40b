/** `POST /v1/systemone`, and the same in OpenAI's format, `POST /v1/decisions`. */
import type { ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import type { CancelSignal, Counts, Format, Timing } from '../../engine/contract.ts';
import { engineFailure, toHttpFailure } from '../../errors.ts';
import type { EngineSlot } from '../../model/slot.ts';
import type { Config } from '../../settings/config.ts';
import { type FinishedDecision, questionCount } from '../../stats/stats.ts';
import { type BodyLimit, readBody } from '../middleware/body.ts';
import type { BodyRoom } from '../middleware/body-room.ts';
import { afterAnswer, type RequestContext, type RequestState } from '../middleware/request.ts';
import { callersTimeoutMs } from './callers-timeout.ts';

export interface DecideParts {
  readonly config: Pick<Config, 'maxBodyBytes'>;
  readonly slot: EngineSlot;
  /** The room in which the bodies arrive. */
  readonly room: BodyRoom;
  /** The format of the request and the answer; `systemone` if it is left out. */
  readonly format?: Format;
  /** Records a finished request. */
  readonly record: (finished: FinishedDecision) => void;
}

/**
 * Returns the handler of one decision request. The body goes to the engine as the received bytes and is never parsed
 * here.
 */
export function decide({ config, slot, room, format, record }: DecideParts): Middleware<RequestState> {
  const limit: BodyLimit = { maxBytes: config.maxBodyBytes, setting: 'max_body_bytes' };
  async function answer(ctx: RequestContext, startMs: number): Promise<FinishedDecision> {
    const signal = new HangUp(ctx.res);
    const timeoutMs = callersTimeoutMs(ctx.req.headers);
    const refusal = slot.model?.engine.refusal();
    if (refusal) throw engineFailure(refusal);
    const body = await readBody(ctx.req, { limit, room });
    const elapsedMs = performance.now() - startMs;
    const reply = await slot.require().engine.decide(body, { format, signal, elapsedMs, timeoutMs });
    if (reply.failure) throw engineFailure(reply.failure);
    const { timing, counts } = reply;
    noteCounts(ctx.state, counts);
    ctx.state.timing = timing;
    ctx.state.readMs = elapsedMs;
    ctx.set({ 'Content-Type': 'application/json; charset=utf-8', 'Server-Timing': serverTiming(timing) });
    ctx.body = reply.body;
    return { timeMs: Date.now(), ms: timing.totalMs, timing, counts };
  }

  return async (ctx) => {
    const startMs = performance.now();
    try {
      const finished = await answer(ctx, startMs);
      afterAnswer(() => record(finished));
    } catch (error) {
      record({ timeMs: Date.now(), ms: performance.now() - startMs, error: toHttpFailure(error).code });
      throw error;
    }
  };
}

/** Adds the numbers of answered questions and of input tokens to the request's state, for the log. */
export function noteCounts(state: RequestState, counts: Counts): void {
  state.questions = (state.questions ?? 0) + questionCount(counts);
  state.tokens = (state.tokens ?? 0) + counts.inputTokens;
}

/** A signal that fires when the caller goes away before the answer is written. */
export class HangUp implements CancelSignal {
  aborted = false;
  #listener: (() => void) | undefined;

  constructor(res: ServerResponse) {
    res.once('close', () => {
      if (res.writableFinished) return;
      this.aborted = true;
      this.#listener?.();
    });
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(): void {
    this.#listener = undefined;
  }
}

/**
 * Returns the value of a `Server-Timing` header. The engine has rounded the times to two decimals; `total` is its
 * `server_ms`.
 */
export function serverTiming({ encodeMs, waitMs, runMs, totalMs }: Timing): string {
  const [encode, wait, run, total] = [encodeMs, waitMs, runMs, totalMs].map((ms) => ms.toFixed(2));
  return `encode;dur=${encode}, wait;dur=${wait}, run;dur=${run}, total;dur=${total}`;
}
