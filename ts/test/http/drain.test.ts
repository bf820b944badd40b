import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { suite, test } from 'node:test';
import { Lifecycle } from '../../src/server/lifecycle.ts';
import { ANSWER, untilCancelled } from '../fake-engine.ts';
import { until } from '../until.ts';
import { DECISION, rawHeader, startServer, Wire } from './server-under-test.ts';

const GET = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';
const POST = `POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${DECISION.length}\r\n\r\n`;

/** Returns whether the server takes a new connection. */
async function isListening(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  const outcome = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return outcome;
}

test('the lifecycle never goes back', () => {
  const lifecycle = new Lifecycle();
  lifecycle.advance('draining');
  lifecycle.advance('stopping');
  assert.equal(lifecycle.phase, 'draining');
});

suite('an orderly end', () => {
  test('of a server at rest closes the listener and the engine', async (t) => {
    const { http, engine, port } = await startServer(t);
    await http.drain();
    assert.equal(await isListening(port), false);
    assert.equal(engine.closes, 1);
  });

  test('happens once, however often it is asked for', async (t) => {
    const { http, engine } = await startServer(t);
    const first = http.drain();
    assert.equal(http.drain(), first);
    await first;
    assert.equal(engine.closes, 1);
  });

  test('works while the model is loading', async (t) => {
    const { http, engine } = await startServer(t, { isLoading: true });
    await http.drain();
    assert.equal(engine.closes, 0);
  });

  test('gives 503 on /readyz at once, and goes on with all else for drain_delay_ms', async (t) => {
    // This is longer than three calls take on a busy machine.
    const drainDelayMs = 3000;
    const { http, get, decide, lifecycle, port, engine } = await startServer(t, { config: { drainDelayMs } });
    const startMs = performance.now();
    const drained = http.drain();
    assert.equal((await get('/readyz')).status, 503);
    assert.equal((await decide()).status, 200);
    assert.equal(await isListening(port), true);
    assert.equal(lifecycle.phase, 'stopping');
    assert.equal(engine.closes, 0);
    await drained;
    assert.ok(performance.now() - startMs >= drainDelayMs - 1);
    assert.equal(await isListening(port), false);
  });

  test('closes idle connections at once, also those on which nothing was asked', async (t) => {
    const { http, port, engine } = await startServer(t, { config: { drainMs: 5000 } });
    const [idle, unused] = [await Wire.open(t, port), await Wire.open(t, port)];
    idle.send(GET);
    await idle.receives('\r\nok');
    const release = engine.hold();
    const busy = await Wire.open(t, port);
    busy.send(POST + DECISION);
    await engine.called();
    const drained = http.drain();
    await Promise.all([idle.ends(), unused.ends()]);
    assert.equal(busy.received, '');
    release();
    // The end of `drain_ms` is not what closed the idle connections: it would also have cut off this one.
    assert.ok((await busy.ends()).endsWith(ANSWER));
    await drained;
  });

  test('lets running requests finish, then closes their connections, then the engine', async (t) => {
    const { http, port, engine, lifecycle } = await startServer(t, { config: { drainMs: 2000 } });
    const release = engine.hold();
    const wires = [await Wire.open(t, port), await Wire.open(t, port)];
    for (const wire of wires) wire.send(POST + DECISION);
    await engine.called(1);
    const drained = http.drain();
    await until(() => lifecycle.phase === 'draining');
    assert.equal(await isListening(port), false);
    assert.equal(engine.closes, 0);
    release();
    for (const answer of await Promise.all(wires.map((wire) => wire.ends()))) {
      assert.match(answer, /^HTTP\/1.1 200 OK\r\n/);
      assert.equal(rawHeader(answer, 'connection'), 'close');
      assert.ok(answer.endsWith(ANSWER));
    }
    await drained;
    assert.equal(engine.closes, 1);
  });

  test('lets a request finish whose body is still on its way', async (t) => {
    const { http, port, lifecycle } = await startServer(t, { config: { drainMs: 2000 } });
    const wire = await Wire.open(t, port);
    wire.send(POST + DECISION.slice(0, 5));
    await new Promise((resolve) => setTimeout(resolve, 30));
    const drained = http.drain();
    await until(() => lifecycle.phase === 'draining');
    wire.send(DECISION.slice(5));
    assert.ok((await wire.ends()).endsWith(ANSWER));
    await drained;
  });

  test('refuses a new request on an open connection with 503, Connection: close and Retry-After', async (t) => {
    const { http, port, engine, lifecycle } = await startServer(t, { config: { drainMs: 2000 } });
    const release = engine.hold();
    const [busy, other] = [await Wire.open(t, port), await Wire.open(t, port)];
    busy.send(POST + DECISION);
    await engine.called();
    // With half of the headers sent, the connection is no longer idle but has no request yet.
    other.send(POST.slice(0, 20));
    await new Promise((resolve) => setTimeout(resolve, 30));
    const drained = http.drain();
    await until(() => lifecycle.phase === 'draining');
    other.send(POST.slice(20));
    other.send(DECISION);
    const answer = await other.ends();
    assert.match(answer, /^HTTP\/1.1 503 Service Unavailable\r\n/);
    assert.equal(rawHeader(answer, 'connection'), 'close');
    assert.equal(rawHeader(answer, 'retry-after'), '1');
    assert.ok(answer.endsWith('\r\n\r\nthe server is shutting down'));
    assert.equal(engine.calls.length, 1);
    release();
    await drained;
  });

  test('cuts off what is not finished after drain_ms, tells the engine, and says so in the log', async (t) => {
    const { http, port, engine, log } = await startServer(t, { config: { drainMs: 60 } });
    engine.answer = untilCancelled;
    const wire = await Wire.open(t, port);
    wire.send(POST + DECISION);
    const { signal } = await engine.called();
    await http.drain();
    assert.equal(signal.aborted, true);
    assert.equal(await wire.ends(), '');
    assert.equal(engine.closes, 1);
    assert.deepEqual(
      log.filter(({ level }) => level > 30).map(({ level, msg }) => ({ level, msg })),
      [{ level: 40, msg: 'drain_ms is over, open requests are cut off' }],
    );
  });

  test('is not held up by a caller who keeps a connection half open', async (t) => {
    const { http, port } = await startServer(t, { config: { drainMs: 10_000 } });
    const wire = await Wire.open(t, port);
    wire.send('GET /livez HT');
    await new Promise((resolve) => setTimeout(resolve, 30));
    const startMs = performance.now();
    await http.drain();
    assert.ok(performance.now() - startMs < 2000);
    assert.equal(await wire.ends(), '');
  });
});
