import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { suite, type TestContext, test } from 'node:test';
import { benchText, histogramOf, percentile } from '../../src/commands/bench/report.ts';
import { listen } from '../gate/gate-under-test.ts';
import { LiveServer } from '../real/live-server.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const KEY = 'a-key-of-at-least-sixteen';

suite('the report of a load', () => {
  test('has percentiles by the nearest rank', () => {
    const sorted = Array.from({ length: 200 }, (_, at) => at + 1);
    assert.deepEqual(
      [0.5, 0.9, 0.99, 1].map((share) => percentile(sorted, share)),
      [100, 180, 198, 200],
    );
    assert.equal(percentile([7], 0.5), 7);
    assert.ok(Number.isNaN(percentile([], 0.5)));
  });

  test('has a histogram of round bins, with the longest times in one of their own', () => {
    const times = [...Array.from({ length: 198 }, (_, at) => 10 + at * 0.1), 500, 900];
    const bins = histogramOf(times);
    assert.deepEqual(bins[0], { from: 10, to: 12, answers: 20 });
    assert.deepEqual(bins.at(-1), { from: 30, to: null, answers: 2 });
    assert.equal(
      bins.reduce((sum, { answers }) => sum + answers, 0),
      times.length,
    );
    assert.deepEqual(histogramOf([3, 3, 3]), [{ from: 3, to: 3.1, answers: 3 }]);
    assert.deepEqual(histogramOf([]), []);
  });

  test('says how often it failed, and in which way', () => {
    const samples = [1, 2, 3].map((ms) => ({ totalMs: ms, waitMs: Number.NaN, runMs: ms / 2 }));
    const text = benchText({
      ...{ server: 'http://a', concurrency: 2, seconds: 2, samples },
      failures: new Map([
        ['503', 4],
        ['ECONNRESET', 1],
      ]),
    });
    const [head, , columns, total, wait, run] = text.split('\n');
    assert.equal(
      head,
      'http://a: 3 answers in 2.0 s, 1.5 a second, 2 at once; failed: 4 times 503, 1 times ECONNRESET',
    );
    assert.match(columns ?? '', /^ {2}ms +mean +p50 +p90 +p95 +p99 +max$/);
    assert.match(total ?? '', /^ {2}total +2\.00 +2\.00 +3\.00 +3\.00 +3\.00 +3\.00 {3}\S/);
    assert.match(wait ?? '', /^ {2}wait +– +– +– +– +– +– /);
    assert.match(run ?? '', /^ {2}run +1\.00 +1\.00 +1\.50 /);
  });
});

suite('svc bench', { concurrency: 2 }, () => {
  /** Starts a server that notes each body, and answers with the status that `answer` gives to the n-th. */
  async function noting(t: TestContext, answer: (n: number) => number = () => 200) {
    const bodies: string[] = [];
    const server = createServer(async (request, response) => {
      bodies.push((await buffer(request)).toString());
      const status = answer(bodies.length);
      response.writeHead(status, { 'server-timing': 'encode;dur=0.5, wait;dur=1.25, run;dur=3, total;dur=5' });
      response.end('{"model":"svc","answers":{},"usage":{}}');
    });
    return { bodies, url: `http://127.0.0.1:${await listen(t, server)}` };
  }

  test('loads a real server, and reports in both ways', async (t) => {
    const { url } = await LiveServer.start(t, { env: { SVC_API_KEY: KEY } });
    const cwd = temporaryFolder(t);
    const args = ['bench', url.origin, '--seconds', '1', '--concurrency', '2'];
    const { code, stdout, stderr } = await runSvc(t, args, { cwd, env: { SVC_API_KEY: KEY } });
    assert.deepEqual([code, stderr], [0, '']);
    const rate = /^http:\S+: [1-9]\d* answers in \d+\.\d s, [\d.]+ a second, 2 at once; none failed\n/;
    assert.match(stdout, rate);
    assert.match(stdout, /^ {2}run( +[\d.]+){6} /m);
    assert.match(stdout, /^ +[\d.]+ to [\d.]+ ms {2}█+ \d+$/m);
    const json = JSON.parse((await runSvc(t, [...args, '--json'], { cwd, env: { SVC_API_KEY: KEY } })).stdout);
    assert.deepEqual(
      [json.server, json.concurrency, json.failures, json.answers > 0, json.ms.total.p50 > 0, json.ms.run.max > 0],
      [url.origin, 2, {}, true, true, true],
    );
    const refused = await runSvc(t, args, { cwd });
    const line = `${url.origin} answers 401: {"error":"missing or wrong API key"}\n`;
    assert.deepEqual([refused.code, refused.stderr], [1, line]);
  });

  test('asks about a new state each time, and the questions of the README', async (t) => {
    const { bodies, url } = await noting(t);
    await runSvc(t, ['bench', url, '--seconds', '1', '--concurrency', '3'], { cwd: temporaryFolder(t) });
    assert.ok(bodies.length > 3);
    assert.equal(new Set(bodies).size, bodies.length);
    assert.deepEqual(Object.keys(JSON.parse(bodies[0] ?? '').questions), ['refund', 'team', 'anger']);
  });

  test('asks the requests of a file in turn, and counts what fails', async (t) => {
    const { bodies, url } = await noting(t, (n) => (n % 2 === 0 ? 503 : 200));
    const cwd = temporaryFolder(t);
    writeFileSync(join(cwd, 'r.jsonl'), '\uFEFF{"state":1}\n\n{"state":2}\r\n');
    const args = ['bench', url, '--requests', 'r.jsonl', '--seconds', '1', '--concurrency', '1', '--json'];
    const { code, stdout } = await runSvc(t, args, { cwd });
    assert.equal(code, 0);
    assert.deepEqual(bodies.slice(0, 3), ['{"state":1}', '{"state":2}', '{"state":1}']);
    const { answers, failures, ms } = JSON.parse(stdout);
    // The first request of all only tries the server.
    assert.equal(answers + failures['503'], bodies.length - 1);
    assert.ok(failures['503'] >= answers);
    assert.deepEqual([ms.wait.p50, ms.run.p99], [1.25, 3]);
  });

  for (const [content, message] of [
    ['{"state":1}\n{', 'r.jsonl: line 2: is not valid JSON'],
    ['\n', 'r.jsonl: no requests'],
  ] as const) {
    test(`refuses requests before it asks any: ${message}`, async (t) => {
      const { bodies, url } = await noting(t);
      const cwd = temporaryFolder(t);
      writeFileSync(join(cwd, 'r.jsonl'), content);
      const { code, stderr } = await runSvc(t, ['bench', url, '--requests', 'r.jsonl'], { cwd });
      assert.deepEqual([code, stderr, bodies], [1, `${message}\n`, []]);
    });
  }

  test('says in one line that no server is there', async (t) => {
    const server = createServer();
    const port = await listen(t, server);
    await new Promise((resolve) => server.close(resolve));
    const { code, stderr } = await runSvc(t, ['bench', `http://127.0.0.1:${port}`], { cwd: temporaryFolder(t) });
    assert.deepEqual([code, stderr], [1, `cannot reach http://127.0.0.1:${port}: ECONNREFUSED\n`]);
  });
});
