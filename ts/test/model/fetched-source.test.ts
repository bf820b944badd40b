import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { defaultModel } from '../../src/engine/addon.ts';
import { sha256Of } from '../../src/files/sha256.ts';
import { ModelCache } from '../../src/model/cache.ts';
import type { FetchLimits } from '../../src/model/download.ts';
import { FetchedSource, type FetchedSourceOptions } from '../../src/model/fetched-source.ts';
import { FileStore } from '../../src/model/file-store.ts';
import { embeddedModel } from '../../src/model/folder-source.ts';
import { manifestText } from '../../src/model/manifest.ts';
import type { FoundModel, SourceStatus } from '../../src/model/source.ts';
import { SourceError } from '../../src/model/source-error.ts';
import { WebStore } from '../../src/model/web-store.ts';
import { runCommand } from '../addon/program.ts';
import { until } from '../http/server-under-test.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { tarOf, zipOf } from './archives.ts';
import { HostileServer } from './hostile-server.ts';

const LIMITS = { maxBytes: 64 * 2 ** 20, totalMs: 60_000, spanMs: 30_000, minBytesPerSpan: 1024 };
const never = new AbortController().signal;

/** Returns the files of a model that no engine loads here. */
const filesOf = (version: string) => ({
  'config.json': JSON.stringify({ name: 'm', version }),
  'model.onnx': `graph ${version} `.repeat(1000),
});

type Changes = Partial<FetchedSourceOptions> & { readonly folder?: string };

/** Returns a source of an archive at `url`. */
function sourceOf(
  t: TestContext,
  url: string,
  { folder = temporaryFolder(t), ...changes }: Changes = {},
): FetchedSource {
  const isManifest = url.endsWith('.json');
  return new FetchedSource({
    store: new WebStore({ url: new URL(url), allowHttp: false, answerMs: 20_000 }),
    packaging: isManifest ? { kind: 'manifest' } : { kind: 'archive', format: url.endsWith('.zip') ? 'zip' : 'tar' },
    source: url,
    identity: url,
    name: 'model',
    pinned: '',
    isLocal: false,
    limits: LIMITS,
    cache: new ModelCache({ folder, maxBytes: 2 ** 30 }),
    refreshMs: 0,
    retryMs: 1,
    prove: async () => {},
    embedded: embeddedModel,
    ...changes,
  });
}

const configOf = ({ folder }: FoundModel) => JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
const temporaries = (cache: string) => readdirSync(cache).filter((name) => name.startsWith('.'));
const isEmbedded = ({ folder, source, fallback }: FoundModel) =>
  folder === defaultModel() && source === 'embedded' && fallback;

/** Returns a server with a model as an archive, a zip file and a manifest. */
async function serverWith(t: TestContext, version = '1'): Promise<HostileServer> {
  const server = await HostileServer.start(t);
  publish(server, filesOf(version));
  return server;
}

function publish(server: HostileServer, files: Readonly<Record<string, string>>): { manifest: string } {
  server.serve(
    '/m.tar.gz',
    tarOf(Object.fromEntries(Object.entries(files).map(([name, text]) => [`m/${name}`, text]))),
  );
  server.serve('/m.zip', zipOf(Object.entries(files).map(([name, content]) => ({ name, content }))));
  for (const [name, text] of Object.entries(files)) server.serve(`/${name}`, text);
  const manifest = manifestOf(files);
  server.serve('/manifest.json', manifest);
  return { manifest };
}

function manifestOf(files: Readonly<Record<string, string>>, changes: object = {}): string {
  const digests = Object.entries(files).map(([name, text]) => [name, { bytes: text.length, sha256: sha256Of(text) }]);
  const { name, version } = JSON.parse(files['config.json'] ?? '{}');
  return JSON.stringify({ name, version, files: { ...Object.fromEntries(digests), ...changes } });
}

/** A listener that records what a source tells it, and can wait until something has been told. */
class Listener {
  readonly models: FoundModel[] = [];
  readonly statuses: SourceStatus[] = [];
  readonly notes: string[] = [];
  take: (model: FoundModel, isWanted: () => boolean) => Promise<void> = async () => {};

  async found(model: FoundModel, isWanted: () => boolean): Promise<boolean> {
    this.models.push(model);
    await this.take(model, isWanted);
    return isWanted();
  }

  status(status: SourceStatus): void {
    this.statuses.push(status);
  }

  note(line: string): void {
    this.notes.push(line);
  }

  until(isThere: (listener: Listener) => boolean): Promise<void> {
    return until(() => isThere(this));
  }

  /** Watches `source` until the test ends. */
  watch(t: TestContext, source: FetchedSource): this {
    const stop = new AbortController();
    // The source's own timers do not keep a process alive, so this one does.
    const alive = setInterval(() => {}, 1000);
    t.after(() => {
      clearInterval(alive);
      stop.abort();
    });
    source.watch(this, stop.signal);
    return this;
  }
}

