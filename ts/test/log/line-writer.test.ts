import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LineWriter } from '../../src/log/line-writer.ts';
import { until } from '../until.ts';

const MIB = 2 ** 20;

/** A sink that takes lines until a test makes it fail. */
class Taker {
  text = '';
  /** The code of the error that a write throws once there is no more room; undefined while it works. */
  code: string | undefined;
  /** The most bytes that are taken of one write; `roomBytes` is the number of bytes before the error. */
  pieceBytes = Number.POSITIVE_INFINITY;
  roomBytes = Number.POSITIVE_INFINITY;
  sizes: number[] = [];

  readonly write = (bytes: Buffer | string): number => {
    const offered = Buffer.from(bytes);
    const taken = offered.subarray(0, Math.min(this.pieceBytes, this.roomBytes));
    if (this.code !== undefined && taken.length === 0) throw Object.assign(new Error(this.code), { code: this.code });
    this.roomBytes -= taken.length;
    this.text += taken;
    this.sizes.push(offered.length);
    return taken.length;
  };

  fail(code: string, roomBytes = 0): void {
    this.code = code;
    this.roomBytes = roomBytes;
  }

  work(): void {
    this.code = undefined;
    this.roomBytes = Number.POSITIVE_INFINITY;
  }
}

function writerTo(taker: Taker): LineWriter {
  const writer = new LineWriter(taker.write, (lost) => writer.write(`lost ${lost}\n`));
  return writer;
}

suite('the lines of the log', () => {
  test('are written before the call returns', () => {
    const taker = new Taker();
    writerTo(taker).write('é\n');
    assert.equal(taker.text, 'é\n');
  });

  for (const code of ['ENOSPC', 'EIO', 'EDQUOT', 'EFBIG', 'EPIPE', 'EAGAIN']) {
    test(`are kept while a write ends with ${code}, and written in their order once it does not`, async () => {
      const taker = new Taker();
      const writer = writerTo(taker);
      taker.fail(code);
      for (const line of ['one\n', 'two\n', 'three\n']) writer.write(line);
      assert.equal(taker.text, '');
      taker.work();
      writer.write('four\n');
      await until(() => taker.text === 'one\ntwo\nthree\nfour\n');
      assert.equal(writer.lost, 0);
    });
  }

  test('are whole where the disk was full in the middle of one', async () => {
    const taker = new Taker();
    const writer = writerTo(taker);
    taker.fail('ENOSPC', 3);
    writer.write('été\n');
    writer.write('two\n');
    assert.equal(Buffer.byteLength(taker.text), Buffer.byteLength('ét'));
    taker.work();
    await until(() => taker.text === 'été\ntwo\n');
  });

  test('are lost beyond 1 MiB, counted, and told of in one line when all that was kept is written', async () => {
    const taker = new Taker();
    const writer = writerTo(taker);
    taker.fail('ENOSPC');
    const line = `${'x'.repeat(1023)}\n`;
    for (let i = 0; i < 1024; i++) writer.write(line);
    assert.equal(writer.lost, 0);
    for (let i = 0; i < 7; i++) writer.write(line);
    // This line is short enough to be kept, but lines before it are lost, so it would not stand in its place.
    writer.write('short\n');
    assert.equal(writer.lost, 8);
    taker.work();
    await until(() => taker.text.length > MIB);
    writer.write('next\n');
    assert.equal(taker.text, `${line.repeat(1024)}lost 8\nnext\n`);
    assert.equal(writer.lost, 8);
  });

  test('go out in pieces that a pipe takes whole, so that no other process writes between them', async () => {
    const taker = new Taker();
    const writer = writerTo(taker);
    taker.fail('EAGAIN');
    for (let i = 0; i < 100; i++) writer.write(`${'x'.repeat(99)}\n`);
    taker.work();
    await until(() => taker.text.length === 10_000);
    for (const size of taker.sizes) assert.ok(size <= 4096 && size % 100 === 0, String(size));
  });

  test('longer than such a piece are written, too', async () => {
    const taker = new Taker();
    taker.pieceBytes = 1000;
    const writer = writerTo(taker);
    const lines = [`${'x'.repeat(10_000)}\n`, 'two\n'];
    for (const line of lines) writer.write(line);
    await until(() => taker.text === lines.join(''));
  });

  test('are written at the end as far as they are taken', async () => {
    const taker = new Taker();
    const writer = writerTo(taker);
    taker.fail('EAGAIN');
    writer.write('one\n');
    await sleep(100);
    taker.work();
    writer.finish();
    assert.equal(taker.text, 'one\n');
  });

  test('do not hold up the end where nothing takes them', () => {
    for (const [code, minMs, maxMs] of [
      ['ENOSPC', 0, 500],
      // The end waits a second for a reader that is slow.
      ['EAGAIN', 1000, 5000],
    ] as const) {
      const taker = new Taker();
      const writer = writerTo(taker);
      taker.fail(code);
      writer.write('one\n');
      const startMs = performance.now();
      writer.finish();
      const tookMs = performance.now() - startMs;
      assert.ok(tookMs >= minMs && tookMs < maxMs, `${code}: ${tookMs} ms`);
    }
  });
});
