import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { readState } from '../../src/gate/state-header.ts';
import { readBody } from '../../src/server/middleware/body.ts';
import { BodyParts } from '../../src/server/middleware/body-parts.ts';
import { BodyRoom } from '../../src/server/middleware/body-room.ts';

const KIB = 2 ** 10;
const BYTES = 256 * KIB;
/** The most memory that an arriving body may take, in bytes. Without joining, each part would take about 200. */
const MAX_HELD = 32 * BYTES;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Returns how many bytes of memory are in use. */
function usedBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function request(headers: IncomingMessage['headers']): IncomingMessage {
  const stream = new Readable({ read: () => {} });
  return Object.assign(stream, { headers, method: 'POST', url: '/v1/systemone' }) as unknown as IncomingMessage;
}

/** Sends a body in parts of one byte, and returns the bytes of memory that they take before the last one is read. */
function sendByBytes(req: IncomingMessage): number {
  const before = usedBytes();
  // Each part has memory of its own, as the parts of Node's parser do.
  for (let sent = 1; sent < BYTES; sent += 1) req.emit('data', Buffer.alloc(1, 'x'));
  const held = usedBytes() - before;
  req.emit('data', Buffer.alloc(1, 'x'));
  req.emit('end');
  return held;
}

const BODY = Buffer.alloc(BYTES, 'x');

suite('a body in parts', () => {
  for (const [what, headers] of [
    ['of a declared length', { 'content-length': String(BYTES) }],
    ['in chunks', { 'transfer-encoding': 'chunked' }],
  ] as const) {
    test(`of one byte takes little more memory than its bytes, ${what}`, async () => {
      const limit = { maxBytes: 8 * BYTES, setting: 'max_body_bytes' } as const;
      const req = request(headers);
      const body = readBody(req, { limit, room: new BodyRoom(8 * BYTES) });
      const held = sendByBytes(req);
      assert.ok(held < MAX_HELD, `${held} bytes are held`);
      assert.ok(BODY.equals(await body));
    });
  }

  test('of one byte takes little more memory than its bytes in the gate', async () => {
    const req = request({ 'transfer-encoding': 'chunked' });
    const read = readState(req);
    const held = sendByBytes(req);
    assert.ok(held < MAX_HELD, `${held} bytes are held`);
    const { start, isWhole } = await read;
    assert.deepEqual([isWhole, BODY.equals(start)], [true, true]);
  });

  test('of one byte is refused after so many that others would wait, and one in larger parts is not', async () => {
    const limit = { maxBytes: 64 * BYTES, setting: 'max_body_bytes' } as const;
    const send = (part: Buffer) => {
      const req = request({ 'transfer-encoding': 'chunked' });
      const body = readBody(req, { limit, room: new BodyRoom(64 * BYTES) });
      for (let sent = 0; sent <= BYTES; sent += 1) req.emit('data', part);
      req.emit('end');
      return body;
    };
    await assert.rejects(send(Buffer.alloc(1, 'x')), { code: 'bad_body', headers: { Connection: 'close' } });
    assert.equal((await send(Buffer.alloc(32, 'x'))).length, 32 * (BYTES + 1));
  });

  test('of any lengths is what was sent', () => {
    for (const most of [2, 100, 5 * KIB, 70 * KIB]) {
      const sent = Array.from({ length: 1000 }, () => randomBytes(randomInt(1, most)));
      const parts = new BodyParts();
      for (const part of sent) parts.add(part);
      const whole = Buffer.concat(sent);
      assert.equal(parts.bytes, whole.length);
      assert.ok(parts.joined().equals(whole), `parts of fewer than ${most} bytes`);
    }
  });

  test('that has failed takes no memory any more, and its rest takes none either', async () => {
    const limit = { maxBytes: 4 * BYTES, setting: 'max_body_bytes' } as const;
    const req = request({ 'content-length': String(4 * BYTES) });
    const body = readBody(req, { limit, room: new BodyRoom(4 * BYTES) });
    const send = () => {
      const part = Buffer.alloc(BYTES, 'x');
      req.emit('data', part);
      return new WeakRef(part);
    };
    const isHeld = async (part: WeakRef<Buffer>) => {
      // A reference that was made or read in this turn keeps its object until the next one.
      await new Promise(setImmediate);
      collectGarbage();
      return part.deref() !== undefined;
    };
    const first = send();
    assert.ok(await isHeld(first));
    req.emit('error', new Error('it gives way'));
    await assert.rejects(body, { code: 'cancelled' });
    assert.deepEqual([await isHeld(first), await isHeld(send())], [false, false]);
  });

  test('that has closed before it is read is given up', async () => {
    const req = request({ 'transfer-encoding': 'chunked' });
    req.destroy();
    await new Promise((resolve) => req.once('close', resolve));
    const limit = { maxBytes: BYTES, setting: 'max_body_bytes' } as const;
    await assert.rejects(readBody(req, { limit, room: new BodyRoom(BYTES) }), { code: 'cancelled' });
  });
});
