/** The stand-in of a hub, held to the client library of the public hub, which shares its cache with svc. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { suite, type TestContext, test } from 'node:test';
import { sha256Of } from '../../src/files/sha256.ts';
import { hubSource, never, repositoryOf } from '../model/hub/hub-source.ts';
import { HubWorld } from '../model/hub/hub-world.ts';
import { largeContent } from '../model/hub/large-content.ts';
import { type HubOptions, StandInHub } from '../model/hub/stand-in-hub.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { runScript } from './python.ts';

const TOKEN = 'hf_averysecrettokenindeed';
const FILES: Readonly<Record<string, string>> = repositoryOf('1');
const GRAPH = FILES['model.onnx'] ?? '';

type Call = readonly [name: string, args: object];
type Result = unknown;

interface Client {
  readonly hub: StandInHub;
  readonly home: string;
  readonly commit: string;
  /** Runs calls of the client library in a process of its own, and returns their results. */
  call(calls: readonly Call[], env?: Readonly<Record<string, string>>): Promise<Result[]>;
}

/** The variables with which the client library knows the stand-in, and nothing of the user's. */
const environment = (url: string, home: string) => ({
  HF_ENDPOINT: url,
  HF_HOME: home,
  HF_TOKEN: '',
  HF_HUB_OFFLINE: '',
  HF_HUB_CACHE: join(home, 'hub'),
  HF_HUB_DISABLE_XET: '1',
  HF_HUB_DISABLE_TELEMETRY: '1',
  NO_PROXY: '127.0.0.1,localhost',
});

