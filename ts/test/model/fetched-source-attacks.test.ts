import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import type { FetchLimits } from '../../src/model/download.ts';
import { WebStore } from '../../src/model/web-store.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { tarOf, zipOf } from './archives.ts';
import type { HostileServer } from './hostile-server.ts';
import {
  configOf,
  filesOf,
  isEmbedded,
  LIMITS,
  manifestOf,
  never,
  publish,
  serverWith,
  sourceOf,
  temporaries,
} from './source-under-test.ts';

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
