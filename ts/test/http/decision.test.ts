import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite, test } from 'node:test';
import * as zlib from 'node:zlib';
import { ANSWER, FakeEngine, REPLY, untilCancelled } from '../fake-engine.ts';
import { until } from '../until.ts';
import { DECISION, startServer, Wire, waitAtLeast } from './server-under-test.ts';

suite('the request', () => {
  test('the engine gets the bytes of the body as they came', async (t) => {
    const { engine, decide } = await startServer(t);
    const body = Buffer.from('{"state": {"b":1.0, "10":2,\n"2":1e2},"questions":{"2":{},"1":{}}} \xff', 'latin1');
    assert.equal((await decide({ body })).status, 200);
    assert.deepEqual(engine.calls[0]?.body, body);
  });

  test('a request that the engine refuses unread gets its failure, and its connection stays usable', async (t) => {
    const { engine, stats, port } = await startServer(t);
    engine.refuses = { code: 'queue_full', message: 'full', retryAfterSeconds: 3 };
    const wire = await Wire.open(t, port);
    const head = `POST /v1/systemone HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${DECISION.length}\r\n\r\n`;
    wire.send(head);
    const answer = await wire.receives('full');
    assert.match(answer, /^HTTP\/1\.1 503 .*\r\nRetry-After: 3\r\n/s);
    assert.equal(engine.calls.length, 0);
    engine.refuses = undefined;
    wire.send(`${DECISION}${head}${DECISION}`);
    await wire.receives(ANSWER);
    assert.deepEqual(
      engine.calls.map(({ body }) => body.toString()),
      [DECISION],
    );
    assert.equal(stats.errors, 1);
  });

  test('an empty body is for the engine to refuse', async (t) => {
    const { engine, decide } = await startServer(t);
    engine.answer = () => ({ failure: { code: 'invalid_json', message: 'invalid JSON at byte 0' } });
    assert.equal((await decide({ body: '' })).status, 400);
    assert.equal(engine.calls[0]?.body.length, 0);
  });

  for (const type of [undefined, 'application/json', 'text/plain', 'nonsense']) {
    test(`the content type ${type} does not matter`, async (t) => {
      const { decide } = await startServer(t);
      const headers = type === undefined ? {} : { 'Content-Type': type };
      assert.equal((await decide({ headers })).status, 200);
    });
  }

  // Node supports zstd since version 22.15; the server supports it wherever Node does.
  const { zstdCompressSync: zstd } = zlib as { readonly zstdCompressSync?: (body: zlib.InputType) => Buffer };
  const compressions = {
    gzip: zlib.gzipSync,
    'X-GZIP': zlib.gzipSync,
    deflate: zlib.deflateSync,
    br: zlib.brotliCompressSync,
    ...(zstd ? { zstd } : {}),
  };
  for (const [encoding, compress] of Object.entries(compressions)) {
    test(`a body in ${encoding} reaches the engine decompressed`, async (t) => {
      const { engine, decide } = await startServer(t);
      const headers = { 'Content-Encoding': encoding };
      assert.equal((await decide({ headers, body: compress(DECISION) })).status, 200);
      assert.equal(engine.calls[0]?.body.toString(), DECISION);
    });

    test(`a body that is not ${encoding} though it says so gets 400`, async (t) => {
      const { engine, decide } = await startServer(t);
      const { status, text } = await decide({ headers: { 'Content-Encoding': encoding } });
      assert.deepEqual([status, text], [400, `body is not valid ${encoding.toLowerCase()}`]);
      assert.equal(engine.calls.length, 0);
    });

    test(`a small body in ${encoding} that would be too large gets 413`, async (t) => {
      const { engine, decide } = await startServer(t, { config: { maxBodyBytes: 10_000 } });
      const body = compress(Buffer.alloc(10_001, 'a'));
      assert.ok(body.length < 200);
      assert.equal((await decide({ headers: { 'Content-Encoding': encoding }, body })).status, 413);
      assert.equal(engine.calls.length, 0);
    });

    // Node does not report the early end of a body in zstd; the engine refuses the JSON that is cut short by it.
    if (encoding === 'zstd') continue;

    test(`a body in ${encoding} that ends too early gets 400`, async (t) => {
      const { decide } = await startServer(t);
      const body = compress(DECISION).subarray(0, -9);
      assert.equal((await decide({ headers: { 'Content-Encoding': encoding }, body })).status, 400);
    });
  }

  test('a body in zstd that would need a window of 128 MiB is refused', async (t) => {
    const { engine, decide } = await startServer(t);
    // These bytes are a frame of one raw block with the letter a; 0x88 is the size of the window.
    const body = Buffer.from('28b52ffd008809000061', 'hex');
    assert.equal((await decide({ headers: { 'Content-Encoding': 'zstd' }, body })).status, zstd ? 400 : 415);
    assert.equal(engine.calls.length, 0);
  });

  test('the encoding identity is none', async (t) => {
    const { engine, decide } = await startServer(t);
    assert.equal((await decide({ headers: { 'Content-Encoding': 'identity' } })).status, 200);
    assert.equal(engine.calls[0]?.body.toString(), DECISION);
  });

  for (const encoding of ['zip', 'gzip, br', ...(zstd ? [] : ['zstd'])]) {
    test(`the content encoding "${encoding}" gets 415 that names those that work`, async (t) => {
      const { decide } = await startServer(t);
      const { status, headers, text } = await decide({ headers: { 'Content-Encoding': encoding } });
      const known = `gzip, deflate, br${zstd ? ', zstd' : ''}`;
      assert.deepEqual([status, text], [415, `unsupported content encoding; use one of ${known}`]);
      assert.equal(headers['accept-encoding'], known);
    });
  }
});