async function runCalls(calls: readonly Call[], env: Readonly<Record<string, string>>): Promise<Result[]> {
  const { code, stdout, stderr } = await runScript('hub_client.py', [], { input: JSON.stringify(calls), env });
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

async function clientOf(t: TestContext, options: HubOptions = {}): Promise<Client> {
  const hub = await StandInHub.start(t, { pageSize: 2, ...options });
  const commit = hub.publish('org/name', { ...FILES, 'onnx/model_fp16.onnx': 'x' });
  const home = temporaryFolder(t);
  return { hub, home, commit, call: (calls, env = {}) => runCalls(calls, { ...environment(hub.url, home), ...env }) };
}

const failed = (result: Result) => (result as { readonly error?: string }).error;
const repo = { repo_id: 'org/name' };

suite('the hub’s own client against the stand-in', () => {
  for (const storage of ['elsewhere', 'here'] as const) {
    test(`finds revisions, trees in pages and the metadata of files: large files ${storage}`, async (t) => {
      const { hub, commit, call } = await clientOf(t, { storage });
      const pull = hub.publish('org/name', { 'config.json': '{}' }, { branch: 'refs/pr/7' });
      const [sha, ofPull, tree, small, large, folder] = await call([
        ['info', repo],
        ['info', { ...repo, revision: 'refs/pr/7' }],
        ['tree', repo],
        ['metadata', { ...repo, filename: 'config.json' }],
        ['metadata', { ...repo, filename: 'model.onnx' }],
        ['tree', { ...repo, path_in_repo: 'onnx', revision: commit }],
      ]);
      assert.deepEqual([sha, ofPull], [commit, pull]);
      const paths = [...Object.keys(FILES), 'onnx/model_fp16.onnx'].toSorted();
      assert.deepEqual((tree as [string][]).map(([path]) => path).toSorted(), paths);
      assert.deepEqual(
        (tree as [string, number, string][]).find(([path]) => path === 'model.onnx'),
        ['model.onnx', GRAPH.length, sha256Of(GRAPH)],
      );
      assert.deepEqual(folder, [['onnx/model_fp16.onnx', 1, sha256Of('x')]]);
      assert.deepEqual((small as unknown[]).slice(0, 1), [commit]);
      assert.match(String((small as unknown[])[1]), /^[0-9a-f]{40}$/);
      const [atCommit, etag, size, location] = large as [string, string, number, string];
      assert.deepEqual([atCommit, etag, size], [commit, sha256Of(GRAPH), GRAPH.length]);
      const origin = storage === 'here' ? hub.url : hub.storageUrl;
      assert.ok(location.startsWith(origin), location);
    });

    test(`fetches single files and whole snapshots: large files ${storage}`, async (t) => {
      const { home, commit, call } = await clientOf(t, { storage });
      const [graph, fp16, snapshot, scan] = await call([
        ['text', { ...repo, filename: 'model.onnx' }],
        ['text', { ...repo, filename: 'model_fp16.onnx', subfolder: 'onnx', revision: commit }],
        ['snapshot_download', repo],
        ['scan', {}],
      ]);
      assert.deepEqual([graph, fp16], [GRAPH, 'x']);
      assert.equal(snapshot, join(home, 'hub', 'models--org--name', 'snapshots', commit));
      const names = [...Object.keys(FILES), 'model_fp16.onnx'].toSorted();
      assert.deepEqual(scan, [[['org/name', commit, ['main'], names]], []]);
      for (const [name, text] of Object.entries(FILES)) {
        assert.equal(readFileSync(join(String(snapshot), name), 'utf8'), text);
      }
    });
  }

  test('understands what is missing and what is forbidden', async (t) => {
    const { hub, call } = await clientOf(t);
    hub.publish('org/private', FILES, { access: 'private' });
    hub.publish('org/gated', FILES, { access: 'gated' });
    hub.tokens.set(TOKEN, ['org/private']);
    const file = { filename: 'config.json' };
    const without = await call([
      ['metadata', { repo_id: 'org/none', ...file }],
      ['info', { repo_id: 'org/private' }],
      ['metadata', { repo_id: 'org/gated', ...file }],
      ['metadata', { ...repo, filename: 'none.json' }],
      ['metadata', { ...repo, ...file, revision: 'none' }],
      ['tree', { ...repo, path_in_repo: 'none' }],
    ]);
    assert.deepEqual(without.map(failed), [
      'RepositoryNotFoundError',
      'RepositoryNotFoundError',
      'GatedRepoError',
      'RemoteEntryNotFoundError',
      'RevisionNotFoundError',
      'RemoteEntryNotFoundError',
    ]);
    const [ofPrivate, none, gated] = await call(
      [
        ['text', { repo_id: 'org/private', ...file }],
        ['info', { repo_id: 'org/none' }],
        ['metadata', { repo_id: 'org/gated', ...file }],
      ],
      { HF_TOKEN: TOKEN },
    );
    assert.equal(ofPrivate, FILES['config.json']);
    assert.deepEqual([none, gated].map(failed), ['RepositoryNotFoundError', 'GatedRepoError']);
    const [wrong] = await call([['info', repo]], { HF_TOKEN: 'hf_no' });
    assert.equal(failed(wrong), 'HfHubHTTPError');
  });

  test('sends its token to the hub alone, as svc does', async (t) => {
    const { hub, call } = await clientOf(t);
    hub.tokens.set(TOKEN, []);
    await call([['text', { ...repo, filename: 'model.onnx' }]], { HF_TOKEN: TOKEN });
    const sent = new Set(hub.requests.map(({ server, authorization }) => `${server} ${authorization}`));
    assert.deepEqual(sent, new Set([`hub Bearer ${TOKEN}`, 'storage undefined']));
  });

  test('waits when it is limited, and goes on where a transfer broke off', async (t) => {
    const { hub, call } = await clientOf(t);
    const large = largeContent(24);
    hub.publish('org/large', { 'model.onnx': large });
    hub.storageFaults.push(
      (_, response) => response.writeHead(429, { ratelimit: '"resolvers";r=0;t=0' }).end(),
      (_, response) => {
        response.writeHead(200, { 'content-length': large.bytes });
        // The client writes parts of 10 MiB, and forgets what it has of the next one.
        pipeline(Readable.from([...large.from(0)].slice(0, 15)), response, { end: false }).then(() =>
          response.socket?.destroySoon(),
        );
      },
    );
    const [path] = await call([['real_path', { repo_id: 'org/large', filename: 'model.onnx' }]]);
    assert.equal(sha256Of(readFileSync(String(path))), large.sha256);
    const ranges = hub.requests.filter(({ server }) => server === 'storage').map(({ range }) => range);
    assert.deepEqual(ranges, [undefined, undefined, `bytes=${10 * 2 ** 20}-`]);
  });
});

suite('the cache of the hub', () => {
  test('that svc has filled serves the hub’s own client without asking the hub', async (t) => {
    const { hub, home, commit, call } = await clientOf(t);
    const { source } = await hubSource(t, hub, { cache: join(home, 'hub') }).find(never);
    assert.equal(source, `hf:org/name@${commit}`);
    hub.requests.length = 0;
    const offline = { HF_HUB_OFFLINE: '1' };
    const [graph, path, cached, scan] = await call(
      [
        ['text', { ...repo, filename: 'model.onnx' }],
        ['real_path', { ...repo, filename: 'model.onnx' }],
        ['cached', { ...repo, filename: 'config.json' }],
        ['scan', {}],
      ],
      offline,
    );
    const repository = join(home, 'hub', 'models--org--name');
    assert.deepEqual([graph, path], [GRAPH, join(repository, 'blobs', sha256Of(GRAPH))]);
    assert.equal(cached, join(repository, 'snapshots', commit, 'config.json'));
    const names = ['README.md', 'config.json', 'model.onnx', 'tokenizer.json'];
    assert.deepEqual(scan, [[['org/name', commit, ['main'], names]], []]);
    assert.deepEqual(hub.requests, []);
    // Online, the client fetches only what svc has left out.
    const snapshot = await call([['snapshot_download', repo]]);
    assert.deepEqual(snapshot, [join(repository, 'snapshots', commit)]);
    const asked = hub.requests.flatMap(({ method, url }) =>
      method === 'HEAD' ? (/\/resolve\/[^/]+\/(.*)$/.exec(url)?.[1] ?? []) : [],
    );
    assert.deepEqual(asked.toSorted(), ['.gitattributes', 'model.safetensors', 'onnx/model_fp16.onnx']);
  });

  test('that the hub’s own client has filled serves svc, online and offline', async (t) => {
    const { hub, home, commit, call } = await clientOf(t);
    await call([['snapshot_download', repo]]);
    hub.requests.length = 0;
    const cache = join(home, 'hub');
    for (const isOffline of [false, true]) {
      const { source, folder } = await hubSource(t, hub, { cache, isOffline }).find(never);
      assert.equal(source, `hf:org/name@${commit}`);
      assert.equal(readFileSync(join(folder, 'model.onnx'), 'utf8'), GRAPH);
    }
    assert.deepEqual(hub.resolved, []);
    assert.ok(!readdirSync(join(cache, 'models--org--name', 'blobs')).some((name) => name.endsWith('.incomplete')));
  });

  test('that svc has removed a model from is well for the hub’s own client', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    const home = join(world.cache, '..');
    const env = environment(world.hub.url, home);
    const pulled = await world.run(['model', 'pull', 'hf:org/name', '--device', 'cpu']);
    assert.equal(pulled.code, 0, pulled.stderr);
    await runCalls([['snapshot_download', repo]], env);
    assert.equal((await world.run(['model', 'rm', 'hf:org/name'])).code, 0);
    const [scan] = (await runCalls([['scan', {}]], env)) as [[[string, string, string[], string[]][], string[]]];
    assert.deepEqual(scan?.[1], []);
    assert.deepEqual(
      scan?.[0].map(([, , refs, names]) => [refs, names]),
      [[['main'], ['model.safetensors']]],
    );
  });
});
