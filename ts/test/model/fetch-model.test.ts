import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type FetchRequest, fetchModel } from '../../src/model/fetch-model.ts';
import { SourceError } from '../../src/model/source-error.ts';
import type { Listed, Opened, OpenOptions, Store } from '../../src/model/store.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { tarOf } from './archives.ts';

/** The time that a fetch may take; a busy machine, too, makes the folder of the fetch in it. */
const TOTAL_MS = 400;
const AMPLE = { maxBytes: 2 ** 20, totalMs: 60_000, spanMs: 30_000, minBytesPerSpan: 1 };
const ARCHIVE: Store = { open: async () => ({ body: Readable.from([tarOf({ 'config.json': '{}' })]) }) };

/** Fetches an archive into `folder`. */
function fetchInto(folder: string, changes: Partial<FetchRequest> = {}) {
  return fetchModel({
    store: ARCHIVE,
    packaging: { kind: 'archive', format: 'tar' },
    source: 's3://a/b.tar.gz',
    name: 'b',
    pinned: '',
    limits: { ...AMPLE, totalMs: TOTAL_MS },
    signal: new AbortController().signal,
    isHere: async () => false,
    workspace: async () => folder,
    offered: () => {},
    ...changes,
  });
}

const late = { name: 'SourceError', message: `s3://a/b.tar.gz: not there after ${TOTAL_MS / 1000} s`, isAway: true };

suite('the time of a fetch', () => {
  test('is that of the unpacking too', async (t) => {
    const folder = temporaryFolder(t);
    // This check comes between the transfer and the unpacking.
    const isHere = async () => {
      await delay(3 * TOTAL_MS);
      return false;
    };
    await assert.rejects(fetchInto(folder, { isHere }), late);
    assert.deepEqual(readdirSync(join(folder, 'b')), []);
  });

  for (const [what, packaging] of [
    ['an archive', { kind: 'archive', format: 'zip' }],
    ['a manifest', { kind: 'manifest' }],
    ['a listing', { kind: 'folder' }],
  ] as const) {
    test(`is that of ${what} that is never sent`, async (t) => {
      const never = ({ signal }: { readonly signal: AbortSignal }) =>
        new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
      const isMissing = () => Promise.reject(new SourceError('none', { isAway: true, isMissing: true }));
      const open =
        packaging.kind === 'folder' ? isMissing : (_: unknown, options: { signal: AbortSignal }) => never(options);
      const store: Store = { open, list: (signal) => never({ signal }) };
      await assert.rejects(fetchInto(temporaryFolder(t), { packaging, store }), late);
    });
  }
});

/** A store with one file under a bucket's prefix, and without a manifest. */
class OneFile implements Store {
  etag = '"one"';
  /** The paths that the store was asked for, each with the ETag that was sent along. */
  readonly asked: [string | undefined, string | undefined][] = [];
  /** Returns the ETag of the object that is sent, which differs if it has changed since it was listed. */
  sentEtag = () => this.etag;
  body = Readable.from([]);

  async open(path: string | undefined, { etag }: OpenOptions): Promise<Opened> {
    this.asked.push([path, etag]);
    if (path !== 'config.json') throw new SourceError('none', { isAway: true, isMissing: true });
    this.body = Readable.from([Buffer.from('{}')]);
    return { body: this.body, etag: this.sentEtag() };
  }

  async list(): Promise<Listed[]> {
    return [{ path: 'config.json', bytes: 2, etag: this.etag }];
  }
}

suite('a folder without a manifest', () => {
  const fetchFolder = (t: TestContext, store: Store, etag?: string) =>
    fetchInto(temporaryFolder(t), { store, packaging: { kind: 'folder' }, source: 's3://a/b', etag, limits: AMPLE });

  test('is not taken when an object has changed since it was listed', async (t) => {
    const store = new OneFile();
    store.sentEtag = () => '"two"';
    await assert.rejects(fetchFolder(t, store), {
      name: 'SourceError',
      message: 's3://a/b: config.json: changed while it was read',
    });
    assert.ok(store.body.destroyed);
  });

  test('is known by the tags of its objects, which are no tag of a manifest', async (t) => {
    const store = new OneFile();
    const first = await fetchFolder(t, store);
    assert.ok(first !== 'unchanged');
    const { etag = assert.fail() } = first;
    const again = () => fetchFolder(t, store, etag);
    assert.equal(await again(), 'unchanged');
    store.etag = '"two"';
    assert.notEqual(await again(), 'unchanged');
    assert.deepEqual(
      store.asked.filter(([path]) => path === 'manifest.json'),
      Array(3).fill(['manifest.json', undefined]),
    );
  });

  test('whose tag is that of a manifest asks for the manifest with it', async (t) => {
    const store = new OneFile();
    await fetchFolder(t, store, '"manifest"');
    assert.deepEqual(store.asked[0], ['manifest.json', '"manifest"']);
  });
});

test('a config.json that no memory should be filled with is not read', async (t: TestContext) => {
  const folder = join(temporaryFolder(t), 'w');
  mkdirSync(folder);
  const files = { 'config.json': Buffer.alloc(17 * 2 ** 20, ' '), 'model.onnx': randomBytes(2 ** 19) };
  const store: Store = { open: async () => ({ body: Readable.from([tarOf(files)]) }) };
  const limits = { ...AMPLE, maxBytes: 2 ** 26 };
  await assert.rejects(fetchInto(folder, { store, limits }), { message: /config\.json: more than 16777216 bytes$/ });
});

test('what a server says reaches the log as one line that moves no cursor, and not at any length', () => {
  const { message } = new SourceError(`a\u001b[2J\r\nb\u009b${'x'.repeat(9999)}`);
  assert.equal(message.slice(0, 8), 'a [2J b ');
  assert.equal(message.length, 500);
});