suite('a model from a web server', () => {
  for (const path of ['/m.tar.gz', '/m.zip', '/manifest.json']) {
    test(`is fetched, whole, and found again without asking: ${path}`, async (t) => {
      const server = await serverWith(t);
      const folder = temporaryFolder(t);
      const source = sourceOf(t, server.url + path, { folder });
      const model = await source.find(never);
      for (const [name, text] of Object.entries(filesOf('1')))
        assert.equal(readFileSync(join(model.folder, name), 'utf8'), text);
      assert.deepEqual(
        [model.source, model.fallback, model.offline, model.remoteVersion],
        [server.url + path, false, false, '1'],
      );
      assert.deepEqual(temporaries(folder), []);
      await source.accept(model);
      server.stop();
      const again = await sourceOf(t, server.url + path, { folder }).find(never);
      assert.deepEqual(
        [again.folder, again.sha256, again.offline, again.fallback],
        [model.folder, model.sha256, true, false],
      );
    });
  }

  test('has the sha256 of the archive or of the manifest, and the name of the folder in the archive', async (t) => {
    const server = await serverWith(t);
    const model = await sourceOf(t, `${server.url}/m.tar.gz`).find(never);
    const files = Object.entries(filesOf('1')).map(([name, text]) => [`m/${name}`, text]);
    assert.equal(model.sha256, sha256Of(tarOf(Object.fromEntries(files))));
    assert.equal(basename(model.folder), 'm');
    const listed = await sourceOf(t, `${server.url}/manifest.json`).find(never);
    assert.equal(listed.sha256, sha256Of(manifestOf(filesOf('1'))));
  });

  test('is only taken with the sha256 that is pinned, and then without asking again', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const pinned = sha256Of(manifestOf(filesOf('1')));
    const url = `${server.url}/manifest.json`;
    const source = sourceOf(t, url, { folder, pinned });
    await source.accept(await source.find(never));
    publish(server, filesOf('2'));
    server.requests.length = 0;
    const again = sourceOf(t, url, { folder, pinned });
    const model = await again.find(never);
    assert.deepEqual([configOf(model).version, model.offline, server.requests], ['1', false, []]);
    await assert.rejects(again.refresh(never), {
      name: 'Refusal',
      message: `${url}: has the sha256 ${sha256Of(manifestOf(filesOf('2')))}, not that of model_sha256`,
    });
    assert.ok(!server.requests.includes('/model.onnx'));
    const other = sourceOf(t, `${server.url}/m.tar.gz`, { folder, pinned });
    assert.ok(isEmbedded(await other.find(never)));
  });

  test('is not sent again while its tag is the same, and not unpacked again when only its tag has changed', async (t) => {
    const server = await serverWith(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`);
    const model = await source.find(never);
    await source.accept(model);
    const tags: (string | undefined)[] = [];
    server.on('/m.tar.gz', (request, response) => {
      tags.push(request.headers['if-none-match']);
      response.writeHead(304).end();
    });
    assert.equal((await source.refresh(never)).folder, model.folder);
    // The server makes the tag of an archive of its sha256.
    assert.deepEqual(tags, [`"${model.sha256}"`]);
    let sent = 0;
    server.on('/m.tar.gz', (_, response) => {
      sent += 1;
      const files = Object.entries(filesOf('1')).map(([name, text]) => [`m/${name}`, text]);
      response.setHeader('etag', `"${sent}"`).end(tarOf(Object.fromEntries(files)));
    });
    const { mtimeMs } = statSync(join(model.folder, 'config.json'));
    assert.equal((await source.refresh(never)).sha256, model.sha256);
    assert.equal(sent, 1);
    assert.equal(statSync(join(model.folder, 'config.json')).mtimeMs, mtimeMs);
  });

  test('keeps its password to the server that it was set for', async (t) => {
    const [server, other] = [await serverWith(t), await serverWith(t)];
    const seen: (string | undefined)[] = [];
    server.on('/m.tar.gz', (request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(302, { location: `${server.url}/again` }).end();
    });
    server.on('/again', (request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(302, { location: `http://localhost:${new URL(other.url).port}/m.tar.gz` }).end();
    });
    const url = server.url.replace('//', '//user:p%20w@');
    await assert.rejects(sourceOf(t, `${url}/m.tar.gz`).refresh(never), /not a public address/);
    const basic = `Basic ${Buffer.from('user:p w').toString('base64')}`;
    assert.deepEqual(seen, [basic, basic]);
    assert.deepEqual(other.requests, []);
  });
});

const UNPROVEN = 'that does not answer as it should';

interface Attack {
  readonly path: string;
  readonly message: RegExp;
  /** Whether the failure leaves it unknown what the source offers. */
  readonly away: boolean;
  readonly pinned?: string;
  readonly limits?: Partial<FetchLimits>;
  readonly answerMs?: number;
  set(server: HostileServer): void;
}

