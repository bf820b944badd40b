import assert from 'node:assert/strict';
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { sha256Of } from '../../../src/files/sha256.ts';
import { FAMILY_FILES } from '../../../src/model/family.ts';
import { filesIn } from '../../../src/model/file-digest.ts';
import { manifestText } from '../../../src/model/manifest.ts';
import type { FoundModel } from '../../../src/model/source.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { hubSource, never, repositoryOf, type SourceChanges } from './hub-source.ts';
import { type HubOptions, StandInHub } from './stand-in-hub.ts';

const namesIn = async (folder: string) => (await filesIn(folder)).map(({ path }) => path);
const configOf = ({ folder }: FoundModel) => JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));

interface World {
  readonly hub: StandInHub;
  readonly cache: string;
  /** The folder of the repository in the hub's cache. */
  readonly repository: string;
  readonly source: (changes?: SourceChanges) => ReturnType<typeof hubSource>;
}

/** Returns a hub with the model `org/name`, and sources that share one cache of the hub and one of models. */
async function world(t: TestContext, options: HubOptions = {}): Promise<World & { readonly commit: string }> {
  const hub = await StandInHub.start(t, options);
  const commit = hub.publish('org/name', repositoryOf('1'));
  const [cache, folder] = [temporaryFolder(t), temporaryFolder(t)];
  const source = (changes: SourceChanges = {}) => hubSource(t, hub, { cache, folder, ...changes });
  return { hub, cache, repository: join(cache, 'models--org--name'), source, commit };
}

