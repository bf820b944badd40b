import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { answersText, fixture } from '../addon/model-folders.ts';
import { differentRequest, manyQuestions, THREE_TYPES } from '../addon/requests.ts';
import { LiveServer } from './live-server.ts';

const CONNECTIONS = 64;
/** Returns the answers to all bodies, in their order; `connections` of them are asked at a time. */
async function answerAll(server: LiveServer, bodies: readonly string[], connections: number): Promise<string[]> {
  const answers: string[] = [];
  let next = 0;
  const caller = async () => {
    for (let at = next++; at < bodies.length; at = next++) {
      answers[at] = answersText(await server.answer(bodies[at] ?? ''));
    }
  };
  await Promise.all(Array.from({ length: connections }, caller));
  return answers;
}

suite(`different requests over ${CONNECTIONS} connections have the answers that each has alone, bit for bit`, () => {
  for (const [name, count, model] of [
    ['500 on a tiny int8 model', 500, fixture('shared-state-int8')],
    ['200 on a tiny marker model', 200, fixture('marker')],
    ['70 on the embedded model', 70, undefined],
  ] as const) {
    test(name, async (t) => {
      const server = await LiveServer.start(t, model ? { model } : {});
      const bodies = Array.from({ length: count }, (_, n) => differentRequest(n));
      const alone = await answerAll(server, bodies, 1);
      const together = await answerAll(server, bodies.toReversed(), CONNECTIONS);
      assert.deepEqual(together.toReversed(), alone);
      assert.ok(new Set(alone).size > count * 0.9);
    });
  }
});

test('callers who hang up leave the line: what they asked is never run', async (t) => {
  // With one thread, the request takes long enough even on a fast machine. On a slow one twenty of them take longer than
  // a request may wait by default.
  const settings = { request_timeout_ms: 3_600_000 };
  const server = await LiveServer.start(t, { args: ['--threads', '1'], settings });
  const long = manyQuestions(500);
  const startMs = performance.now();
  await server.answer(long);
  const longMs = performance.now() - startMs;

  const callers = Array.from({ length: 20 }, () => new AbortController());
  const gone = callers.map(({ signal }) => server.decide(long, { signal }).catch(() => 'gone'));
  await sleep(longMs / 4);
  const waiting = server.answer(THREE_TYPES);
  await sleep(50);
  const hungUpMs = performance.now();
  for (const caller of callers) caller.abort();
  assert.deepEqual(new Set(await Promise.all(gone)), new Set(['gone']));
  assert.ok(await waiting);
  // The request on the model stops at its next run; the nineteen behind it never start.
  assert.ok(performance.now() - hungUpMs < longMs, `${performance.now() - hungUpMs} ms, one takes ${longMs} ms`);
  await server.process.logged(/(?:"status":499(?:(?!"status":499)[\s\S])*){20}/);
});