/** Ways in which a server can send something bad, and the message about each. */
const ATTACKS: Readonly<Record<string, Attack>> = {
  'that is not there': { path: '/none.zip', set: () => {}, message: /\/none\.zip: status 404$/, away: true },
  'that is refused': {
    path: '/m.zip',
    set: (server) => server.on('/m.zip', (_, response) => response.writeHead(403).end()),
    message: /\/m\.zip: status 403$/,
    away: true,
  },
  'that breaks off': {
    path: '/m.tar.gz',
    set: (server) =>
      server.on('/m.tar.gz', (_, response) => {
        response.writeHead(200, { 'content-length': 1_000_000 });
        response.write(tarOf(filesOf('1')), () => response.destroy());
      }),
    message: /\/m\.tar\.gz: the transfer broke off \(/,
    away: true,
  },
  'that breaks off in pieces without a length': {
    path: '/m.tar.gz',
    set: (server) =>
      server.on('/m.tar.gz', (_, response) => {
        response.write(tarOf(filesOf('1')), () => response.destroy());
      }),
    message: /\/m\.tar\.gz: the transfer broke off \(/,
    away: true,
  },
  'that is cut off and says so': {
    path: '/m.tar.gz',
    set: (server) => server.serve('/m.tar.gz', tarOf(filesOf('1')).subarray(0, 60)),
    message: /\/m\.tar\.gz: it cannot be unpacked: /,
    away: false,
  },
  'with another sha256 than the pinned one': {
    path: '/m.tar.gz',
    set: () => {},
    pinned: 'ab'.repeat(32),
    message: /\/m\.tar\.gz: has the sha256 [0-9a-f]{64}, not that of model_sha256$/,
    away: false,
  },
  'that drips': {
    path: '/m.tar.gz',
    set: (server) =>
      server.on('/m.tar.gz', (_, response) => {
        const drip = setInterval(() => response.write('x'), 5);
        response.on('close', () => clearInterval(drip));
      }),
    limits: { spanMs: 300 },
    message: /\/m\.tar\.gz: fewer than 1024 bytes in 0\.3 s$/,
    away: true,
  },
  'that stops after a good start': {
    path: '/m.tar.gz',
    set: (server) => server.on('/m.tar.gz', (_, response) => void response.write(Buffer.alloc(8192))),
    limits: { spanMs: 300, totalMs: 10_000 },
    message: /\/m\.tar\.gz: fewer than 1024 bytes in 0\.3 s$/,
    away: true,
  },
  'that never answers': {
    path: '/m.tar.gz',
    set: (server) => server.on('/m.tar.gz', () => {}),
    answerMs: 300,
    message: /\/m\.tar\.gz: no answer within 0\.3 s$/,
    away: true,
  },
  'that changes the protocol': {
    path: '/m.tar.gz',
    set: (server) =>
      server.on('/m.tar.gz', (_, response) => {
        response.socket?.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n');
      }),
    message: /\/m\.tar\.gz: no answer$/,
    away: true,
  },
  'that comes at length but not in time': {
    path: '/m.tar.gz',
    set: (server) =>
      server.on('/m.tar.gz', (_, response) => {
        const flow = setInterval(() => response.write(Buffer.alloc(64)), 5);
        response.on('close', () => clearInterval(flow));
      }),
    limits: { totalMs: 1000 },
    message: /\/m\.tar\.gz: not there after 1 s$/,
    away: true,
  },
  'that says it is larger than the limit': {
    path: '/m.tar.gz',
    set: (server) =>
      server.on('/m.tar.gz', (_, response) => {
        response.writeHead(200, { 'content-length': 2 ** 40 });
        response.write('x');
      }),
    message: /: more than 1048576 bytes \(model_max_bytes\)$/,
    away: false,
  },
  'that never ends': {
    path: '/m.tar.gz',
    set: (server) =>
      server.on('/m.tar.gz', (_, response) => {
        const pump = () => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536)));
          response.once('drain', pump);
        };
        pump();
      }),
    message: /: more than 1048576 bytes \(model_max_bytes\)$/,
    away: false,
  },
  'that is a bomb': {
    path: '/m.zip',
    set: (server) => server.serve('/m.zip', zipOf([{ name: 'config.json', content: Buffer.alloc(2 ** 25) }])),
    message: /\/m\.zip: unpacked more than 1048576 bytes/,
    away: false,
  },
  'that writes elsewhere': {
    path: '/m.zip',
    set: (server) => server.serve('/m.zip', zipOf([{ name: '../config.json', content: '{}' }])),
    message: /\/m\.zip: .*\.\.\/config\.json/,
    away: false,
  },
  'that is a page about an error': {
    path: '/m.tar.gz',
    set: (server) => server.serve('/m.tar.gz', '<html>please log in</html>'),
    message: /\/m\.tar\.gz: it cannot be unpacked: /,
    away: false,
  },
  'whose redirect leads to a private address': {
    path: '/m.tar.gz',
    set: (server) =>
      server.on('/m.tar.gz', (_, response) =>
        response.writeHead(302, { location: 'https://169.254.169.254/latest/meta-data' }).end(),
      ),
    message:
      /: a redirect to 169\.254\.169\.254 \(169\.254\.169\.254\), which is not a public address, is not followed$/,
    away: true,
  },
  'whose redirect leads to a name with a private address': {
    path: '/m.tar.gz',
    set: (server) =>
      server.on('/m.tar.gz', (_, response) => response.writeHead(307, { location: 'https://localhost:1/x' }).end()),
    message: /: a redirect to localhost \((127\.0\.0\.1|::1)\), which is not a public address, is not followed$/,
    away: false,
  },
  'whose redirect leads to plain HTTP elsewhere': {
    path: '/m.tar.gz',
    set: (server) =>
      server.on('/m.tar.gz', (_, response) => response.writeHead(302, { location: 'http://models.example/x' }).end()),
    message: /: redirects to http:\/\/models\.example\/x, which is not https:\/\/$/,
    away: true,
  },
  'whose redirects never end': {
    path: '/m.tar.gz',
    set: (server) => server.on('/m.tar.gz', (_, response) => response.writeHead(302, { location: '/m.tar.gz' }).end()),
    message: /: more than 5 redirects$/,
    away: true,
  },
  'whose manifest is none': {
    path: '/manifest.json',
    set: (server) => server.serve('/manifest.json', '<html>'),
    message: /\/manifest\.json: the manifest is not JSON$/,
    away: false,
  },
  'whose manifest lacks what it must have': {
    path: '/manifest.json',
    set: (server) =>
      server.serve('/manifest.json', '{"name":"m","version":"1","files":{"config.json":{"bytes":1,"sha256":"x"}}}'),
    message: /\/manifest\.json: the manifest: \/files\/config\.json\/sha256 /,
    away: false,
  },
  'whose manifest is endless': {
    path: '/manifest.json',
    set: (server) => server.serve('/manifest.json', ' '.repeat(2 ** 20 + 1)),
    message: /\/manifest\.json: more than 1048576 bytes$/,
    away: false,
  },
  'whose manifest names a file that leads out': {
    path: '/manifest.json',
    set: (server) =>
      server.serve('/manifest.json', manifestOf(filesOf('1'), { '../x': { bytes: 1, sha256: 'ab'.repeat(32) } })),
    message: /a file may not have the name "\.\.\/x"$/,
    away: false,
  },
  'whose manifest has a file as longer than it is': {
    path: '/manifest.json',
    set: (server) =>
      server.serve(
        '/manifest.json',
        manifestOf(filesOf('1'), { 'model.onnx': { bytes: 20_000, sha256: 'ab'.repeat(32) } }),
      ),
    message: /\/manifest\.json: model\.onnx: fewer than 20000 bytes$/,
    away: false,
  },
  'whose manifest has a file as shorter than it is': {
    path: '/manifest.json',
    set: (server) =>
      server.serve(
        '/manifest.json',
        manifestOf(filesOf('1'), { 'model.onnx': { bytes: 20, sha256: 'ab'.repeat(32) } }),
      ),
    message: /\/manifest\.json: model\.onnx: more than 20 bytes$/,
    away: false,
  },
  'whose manifest has another digest for a file': {
    path: '/manifest.json',
    set: (server) => server.serve('/model.onnx', filesOf('2')['model.onnx']),
    message: /\/manifest\.json: model\.onnx: has another sha256 than the manifest says$/,
    away: false,
  },
  'whose manifest sums up to more than the limit': {
    path: '/manifest.json',
    set: (server) =>
      server.serve('/manifest.json', manifestOf(filesOf('1'), { a: { bytes: 2 ** 20, sha256: 'ab'.repeat(32) } })),
    message: /\/manifest\.json: \d+ bytes, the limit is 1048576 \(model_max_bytes\)$/,
    away: false,
  },
  'whose files are not all there': {
    path: '/manifest.json',
    set: (server) => server.remove('/model.onnx'),
    message: /\/model\.onnx: status 404$/,
    away: true,
  },
  [UNPROVEN]: {
    path: '/m.tar.gz',
    set: () => {},
    message: /\/m\.tar\.gz: line 3: refund: true is 0\.1, the reference is 0\.9$/,
    away: false,
  },
};

