import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { HttpFailure } from '../../src/errors.ts';
import { type ArrivingBody, BodyRoom, FREE_BYTES } from '../../src/server/middleware/body-room.ts';
import { until } from '../until.ts';
import { rawHeader, type Sent, type ServerUnderTest, startServer, Wire } from './server-under-test.ts';

const KIB = 2 ** 10;
const ROOM = 100 * KIB;
const CONFIG = { maxBodyBytes: 400 * KIB, maxBatchBodyBytes: 400 * KIB, maxQueueBytes: ROOM };
const FULL = 'too many bytes of requests are arriving (max_queue_bytes)';
const spaces = (bytes: number) => ' '.repeat(bytes);

/** Begins a request with a body of `bytes`, sends `sent` of them, and returns its connection. */
async function begin(t: TestContext, { port }: ServerUnderTest, { bytes = 0, sent = 0, path = '/v1/systemone' }) {
  const wire = await Wire.open(t, port);
  const framing = bytes > 0 ? `Content-Length: ${bytes}` : 'Transfer-Encoding: chunked';
  // The server answers `100 Continue` when it has begun to handle the request.
  wire.send(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\n${framing}\r\n\r\n`);
  await wire.receives('100 Continue\r\n\r\n');
  wire.send(bytes > 0 ? spaces(sent) : `${sent.toString(16)}\r\n${spaces(sent)}\r\n`);
  return wire;
}

/** Sends bodies of `bytes` until one is refused, which shows that the others have arrived, and returns the refusal. */
async function untilFull({ decide }: ServerUnderTest, bytes: number, rest: Partial<Sent> = {}) {
  for (;;) {
    // A refused caller that is still sending may see the connection close before it gets the answer.
    const answer = await decide({ body: spaces(bytes), ...rest }).catch(() => undefined);
    if (answer?.status === 503) return answer;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

suite('bodies that are arriving', () => {
  test('have max_queue_bytes together: a new one over it gets 503 and is not read', async (t) => {
    const server = await startServer(t, { config: CONFIG });
    const first = await begin(t, server, { bytes: 90 * KIB, sent: 80 * KIB });
    const { text, headers } = await untilFull(server, 70 * KIB);
    assert.deepEqual([text, headers['retry-after'], headers.connection], [FULL, '1', 'close']);
    assert.equal((await server.decide({ body: spaces(FREE_BYTES) })).status, 200, 'small ones always come in');
    first.send(spaces(10 * KIB));
    assert.match(await first.receives('"2":{}}}'), / 200 OK/);
    assert.equal((await server.decide({ body: spaces(70 * KIB) })).status, 200);
  });

  test('reserve nothing by the length that they declare', async (t) => {
    const server = await startServer(t, { config: CONFIG });
    for (let count = 0; count < 5; count += 1) await begin(t, server, { bytes: 400 * KIB, sent: 10 });
    assert.equal((await server.decide({ body: spaces(90 * KIB) })).status, 200);
  });

  for (const bytes of [0, 90 * KIB]) {
    test(`give way to earlier ones when they grow, ${bytes > 0 ? 'of a declared length' : 'in chunks'}`, async (t) => {
      const server = await startServer(t, { config: CONFIG });
      const first = await begin(t, server, { bytes: 400 * KIB, sent: 40 * KIB });
      const second = await begin(t, server, { bytes, sent: 60 * KIB });
      await untilFull(server, 60 * KIB);
      first.send(spaces(60 * KIB));
      const answer = await second.ends();
      assert.match(answer, / 503 Service Unavailable/);
      assert.equal(rawHeader(answer, 'connection'), 'close');
      first.send(spaces(300 * KIB));
      assert.match(await first.receives('"2":{}}}'), / 200 OK/);
    });
  }

  test('are read when they are larger than max_queue_bytes, one at a time', async (t) => {
    const { decide, engine } = await startServer(t, { config: CONFIG });
    for (const headers of [{}, { 'Transfer-Encoding': 'chunked' }]) {
      assert.equal((await decide({ body: spaces(400 * KIB), headers })).status, 200);
    }
    assert.equal(engine.calls[1]?.body.length, 400 * KIB);
  });

  test('count with what they are decompressed to', async (t) => {
    const server = await startServer(t, { config: CONFIG });
    const bomb = { body: gzipSync(spaces(300 * KIB)), headers: { 'Content-Encoding': 'gzip' } };
    assert.ok(bomb.body.length < KIB);
    assert.equal((await server.decide(bomb)).status, 200, 'alone');
    await begin(t, server, { bytes: 90 * KIB, sent: 60 * KIB });
    await untilFull(server, 80 * KIB);
    const { status, text } = await server.decide(bomb);
    assert.deepEqual([status, text], [503, FULL]);
  });

  test('of batches keep no single request out', async (t) => {
    const server = await startServer(t, { config: CONFIG });
    const path = '/v1/systemone/batch';
    await begin(t, server, { bytes: 400 * KIB, sent: 300 * KIB, path });
    await untilFull(server, 90 * KIB, { path });
    assert.equal((await server.decide({ body: spaces(90 * KIB) })).status, 200);
  });

  test('leave their room when their callers go', async (t) => {
    const server = await startServer(t, { config: CONFIG });
    const gone = await begin(t, server, { bytes: 400 * KIB, sent: 90 * KIB });
    await untilFull(server, 80 * KIB);
    gone.socket.destroy();
    await until(async () => (await server.decide({ body: spaces(80 * KIB) })).status === 200);
  });
});

test('a room never holds more than its limit, but of one body alone', () => {
  const room = new BodyRoom(ROOM);
  const bodies = new Set<ArrivingBody>();
  let [refused, gone] = [0, 0];
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 48_271) % (2 ** 31 - 1);
    return seed % below;
  };
  for (let step = 0; step < 20_000; step += 1) {
    const all = [...bodies];
    const body = all[random(all.length + 1)];
    if (!body) {
      try {
        const entered = room.enter(random(ROOM));
        bodies.add(entered);
        entered.giveWay = () => {
          // The earliest of the bodies that hold room is always read to its end.
          assert.notEqual(
            entered,
            [...bodies].find(({ bytes }) => bytes > 0),
          );
          bodies.delete(entered);
          gone += 1;
        };
      } catch (error) {
        assert.ok(error instanceof HttpFailure, String(error));
        refused += 1;
      }
    } else if (random(20) === 0) {
      bodies.delete(body);
      room.leave(body);
    } else body.add(random(8 * KIB));
    const held = [...bodies].map(({ bytes }) => bytes);
    assert.equal(
      room.bytes,
      held.reduce((sum, bytes) => sum + bytes, 0),
    );
    assert.ok(room.bytes <= ROOM || held.filter((bytes) => bytes > 0).length === 1);
  }
  assert.ok(refused > 0 && gone > 0, `${refused} were refused, ${gone} gave way`);
  for (const body of bodies) room.leave(body);
  assert.equal(room.bytes, 0);
});
