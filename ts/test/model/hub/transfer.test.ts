import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { sha256Of } from '../../../src/files/sha256.ts';
import type { FetchProgress } from '../../../src/model/download.ts';
import { HubClient } from '../../../src/model/hub/client.ts';
import { parseHubName } from '../../../src/model/hub/name.ts';
import { type Transfer, transferred } from '../../../src/model/hub/transfer.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { until } from '../../until.ts';
import { LIMITS, never } from './hub-source.ts';
import { type Fault, StandInHub } from './stand-in-hub.ts';

const GRAPH = Buffer.from('0123456789'.repeat(10_000));
const SHA256 = sha256Of(GRAPH);
const MACHINE = sha256Of(hostname()).slice(0, 8);

/** A person who waits, and remembers how many bytes were told. */
class Told implements FetchProgress {
  bytes = 0;
  /** The bytes that have come now. */
  arrived = 0;

  expects(): void {}

  leavesOut(): void {}

  had(bytes: number): void {
    this.bytes += bytes;
  }

  got(bytes: number): void {
    this.bytes += bytes;
    this.arrived += bytes;
  }
}

interface World {
  readonly hub: StandInHub;
  readonly blobs: string;
  readonly told: Told;
  transfer(changes?: Partial<Transfer>): Promise<string>;
  /** The ranges that the server with the large files was asked for. */
  ranges(): (string | undefined)[];
  /** Returns a fault that sends bytes of the graph, and breaks the connection once they are on the disk. */
  breaks(bytes: number, status?: 200 | 206, first?: number): Fault;
}

async function world(t: TestContext): Promise<World> {
  const hub = await StandInHub.start(t);
  const commit = hub.publish('org/name', { 'model.onnx': GRAPH });
  const blobs = join(temporaryFolder(t), 'blobs');
  mkdirSync(blobs);
  const client = new HubClient({
    endpoint: new URL(hub.url),
    token: undefined,
    allowHttp: false,
    isTrusted: (url) => url.origin === hub.storageUrl,
  });
  const file = { path: 'model.onnx', bytes: GRAPH.length, blob: SHA256 };
  const told = new Told();
  const fixed = { client, name: parseHubName('hf:org/name'), commit, file, blobs, what: 'm', limits: LIMITS };
  return {
    hub,
    blobs,
    told,
    transfer: (changes = {}) => transferred({ ...fixed, signal: never, progress: told, retryMs: 1, ...changes }),
    ranges: () => hub.requests.filter(({ server }) => server === 'storage').map(({ range }) => range),
    breaks:
      (bytes, status = 200, first = 0) =>
      (_, response) => {
        const range = { 'content-range': `bytes ${first}-${GRAPH.length - 1}/${GRAPH.length}` };
        response.writeHead(status, { 'content-length': GRAPH.length - first, ...(status === 206 && range) });
        response.flushHeaders();
        response.write(GRAPH.subarray(first, first + bytes));
        const onDisk = () => readdirSync(blobs).some((name) => statSync(join(blobs, name)).size === first + bytes);
        until(onDisk).then(() => response.destroy());
      },
  };
}