suite('a model', { concurrency: 4 }, () => {
  for (const [what, attack] of Object.entries(ATTACKS)) {
    const { path, message, away, pinned = '', limits, answerMs = 20_000 } = attack;
    const attacked = (t: TestContext, server: HostileServer, folder: string) =>
      sourceOf(t, server.url + path, {
        folder,
        pinned,
        limits: { ...LIMITS, maxBytes: 2 ** 20, ...limits },
        store: new WebStore({ url: new URL(server.url + path), allowHttp: false, answerMs }),
        prove: async () => {
          if (what === UNPROVEN) throw new Error('line 3: refund: true is 0.1, the reference is 0.9');
        },
      });

    test(`${what} is not taken, and nothing of it stays`, async (t) => {
      const [server, folder] = [await serverWith(t), temporaryFolder(t)];
      attack.set(server);
      const source = attacked(t, server, folder);
      const model = await source.find(never);
      assert.ok(isEmbedded(model), JSON.stringify(model));
      assert.equal(model.offline, away);
      assert.equal(model.notes.length, 1);
      assert.match(model.notes[0]?.replace('; the embedded model answers until it can be had', '') ?? '', message);
      await source.accept(model);
      assert.deepEqual(temporaries(folder), []);
      assert.ok(isEmbedded(await attacked(t, server, folder).find(never)));
    });

    test(`${what} leaves the last good one`, async (t) => {
      const [server, folder] = [await serverWith(t, '0'), temporaryFolder(t)];
      server.serve('/none.zip', zipOf([{ name: 'config.json', content: filesOf('0')['config.json'] }]));
      const good = sourceOf(t, server.url + path, { folder });
      await good.accept(await good.find(never));
      server.remove('/none.zip');
      publish(server, filesOf('1'));
      attack.set(server);
      await assert.rejects(attacked(t, server, folder).refresh(never), { name: 'Refusal', message });
      const model = await attacked(t, server, folder).find(never);
      if (pinned === '') assert.deepEqual([configOf(model).version, model.fallback], ['0', false]);
      else assert.ok(isEmbedded(model));
      assert.deepEqual(temporaries(folder), []);
    });
  }
});

