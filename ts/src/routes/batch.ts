/** `POST /v1/systemone/batch`: one set of questions about many states. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import type { Config } from '../config.ts';
import type { BatchChunk, StateResult } from '../engine.ts';
import { engineFailure, HttpFailure, toHttpFailure } from '../errors.ts';
import { type BodyLimit, readBody } from '../middleware/body.ts';
import type { RequestContext, RequestState } from '../middleware/request.ts';
import type { EngineSlot } from '../model/slot.ts';
import type { FinishedDecision } from '../stats.ts';
import { HangUp, noteCounts, serverTiming } from './decide.ts';

export interface BatchParts {
  readonly config: Pick<Config, 'maxBatchBodyBytes' | 'maxBatchStates'>;
  readonly engine: EngineSlot;
  /** Counts a finished decision: each state is one. */
  readonly record: (finished: FinishedDecision) => void;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const LINES_TYPE = 'application/x-ndjson; charset=utf-8';

/** Answers a batch: as one JSON document, or in lines as they are made for a caller who accepts those. */
export function decideBatch({ config, engine, record }: BatchParts): Middleware<RequestState> {
  const limit: BodyLimit = { maxBytes: config.maxBatchBodyBytes, setting: 'max_batch_body_bytes' };
  async function answer(ctx: RequestContext, startMs: number): Promise<void> {
    const signal = new HangUp(ctx.res);
    const body = await readBody(ctx.req, limit);
    const lines = wantsLines(ctx.req.headers.accept);
    const options = { signal, lines, maxStates: config.maxBatchStates, elapsedMs: performance.now() - startMs };
    for await (const chunk of engine.require().engine.batch(body, options)) {
      for (const result of chunk.results) {
        if (!result.failure) noteCounts(ctx.state, result.counts);
        record(finished(result));
      }
      if (chunk.failure) throw engineFailure(chunk.failure);
      await send(ctx, chunk, lines);
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

/** Returns whether an `Accept` header names lines of JSON. */
function wantsLines(accept: string | undefined): boolean {
  return accept?.toLowerCase().includes('application/x-ndjson') ?? false;
}

function finished(result: StateResult): FinishedDecision {
  const timeMs = Date.now();
  if (result.failure) return { timeMs, ms: 0, error: toHttpFailure(engineFailure(result.failure)).code };
  return { timeMs, ms: result.timing.totalMs, timing: result.timing, counts: result.counts };
}

/** Sends a piece of the answer. A short one is sent whole, with its time; else that comes behind it, in the trailer. */
async function send(ctx: RequestContext, { body, timing }: BatchChunk, lines: boolean): Promise<void> {
  const { res } = ctx;
  const isFirst = !res.headersSent;
  if (isFirst) ctx.set({ 'Content-Type': lines ? LINES_TYPE : JSON_TYPE });
  if (isFirst && timing) {
    ctx.set('Server-Timing', serverTiming(timing));
    ctx.body = body;
    return;
  }
  if (isFirst) begin(ctx);
  await write(res, body);
  if (!timing) return;
  if (hasTrailer(ctx)) res.addTrailers({ 'Server-Timing': serverTiming(timing) });
  res.end();
}

/** An answer in HTTP/1.0 has no chunks, so that nothing comes behind it: it ends with its connection. */
function hasTrailer({ req }: RequestContext): boolean {
  return req.httpVersion !== '1.0';
}

function begin(ctx: RequestContext): void {
  ctx.status = 200;
  if (hasTrailer(ctx)) ctx.set('Trailer', 'Server-Timing');
  ctx.respond = false;
  ctx.flushHeaders();
}

/** Writes, and waits until the caller takes more. */
async function write(res: ServerResponse, body: Buffer): Promise<void> {
  if (res.write(body)) return;
  const closed = new AbortController();
  const close = () => closed.abort();
  res.once('close', close);
  try {
    if (res.destroyed) close();
    await once(res, 'drain', { signal: closed.signal });
  } catch {
    throw new HttpFailure('cancelled', 'the caller has gone');
  } finally {
    res.off('close', close);
  }
}
