/** `POST /v1/systemone/batch`: one set of questions about many states. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import type { BatchChunk, StateResult } from '../../engine/contract.ts';
import { callerGone, engineFailure, HttpFailure, toHttpFailure } from '../../errors.ts';
import type { EngineSlot } from '../../model/slot.ts';
import type { Config } from '../../settings/config.ts';
import type { FinishedDecision } from '../../stats/stats.ts';
import { type BodyLimit, readBody } from '../middleware/body.ts';
import type { BodyRoom } from '../middleware/body-room.ts';
import type { RequestContext, RequestState } from '../middleware/request.ts';
import { HangUp, noteCounts, serverTiming } from './decide.ts';

export interface BatchParts {
  readonly config: Pick<Config, 'maxBatchBodyBytes' | 'maxBatchStates' | 'requestTimeoutMs'>;
  readonly slot: EngineSlot;
  /** The room in which the bodies arrive. */
  readonly room: BodyRoom;
  /** Records a finished decision; each state counts as one. */
  readonly record: (finished: FinishedDecision) => void;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const LINES_TYPE = 'application/x-ndjson; charset=utf-8';

/**
 * Returns the handler that answers a batch: as one JSON document, or, if the caller accepts them, as lines of JSON that
 * are sent as they are made.
 */
export function decideBatch({ config, slot, room, record }: BatchParts): Middleware<RequestState> {
  const limit: BodyLimit = { maxBytes: config.maxBatchBodyBytes, setting: 'max_batch_body_bytes' };
  async function answer(ctx: RequestContext, startMs: number): Promise<void> {
    const signal = new HangUp(ctx.res);
    const body = await readBody(ctx.req, { limit, room });
    const lines = wantsLines(ctx.req.headers.accept);
    const options = { signal, lines, maxStates: config.maxBatchStates, elapsedMs: performance.now() - startMs };
    for await (const chunk of slot.require().engine.batch(body, options)) {
      for (const result of chunk.results) {
        if (!result.failure) noteCounts(ctx.state, result.counts);
        record(finished(result));
      }
      if (chunk.failure) throw engineFailure(chunk.failure);
      await send(ctx, chunk, { lines, timeoutMs: config.requestTimeoutMs });
    }
  }

  return async (ctx) => {
    const startMs = performance.now();
    try {
      await answer(ctx, startMs);
    } catch (error) {
      record({ timeMs: Date.now(), ms: performance.now() - startMs, error: toHttpFailure(error).code });
      throw error;
    }
  };
}

/** Whether an `Accept` header names lines of JSON. */
function wantsLines(accept: string | undefined): boolean {
  return accept?.toLowerCase().includes('application/x-ndjson') ?? false;
}

function finished(result: StateResult): FinishedDecision {
  const timeMs = Date.now();
  if (result.failure) return { timeMs, ms: 0, error: toHttpFailure(engineFailure(result.failure)).code };
  return { timeMs, ms: result.timing.totalMs, timing: result.timing, counts: result.counts };
}

/**
 * The length of a piece, in bytes. An answer is written piece by piece, so that a caller that stops reading is noticed
 * at the next one.
 */
const PIECE_BYTES = 64 * 2 ** 10;

interface Sending {
  readonly lines: boolean;
  /** The longest time for which a caller may accept none of the written bytes. */
  readonly timeoutMs: number;
}

/**
 * Sends a chunk of the answer. A short answer of one chunk is sent whole, with its `Server-Timing` as a header; with
 * several chunks, the timing follows in the trailer.
 */
async function send(ctx: RequestContext, { body, timing }: BatchChunk, sending: Sending): Promise<void> {
  const { res } = ctx;
  const isFirst = !res.headersSent;
  const isWhole = isFirst && timing !== undefined;
  if (isFirst) ctx.set({ 'Content-Type': sending.lines ? LINES_TYPE : JSON_TYPE });
  if (isWhole) ctx.set('Server-Timing', serverTiming(timing));
  if (isWhole && body.length <= PIECE_BYTES) {
    ctx.body = body;
    return;
  }
  if (isFirst) {
    const inPieces: Record<string, string> = hasTrailer(ctx) ? { Trailer: 'Server-Timing' } : {};
    begin(ctx, isWhole ? { 'Content-Length': String(body.length) } : inPieces);
  }
  for (let start = 0; start < body.length; start += PIECE_BYTES) {
    await writePiece(res, body.subarray(start, start + PIECE_BYTES), sending.timeoutMs);
  }
  if (!timing) return;
  if (!isWhole && hasTrailer(ctx)) res.addTrailers({ 'Server-Timing': serverTiming(timing) });
  res.end();
}

/**
 * Whether the answer can have a trailer. In HTTP/1.0 there are no chunks, so the answer ends with its connection and
 * nothing can follow it.
 */
function hasTrailer({ req }: RequestContext): boolean {
  return req.httpVersion !== '1.0';
}

function begin(ctx: RequestContext, headers: Record<string, string>): void {
  ctx.status = 200;
  ctx.set(headers);
  ctx.respond = false;
  ctx.flushHeaders();
}

/**
 * Writes a piece, and waits until the caller accepts more.
 *
 * @throws HttpFailure `cancelled`, `answer_timeout`
 */
async function writePiece(res: ServerResponse, piece: Buffer, timeoutMs: number): Promise<void> {
  if (res.write(piece)) return;
  const ended = new AbortController();
  const close = () => ended.abort(callerGone());
  const timer = setTimeout(() => ended.abort(notTaken(timeoutMs)), timeoutMs);
  res.once('close', close);
  try {
    if (res.destroyed) close();
    await once(res, 'drain', { signal: ended.signal });
  } catch {
    throw ended.signal.reason;
  } finally {
    clearTimeout(timer);
    res.off('close', close);
  }
}

function notTaken(timeoutMs: number): HttpFailure {
  return new HttpFailure(
    'answer_timeout',
    `the caller took none of its answer for ${timeoutMs} ms (request_timeout_ms)`,
  );
}
