import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { Server } from '../../src/file-run/server.ts';

/** Returns a server whose clock a test sets, and whose pauses have their greatest length. */
function testServer(t: TestContext, { longestRestMs = 60_000 } = {}) {
  const clock = { nowMs: 1000 };
  t.mock.method(performance, 'now', () => clock.nowMs);
  t.mock.method(Math, 'random', () => 1);
  const server = new Server({ url: 'http://127.0.0.1:1', concurrency: 8, longestRestMs, isCompared: true });
  /** Lets the server rest, sets the clock to the end of the pause, and returns its length in milliseconds. */
  const pauseMs = (retryAfterMs?: number) => {
    server.rest(retryAfterMs);
    const ms = server.restsUntilMs - clock.nowMs;
    clock.nowMs = server.restsUntilMs;
    return ms;
  };
  return { clock, server, pauseMs };
}

suite('a server of a run that is let alone', () => {
  test('rests twice as long each time, up to 30 s', (t) => {
    const { pauseMs } = testServer(t);
    const pauses = Array.from({ length: 9 }, () => pauseMs());
    assert.deepEqual(pauses, [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  });

  test('rests for half of that at least', (t) => {
    const { pauseMs } = testServer(t);
    t.mock.method(Math, 'random', () => 0);
    assert.deepEqual([pauseMs(), pauseMs(), pauseMs()], [125, 250, 500]);
  });

  test('rests half as long after an answer as it would without, and never less than the first time', (t) => {
    const { server, pauseMs } = testServer(t);
    assert.deepEqual([pauseMs(), pauseMs(), pauseMs()], [250, 500, 1000]);
    server.answered();
    assert.equal(pauseMs(), 1000);
    for (let answers = 0; answers < 10; answers += 1) server.answered();
    assert.deepEqual([pauseMs(), pauseMs()], [250, 500]);
  });

  test('rests once for all requests that fail at the same time', (t) => {
    const { clock, server, pauseMs } = testServer(t);
    for (let requests = 0; requests < 8; requests += 1) {
      server.rest();
      clock.nowMs += 1;
    }
    assert.equal(server.restsUntilMs, 1250);
    clock.nowMs = 1250;
    assert.equal(pauseMs(), 500);
  });

  test('rests for what it asks for where that is longer, up to the time to give up', (t) => {
    const { server, pauseMs } = testServer(t, { longestRestMs: 5000 });
    assert.deepEqual([pauseMs(0), pauseMs(3000), pauseMs(9000)], [250, 3000, 5000]);
    server.rest();
    server.rest(4000);
    assert.equal(pauseMs(), 4000);
  });

  test('gets one request after that, and one more for each answer', (t) => {
    const { clock, server, pauseMs } = testServer(t);
    assert.ok(server.hasRoom(clock.nowMs));
    server.rest();
    assert.ok(!server.hasRoom(clock.nowMs));
    pauseMs();
    server.busy = 1;
    assert.ok(!server.hasRoom(clock.nowMs));
    server.answered();
    assert.ok(server.hasRoom(clock.nowMs));
    server.busy = 2;
    assert.ok(!server.hasRoom(clock.nowMs));
  });
});

suite('a server of a run', () => {
  test('gets half as many requests at once each time that another was faster, and one at least', (t) => {
    const { clock, server } = testServer(t);
    const hasRoomFor = () => {
      for (server.busy = 0; server.hasRoom(clock.nowMs); ) server.busy += 1;
      return server.busy;
    };
    const found = [hasRoomFor()];
    for (let times = 0; times < 4; times += 1) {
      server.overtaken(1000, 50);
      found.push(hasRoomFor());
    }
    assert.deepEqual(found, [8, 4, 2, 1, 1]);
  });

  test('is waited for when it fails until a minute after its last answer', (t) => {
    const { clock, server } = testServer(t);
    clock.nowMs += 90_000;
    assert.ok(server.isPresent(clock.nowMs));
    server.answered();
    server.failed();
    assert.ok(server.isPresent(clock.nowMs + 59_999));
    assert.ok(!server.isPresent(clock.nowMs + 60_000));
  });
});