suite('a model from a hub', () => {
  for (const storage of ['elsewhere', 'here'] as const) {
    test(`is fetched by its name, only as far as it is needed: large files ${storage}`, async (t) => {
      const { hub, source, commit } = await world(t, { storage });
      const model = await source().find(never);
      assert.deepEqual(await namesIn(model.folder), ['config.json', 'model.onnx', 'tokenizer.json']);
      const files: Readonly<Record<string, string>> = repositoryOf('1');
      for (const name of await namesIn(model.folder)) {
        assert.equal(readFileSync(join(model.folder, name), 'utf8'), files[name]);
      }
      assert.deepEqual(hub.resolved.toSorted(), ['README.md', 'config.json', 'model.onnx', 'tokenizer.json']);
      assert.deepEqual(
        [model.source, model.remoteVersion, model.offline, model.fallback, basename(model.folder)],
        [`hf:org/name@${commit}`, '1', false, false, 'name'],
      );
      assert.equal(model.sha256, sha256Of(await manifestText(model.folder)));
    });
  }

  test('with two graphs comes with both, in one precision or in the one that is named', async (t) => {
    const { hub, source } = await world(t);
    const own = {
      'decima.json': '{"ordinal":{}}',
      'encoder.onnx': 'encoder',
      'scorer.onnx': 'scorer',
      'tokenizer/tokenizer.json': '{}',
    };
    const under = (folder: string) => Object.entries(own).map(([name, text]) => [`${folder}${name}`, text] as const);
    const both = Object.fromEntries(['onnx/fp32/', 'onnx/int8/'].flatMap(under));
    hub.publish('org/two', { 'config.json': '{"model_type":"decima"}', 'onnx/model.onnx': 'another', ...both });
    const whole = await source({ model: 'hf:org/two' }).find(never);
    const paths = under('onnx/fp32/').map(([path]) => path);
    assert.deepEqual(await namesIn(whole.folder), ['config.json', ...paths]);
    const named = await source({ model: 'hf:org/two/onnx/int8' }).find(never);
    assert.deepEqual(await namesIn(named.folder), Object.keys(own));
  });

  test('lies in the layout of the hub’s other clients, and takes no more room in the other cache', async (t) => {
    const { source, repository, commit } = await world(t);
    const model = await source().find(never);
    assert.deepEqual(await namesIn(repository), [
      ...(await namesIn(join(repository, 'blobs'))).map((name) => `blobs/${name}`),
      'refs/main',
      ...['README.md', 'config.json', 'model.onnx', 'tokenizer.json'].map((name) => `snapshots/${commit}/${name}`),
    ]);
    assert.equal(readFileSync(join(repository, 'refs', 'main'), 'utf8'), commit);
    const sha256 = sha256Of(repositoryOf('1')['model.onnx']);
    assert.equal(readlinkSync(join(repository, 'snapshots', commit, 'model.onnx')), join('..', '..', 'blobs', sha256));
    const content = statSync(join(repository, 'blobs', sha256));
    const kept = lstatSync(join(model.folder, 'model.onnx'));
    assert.ok(kept.isFile());
    assert.deepEqual([kept.ino, kept.nlink], [content.ino, 2]);
    assert.match(readFileSync(join(repository, '..', 'CACHEDIR.TAG'), 'utf8'), /^Signature: 8a477f59/);
  });

  test('is taken at a branch, a tag, a pull request or a commit, and from a folder', async (t) => {
    const { hub, source, commit: first, repository } = await world(t);
    const second = hub.publish('org/name', repositoryOf('2'), { branch: 'refs/pr/7' });
    const prefixed = Object.entries(repositoryOf('3')).map(([path, text]) => [`int8/${path}`, text]);
    const third = hub.publish('org/name', { 'README.md': 'top', ...Object.fromEntries(prefixed) }, { branch: 'v3' });
    for (const [model, version, at] of [
      ['hf:org/name', '1', `hf:org/name@${first}`],
      [`hf:org/name@${first}`, '1', `hf:org/name@${first}`],
      ['hf:org/name@refs/pr/7', '2', `hf:org/name@${second}`],
      ['hf:org/name@v3/int8', '3', `hf:org/name@${third}/int8`],
    ] as const) {
      const found = await source({ model }).find(never);
      assert.deepEqual([configOf(found).version, found.source], [version, at]);
      assert.deepEqual(await namesIn(found.folder), ['config.json', 'model.onnx', 'tokenizer.json']);
    }
    assert.deepEqual(await namesIn(join(repository, 'refs')), ['main', 'refs/pr/7', 'v3']);
    assert.ok(existsSync(join(repository, 'snapshots', third, 'README.md')));
    assert.ok(existsSync(join(repository, 'snapshots', third, 'int8', 'model.onnx')));
  });

  test('is found on whatever page of the listing its files are', async (t) => {
    const hub = await StandInHub.start(t, { pageSize: 2 });
    const others = Array.from({ length: 9 }, (_, index) => [`a${index}.txt`, 'x']);
    hub.publish('org/name', { ...Object.fromEntries(others), ...repositoryOf('1') });
    assert.equal(configOf(await hubSource(t, hub).find(never)).version, '1');
    const pages = hub.requests.filter(({ url }) => url.includes('/tree/')).map(({ url }) => url.replace(/^.*\?/, ''));
    assert.equal(pages.length, 8);
    assert.equal(pages.at(-1), 'recursive=true&expand=false&cursor=14');
  });

  test('is not listed again while its branch stands where it stood, and not sent again when only other files have changed', async (t) => {
    const { hub, source } = await world(t);
    const first = source();
    const model = await first.find(never);
    await first.accept(model);
    hub.requests.length = 0;
    assert.equal((await source().refresh(never)).folder, model.folder);
    assert.deepEqual(
      hub.requests.map(({ url }) => url),
      ['/api/models/org/name/revision/main'],
    );
    const commit = hub.publish('org/name', { ...repositoryOf('1'), 'README.md': 'A new card' });
    hub.requests.length = 0;
    const again = await source().refresh(never);
    assert.deepEqual([again.folder, again.source], [model.folder, `hf:org/name@${commit}`]);
    assert.deepEqual(hub.resolved, ['README.md']);
  });

  test('at a commit is not asked for again', async (t) => {
    const { hub, source, commit } = await world(t);
    const model = `hf:org/name@${commit}`;
    const first = source({ model });
    await first.accept(await first.find(never));
    hub.stop();
    const again = source({ model });
    const found = await again.find(never);
    assert.equal((await again.refresh(never)).folder, found.folder);
  });

  test('is offered anew when its branch moves, and after its trial alone', async (t) => {
    const { hub, source, commit } = await world(t);
    const wrong = new Set(['2']);
    const prove = async (folder: string) => {
      if (wrong.has(JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')).version))
        throw new Error('it is wrong');
    };
    const first = source({ source: { prove } });
    await first.accept(await first.find(never));
    hub.publish('org/name', repositoryOf('2'));
    await assert.rejects(first.refresh(never), { name: 'Refusal', message: 'hf:org/name: it is wrong' });
    assert.deepEqual(first.report(), { offline: false, remoteVersion: '2', isRefused: true });
    // A later start begins with the last good one, at the commit that it belongs to.
    const found = await source({ source: { prove } }).find(never);
    assert.deepEqual([configOf(found).version, found.source], ['1', `hf:org/name@${commit}`]);
    const last = hub.publish('org/name', repositoryOf('3'));
    assert.equal((await first.refresh(never)).source, `hf:org/name@${last}`);
  });

  test('has the graph that suits the device, or the one that is named', async (t) => {
    const { hub, source } = await world(t);
    const { 'model.onnx': graph, ...others } = repositoryOf('1');
    const graphs = {
      'onnx/model.onnx': graph,
      'onnx/model_fp16.onnx': `${graph}16`,
      'onnx/model_int8.onnx': `${graph}8`,
    };
    hub.publish('org/name', { ...others, ...graphs });
    for (const [changes, name] of [
      [{}, 'onnx/model.onnx'],
      [{ device: 'cuda' }, 'onnx/model_fp16.onnx'],
      [{ graph: 'onnx/model_int8.onnx' }, 'onnx/model_int8.onnx'],
    ] as const) {
      const { folder } = await source(changes).find(never);
      assert.deepEqual(await namesIn(folder), ['config.json', name, 'tokenizer.json']);
    }
    await assert.rejects(source({ graph: 'x.onnx' }).refresh(never), {
      message: `hf:org/name: model_file: there is no x.onnx, but ${Object.keys(graphs).join(', ')}`,
    });
  });

  test('is only taken with the sha256 that is pinned', async (t) => {
    const { source } = await world(t);
    const { sha256 = '' } = await source().find(never);
    assert.equal((await source({ source: { pinned: sha256 } }).refresh(never)).sha256, sha256);
    await assert.rejects(source({ source: { pinned: 'ab'.repeat(32) } }).refresh(never), {
      name: 'Refusal',
      message: `hf:org/name: has the sha256 ${sha256}, not that of model_sha256`,
    });
  });

  test('comes from its repository’s own cache where another program has fetched it, each byte checked', async (t) => {
    const { hub, cache, repository, source } = await world(t);
    await source().find(never);
    hub.requests.length = 0;
    const folder = temporaryFolder(t);
    await hubSource(t, hub, { cache, folder }).find(never);
    assert.deepEqual(hub.resolved, []);
    const blob = join(repository, 'blobs', sha256Of(repositoryOf('1')['model.onnx']));
    rmSync(blob);
    writeFileSync(blob, 'x'.repeat(repositoryOf('1')['model.onnx'].length));
    const found = await hubSource(t, hub, { cache }).find(never);
    assert.deepEqual(hub.resolved, ['model.onnx']);
    assert.equal(readFileSync(join(found.folder, 'model.onnx'), 'utf8'), repositoryOf('1')['model.onnx']);
    assert.deepEqual(readFileSync(blob), readFileSync(join(found.folder, 'model.onnx')));
  });
});

suite('a hub that must not be asked', () => {
  test('is not, and its cache gives the model of the branch and of the commit', async (t) => {
    const { hub, cache, source, commit } = await world(t);
    await source().find(never);
    hub.requests.length = 0;
    for (const model of ['hf:org/name', `hf:org/name@${commit}`]) {
      const found = await hubSource(t, hub, { cache, model, isOffline: true }).find(never);
      assert.deepEqual([configOf(found).version, found.offline], ['1', false]);
      assert.equal(found.source, `hf:org/name@${commit}`);
    }
    assert.deepEqual(hub.requests, []);
  });

  test('and whose cache does not have it is told in one line', async (t) => {
    const { hub, cache, repository, source, commit } = await world(t);
    const offline = () => hubSource(t, hub, { cache, isOffline: true });
    const message = (what: string) => `hf:org/name: HF_HUB_OFFLINE is set, and ${cache} does not have ${what}`;
    await assert.rejects(offline().refresh(never), { name: 'Refusal', message: message('it') });
    await source().find(never);
    rmSync(join(repository, 'blobs', sha256Of(repositoryOf('1')['model.onnx'])));
    await assert.rejects(offline().refresh(never), { message: message('all of it: there is no .onnx file in it') });
    rmSync(join(repository, 'snapshots', commit), { recursive: true });
    await assert.rejects(offline().refresh(never), { message: message('it') });
  });
});

suite('what a hub sends', () => {
  test('is not taken when it is another content than it lists, and nothing of it stays', async (t) => {
    const { hub, source, repository } = await world(t);
    const graph = repositoryOf('1')['model.onnx'];
    const sha256 = sha256Of(graph);
    const forged = { bytes: graph.length, sha256, from: () => [Buffer.alloc(graph.length, 'x')] };
    hub.forged.set(sha256, forged);
    const model = source();
    const message = 'hf:org/name: model.onnx: has another sha256 than the hub says';
    await assert.rejects(model.refresh(never), { name: 'Refusal', message });
    assert.equal(model.report().offline, false);
    const blobs = readdirSync(join(repository, 'blobs'));
    assert.ok(!blobs.some((name) => name.startsWith(sha256)), blobs.join());
    assert.ok(!existsSync(join(repository, 'refs')));
  });

  for (const [what, headers] of [
    ['another commit', { 'x-repo-commit': 'ab'.repeat(20) }],
    ['another digest', { 'x-linked-etag': `"${'ab'.repeat(32)}"` }],
    ['another length', { 'x-linked-size': '5' }],
  ] as const) {
    test(`is not even begun when its headers name ${what}`, async (t) => {
      const { hub, source } = await world(t);
      hub.extraHeaders = headers;
      const message = /^hf:org\/name: \S+: the hub sends another file than it lists$/;
      await assert.rejects(source().refresh(never), { name: 'Refusal', message });
      assert.ok(!hub.requests.some(({ server }) => server === 'storage'));
    });
  }

  test('may have any length that is listed, up to the limit', async (t) => {
    const { hub, source } = await world(t);
    const limits = { maxBytes: 5000, totalMs: 60_000, spanMs: 30_000, minBytesPerSpan: 1 };
    await assert.rejects(source({ source: { limits } }).refresh(never), {
      message: /^hf:org\/name: \d+ bytes, the limit is 5000 \(model_max_bytes\)$/,
    });
    assert.ok(!hub.resolved.includes('model.onnx'));
  });

  for (const [what, repository, taken] of [
    [
      'settings of its maker',
      {
        'config.json': '{"model_type":"modernbert"}',
        'decision_config.json': '{"head":"h2"}',
        'calibration_u.json': '{}',
        'other.json': '{}',
        'model.onnx': 'x',
        'tokenizer.json': '{}',
      },
      ['calibration_u.json', 'config.json', 'decision_config.json', 'model.onnx', 'tokenizer.json'],
    ],
    [
      'a package that names its files',
      {
        'noulxp.json':
          '{"weights":{"path":"w/m.onnx","data":[{"path":"w/m.bin"}]},"tokenizer":{"path":"t.json"},"template":{"path":"a.json"}}',
        'a.json': '{}',
        'b.json': '{}',
        't.json': '{}',
        'model.onnx': 'other',
        'w/m.bin': 'x',
        'w/m.onnx': 'x',
      },
      ['a.json', 'noulxp.json', 't.json', 'w/m.bin', 'w/m.onnx'],
    ],
    [
      'no settings, and the tokens of its family',
      {
        'other.json': '{}',
        'model.onnx': 'x',
        'tokenizer.json': '{"added_tokens":[{"content":"<bos>"},{"content":"<eos>"},{"content":"<mask>"}]}',
      },
      ['model.onnx', 'tokenizer.json'],
    ],
  ] as const) {
    test(`is fetched with the files that its family needs: ${what}`, async (t) => {
      const { hub, source } = await world(t);
      hub.publish('org/name', repository);
      const { folder } = await source().refresh(never);
      assert.deepEqual((await filesIn(folder)).map(({ path }) => path).toSorted(), taken);
    });
  }

  for (const [what, files, message] of [
    [
      'a family that is not known',
      { 'config.json': '{"layout":"other"}' },
      `it is no model of a family that is known here (${FAMILY_FILES.join(', ')})`,
    ],
    [
      'no config.json',
      { 'config.json': undefined },
      `it is no model of a family that is known here (${FAMILY_FILES.join(', ')})`,
    ],
    ['no graph', { 'model.onnx': undefined }, 'there is no .onnx file in it: export the model first'],
    ['no tokenizer', { 'tokenizer.json': undefined }, 'there is no tokenizer.json in it'],
    [
      'names that are the same on some disks',
      { 'model.onnx_data_A': 'x', 'model.onnx_data_a': 'x' },
      '"model.onnx_data_a" is there twice, as "model.onnx_data_A"',
    ],
  ] as const) {
    test(`is not fetched when there is ${what}`, async (t) => {
      const { hub, source } = await world(t);
      const all = Object.entries({ ...repositoryOf('1'), ...files }).filter(([, text]) => text !== undefined);
      hub.publish('org/name', Object.fromEntries(all) as Record<string, string>);
      await assert.rejects(source().refresh(never), { name: 'Refusal', message: `hf:org/name: ${message}` });
      assert.ok(!hub.requests.some(({ server }) => server === 'storage'));
    });
  }

  for (const [what, tree] of [
    ['no JSON', '<html>'],
    ['no list', '{}'],
    ['entries without a path', '[{"type":"file","oid":"ab","size":1}]'],
    ['a length that cannot be', '[{"type":"file","oid":"ab","size":-1,"path":"config.json"}]'],
    ['a digest that leads elsewhere', '[{"type":"file","oid":"../../x","size":1,"path":"config.json"}]'],
  ] as const) {
    test(`makes no sense as a listing: ${what}`, async (t) => {
      const { hub, source } = await world(t);
      hub.faults.push((request, response) => {
        assert.match(request.url ?? '', /\/revision\/main$/);
        response.end(JSON.stringify({ sha: 'ab'.repeat(20) }));
      });
      hub.faults.push((_, response) => response.end(tree));
      const message =
        /^hf:org\/name: (what the hub says about it makes no sense|its listing has a file without a digest)$/;
      await assert.rejects(source().refresh(never), { name: 'Refusal', message });
    });
  }

  test('cannot lead out of the cache, whatever path it lists', async (t) => {
    const { hub, source, cache } = await world(t);
    hub.publish('org/name', { ...repositoryOf('1'), '../../../escaped.onnx': 'x', 'onnx/../../model.onnx_data': 'x' });
    await source().find(never);
    assert.ok(!existsSync(join(cache, '..', 'escaped.onnx')));
    const config = { files: { '../../../../escaped': 'ab' }, layout: 'marker' };
    hub.publish('org/name', {
      ...repositoryOf('1'),
      'config.json': JSON.stringify(config),
      '../../../../escaped': 'x',
    });
    await assert.rejects(source().refresh(never), { message: /: a file may not have the name "\.\.\/\.\.\// });
  });

  test('is at most ten pages of a listing', async (t) => {
    const hub = await StandInHub.start(t, { pageSize: 1 });
    const many = Array.from({ length: 20 }, (_, index) => [`a${index}.txt`, 'x']);
    hub.publish('org/name', { ...Object.fromEntries(many), ...repositoryOf('1') });
    await assert.rejects(hubSource(t, hub).refresh(never), { message: 'hf:org/name: more than 10 pages of files' });
  });
});
