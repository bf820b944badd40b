import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Engine, Reply } from '../../src/engine/contract.ts';
import { until } from '../until.ts';
import { startEngine, textOf } from './model-folders.ts';
import { manyQuestions, THREE_TYPES } from './requests.ts';

/** A request of a thousand runs of the model; on one thread they take about a second on the fastest machine. */
const LONG = Buffer.from(manyQuestions(1000));
const SHORT = Buffer.from(THREE_TYPES);

/** How long `act` takes, in milliseconds. */
async function durationOf(act: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await act();
  return performance.now() - startMs;
}

/** Returns the number of requests that are on the model, and the number that wait for it. */
function load(engine: Engine) {
  const { running, waiting } = engine.queue();
  return [running, waiting];
}

suite('an AbortSignal', () => {
  test('that has fired keeps a request from the engine', async (t) => {
    const engine = await startEngine(t, { threads: 1 });
    const { failure } = await engine.decide(SHORT, { signal: AbortSignal.abort() });
    assert.equal(failure?.code, 'cancelled');
  });

  test('drops waiting work at once and stops running work at its next run', async (t) => {
    const engine = await startEngine(t, { threads: 1 });
    const onceMs = await durationOf(async () => textOf(await engine.decide(LONG)));
    const [runningEnd, waitingEnd] = [new AbortController(), new AbortController()];
    const running = engine.decide(LONG, { signal: runningEnd.signal });
    await until(() => engine.queue().running === 1);
    const waiting = engine.decide(LONG, { signal: waitingEnd.signal });
    const last = engine.decide(SHORT);
    await until(() => engine.queue().waiting === 2);

    waitingEnd.abort();
    assert.equal((await waiting).failure?.code, 'cancelled');
    assert.deepEqual(load(engine), [1, 1]);

    const restMs = await durationOf(async () => {
      runningEnd.abort();
      assert.equal((await running).failure?.code, 'cancelled');
      assert.ok(textOf(await last));
    });
    assert.ok(restMs < onceMs / 2, `${restMs} ms after the signal, ${onceMs} ms without one`);
    assert.deepEqual(load(engine), [0, 0]);
  });

  test('that fires after the answer changes nothing', async (t) => {
    const engine = await startEngine(t, { threads: 1 });
    const controller = new AbortController();
    textOf(await engine.decide(SHORT, { signal: controller.signal }));
    controller.abort();
    assert.ok(textOf(await engine.decide(SHORT)));
  });

  test('drops all of a full line, and the engine is free again', async (t) => {
    const engine = await startEngine(t, { threads: 1, maxQueue: 50 });
    // Each request has a signal of its own, as in the server; Node prefers that to many listeners on one signal.
    const controllers = Array.from({ length: 51 }, () => new AbortController());
    const replies: Promise<Reply>[] = [];
    for (const { signal } of controllers) {
      replies.push(engine.decide(replies.length === 0 ? LONG : SHORT, { signal }));
      await until(() => engine.queue().running === 1);
    }
    const { failure } = await engine.decide(SHORT);
    assert.equal(failure?.code, 'queue_full');
    assert.ok((failure?.retryAfterSeconds ?? 0) >= 1);
    for (const controller of controllers) controller.abort();
    const codes = (await Promise.all(replies)).map((reply) => reply.failure?.code);
    assert.deepEqual(new Set(codes), new Set(['cancelled']));
    assert.ok(textOf(await engine.decide(SHORT)));
  });
});

suite('the time limits', () => {
  test('request_timeout_ms ends a wait', async (t) => {
    const engine = await startEngine(t, { threads: 1, requestTimeoutMs: 500 });
    const controller = new AbortController();
    const running = engine.decide(LONG, { signal: controller.signal });
    await until(() => engine.queue().running === 1);
    const { failure } = await engine.decide(SHORT);
    assert.deepEqual(
      [failure?.code, failure?.message],
      ['queue_timeout', 'no turn on the model within 500 ms (request_timeout_ms)'],
    );
    controller.abort();
    await running;
  });

  test('max_run_ms ends a run, and the next request is answered', async (t) => {
    // The limit is long enough for a short request on a busy machine, and the long one takes many times as long.
    const engine = await startEngine(t, { threads: 1, maxRunMs: 2000, maxQuestions: 8_000 });
    const endless = Buffer.from(manyQuestions(8_000));
    const [long, short] = await Promise.all([engine.decide(endless), engine.decide(SHORT)]);
    assert.deepEqual(
      [long.failure?.code, long.failure?.message],
      ['run_timeout', 'not finished after 2000 ms on the model (max_run_ms)'],
    );
    assert.ok(textOf(short));
  });
});
