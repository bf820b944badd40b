import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, ServerResponse } from 'node:http';
import { suite, test } from 'node:test';
import type { BatchChunk, StateResult } from '../../src/engine/contract.ts';
import { REPLY } from '../fake-engine.ts';
import { until } from '../until.ts';
import { rawHeader, type Sent, startServer, Wire, waitAtLeast } from './server-under-test.ts';

const BATCH: Sent = { path: '/v1/systemone/batch', body: '{"states":[ 1.0 ]}' };
const LINES = { ...BATCH, headers: { Accept: 'application/x-ndjson' } };
const { timing, counts } = REPLY;
const ANSWERED: StateResult = { timing, counts };
const REFUSED: StateResult = { failure: { code: 'too_many_tokens', message: 'too many' } };

const chunk = (body: string, rest: Partial<BatchChunk> = {}): BatchChunk => ({
  body: Buffer.from(body),
  results: [],
  ...rest,
});

suite('POST /v1/systemone/batch', () => {
  test('gives the body to the engine as it came, and its answer back whole', async (t) => {
    const { decide, engine } = await startServer(t);
    engine.chunks = () => [chunk('{"results":[]}', { timing })];
    const { status, text, headers } = await decide(BATCH);
    assert.deepEqual([status, text], [200, '{"results":[]}']);
    assert.deepEqual(
      [headers['content-type'], headers['content-length']],
      ['application/json; charset=utf-8', String(text.length)],
    );
    assert.equal(headers['server-timing'], 'encode;dur=1.23, wait;dur=0.00, run;dur=5.67, total;dur=7.10');
    assert.match(String(headers['x-request-id']), /^[\da-f-]{36}$/);
    const call = engine.batches[0];
    assert.deepEqual([call?.body.toString(), call?.lines, call?.maxStates], ['{"states":[ 1.0 ]}', false, 7]);
  });

  test('tells the engine the time since the reading of the body began', async (t) => {
    const { port, engine } = await startServer(t);
    engine.chunks = () => [chunk('{"results":[]}', { timing })];
    const wire = await Wire.open(t, port);
    const startMs = performance.now();
    const headers = 'Host: localhost\r\nExpect: 100-continue\r\nContent-Length: 2';
    wire.send(`POST /v1/systemone/batch HTTP/1.1\r\n${headers}\r\n\r\n`);
    // The server sends this when it begins to read the body.
    await wire.receives('100 Continue\r\n\r\n');
    const waitedMs = await waitAtLeast(50);
    wire.send('{}');
    await wire.receives('{"results":[]}');
    const { elapsedMs = -1 } = engine.batches[0] ?? {};
    assert.ok(elapsedMs >= waitedMs && elapsedMs <= performance.now() - startMs, `${elapsedMs} ${waitedMs}`);
  });

  test('sends a long answer in pieces, and its time behind it', async (t) => {
    const { decide, engine } = await startServer(t);
    engine.chunks = () => [chunk('{"results":['), chunk(']}', { timing })];
    const { text, headers } = await decide(BATCH);
    assert.equal(text, '{"results":[]}');
    assert.deepEqual([headers.trailer, headers['server-timing']], ['Server-Timing', undefined]);
  });

  test('sends lines as they are made, with the time in the trailer', async (t) => {
    const { port, engine } = await startServer(t);
    let goOn = () => {};
    const read = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    engine.chunks = async function* () {
      yield chunk('{"answers":{}}\n');
      await read;
      yield chunk('{"usage":{}}\n', { timing });
    };
    const wire = await Wire.open(t, port);
    const headers = 'Host: 127.0.0.1\r\nAccept: application/x-ndjson\r\nContent-Length: 2';
    wire.send(`POST /v1/systemone/batch HTTP/1.1\r\n${headers}\r\n\r\n{}`);
    const first = await wire.receives('{"answers":{}}\n');
    assert.equal(rawHeader(first, 'content-type'), 'application/x-ndjson; charset=utf-8');
    goOn();
    assert.match(await wire.receives('total;dur=7.10'), /\r\n0\r\nServer-Timing: encode;dur=1\.23/);
    assert.equal(engine.batches[0]?.lines, true);
  });

  for (const [accept, type] of [
    ['application/x-ndjson', 'application/x-ndjson'],
    ['application/json', 'application/json'],
  ]) {
    for (const connection of ['close', 'keep-alive']) {
      test(`answers ${accept} in HTTP/1.0 (${connection}) to the end of the connection`, async (t) => {
        const { port, engine } = await startServer(t);
        engine.chunks = () => [
          chunk('{"answers":{}}\n'),
          chunk('{"answers":{}}\n'),
          chunk('{"usage":{}}\n', { timing }),
        ];
        const wire = await Wire.open(t, port);
        const headers = `Host: 127.0.0.1\r\nConnection: ${connection}\r\nAccept: ${accept}\r\nContent-Length: 2`;
        wire.send(`POST /v1/systemone/batch HTTP/1.0\r\n${headers}\r\n\r\n{}`);
        const [head, body] = (await wire.ends()).split('\r\n\r\n');
        assert.match(head ?? '', /^HTTP\/1\.1 200 OK\r\n/);
        assert.equal(body, '{"answers":{}}\n{"answers":{}}\n{"usage":{}}\n');
        assert.equal(rawHeader(`${head}\r\n`, 'content-type'), `${type}; charset=utf-8`);
        assert.equal(rawHeader(`${head}\r\n`, 'connection'), 'close');
        for (const name of ['trailer', 'transfer-encoding']) assert.equal(rawHeader(`${head}\r\n`, name), undefined);
      });
    }
  }

  test('whose answer cannot begin ends the connection', async (t) => {
    const { port, engine, log } = await startServer(t);
    engine.chunks = () => [chunk('{}\n'), chunk('{}\n', { timing })];
    t.mock.method(ServerResponse.prototype, 'flushHeaders', () => {
      throw new Error('no header can be sent');
    });
    const wire = await Wire.open(t, port);
    wire.send('POST /v1/systemone/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}');
    assert.equal(await wire.ends(), '');
    await until(() => log.some(({ code }) => code === 'internal'));
  });

  test('counts each state as a request of its own', async (t) => {
    const { decide, engine, stats, log } = await startServer(t);
    engine.chunks = () => [chunk('[', { results: [ANSWERED, REFUSED] }), chunk(']', { results: [ANSWERED], timing })];
    await decide(BATCH);
    assert.deepEqual([stats.requests, stats.errors, stats.questions, stats.inputTokens], [3, 1, 12, 80]);
    assert.deepEqual(
      stats.recent().map(({ status, error }) => [status, error]),
      [
        [200, undefined],
        [413, 'too_many_tokens'],
        [200, undefined],
      ],
    );
    assert.equal(stats.latency().maxMs, 7.1);
    const line = log.find(({ msg }) => msg === 'request');
    assert.deepEqual([line?.questions, line?.tokens], [12, 80]);
  });

  test('that fails before its first result is an error like any other', async (t) => {
    const { decide, engine, stats } = await startServer(t);
    engine.chunks = () => [chunk('', { failure: { code: 'states_missing', message: 'states missing' } })];
    const { status, text } = await decide(LINES);
    assert.deepEqual([status, text, stats.errors], [400, 'states missing', 1]);
  });

  test('that fails after its first result ends with the connection', async (t) => {
    const { decide, engine, log } = await startServer(t);
    const failure = { code: 'closing', message: 'the engine is closing' };
    engine.chunks = () => [chunk('{}\n'), chunk('', { failure })];
    await assert.rejects(decide(LINES), { code: 'ECONNRESET' });
    await until(() => log.some(({ code }) => code === 'closing'));
  });

  test('has a limit of its own for its body', async (t) => {
    const { decide, engine } = await startServer(t);
    engine.chunks = () => [chunk('{}', { timing })];
    assert.equal((await decide({ ...BATCH, body: ' '.repeat(2000) })).status, 200);
    const { status, text } = await decide({ ...BATCH, body: ' '.repeat(2001) });
    assert.deepEqual([status, text], [413, 'body larger than 2000 bytes (max_batch_body_bytes)']);
  });

  test('ends with a caller who hangs up', async (t) => {
    const { port, engine, log } = await startServer(t);
    engine.chunks = async function* ({ signal }) {
      yield chunk('{}\n');
      await new Promise<void>((resolve) => signal?.addEventListener('abort', resolve, { once: true }));
      yield chunk('', { failure: { code: 'cancelled', message: 'the caller has gone' } });
    };
    const req = request({ host: '127.0.0.1', port, method: 'POST', ...LINES }).end('{}');
    const [res] = await once(req, 'response');
    await once(res, 'data');
    res.on('error', () => {});
    res.destroy();
    await until(() => log.some(({ code }) => code === 'cancelled'));
  });

  test('is not made faster than its caller reads', async (t) => {
    const { port, engine } = await startServer(t);
    const [pieces, size] = [64, 2 ** 20];
    let made = 0;
    engine.chunks = function* () {
      for (; made < pieces; made += 1) yield chunk('x'.repeat(size));
      yield chunk('', { timing });
    };
    const req = request({ host: '127.0.0.1', port, method: 'POST', ...LINES }).end('{}');
    const [res] = await once(req, 'response');
    await once(res, 'readable');
    assert.ok(made < pieces, `${made} of ${pieces} were made`);
    let read = 0;
    res.on('data', (data: Buffer) => {
      read += data.length;
    });
    await once(res, 'end');
    assert.equal(read, pieces * size);
  });

  test('ends when its caller takes nothing for request_timeout_ms, and the log says why', async (t) => {
    const { port, engine, log } = await startServer(t, { config: { requestTimeoutMs: 100 } });
    let isEnded = false;
    engine.chunks = function* () {
      try {
        for (;;) yield chunk('x'.repeat(2 ** 20));
      } finally {
        isEnded = true;
      }
    };
    const wire = await Wire.open(t, port);
    wire.socket.pause();
    const headers = 'Host: 127.0.0.1\r\nAccept: application/x-ndjson\r\nContent-Length: 2';
    wire.send(`POST /v1/systemone/batch HTTP/1.1\r\n${headers}\r\n\r\n{}`);
    await until(() => log.some(({ msg, status }) => msg === 'request' && status === 499));
    const message = 'connection closed: the caller took none of its answer for 100 ms (request_timeout_ms)';
    assert.deepEqual(
      log.filter(({ code }) => code === 'answer_timeout').map(({ msg }) => msg),
      [message, 'request'],
    );
    assert.equal(isEnded, true);
    wire.socket.resume();
    assert.doesNotMatch(await wire.ends(), /\r\n0\r\n/);
  });

  test('goes on while its caller takes a little now and then', async (t) => {
    const { port, engine } = await startServer(t, { config: { requestTimeoutMs: 2_000 } });
    // More than the system takes of it at once.
    const size = 48 * 2 ** 20;
    engine.chunks = () => [chunk('x'.repeat(size), { timing })];
    const req = request({ host: '127.0.0.1', port, method: 'POST', ...BATCH }).end('{}');
    const [res] = await once(req, 'response');
    assert.equal(res.headers['content-length'], String(size));
    let read = 0;
    const started = performance.now();
    for await (const part of res) {
      read += part.length;
      // The reading takes longer in total than the time for which a caller may take nothing.
      if (performance.now() - started < 3_000) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.equal(read, size);
    assert.ok(performance.now() - started > 3_000);
  });

  test('needs the key, and answers only POST', async (t) => {
    const { decide } = await startServer(t, { apiKeys: ['k'.repeat(16)] });
    assert.equal((await decide(BATCH)).status, 401);
    assert.equal((await decide({ ...BATCH, method: 'GET', body: '' })).status, 405);
  });
});
