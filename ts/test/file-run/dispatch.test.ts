/** Which server gets a row, and when: each test sets what the servers have shown before. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { askedQuestions } from '../../src/file-run/asked.ts';
import { Dispatch } from '../../src/file-run/dispatch.ts';
import { Server } from '../../src/file-run/server.ts';
import { Refusal } from '../../src/refusal.ts';
import { until } from '../until.ts';
import { ANSWER, type Answering, ask, decider, FakeServer, failing, QUESTIONS, well } from './fake-server.ts';

const BODY = Buffer.from(`{"state":"x","questions":${QUESTIONS}}`);

const silent: Answering = () => {};

interface Made {
  /** The servers' answers; the first server is the one preferred for the state of the row. */
  readonly answers: readonly Answering[];
  /** The time that each server has taken for its last answer, in milliseconds. */
  readonly tookMs?: readonly number[];
  readonly giveUpMs?: number;
}

/** Returns servers, and a function that asks them for one row. */
async function dispatchTo(t: TestContext, { answers, tookMs = [], giveUpMs = 60_000 }: Made) {
  const fakes = await Promise.all(answers.map((answer) => FakeServer.start(t, answer)));
  const limits = { concurrency: 1, longestRestMs: giveUpMs, isCompared: true };
  const servers = fakes.map(({ url }) => new Server({ url, ...limits }));
  for (const [at, ms] of tookMs.entries()) servers[at]?.pace.answered(BODY.length, ms);
  const dispatch = new Dispatch({ servers, headers: {}, giveUpMs, tell: () => {} });
  t.after(() => dispatch.end(new Error('the test is over')));
  const row = () => dispatch.decide({ body: BODY, state: '0'.repeat(16) }, askedQuestions(QUESTIONS));
  return { fakes, servers, row };
}

const requests = (fakes: readonly FakeServer[]) => fakes.map(({ asked }) => asked.length);

suite('a row', () => {
  for (const [what, ms, expected] of [
    ['goes to its own server, though that takes 1.9 times as long as the other one', 1900, [1, 0]],
    ['goes to the other server when its own takes 2.1 times as long', 2100, [0, 1]],
  ] as const) {
    test(what, async (t) => {
      const { fakes, row } = await dispatchTo(t, { answers: [well, well], tookMs: [ms, 1000] });
      assert.deepEqual(await row(), { body: ANSWER });
      assert.deepEqual(requests(fakes), expected);
    });
  }

  test('has twice the time after each time-out', async (t) => {
    const made = await dispatchTo(t, { answers: [(res, _, n) => (n < 4 ? undefined : well(res))] });
    const cuts: number[] = [];
    t.mock.method(made.servers[0]?.pace ?? assert.fail(), 'timeoutMs', (_: number, cut: number) => {
      cuts.push(cut);
      return cut < 3 ? 50 : 60_000;
    });
    assert.deepEqual(await made.row(), { body: ANSWER });
    assert.deepEqual(cuts, [0, 1, 2, 3]);
  });

  const late: Answering = async (res) => {
    await sleep(800);
    well(res);
  };

  test('is not taken over by a server that has failed on it', async (t) => {
    const { fakes, row } = await dispatchTo(t, { answers: [failing(500), late], tookMs: [10, 10] });
    assert.deepEqual(await row(), { body: ANSWER });
    assert.deepEqual(requests(fakes), [1, 1]);
  });

  test('is taken over by a server that has not', async (t) => {
    const { fakes, row } = await dispatchTo(t, { answers: [silent, well], tookMs: [10, 10] });
    assert.deepEqual(await row(), { body: ANSWER });
    assert.deepEqual(requests(fakes), [1, 1]);
  });

  test('is at two servers at most, however many have room', async (t) => {
    const { fakes, row } = await dispatchTo(t, { answers: [late, silent, well], tookMs: [10, 10, 20] });
    const first = row();
    await until(() => fakes[1]?.asked.length === 1);
    // Another row's answer is an occasion to look which rows have waited for too long.
    assert.deepEqual(await row(), { body: ANSWER });
    assert.deepEqual(await first, { body: ANSWER });
    assert.deepEqual(requests(fakes), [1, 1, 1]);
  });

  test('waits for a busy server rather than go back to one that has failed on it', async (t) => {
    const { fakes, row } = await dispatchTo(t, { answers: [failing(500), late], tookMs: [10, 10] });
    assert.deepEqual(await Promise.all([row(), row()]), [{ body: ANSWER }, { body: ANSWER }]);
    assert.deepEqual(requests(fakes), [2, 2]);
  });

  test('that was refused does not wait long for the second opinion', async (t) => {
    const { fakes, row } = await dispatchTo(t, { answers: [failing(400), silent], tookMs: [10, 10] });
    const startMs = performance.now();
    assert.deepEqual(await row(), { problem: { code: 'http_400', message: 'it failed' } });
    const tookMs = performance.now() - startMs;
    assert.deepEqual(requests(fakes), [1, 1]);
    assert.ok(tookMs >= 2000 && tookMs < 9000, String(tookMs));
  });

  test('that comes back is the next one', async (t) => {
    const server = await FakeServer.start(t, (res, _, n) => (n === 1 ? failing(503)(res) : well(res)));
    const servers = await decider({ urls: [server.url], concurrency: 1 });
    await Promise.all(['a', 'b', 'c'].map((state) => ask(servers, state)));
    const states = server.asked.map(({ body }) => JSON.parse(body).state);
    assert.deepEqual(states, ['a', 'a', 'b', 'c']);
  });
});

suite('a run without an answer', () => {
  test('ends without the words of a failure before the last answer', async (t) => {
    const answer: Answering = (res, _, n) => (n === 1 ? failing(503)(res) : n === 2 ? well(res) : undefined);
    const { fakes, row } = await dispatchTo(t, { answers: [answer], giveUpMs: 1000 });
    assert.deepEqual(await row(), { body: ANSWER });
    await assert.rejects(row(), new Refusal(`no server has answered for 1 s; ${fakes[0]?.url}: no answer`));
  });

  test('asks no more probes once it has ended', async (t) => {
    const [one, two] = [await FakeServer.start(t, silent), await FakeServer.start(t, well)];
    two.answerProbe = failing(503);
    const servers = await decider({ urls: [one.url, two.url], giveUpMs: 1000 });
    await assert.rejects(ask(servers), /^Refusal: no server has answered for 1 s; /);
    const before = two.probes.length;
    assert.ok(before > 1, String(before));
    await sleep(2500);
    assert.equal(two.probes.length, before);
    await servers.close();
    await until(() => one.open === 0);
  });
});