suite('a source that is watched', () => {
  test('gives the newer model when there is one, by its tag and by its manifest', async (t) => {
    for (const path of ['/m.tar.gz', '/manifest.json']) {
      const server = await serverWith(t);
      const source = sourceOf(t, server.url + path, { refreshMs: 5 });
      await source.accept(await source.find(never));
      const listener = new Listener().watch(t, source);
      publish(server, filesOf('2'));
      await listener.until(({ models }) => models.length > 0);
      assert.deepEqual(
        listener.models.map((model) => [configOf(model).version, model.remoteVersion]),
        [['2', '2']],
      );
      const requests = server.requests.length;
      await until(() => server.requests.length >= requests + 5);
      assert.equal(listener.models.length, 1);
    }
  });

  test('says that it is away and back, once each, and the model stays', async (t) => {
    const server = await serverWith(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { refreshMs: 5 });
    await source.accept(await source.find(never));
    const listener = new Listener().watch(t, source);
    server.on('/m.tar.gz', (_, response) => response.writeHead(500).end());
    await listener.until(({ statuses }) => statuses.length > 0);
    const requests = server.requests.length;
    await until(() => server.requests.length >= requests + 5);
    publish(server, filesOf('1'));
    await listener.until(({ statuses }) => statuses.length > 1);
    assert.deepEqual(listener.statuses, [
      { offline: true, remoteVersion: '1' },
      { offline: false, remoteVersion: '1' },
    ]);
    assert.deepEqual(listener.notes, [`${server.url}/m.tar.gz: status 500`]);
    assert.deepEqual(listener.models, []);
  });

  test('says anew what has changed since a reload said it', async (t) => {
    const server = await serverWith(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { refreshMs: 5 });
    await source.accept(await source.find(never));
    server.on('/m.tar.gz', (_, response) => response.writeHead(500).end());
    await assert.rejects(source.refresh(never));
    assert.deepEqual(source.report(), { offline: true, remoteVersion: '1' });
    // The listener is not told again that a reported outage began, but it is told that the outage is over.
    publish(server, filesOf('1'));
    await source.accept(await source.refresh(never));
    const listener = new Listener().watch(t, source);
    server.on('/m.tar.gz', (_, response) => response.writeHead(500).end());
    await listener.until(({ statuses }) => statuses.length > 0);
    assert.deepEqual(listener.statuses, [{ offline: true, remoteVersion: '1' }]);
    await assert.rejects(source.refresh(never));
    assert.equal(source.report().offline, true);
    publish(server, filesOf('1'));
    await listener.until(({ statuses }) => statuses.length > 1);
    assert.deepEqual(listener.statuses.at(-1), { offline: false, remoteVersion: '1' });
  });

  test('is asked again until the wanted model is there, although no newer ones are looked for', async (t) => {
    const server = await HostileServer.start(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`);
    const first = await source.find(never);
    assert.deepEqual([isEmbedded(first), first.offline], [true, true]);
    await source.accept(first);
    const listener = new Listener().watch(t, source);
    await until(() => server.requests.length >= 3);
    publish(server, filesOf('1'));
    await listener.until(({ models, statuses }) => models.length > 0 && statuses.length > 0);
    assert.deepEqual(
      listener.models.map((model) => [configOf(model).version, model.fallback, model.offline]),
      [['1', false, false]],
    );
    assert.deepEqual(listener.statuses.at(-1), { offline: false, remoteVersion: '1' });
  });

  test('starts with the last good one while the source is slow, and says so until it has answered', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const before = sourceOf(t, `${server.url}/m.tar.gz`, { folder });
    await before.accept(await before.find(never));
    let answer = () => {};
    server.on('/m.tar.gz', (_, response) => {
      answer = () => response.writeHead(304).end();
    });
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { folder });
    const model = await source.find(never);
    assert.deepEqual([configOf(model).version, model.offline, model.fallback], ['1', true, false]);
    await source.accept(model);
    const listener = new Listener().watch(t, source);
    const requests = server.requests.length;
    await until(() => server.requests.length > requests);
    answer();
    await listener.until(({ statuses }) => statuses.length > 0);
    assert.deepEqual(listener.statuses, [{ offline: false, remoteVersion: '1' }]);
  });

  test('offers a model that cannot be taken once, and says why; the version is known', async (t) => {
    const server = await serverWith(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { refreshMs: 5 });
    await source.accept(await source.find(never));
    const listener = new Listener();
    listener.take = async () => {
      throw new Error('it does not fit');
    };
    listener.watch(t, source);
    publish(server, filesOf('2'));
    await listener.until(({ notes, statuses }) => notes.length > 0 && statuses.length > 0);
    const requests = server.requests.length;
    await until(() => server.requests.length >= requests + 3);
    assert.equal(listener.models.length, 1);
    assert.deepEqual(listener.statuses[0], { offline: false, remoteVersion: '2' });
    publish(server, filesOf('3'));
    listener.take = async () => {};
    await listener.until(({ models }) => models.length > 1);
    assert.deepEqual(
      listener.models.map((model) => configOf(model).version),
      ['2', '3'],
    );
  });

  test('offers what could not be taken again to somebody who asks', async (t) => {
    const server = await serverWith(t);
    let isWell = false;
    const prove = async () => {
      if (!isWell) throw new Error('no memory left');
    };
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { prove });
    assert.ok(isEmbedded(await source.find(never)));
    await assert.rejects(source.refresh(never), { name: 'Refusal', message: /no memory left$/ });
    isWell = true;
    assert.equal(configOf(await source.refresh(never)).version, '1');
  });

  test('says that what it offers is not taken, and when that is over', async (t) => {
    const server = await serverWith(t);
    const prove = async (folder: string) => {
      if (JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')).version === '2') throw new Error('it is wrong');
    };
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { refreshMs: 5, prove });
    await source.accept(await source.find(never));
    const listener = new Listener().watch(t, source);
    publish(server, filesOf('2'));
    await listener.until(({ statuses }) => statuses.length === 1);
    publish(server, filesOf('1'));
    await listener.until(({ statuses }) => statuses.length === 2);
    assert.deepEqual(listener.statuses, [
      { offline: false, remoteVersion: '2', isRefused: true },
      { offline: false, remoteVersion: '1' },
    ]);
    assert.equal(listener.models.length, 0);
  });

  test('gives the last good one for a newer that cannot be loaded, and the embedded one for the last good one', async (t) => {
    const [server, folder] = [await serverWith(t), temporaryFolder(t)];
    const before = sourceOf(t, `${server.url}/m.tar.gz`, { folder });
    const first = await before.find(never);
    await before.accept(first);
    publish(server, filesOf('2'));
    const newer = await before.refresh(never);
    await before.reject(newer);
    const lastGood = (await before.instead(newer, 'it has no graph')) ?? assert.fail();
    assert.deepEqual([lastGood.folder, lastGood.notes], [first.folder, ['it has no graph']]);
    // The first model already answers, so a failure to load it once more says nothing against it.
    await before.reject(first);
    assert.equal((await before.instead(newer, ''))?.folder, first.folder);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { folder, refreshMs: 5 });
    assert.equal((await source.find(never)).folder, first.folder);
    await source.reject(first);
    const last = (await source.instead(first, 'nor this')) ?? assert.fail();
    assert.ok(isEmbedded(last));
    assert.deepEqual(last.notes, ['nor this; the embedded model answers instead']);
    await source.reject(last);
    assert.equal(await source.instead(last, ''), undefined);
    publish(server, filesOf('1'));
    await source.accept(last);
    const listener = new Listener().watch(t, source);
    await listener.until(({ notes }) => notes.length > 0);
    assert.deepEqual(
      [listener.models, listener.notes],
      [[], [`${server.url}/m.tar.gz: what it offers could not be loaded`]],
    );
  });

  test('does not note as good what nobody has taken any more', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { folder, refreshMs: 5 });
    await source.accept(await source.find(never));
    const stop = new AbortController();
    publish(server, filesOf('2'));
    const listener = new Listener();
    listener.take = async () => stop.abort();
    const alive = setInterval(() => {}, 1000);
    await source.watch(listener, stop.signal);
    clearInterval(alive);
    assert.deepEqual(
      listener.models.map((model) => configOf(model).version),
      ['2'],
    );
    server.stop();
    assert.equal(configOf(await sourceOf(t, `${server.url}/m.tar.gz`, { folder }).find(never)).version, '1');
  });

  test('does not take for good an offer that was old when its turn came', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { folder, refreshMs: 5 });
    await source.accept(await source.find(never));
    publish(server, filesOf('2'));
    const listener = new Listener();
    const wanted: boolean[] = [];
    listener.take = async ({ remoteVersion }, isWanted) => {
      if (remoteVersion !== '2') return;
      wanted.push(isWanted());
      publish(server, filesOf('3'));
      await source.accept(await source.refresh(never));
      wanted.push(isWanted());
    };
    listener.watch(t, source);
    await listener.until(({ models }) => wanted.length === 2 && models.length === 1);
    // Two looks later, the source has been told that the model was not taken.
    const requests = server.requests.length;
    await until(() => server.requests.length >= requests + 2);
    assert.deepEqual(wanted, [true, false]);
    server.stop();
    assert.equal(configOf(await sourceOf(t, `${server.url}/m.tar.gz`, { folder }).find(never)).version, '3');
  });

  test('is not tried any more when its trial has ended the process twice, until somebody asks or it is another', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const url = `${server.url}/manifest.json`;
    const note = join(folder, 'sources', `${sha256Of(url)}.trial.json`);
    const gone = spawnSync(process.execPath, ['--version']).pid;
    const died = (changes: object) => {
      mkdirSync(join(folder, 'sources'), { recursive: true });
      const sha256 = sha256Of(manifestOf(filesOf('1')));
      writeFileSync(note, JSON.stringify({ sha256, deaths: 1, pid: gone, host: hostname(), ...changes }));
    };
    const find = async () => {
      let trials = 0;
      const prove = async () => {
        assert.ok(existsSync(note));
        trials += 1;
      };
      const source = sourceOf(t, url, { folder, prove });
      return { source, model: await source.find(never), trials: () => trials };
    };
    died({});
    for (let start = 0; start < 2; start += 1) {
      const { source, model, trials } = await find();
      assert.ok(isEmbedded(model));
      assert.match(model.notes[0] ?? '', /: its trial has ended the process \d times;/);
      assert.equal(trials(), 0);
      if (start === 1) assert.equal(configOf(await source.refresh(never)).version, '1');
    }
    assert.ok(!existsSync(note));
    // These notes do not forbid a trial: no death yet, a process that still runs, another host, or another model.
    for (const other of [{ deaths: 0 }, { pid: process.ppid }, { host: 'other' }, { sha256: 'ab'.repeat(32) }]) {
      died(other);
      const { model, trials } = await find();
      assert.deepEqual([isEmbedded(model), trials(), existsSync(note)], [false, 1, false]);
    }
  });

  test('ends with its signal while another look at the source is under way', async (t) => {
    let answer = () => {};
    const answered = new Promise<never>((_, reject) => {
      answer = () => reject(new SourceError('nobody is there', { isAway: true }));
    });
    const source = sourceOf(t, 'http://unused/m.tar.gz', { store: { open: () => answered } });
    const first = source.find(never);
    const stop = new AbortController();
    const second = source.refresh(stop.signal);
    stop.abort(new Error('the end'));
    await assert.rejects(second, { message: 'the end' });
    answer();
    assert.ok(isEmbedded(await first));
  });

  test('ends with its signal in the middle of a trial, which then says nothing against the model', async (t) => {
    const server = await serverWith(t);
    const stop = new AbortController();
    let trials = 0;
    const prove = (_: string, signal: AbortSignal) => {
      trials += 1;
      if (trials > 1) return Promise.resolve();
      stop.abort(new Error('the end'));
      return new Promise<void>((_, reject) => {
        if (signal.aborted) reject(new Error('ended'));
      });
    };
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { prove });
    await assert.rejects(source.find(stop.signal), { message: 'the end' });
    assert.equal(configOf(await source.find(never)).version, '1');
    assert.equal(trials, 2);
  });

  test('is neither sent nor tried again for another process that was told it is good', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const before = sourceOf(t, `${server.url}/m.tar.gz`, { folder });
    await before.accept(await before.find(never));
    const tags: (string | undefined)[] = [];
    server.on('/m.tar.gz', (request, response) => {
      tags.push(request.headers['if-none-match']);
      response.writeHead(304).end();
    });
    const prove = () => assert.fail('it was tried');
    const model = await sourceOf(t, `${server.url}/m.tar.gz`, { folder, prove }).refresh(never);
    assert.deepEqual([configOf(model).version, tags.length, typeof tags[0]], ['1', 1, 'string']);
  });

  test('says why when there is no embedded one either, and why that is not there', async (t) => {
    const server = await HostileServer.start(t);
    const embedded = () => {
      throw new Error('the embedded model is not installed');
    };
    const message =
      /none\.zip: status 404; the embedded model cannot answer instead: the embedded model is not installed$/;
    const source = sourceOf(t, `${server.url}/none.zip`, { embedded });
    await assert.rejects(source.find(never), { name: 'Refusal', message });
    publish(server, filesOf('1'));
    const broken = sourceOf(t, `${server.url}/m.zip`, { embedded });
    const model = await broken.find(never);
    await broken.reject(model);
    await assert.rejects(broken.instead(model, 'it has no graph'), {
      name: 'Refusal',
      message: 'it has no graph; the embedded model cannot answer instead: the embedded model is not installed',
    });
  });

  test('ends with its signal, in the middle of a transfer too, and leaves nothing', async (t) => {
    const server = await HostileServer.start(t);
    server.on('/m.tar.gz', (_, response) => void response.write('x'));
    const folder = temporaryFolder(t);
    const stop = new AbortController();
    const finding = sourceOf(t, `${server.url}/m.tar.gz`, { folder }).find(stop.signal);
    await until(() => temporaries(folder).length > 0);
    stop.abort(new Error('the end'));
    await assert.rejects(finding, { message: 'the end' });
    assert.deepEqual(temporaries(folder), []);
  });
});

suite('an archive of this machine', () => {
  function archiveSource(t: TestContext, path: string, { folder, ...changes }: Changes): FetchedSource {
    return sourceOf(t, 'http://unused/m.tar.gz', {
      ...changes,
      ...(folder !== undefined && { folder }),
      store: new FileStore(path),
      source: path,
      identity: path,
      isLocal: true,
    });
  }

  test('is unpacked once, and again when it is another', async (t) => {
    const [folder, path] = [temporaryFolder(t), join(temporaryFolder(t), 'm.tar.gz')];
    writeFileSync(path, tarOf(filesOf('1')));
    const cache = new ModelCache({ folder, maxBytes: 2 ** 30 });
    // An archive is unpacked in a workspace, and moved from there.
    const { mock: unpacked } = t.mock.method(cache, 'workspace');
    const prove = t.mock.fn(async () => {});
    const work = () => [unpacked.callCount(), prove.mock.callCount()];
    const source = archiveSource(t, path, { cache, prove });
    const first = await source.find(never);
    await source.accept(first);
    assert.equal((await archiveSource(t, path, { cache, prove }).find(never)).folder, first.folder);
    assert.deepEqual(work(), [1, 1]);
    writeFileSync(path, tarOf(filesOf('2')));
    utimesSync(path, 1, 1);
    assert.equal(configOf(await archiveSource(t, path, { cache, prove }).find(never)).version, '2');
    assert.deepEqual(work(), [2, 2]);
  });

  test('that is missing or broken is an error, whatever was there before', async (t) => {
    const [folder, path] = [temporaryFolder(t), join(temporaryFolder(t), 'm.tar.gz')];
    await assert.rejects(archiveSource(t, path, { folder }).find(never), {
      name: 'Refusal',
      message: `${path}: no such file`,
    });
    writeFileSync(path, tarOf(filesOf('1')));
    const source = archiveSource(t, path, { folder });
    await source.accept(await source.find(never));
    writeFileSync(path, 'no archive');
    await assert.rejects(archiveSource(t, path, { folder }).find(never), {
      name: 'Refusal',
      message: /cannot be unpacked/,
    });
    // No file system allows a name of this length. A file mode would not do, because root may open every file.
    const unopened = join(folder, `${'x'.repeat(300)}.tar.gz`);
    await assert.rejects(archiveSource(t, unopened, { folder }).find(never), {
      message: /cannot be read \(ENAMETOOLONG\)$/,
    });
    mkdirSync(join(folder, 'd.tar.gz'));
    await assert.rejects(archiveSource(t, join(folder, 'd.tar.gz'), { folder }).find(never), {
      message: /is not a file$/,
    });
  });
});

suite('the cache of models', () => {
  test('does not take for good what was changed, added or removed, and fetches it again', async (t) => {
    const spoilers: ((folder: string) => void)[] = [
      (model) => writeFileSync(join(model, 'model.onnx'), 'x'),
      (model) => writeFileSync(join(model, 'other.onnx'), 'x'),
      (model) => rmSync(join(model, 'model.onnx')),
      (model) => writeFileSync(join(model, '..', 'entry.json'), '{'),
      (model) => rmSync(join(model, '..', 'entry.json')),
    ];
    for (const spoil of spoilers) {
      const server = await serverWith(t);
      const folder = temporaryFolder(t);
      const url = `${server.url}/m.tar.gz`;
      const source = sourceOf(t, url, { folder });
      const model = await source.find(never);
      await source.accept(model);
      spoil(model.folder);
      const again = await sourceOf(t, url, { folder }).find(never);
      assert.deepEqual([again.folder, again.offline, again.fallback], [model.folder, false, false]);
      assert.deepEqual(readdirSync(again.folder).toSorted(), ['config.json', 'model.onnx']);
      assert.equal(readFileSync(join(again.folder, 'model.onnx'), 'utf8'), filesOf('1')['model.onnx']);
      assert.deepEqual(temporaries(folder), []);
    }
  });

  test('does not start with what was fetched and never answered', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    await sourceOf(t, `${server.url}/m.tar.gz`, { folder }).find(never);
    server.stop();
    assert.ok(isEmbedded(await sourceOf(t, `${server.url}/m.tar.gz`, { folder }).find(never)));
  });

  test('removes what was not used for longest, and no more than it must', async (t) => {
    const folder = temporaryFolder(t);
    const everything = new ModelCache({ folder, maxBytes: 2 ** 30 });
    // The models' names have another order than their times of use.
    const [early, late, latest] = ['b', 'c', 'a'].map((letter) => letter.repeat(64)) as [string, string, string];
    for (const [at, sha256] of [early, late, latest].entries()) {
      const workspace = await everything.workspace();
      const model = join(workspace.folder, 'm');
      mkdirSync(model);
      writeFileSync(join(model, 'config.json'), 'x'.repeat(1000));
      await everything.keep(workspace, model, { sha256, signal: never });
      await workspace.remove();
      utimesSync(join(folder, sha256), 1000 + at, 1000 + at);
    }
    const models = () => readdirSync(folder).filter((name) => name.length === 64);
    const room = (maxBytes: number) => new ModelCache({ folder, maxBytes });
    await room(3000).prune(new Set());
    assert.deepEqual(models(), [latest, early, late]);
    // Opening a model counts as use.
    await (await everything.open(early))?.release();
    await room(2999).prune(new Set());
    assert.deepEqual(models(), [latest, early]);
    await room(1000).prune(new Set());
    assert.deepEqual(models(), [early]);
  });

  test('removes what there is no room for, but not what is in use or the last good one', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const cache = new ModelCache({ folder, maxBytes: 1 });
    const url = `${server.url}/m.tar.gz`;
    const [user, source] = [sourceOf(t, url, { folder }), sourceOf(t, `${server.url}/m.zip`, { folder, cache })];
    const used = await user.find(never);
    await source.accept(await source.find(never));
    assert.ok(existsSync(used.folder));
    const kept: FoundModel[] = [];
    for (const version of ['2', '3']) {
      publish(server, filesOf(version));
      const model = await source.refresh(never);
      await source.accept(model);
      kept.push(model);
    }
    assert.deepEqual(
      kept.map((model) => existsSync(model.folder)),
      [false, true],
    );
    assert.ok(existsSync(used.folder));
    await user.reject(used);
    await source.accept(await source.refresh(never));
    assert.ok(!existsSync(used.folder));
    assert.deepEqual(temporaries(folder), []);
  });

  test('removes what a killed process has left, but not what a running one is filling', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    for (const [name, age] of [
      ['.fetch-old', 3600],
      ['.gone-old', 3600],
      ['.fetch-new', 0],
    ] as const) {
      mkdirSync(join(folder, name));
      const mark = join(folder, name, '.in-use-1');
      writeFileSync(mark, '');
      const time = Date.now() / 1000 - age;
      utimesSync(mark, time, time);
    }
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { folder });
    await source.accept(await source.find(never));
    assert.deepEqual(temporaries(folder), ['.fetch-new']);
  });

  test('serves two processes that fetch the same at once', async (t) => {
    const server = await HostileServer.start(t);
    const bothAsk = new EventEmitter();
    const go = once(bothAsk, 'go');
    server.on('/m.tar.gz', (_, response) => {
      if (server.requests.length === 2) bothAsk.emit('go');
      void go.then(() => response.end(tarOf(filesOf('1'))));
    });
    const folder = temporaryFolder(t);
    const program = fileURLToPath(new URL('programs/fetch.js', import.meta.url));
    const args = [program, `${server.url}/m.tar.gz`, folder];
    const ended = await Promise.all([1, 2].map(() => runCommand(process.execPath, { args })));
    assert.deepEqual(
      ended.map(({ code, stderr }) => [code, stderr]),
      [
        [0, ''],
        [0, ''],
      ],
    );
    assert.deepEqual(temporaries(folder), []);
    const prove = () => assert.fail('it was tried');
    const model = await sourceOf(t, `${server.url}/m.tar.gz`, { folder, prove }).find(never);
    assert.deepEqual([configOf(model).version, model.fallback], ['1', false]);
  });

  test('serves five sources of one process that fetch the same at once', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const sources = Array.from({ length: 5 }, () => sourceOf(t, `${server.url}/m.tar.gz`, { folder }));
    const models = await Promise.all(sources.map((source) => source.find(never)));
    assert.deepEqual(
      models.filter((model) => model.fallback).flatMap(({ notes }) => notes),
      [],
    );
    assert.equal(new Set(models.map((model) => model.folder)).size, 1);
    assert.ok(models.every((model) => !model.fallback));
    await Promise.all(sources.map((source, index) => source.accept(models[index] as FoundModel)));
    assert.deepEqual(temporaries(folder), []);
  });

  test('that cannot be written leaves the embedded model, with the reason', async (t) => {
    const server = await serverWith(t);
    const file = join(temporaryFolder(t), 'file');
    writeFileSync(file, '');
    const model = await sourceOf(t, `${server.url}/m.tar.gz`, { folder: join(file, 'cache') }).find(never);
    assert.ok(isEmbedded(model));
    assert.match(model.notes[0] ?? '', /^models cannot be kept in .*; set SVC_DATA; the embedded model answers/);
  });

  test('has the manifest of a folder as svc model manifest writes it', async (t) => {
    const folder = temporaryFolder(t);
    for (const [name, text] of Object.entries(filesOf('7'))) writeFileSync(join(folder, name), text);
    assert.deepEqual(JSON.parse(await manifestText(folder)), JSON.parse(manifestOf(filesOf('7'))));
    assert.equal(await manifestText(folder), await manifestText(folder));
  });
});