suite('a transfer from a hub', () => {
  test('that breaks off goes on where it was', async (t) => {
    const { hub, blobs, told, transfer, ranges, breaks } = await world(t);
    hub.storageFaults.push(breaks(40_000), breaks(20_000, 206, 40_000));
    assert.deepEqual(readFileSync(await transfer()), GRAPH);
    assert.deepEqual(ranges(), [undefined, 'bytes=40000-', 'bytes=60000-']);
    assert.deepEqual([readdirSync(blobs), told.bytes], [[SHA256], GRAPH.length]);
  });

  test('that brings nothing is given up, and the next one goes on with what is there', async (t) => {
    const { hub, blobs, transfer, ranges, breaks } = await world(t);
    hub.storageFaults.push(breaks(40_000), ...Array(3).fill(breaks(0, 206, 40_000)));
    await assert.rejects(transfer(), { name: 'SourceError', isAway: true, message: /^m: the transfer broke off \(/ });
    assert.equal(ranges().length, 4);
    const [incomplete = '', ...others] = readdirSync(blobs);
    assert.deepEqual(others, []);
    assert.match(incomplete, new RegExp(`^${SHA256}\\.svc-${MACHINE}-${process.pid}-\\w+\\.incomplete$`));
    await transfer();
    assert.equal(ranges().at(-1), 'bytes=40000-');
    assert.deepEqual(readdirSync(blobs), [SHA256]);
  });

  test('of a server that does not know ranges begins anew', async (t) => {
    const { hub, told, transfer, breaks } = await world(t);
    hub.storageFaults.push(breaks(40_000), (_, response) => response.end(GRAPH));
    assert.deepEqual(readFileSync(await transfer()), GRAPH);
    assert.equal(told.bytes, GRAPH.length);
  });

  test('counts bytes of an earlier one as there, and not as having come now', async (t) => {
    const { blobs, told, transfer, ranges } = await world(t);
    const gone = spawnSync(process.execPath, ['--version']).pid;
    writeFileSync(join(blobs, `${SHA256}.svc-${MACHINE}-${gone}-ab.incomplete`), GRAPH.subarray(0, 40_000));
    await transfer();
    assert.deepEqual(ranges(), ['bytes=40000-']);
    assert.deepEqual([told.bytes, told.arrived], [GRAPH.length, GRAPH.length - 40_000]);
  });

  test('that goes on with wrong bytes begins anew, once', async (t) => {
    const { blobs, told, transfer, ranges } = await world(t);
    const gone = spawnSync(process.execPath, ['--version']).pid;
    writeFileSync(join(blobs, `${SHA256}.svc-${MACHINE}-${gone}-ab.incomplete`), 'x'.repeat(40_000));
    assert.deepEqual(readFileSync(await transfer()), GRAPH);
    assert.deepEqual(ranges(), ['bytes=40000-', undefined]);
    assert.deepEqual([told.bytes, told.arrived], [GRAPH.length, 2 * GRAPH.length - 40_000]);
  });

  test('that is sent other bytes than it asked for is not taken', async (t) => {
    const { hub, transfer, breaks } = await world(t);
    const range = `bytes 30000-${GRAPH.length - 1}/${GRAPH.length}`;
    hub.storageFaults.push(breaks(40_000), (_, response) => {
      response.writeHead(206, { 'content-range': range }).end(GRAPH.subarray(30_000));
    });
    await assert.rejects(transfer(), { message: 'm: the hub sends other bytes than it was asked for', isAway: false });
  });

  test('that is too slow fails as one of any other source does', async (t) => {
    const { hub, transfer } = await world(t);
    const limits = { ...LIMITS, spanMs: 50, minBytesPerSpan: 1024 };
    const drip: Fault = (_, response) => void response.write('x');
    hub.storageFaults.push(...Array(10).fill(drip));
    await assert.rejects(transfer({ limits }), { isAway: true, message: 'm: fewer than 1024 bytes in 0.05 s' });
  });

  test('ends with its signal', async (t) => {
    const { hub, transfer } = await world(t);
    const stop = new AbortController();
    hub.storageFaults.push(() => stop.abort(new Error('the end')));
    await assert.rejects(transfer({ signal: stop.signal }), { message: 'the end' });
  });
});

suite('an incomplete file', () => {
  const gone = spawnSync(process.execPath, ['--version']).pid;
  const old = new Date(Date.now() - 11 * 60_000);

  for (const [what, name, time, isTaken] of [
    ['of a process of this machine that has ended', `svc-${MACHINE}-${gone}-ab`, undefined, true],
    ['of a process that runs', `svc-${MACHINE}-${process.ppid}-ab`, undefined, false],
    ...(process.platform === 'linux'
      ? ([['of an earlier process of its number', `svc-${MACHINE}-${process.ppid}-ab`, new Date(0), true]] as const)
      : []),
    ['of this process, from before its start', `svc-${MACHINE}-${process.pid}-ab`, undefined, true],
    ['of another machine', `svc-00000000-${gone}-ab`, undefined, false],
    ['of another machine, long ago', `svc-00000000-${gone}-ab`, old, true],
    ['of another program', '0a1b2c3d', undefined, false],
    ['of another program, long ago', '0a1b2c3d', old, true],
  ] as const) {
    test(`${what} is ${isTaken ? 'taken over' : 'left alone'}`, async (t) => {
      const { blobs, transfer, ranges } = await world(t);
      const path = join(blobs, `${SHA256}.${name}.incomplete`);
      writeFileSync(path, GRAPH.subarray(0, 40_000));
      if (time !== undefined) utimesSync(path, time, time);
      await transfer();
      assert.deepEqual(ranges(), [isTaken ? 'bytes=40000-' : undefined]);
      assert.equal(readdirSync(blobs).length, isTaken ? 1 : 2);
    });
  }

  test('is the longest of several, and the others go with it', async (t) => {
    const { blobs, transfer, ranges } = await world(t);
    for (const bytes of [10, 40_000, 20_000]) {
      writeFileSync(join(blobs, `${SHA256}.svc-${MACHINE}-${gone}-${bytes}.incomplete`), GRAPH.subarray(0, bytes));
    }
    await transfer();
    assert.deepEqual([ranges(), readdirSync(blobs)], [['bytes=40000-'], [SHA256]]);
  });

  test('that is longer than the file, or one of another file, is not taken over', async (t) => {
    const { blobs, transfer, ranges } = await world(t);
    writeFileSync(join(blobs, `${SHA256}.svc-${MACHINE}-${gone}-a.incomplete`), Buffer.concat([GRAPH, GRAPH]));
    writeFileSync(join(blobs, `${'ab'.repeat(32)}.svc-${MACHINE}-${gone}-a.incomplete`), 'x');
    await transfer();
    assert.deepEqual(ranges(), [undefined]);
  });

  test('that is whole is only checked', async (t) => {
    const { blobs, transfer, ranges } = await world(t);
    writeFileSync(join(blobs, `${SHA256}.svc-${MACHINE}-${gone}-a.incomplete`), GRAPH);
    assert.deepEqual(readFileSync(await transfer()), GRAPH);
    assert.deepEqual(ranges(), []);
  });
});
