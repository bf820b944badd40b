/** Servers that each refuse requests in their own way, for tests of the public clients. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { fixture } from '../addon/model-folders.ts';
import { manyQuestions } from '../addon/requests.ts';
import { startServer } from '../http/server-under-test.ts';
import { LiveServer } from '../real/live-server.ts';
import { until } from '../until.ts';

export const KEY = 'an-api-key-of-the-test';
export const WRONG_KEY = 'a-wrong-key-of-the-test';

/** A state that makes a body longer than the `max_body_bytes` of `strictServer`. */
export const LONG_STATE = 'x'.repeat(900);

/** Returns a server that needs `KEY` and reads short bodies only. */
export const strictServer = (test: TestContext) =>
  LiveServer.start(test, { model: fixture('marker'), env: { SVC_API_KEY: KEY, SVC_MAX_BODY_BYTES: '900' } });

/**
 * Returns a base address under which every path is one that only GET may use: the client's path ends up in the query.
 */
export const getOnly = (server: LiveServer) => new URL('/health?', server.url).href;

export interface BusyServer {
  readonly server: LiveServer;
  /** Cancels the request that holds the model and the one that waits for it. */
  free(): void;
}

/**
 * Returns a server whose queue is full until it is freed: one request runs, for many seconds if need be, and one waits.
 */
export async function busyServer(test: TestContext): Promise<BusyServer> {
  const env = { SVC_MAX_QUEUE: '1', SVC_MAX_QUESTIONS: '9000', SVC_MAX_TOKENS: '9000000', SVC_ALLOW_NO_PASSWORD: '1' };
  const server = await LiveServer.start(test, { args: ['--threads', '1'], env });
  const caller = new AbortController();
  for (const held of [
    { running: 1, waiting: 0 },
    { running: 1, waiting: 1 },
  ]) {
    // This request ends with the server or when the test cancels it, with an error either way.
    server.decide(manyQuestions(9000), { signal: caller.signal }).catch(() => {});
    await queueOf(server, held);
  }
  const free = () => caller.abort();
  test.after(free);
  return { server, free };
}

async function queueOf(server: LiveServer, { running, waiting }: { running: number; waiting: number }): Promise<void> {
  await until(async () => {
    const { queue } = JSON.parse((await server.get('/stats')).text);
    return queue.running === running && queue.waiting === waiting;
  });
}

/** Returns the address of a server whose model fails at every run. */
export async function brokenServer(test: TestContext): Promise<string> {
  const { engine, port } = await startServer(test);
  engine.answer = () => ({ failure: { code: 'model_failed', message: 'the model run failed' } });
  return `http://127.0.0.1:${port}`;
}

/** Returns the address of a server that has shut down in an orderly way. */
export async function endedServer(test: TestContext): Promise<string> {
  const server = await LiveServer.start(test, { model: fixture('marker') });
  server.process.signal('SIGTERM');
  assert.equal((await server.process.finished).code, 0);
  return server.url.href;
}

/** Returns the error that the call is rejected with; fails if it is answered. */
export async function failureOf(ask: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await ask();
  } catch (error) {
    return error;
  }
  assert.fail('answered');
}