suite('the size limit', () => {
  for (const maxBodyBytes of [1000, 2 ** 23]) {
    test(`a body of exactly the limit of ${maxBodyBytes} passes, also when gzip makes it longer`, async (t) => {
      const { engine, decide } = await startServer(t, { config: { maxBodyBytes, maxQueueBytes: 2 ** 26 } });
      const noise = randomBytes(maxBodyBytes);
      const zipped = zlib.gzipSync(noise);
      assert.ok(zipped.length > maxBodyBytes + maxBodyBytes / 5000);
      assert.equal((await decide({ body: noise })).status, 200);
      assert.equal((await decide({ body: zipped, headers: { 'Content-Encoding': 'gzip' } })).status, 200);
      assert.ok(engine.calls[1]?.body.equals(noise));
    });
  }

  test('a body of one byte more gets 413 with the limit in the message', async (t) => {
    const { engine, decide } = await startServer(t, { config: { maxBodyBytes: 1000 } });
    const { status, text } = await decide({ body: Buffer.alloc(1001) });
    assert.deepEqual([status, text], [413, 'body larger than 1000 bytes (max_body_bytes)']);
    assert.equal(engine.calls.length, 0);
  });

  test('a chunked body that grows too large gets 413', async (t) => {
    const { engine, decide } = await startServer(t, { config: { maxBodyBytes: 1000 } });
    const headers = { 'Transfer-Encoding': 'chunked' };
    assert.equal((await decide({ headers, body: Buffer.alloc(200_000) })).status, 413);
    assert.equal(engine.calls.length, 0);
  });

  test('a compressed body that is too large as it comes gets 413', async (t) => {
    const { decide } = await startServer(t, { config: { maxBodyBytes: 1000 } });
    const headers = { 'Content-Encoding': 'gzip' };
    assert.equal((await decide({ headers, body: Buffer.alloc(100_000) })).status, 413);
  });

  for (const framing of ['Content-Length: 200000', 'Transfer-Encoding: chunked']) {
    test(`after a 413 to a body with ${framing} the connection takes the next request`, async (t) => {
      const { port } = await startServer(t, { config: { maxBodyBytes: 1000 } });
      const wire = await Wire.open(t, port);
      wire.send(`POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\n${framing}\r\n\r\n`);
      const isChunked = framing.includes('chunked');
      wire.send(isChunked ? `30d40\r\n${'a'.repeat(200_000)}\r\n0\r\n\r\n` : 'a'.repeat(200_000));
      assert.match(await wire.receives('(max_body_bytes)'), /^HTTP\/1.1 413 /);
      wire.send('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n');
      assert.match(await wire.receives('\r\nok'), /\)HTTP\/1.1 200 OK\r\n/);
    });
  }
});

