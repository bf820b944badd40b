/** Runs on servers of which one or all are bad: which requests these get, and that no row suffers from it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Decider, Outcome } from '../../src/file-run/decider.ts';
import { inOrder } from '../../src/file-run/in-order.ts';
import { fileRunPlan } from '../../src/file-run/plan.ts';
import { beginning, openInput, runFile } from '../../src/file-run/run.ts';
import { Refusal } from '../../src/refusal.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { ANSWER, type Answering, answerTo, ask, decider, FakeServer, failing, QUESTIONS, well } from './fake-server.ts';
import { QUESTIONS as FILE_QUESTIONS, outputFiles, writeRows } from './run-files.ts';

/** No test here takes this long, unless it would go on for ever. */
const options = { timeout: 150_000 };

/** Answers each body by its length, after a while. */
const good: Answering = async (res, body) => {
  await sleep(5);
  res.end(answerTo(body, shareOf(body)));
};

const shareOf = (body: string) => (body.length % 100) / 100;

const htmlPage: Answering = (res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<html>back soon</html>');

const cutBody: Answering = (res) => {
  res.writeHead(200, { 'content-length': ANSWER.length }).write(ANSWER.slice(0, 20));
  setTimeout(() => res.destroy(), 5);
};

async function* numbers(count: number) {
  for (let n = 0; n < count; n++) yield n;
}

/** Returns the outcomes of `count` rows, which are asked in the way of a run. */
async function outcomes(servers: Decider, count: number): Promise<Outcome[]> {
  const found: Outcome[] = [];
  for await (const [, outcome] of inOrder(numbers(count), (n) => ask(servers, 'x'.repeat(n)), {
    items: servers.window,
  })) {
    found.push(outcome);
  }
  return found;
}

interface Awaited {
  readonly server: FakeServer;
  readonly count: number;
  readonly servers: Decider;
}

/** Asks for rows until a server has been asked `count` of them. */
async function untilAsked(t: TestContext, { server, count, servers }: Awaited): Promise<void> {
  while (server.asked.length < count) {
    t.signal.throwIfAborted();
    await outcomes(servers, 50);
  }
}

const expected = (count: number) =>
  Array.from({ length: count }, (_, n) => {
    const body = `{"state":"${'x'.repeat(n)}","questions":${QUESTIONS}}`;
    return { body: answerTo(body, shareOf(body)) };
  });

async function goodAnd(t: TestContext, bad: Answering): Promise<[FakeServer, FakeServer]> {
  return [await FakeServer.start(t, good), await FakeServer.start(t, bad)];
}

/** A refusal that comes at the start ends the run, because a probe is no row that could be bad. */
const REFUSAL = 'a refusal of every row';

// Each test has servers of its own and mostly waits for their pauses, so four of them run at once.
suite('one bad server of two', { concurrency: 4 }, () => {
  for (const [name, bad] of [
    ['Retry-After: 0', failing(503, { 'retry-after': '0' })],
    ['a Retry-After that is past', failing(503, { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' })],
    ['a Retry-After of years', failing(503, { 'retry-after': '99999999' })],
    ['a status that would be the same for every row', failing(404)],
    ['another error', failing(500, { 'retry-after': '0' })],
    [REFUSAL, failing(400)],
    ['a page of maintenance', htmlPage],
    ['an object that is no decision', (res: ServerResponse) => res.end('{}')],
    ['answers to other questions', (res: ServerResponse) => res.end(ANSWER.replace('"q"', '"other"'))],
    ['null for an answer', (res: ServerResponse) => res.end(ANSWER.replace(/"q":\{.*?\}(?=,"usage)/, '"q":null}'))],
    ['a body that is cut', cutBody],
    ['a connection that breaks', (res: ServerResponse) => res.destroy()],
  ] as const) {
    test(`with ${name} is asked a few times, and the other answers all`, options, async (t) => {
      const [one, two] = await goodAnd(t, bad);
      const servers = await decider({ urls: [one.url, two.url], mayDiffer: true, giveUpMs: 120_000 });
      assert.deepEqual(await outcomes(servers, 300), expected(300));
      // The bad server gets some rows at once, and then one after each pause, which is twice as long as the one before. A
      // refusal is known to be wrong only when the other server has answered the row; until then, which is long on a busy
      // machine, the bad one may get all rows that the run holds, after each of its first pauses.
      const most = 25 + (name === REFUSAL ? 4 * servers.window : 0);
      assert.ok(two.asked.length > 0 && two.asked.length <= most, String(two.asked.length));
      await servers.close();
    });

    if (name === REFUSAL) continue;
    test(`with ${name} from the start gets no row`, options, async (t) => {
      const [one, two] = await goodAnd(t, bad);
      two.answerProbe = bad;
      const servers = await decider({ urls: [two.url, one.url], giveUpMs: 120_000 });
      assert.deepEqual(await outcomes(servers, 50), expected(50));
      assert.deepEqual(two.asked, []);
      await servers.close();
    });
  }

  test('that freezes holds no row, and is used again when it goes on', options, async (t) => {
    const [one, two] = await goodAnd(t, good);
    const servers = await decider({ urls: [one.url, two.url], mayDiffer: true, giveUpMs: 120_000 });
    await outcomes(servers, 50);
    two.isFrozen = true;
    assert.deepEqual(await outcomes(servers, 300), expected(300));
    two.isFrozen = false;
    const before = two.asked.length;
    await untilAsked(t, { server: two, count: before + 20, servers });
    await servers.close();
  });

  test('that is frozen from the start gets no row until it goes on', options, async (t) => {
    const [one, two] = await goodAnd(t, good);
    two.isFrozen = true;
    const told: string[] = [];
    const tell = (line: string) => told.push(line);
    const servers = await decider({ urls: [one.url, two.url], giveUpMs: 120_000, tell });
    assert.deepEqual(told, [`${two.url}: no answer yet; it gets no rows until it answers the probes`]);
    assert.deepEqual(await outcomes(servers, 300), expected(300));
    two.isFrozen = false;
    await untilAsked(t, { server: two, count: 20, servers });
    await servers.close();
  });

  test('that is slow gets few rows, and what it had is asked of the other', options, async (t) => {
    const slow: Answering = async (res, body) => {
      await sleep(10_000, undefined, { ref: false });
      res.end(answerTo(body, shareOf(body)));
    };
    const [one, two] = await goodAnd(t, slow);
    const servers = await decider({ urls: [one.url, two.url], mayDiffer: true });
    assert.deepEqual(await outcomes(servers, 300), expected(300));
    assert.ok(two.asked.length <= 25, String(two.asked.length));
    // The connections of the requests that are no longer needed must be closed.
    while (two.open > 0) await sleep(5, undefined, { signal: t.signal });
    await servers.close();
  });

  test('that answers wrongly is named once, with what it did', options, async (t) => {
    const [one, two] = await goodAnd(t, htmlPage);
    const told: string[] = [];
    const tell = (line: string) => told.push(line);
    const servers = await decider({ urls: [one.url, two.url], mayDiffer: true, tell });
    await untilAsked(t, { server: two, count: 8, servers });
    assert.deepEqual(told, [`${two.url}: gives a wrong answer: no JSON; it rests, and is asked again later`]);
    await servers.close();
  });

  test('that fails on some rows leaves these to the other', options, async (t) => {
    const [one, two] = await goodAnd(t, (res, body, n) => {
      const way = body.length % 5;
      return way === 0 ? failing(500)(res) : way === 1 ? htmlPage(res, body, n) : good(res, body, n);
    });
    const servers = await decider({ urls: [one.url, two.url], mayDiffer: true });
    assert.deepEqual(await outcomes(servers, 300), expected(300));
    await servers.close();
  });
});

suite('when all servers are bad', () => {
  test(
    'and ask to come back at once, the run ends after the time to give up, and they were not pressed',
    options,
    async (t) => {
      const bad = failing(503, { 'retry-after': '0' });
      const [one, two] = [await FakeServer.start(t, bad), await FakeServer.start(t, bad)];
      const servers = await decider({ urls: [one.url, two.url], mayDiffer: true, giveUpMs: 1500 });
      await assert.rejects(outcomes(servers, 100), /^Refusal: no server has answered for 2 s; http:\S+: it failed$/);
      assert.ok(one.asked.length + two.asked.length <= 40, `${one.asked.length} ${two.asked.length}`);
    },
  );

  test('and frozen, the run ends after the time to give up, by the clock', options, async (t) => {
    const server = await FakeServer.start(t, () => {});
    const servers = await decider({ urls: [server.url], giveUpMs: 1000 });
    await assert.rejects(
      outcomes(servers, 100),
      new Refusal(`no server has answered for 1 s; ${server.url}: no answer`),
    );
  });

  test('for one row, that row is bad, with what is wrong, and the others have their answers', options, async (t) => {
    const bad: Answering = (res, body, n) => (body.includes('"xx"') ? htmlPage(res, body, n) : good(res, body, n));
    const [one, two] = [await FakeServer.start(t, bad), await FakeServer.start(t, bad)];
    const servers = await decider({ urls: [one.url, two.url] });
    const problem = { code: 'bad_answer', message: 'wrong answer: no JSON' };
    assert.deepEqual(await outcomes(servers, 20), expected(20).with(2, { problem } as never));
    assert.equal([...one.asked, ...two.asked].filter(({ body }) => body.includes('"xx"')).length, 3);
    await servers.close();
  });

  test('or refuse one row, it is bad, and each was asked once', options, async (t) => {
    const bad: Answering = (res, body, n) => (body.includes('"xx"') ? failing(413)(res) : good(res, body, n));
    const both = [await FakeServer.start(t, bad), await FakeServer.start(t, bad)];
    const servers = await decider({ urls: both.map(({ url }) => url) });
    const problem = { code: 'http_413', message: 'it failed' };
    assert.deepEqual(await outcomes(servers, 20), expected(20).with(2, { problem } as never));
    const asked = both.map((server) => server.asked.filter(({ body }) => body.includes('"xx"')).length);
    assert.deepEqual(asked, [1, 1]);
    await servers.close();
  });

  test('nothing is written, and nothing but lines is said', options, async (t) => {
    const cwd = temporaryFolder(t);
    writeRows(join(cwd, 'rows.csv'), 5);
    writeFileSync(join(cwd, 'q.json'), FILE_QUESTIONS);
    const nulls = '{"answers":{"refund":null,"team":null,"anger":null},"usage":{"input_tokens":1}}';
    const server = await FakeServer.start(t, (res) => res.end(nulls));
    const args = ['batch', 'rows.csv', '--questions', 'q.json', '--state', 'text', '--url', server.url];
    const { code, stderr } = await runSvc(t, args, { cwd });
    const what = 'wrong answer: an answer to "refund" that is no object';
    assert.equal(
      stderr,
      `${server.url}: gives a ${what}; it rests, and is asked again later\nno server answers: ${what}\n`,
    );
    assert.equal(code, 1);
    assert.deepEqual(outputFiles(cwd), {});
  });
});

/** Answers each request in another way, mostly a wrong one. */
const chaotic: Answering = (res, body, n) => {
  const ways: readonly Answering[] = [
    good,
    failing(503, { 'retry-after': '0' }),
    htmlPage,
    cutBody,
    (to, of) => to.end(answerTo(of).replace('"refund"', '"other"')),
    failing(500),
    good,
    (to) => to.destroy(),
    () => {},
    (to, of) => to.end(JSON.stringify(JSON.parse(answerTo(of)), (_, value) => (value === 0.75 ? 7 : value))),
  ];
  return (ways[n % ways.length] ?? well)(res, body, n);
};

interface Stopped {
  /** The name of the input; its ending is the format. */
  readonly name: string;
  readonly urls: readonly string[];
  /** The number of rows after which each run is stopped. */
  readonly stopAfter: number;
}

/** Returns the output of a run that is stopped again and again, until it is done. */
async function outputOf(t: TestContext, { name, urls, stopAfter }: Stopped): Promise<Record<string, string>> {
  const folder = temporaryFolder(t);
  writeRows(join(folder, name), 400);
  writeFileSync(join(folder, 'q.json'), FILE_QUESTIONS);
  for (let isDone = false; !isDone; ) {
    const plan = fileRunPlan(join(folder, name), {
      questions: join(folder, 'q.json'),
      state: ['text'],
      partRows: '90',
      resume: true,
    });
    const source = await openInput(plan, 10_000);
    const stop = new AbortController();
    let rows = 0;
    const onRow = () => {
      rows += 1;
      if (rows === stopAfter) stop.abort(new Error('stopped'));
    };
    const servers = await decider({ urls, mayDiffer: true, concurrency: 4 }, stop.signal);
    try {
      const { done } = await runFile(
        { plan, source, decider: servers, stop: stop.signal, onRow },
        await beginning(plan, source),
      );
      isDone = done;
    } catch (error) {
      assert.equal(String(error), 'Error: stopped');
    } finally {
      await servers.close();
      await source.close();
    }
  }
  return outputFiles(folder);
}

for (const name of ['rows.jsonl', 'rows.csv', 'rows.parquet']) {
  test(
    `the output beside a bad server is that of a good one alone, stopped and resumed: ${name}`,
    options,
    async (t) => {
      const [one, two] = await goodAnd(t, chaotic);
      const alone = await outputOf(t, { name, urls: [one.url], stopAfter: 1e9 });
      assert.deepEqual(await outputOf(t, { name, urls: [two.url, one.url], stopAfter: 130 }), alone);
      assert.ok(two.asked.length > 5);
    },
  );
}