suite('the answer', () => {
  test("the engine's bytes go out as JSON, untouched", async (t) => {
    const { decide } = await startServer(t);
    const { status, headers, text } = await decide();
    assert.equal(status, 200);
    assert.equal(text, ANSWER);
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    assert.equal(headers['content-length'], String(ANSWER.length));
  });

  test('Server-Timing has the four durations with two decimals', async (t) => {
    const { decide } = await startServer(t);
    const { headers } = await decide();
    assert.equal(headers['server-timing'], 'encode;dur=1.23, wait;dur=0.00, run;dur=5.67, total;dur=7.10');
  });

  test('the engine is told the time since the reading of the body began', async (t) => {
    const { engine, port } = await startServer(t);
    const wire = await Wire.open(t, port);
    const startMs = performance.now();
    wire.send('POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n');
    // The server sends this when it begins to read the body.
    await wire.receives('100 Continue\r\n\r\n');
    const waitedMs = await waitAtLeast(50);
    wire.send('{}');
    const { elapsedMs } = await engine.called();
    assert.ok(elapsedMs >= waitedMs && elapsedMs <= performance.now() - startMs, `${elapsedMs} ${waitedMs}`);
  });

  for (const [headers, timeoutMs] of [
    [{}, undefined],
    [{ 'X-Request-Timeout-Ms': '1500' }, 1500],
    [{ 'X-Request-Timeout-Ms': '100986567690953781411840' }, 10 ** 12],
    [{ 'X-Envoy-Expected-Rq-Timeout-Ms': '2000' }, 2000],
    [{ 'X-Envoy-Expected-Rq-Timeout-Ms': 'soon' }, undefined],
    [{ 'X-Request-Timeout-Ms': '1500', 'X-Envoy-Expected-Rq-Timeout-Ms': '700' }, 700],
    [{ 'X-Request-Timeout-Ms': '1500', 'X-Envoy-Expected-Rq-Timeout-Ms': '0' }, 1500],
  ] as const) {
    test(`the engine is told how long the caller waits: ${JSON.stringify(headers)}`, async (t) => {
      const { engine, decide } = await startServer(t);
      assert.equal((await decide({ headers })).status, 200);
      assert.equal(engine.calls[0]?.timeoutMs, timeoutMs);
    });
  }

  for (const value of ['', '0', '-5', '1.5', '1e3', 'soon']) {
    test(`x-request-timeout-ms "${value}" gets 400`, async (t) => {
      const { engine, decide } = await startServer(t);
      const { status, text } = await decide({ headers: { 'X-Request-Timeout-Ms': value } });
      const expected = 'x-request-timeout-ms must be a whole number of milliseconds, at least 1';
      assert.deepEqual([status, text], [400, expected]);
      assert.equal(engine.calls.length, 0);
    });
  }

  test('a reply for each request goes to the caller who asked', async (t) => {
    const { engine, decide } = await startServer(t);
    engine.answer = ({ body }) => ({ ...REPLY, body });
    const bodies = Array.from({ length: 50 }, (_, i) => `{"n":${i}}`);
    const answers = await Promise.all(bodies.map((body) => decide({ body })));
    assert.deepEqual(
      answers.map(({ text }) => text),
      bodies,
    );
  });
});

suite('a caller who goes away', () => {
  test('while the engine works fires the signal, and is logged as 499 without an error', async (t) => {
    const { engine, port, log, stats } = await startServer(t);
    engine.answer = untilCancelled;
    const wire = await Wire.open(t, port);
    wire.send('POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}');
    const { signal } = await engine.called();
    assert.equal(signal.aborted, false);
    wire.socket.destroy();
    await until(() => log.length > 0);
    assert.equal(signal.aborted, true);
    assert.deepEqual(
      log.map(({ level, status, code }) => ({ level, status, code })),
      [{ level: 30, status: 499, code: 'cancelled' }],
    );
    assert.equal(stats.recent()[0]?.status, 499);
  });

  test('while sending never reaches the engine, and is logged as 499 without an error', async (t) => {
    const { engine, port, log } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send('POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n{');
    await new Promise((resolve) => setTimeout(resolve, 30));
    wire.socket.destroy();
    await until(() => log.some(({ msg }) => msg === 'request'));
    assert.deepEqual(
      log.map(({ level, status }) => ({ level, status })),
      [{ level: 30, status: 499 }],
    );
    assert.equal(engine.calls.length, 0);
  });

  test('after the answer fires nothing', async (t) => {
    const { engine, port } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send('POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}');
    await wire.receives(ANSWER);
    wire.socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.equal(engine.calls[0]?.signal.aborted, false);
  });

  test('does not disturb the callers beside', async (t) => {
    const { engine, port, decide } = await startServer(t);
    const release = engine.hold();
    const wire = await Wire.open(t, port);
    wire.send('POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}');
    const gone = await engine.called(0);
    const stays = decide();
    const { signal } = await engine.called(1);
    wire.socket.destroy();
    await until(() => gone.signal.aborted);
    release();
    assert.equal((await stays).status, 200);
    assert.equal(signal.aborted, false);
  });

  test('but is told so by the engine while still there gets its connection closed, not a silence', async (t) => {
    const { engine, port } = await startServer(t);
    engine.answer = () => ({ failure: { code: 'cancelled', message: 'the caller has gone' } });
    const wire = await Wire.open(t, port);
    wire.send('POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}');
    assert.equal(await wire.ends(), '');
  });
});

suite('the model', () => {
  test('that is loading gives 503 with Retry-After', async (t) => {
    const { decide } = await startServer(t, { isLoading: true });
    const { status, headers, text } = await decide();
    assert.deepEqual([status, headers['retry-after'], text], [503, '1', 'the model is loading']);
  });

  test('that failed to load gives 503', async (t) => {
    const { slot, decide } = await startServer(t, { isLoading: true });
    slot.failed('bad_model');
    const { status, headers, text } = await decide();
    assert.deepEqual([status, headers['retry-after'], text], [503, '1', 'the model failed to load']);
  });

  test('that is replaced during a request answers it, and the new one answers the next', async (t) => {
    const { engine, slot, decide } = await startServer(t);
    const release = engine.hold();
    const first = decide();
    await engine.called();
    const newer = new FakeEngine();
    slot.loaded(newer, { source: '/models/newer' });
    assert.equal((await decide()).status, 200);
    release();
    assert.equal((await first).status, 200);
    assert.deepEqual([engine.calls.length, newer.calls.length], [1, 1]);
  });
});
