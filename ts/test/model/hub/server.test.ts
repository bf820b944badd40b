import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { fixture } from '../../addon/model-folders.ts';
import { runSvc } from '../../svc-process.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { until } from '../../until.ts';
import { assertAnswers, health, reload } from '../live-model.ts';
import { filesOfFixture, HubWorld } from './hub-world.ts';

const TOKEN = 'hf_averysecrettokenindeed';

suite('a server whose model comes from a hub', { concurrency: 2 }, () => {
  test('answers with it, and says by which commit, in the dashboard too', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    const commit = world.hub.publish('org/name', await filesOfFixture('marker'));
    const live = await world.serve();
    const record = await health(live);
    assert.deepEqual(
      [record.source, record.fallback, record.offline, record.remote_version],
      [`hf:org/name@${commit}`, false, undefined, record.version],
    );
    assert.ok(record.dir.startsWith(join(world.data, 'models')), record.dir);
    assert.ok(existsSync(join(world.cache, 'models--org--name', 'snapshots', commit, 'model.onnx')));
    assert.equal(JSON.parse((await live.get('/stats')).text).model.source, record.source);
    assert.match((await live.get('/')).text, new RegExp(`data-field="source">hf:org/name@${commit}<`));
    await assertAnswers(live, 'marker');
  });

  test('takes a branch that has moved, at a reload, after its trial', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    const live = await world.serve();
    const before = await health(live);
    const wrong = {
      ...(await filesOfFixture('shared-state')),
      'golden.jsonl': (await filesOfFixture('marker'))['golden.jsonl'] ?? '',
    };
    world.hub.publish('org/name', wrong);
    assert.equal((await reload(live)).status, 500);
    assert.deepEqual(
      [(await health(live)).source, (await health(live)).failed_reload.code],
      [before.source, 'load_failed'],
    );
    await assertAnswers(live, 'marker');
    const commit = world.hub.publish('org/name', await filesOfFixture('shared-state'));
    assert.equal((await reload(live)).status, 200);
    const { source, previous } = await health(live);
    assert.deepEqual([source, previous.sha256], [`hf:org/name@${commit}`, before.sha256]);
    await assertAnswers(live, 'shared-state');
  });

  test('starts with the last good one when the hub is away, and by HF_HUB_OFFLINE without asking it', async (t) => {
    const world = await HubWorld.start(t, 'shared-state');
    const first = await world.serve();
    const { source, dir } = await health(first);
    await world.end(first);
    const asked = world.hub.requests.length;
    const offline = await world.serve('hf:org/name', { env: { HF_HUB_OFFLINE: '1' } });
    await until(async () => (await health(offline)).offline === undefined);
    assert.deepEqual([(await health(offline)).source, world.hub.requests.length], [source, asked]);
    await world.end(offline);
    world.hub.stop();
    const away = await world.serve();
    const record = await health(away);
    assert.deepEqual([record.source, record.dir, record.offline, record.fallback], [source, dir, true, false]);
    await assertAnswers(away, 'shared-state');
  });

  test('answers with the embedded one until the hub has the wanted one', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    const live = await world.serve('hf:org/later');
    const { source, fallback } = await health(live);
    assert.deepEqual([source, fallback], ['embedded', true]);
    await live.process.logged(
      /hf:org\/later: there is no such repository, or it is private, which needs HF_TOKEN; the embedded/,
    );
    const commit = world.hub.publish('org/later', await filesOfFixture('marker'));
    await until(async () => (await health(live)).source === `hf:org/later@${commit}`);
    await assertAnswers(live, 'marker');
  });

  test('never shows the token: not in the log, /health, /stats, /metrics, the dashboard or the settings', async (t) => {
    const world = await HubWorld.start(t, 'marker', { HF_TOKEN: TOKEN });
    world.hub.tokens.set(TOKEN, ['org/name']);
    world.hub.publish('org/name', await filesOfFixture('marker'), { access: 'gated' });
    const live = await world.serve('hf:org/name', { args: ['--log-level', 'trace'] });
    world.hub.faults.push((_, response) => response.writeHead(403, { 'x-error-message': `not ${TOKEN}` }).end());
    const failed = await reload(live);
    await live.process.logged(/status 403: not \[secret\]/);
    const shown = await Promise.all(
      ['/health', '/stats', '/metrics', '/'].map(async (path) => (await live.get(path)).text),
    );
    await world.end(live);
    const { stdout, stderr } = await live.process.finished;
    const config = await world.run(['config', '--json']);
    const doctor = await world.run(['doctor', '--model', 'hf:org/name', '--device', 'cpu']);
    const texts = [failed.text, ...shown, stdout, stderr, config.stdout, config.stderr, doctor.stdout, doctor.stderr];
    for (const text of texts) assert.ok(!text.includes(TOKEN));
    assert.equal(JSON.parse(config.stdout).hub.token, '[secret]');
    assert.match(
      doctor.stdout,
      /^ok +hub +http:\/\/127\.0\.0\.1:\d+\/?, asked with the token of HF_TOKEN; its files are kept in /m,
    );
    assert.ok(world.hub.requests.some(({ authorization }) => authorization === `Bearer ${TOKEN}`));
  });

  for (const [what, env, args, message] of [
    [
      'an endpoint that is none',
      { HF_ENDPOINT: 'hub.example' },
      [],
      'HF_ENDPOINT: hub.example: must be the address of a hub, such as https://hub.example',
    ],
    [
      'an endpoint without protection',
      { HF_ENDPOINT: 'http://hub.example' },
      [],
      'HF_ENDPOINT: http://hub.example/: http:// needs model_allow_http',
    ],
    [
      'a token without protection',
      { HF_ENDPOINT: 'http://hub.example', HF_TOKEN: TOKEN, SVC_MODEL_ALLOW_HTTP: '1' },
      [],
      'HF_TOKEN: is not sent to http://hub.example/: a token needs https://',
    ],
    ['a token that can be none', { HF_TOKEN: 'hf_ä' }, [], 'HF_TOKEN: has characters that no token has'],
    [
      'a graph of a folder',
      {},
      ['--model-file', 'm.onnx', '--model', fixture('marker')],
      'model_file: only a model from a hub (hf:…) is chosen by it',
    ],
  ] as const) {
    test(`does not start with ${what}`, async (t) => {
      const all = ['serve', '--listen', '127.0.0.1:0', '--model', 'hf:org/name', ...args];
      const { code, stderr } = await runSvc(t, all, { cwd: temporaryFolder(t), env });
      assert.deepEqual([code, stderr.split('\n').at(-2)], [1, message]);
    });
  }
});

suite('svc model', { concurrency: 2 }, () => {
  test('pull fetches a model, tells what it is, and the next start needs no hub', async (t) => {
    const world = await HubWorld.start(t, 'pair-bert');
    const { 'model.onnx': graph = '', ...others } = await filesOfFixture('pair-bert');
    const commit = world.hub.publish('org/name', { ...others, 'onnx/model.onnx': graph, 'onnx/model_int8.onnx': 'x' });
    const { code, stdout, stderr } = await world.run(['model', 'pull', 'hf:org/name', '--device', 'cpu']);
    // On a slow machine there are lines of progress.
    assert.deepEqual([code, stderr.replace(/^\d+ %.*\n/gm, '')], [0, '']);
    const lines = new Map(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => [line.slice(0, 8).trim(), line.slice(9)]),
    );
    const folder = lines.get('folder') ?? '';
    assert.ok(folder.startsWith(join(world.data, 'models')) && existsSync(join(folder, 'onnx', 'model.onnx')), folder);
    assert.deepEqual(
      ['model', 'files', 'family', 'licence', 'graphs'].map((title) => lines.get(title)),
      [
        `hf:org/name@${commit}`,
        join(world.cache, 'models--org--name', 'snapshots', commit),
        'pair, by config.json',
        'apache-2.0',
        'also onnx/model_int8.onnx; model_file takes one of them',
      ],
    );
    assert.match(lines.get('size') ?? '', /^\d+ KiB$/);
    world.hub.stop();
    const live = await world.serve();
    assert.equal((await health(live)).source, `hf:org/name@${commit}`);
    await assertAnswers(live, 'pair-bert');
  });

  test('pull says in one line why there is no model', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    for (const [model, message] of [
      ['hf:org/none', 'hf:org/none: there is no such repository, or it is private, which needs HF_TOKEN'],
      ['hf:none', 'model: hf:none: must be hf:org/name, hf:org/name@revision or hf:org/name/folder'],
      [fixture('marker'), `${fixture('marker')}: lies on this machine already`],
      [join(fixture('marker'), 'no'), `${join(fixture('marker'), 'no')}: no such model folder`],
    ] as const) {
      const { code, stdout, stderr } = await world.run(['model', 'pull', model, '--device', 'cpu']);
      assert.deepEqual([code, stdout, stderr], [1, '', `${message}\n`]);
    }
  });

  test('list tells all that is kept, and rm removes it, here and in the cache of the hub', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    const empty = await world.run(['model', 'list']);
    assert.equal(empty.stdout, `no models are kept in ${join(world.data, 'models')}\n`);
    const first = world.hub.publish('org/name', await filesOfFixture('marker'));
    await world.run(['model', 'pull', 'hf:org/name', '--device', 'cpu']);
    const second = world.hub.publish('org/name', await filesOfFixture('shared-state'));
    const pulled = await world.run(['model', 'pull', 'hf:org/name', '--device', 'cpu', '--json']);
    assert.equal(JSON.parse(pulled.stdout).source, `hf:org/name@${second}`);
    world.hub.publish('org/other', await filesOfFixture('pair-bert'));
    await world.run(['model', 'pull', 'hf:org/other', '--device', 'cpu']);
    const { stdout } = await world.run(['model', 'list']);
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
    assert.deepEqual(rows[0], ['model', 'revision', 'family', 'size', 'licence', 'folder']);
    assert.deepEqual(
      rows
        .slice(1, -1)
        .map(([model, revision, family, , licence]) => [model, revision, family, licence])
        .toSorted(),
      [
        ['hf:org/name', first.slice(0, 12), 'marker', 'apache-2.0'],
        ['hf:org/name', second.slice(0, 12), 'shared-state', 'apache-2.0'],
        ['hf:org/other', rows.find(([model]) => model === 'hf:org/other')?.[1] ?? '', 'pair', 'apache-2.0'],
      ].toSorted(),
    );
    assert.match(rows.at(-1)?.join() ?? '', /^3 kept, [\d.]+ [KM]iB$/);

    const repository = join(world.cache, 'models--org--name');
    const foreign = join(repository, 'snapshots', second, 'pytorch_model.bin');
    writeFileSync(foreign, 'of another program');
    const removed = await world.run(['model', 'rm', 'hf:org/name']);
    assert.match(removed.stdout, /^hf:org\/name: removed, [\d.]+ [KM]iB\n$/);
    assert.ok(existsSync(foreign) && !existsSync(join(repository, 'snapshots', first)));
    assert.ok(!existsSync(join(repository, 'snapshots', second, 'model.onnx')));
    assert.ok(!existsSync(join(repository, 'blobs')));
    const left = JSON.parse((await world.run(['model', 'list', '--json'])).stdout);
    assert.deepEqual(
      left.map(({ source }: { source: string }) => source),
      ['hf:org/other'],
    );
    const again = await world.run(['model', 'rm', 'hf:org/name']);
    assert.deepEqual([again.code, again.stderr], [1, 'hf:org/name: is not kept here; see svc model list\n']);
  });

  test('names a model of a hub that a path or an address may mean', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    for (const [model, meant] of [
      ['org/name', 'hf:org/name'],
      ['org/name@v2/onnx', 'hf:org/name@v2/onnx'],
      ['huggingface.co/org/name', 'hf:org/name'],
    ] as const) {
      for (const args of [
        ['pull', model],
        ['check', model],
      ]) {
        const { code, stderr } = await world.run(['model', ...args]);
        assert.equal(code, 1);
        assert.ok(stderr.endsWith(`${model}: no such model folder; a model of a hub is named ${meant}\n`), stderr);
      }
    }
    // The folder above is there, so a path was meant.
    const { stderr } = await world.run(['model', 'pull', './no']);
    assert.match(stderr, /no: no such model folder\n$/);
  });

  test('tells each of two names of the same files by its own card and commit, and removes them one by one', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    const files = await filesOfFixture('marker');
    const first = world.hub.publish('org/name', files);
    const second = world.hub.publish('org/copy', { ...files, 'README.md': '---\nlicense: mit\n---\n' });
    const pull = async (model: string) => {
      const { code, stdout, stderr } = await world.run(['model', 'pull', model, '--device', 'cpu', '--json']);
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    };
    const list = async () => JSON.parse((await world.run(['model', 'list', '--json'])).stdout);
    const snapshot = (name: string, commit: string) => join(world.cache, `models--org--${name}`, 'snapshots', commit);
    const [original, copy] = [await pull('hf:org/name'), await pull('hf:org/copy')];
    assert.equal(original.sha256, copy.sha256);
    assert.deepEqual(
      [original, copy].map(({ source, licence, files }) => [source, licence, files]),
      [
        [`hf:org/name@${first}`, 'apache-2.0', snapshot('name', first)],
        [`hf:org/copy@${second}`, 'mit', snapshot('copy', second)],
      ],
    );
    assert.deepEqual(
      (await list()).map(({ source, revision, licence }: Record<string, string>) => [source, revision, licence]),
      [
        ['hf:org/copy', second, 'mit'],
        ['hf:org/name', first, 'apache-2.0'],
      ],
    );
    assert.match((await world.run(['model', 'list'])).stdout, /^1 kept, /m);

    const pinned = `hf:org/name@${first}`;
    const removed = await world.run(['model', 'rm', pinned]);
    assert.equal(removed.stdout, `${pinned}: removed, 0 B; hf:org/copy has the same files, which stay\n`);
    assert.ok(!existsSync(snapshot('name', first)) && existsSync(join(copy.folder, 'model.onnx')));
    assert.deepEqual(
      (await list()).map(({ source }: Record<string, string>) => source),
      ['hf:org/copy'],
    );
    // A start must not begin with a model that was removed, though its files are here by another name.
    world.hub.stop();
    const live = await world.serve();
    assert.equal((await health(live)).source, 'embedded');
    await world.end(live);
    assert.match((await world.run(['model', 'rm', 'hf:org/copy'])).stdout, /^hf:org\/copy: removed, \d+ KiB\n$/);
    assert.deepEqual([existsSync(copy.folder), existsSync(join(world.cache, 'models--org--copy'))], [false, false]);
  });

  test('rm leaves the files of a commit that another name has', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    const commit = world.hub.publish('org/name', await filesOfFixture('marker'), { branch: 'v2' });
    world.hub.publish('org/name', await filesOfFixture('shared-state'));
    for (const model of ['hf:org/name@v2', `hf:org/name@${commit}`]) {
      assert.equal((await world.run(['model', 'pull', model, '--device', 'cpu'])).code, 0);
    }
    const graph = join(world.cache, 'models--org--name', 'snapshots', commit, 'model.onnx');
    assert.equal((await world.run(['model', 'rm', 'hf:org/name@v2'])).code, 0);
    assert.ok(existsSync(graph));
    assert.equal((await world.run(['model', 'rm', `hf:org/name@${commit}`])).code, 0);
    assert.ok(!existsSync(graph));
  });

  test('rm takes the name that pull and /health show, which is that of one commit', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    const first = world.hub.publish('org/name', await filesOfFixture('marker'));
    const pull = (model: string) => world.run(['model', 'pull', model, '--device', 'cpu']);
    await pull('hf:org/name');
    // Another card alone makes another commit with the same model.
    const second = world.hub.publish('org/name', { ...(await filesOfFixture('marker')), 'README.md': 'new' });
    await pull('hf:org/name');
    const third = world.hub.publish('org/name', await filesOfFixture('shared-state'));
    await pull('hf:org/name');
    const list = async () =>
      JSON.parse((await world.run(['model', 'list', '--json'])).stdout)
        .map(({ source, revision }: Record<string, string>) => `${source} ${revision}`)
        .toSorted();
    const names = (...commits: string[]) => commits.map((commit) => `hf:org/name ${commit}`).toSorted();
    const snapshots = () => readdirSync(join(world.cache, 'models--org--name', 'snapshots')).toSorted();
    assert.deepEqual(await list(), names(second, third));
    assert.deepEqual(snapshots(), [first, second, third].toSorted());

    const one = await world.run(['model', 'rm', `hf:org/name@${second}`]);
    assert.match(one.stdout, /: removed, 0 B; hf:org\/name has the same files, which stay\n$/);
    assert.deepEqual(await list(), names(first, third));
    assert.deepEqual(snapshots(), [first, third].toSorted());
    const other = await world.run(['model', 'rm', `hf:org/name@${first}`]);
    assert.match(other.stdout, /: removed, \d+ KiB\n$/);
    assert.deepEqual([await list(), snapshots()], [names(third), [third]]);
    const unknown = await world.run(['model', 'rm', `hf:org/name@${'ab'.repeat(20)}`]);
    assert.match(unknown.stderr, /: is not kept here; see svc model list\n$/);
    assert.equal((await world.run(['model', 'rm', 'hf:org/name'])).code, 0);
    assert.ok(!existsSync(join(world.cache, 'models--org--name')));
  });

  test('rm leaves a model that a server uses', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    const live = await world.serve();
    const refused = await world.run(['model', 'rm', 'hf:org/name']);
    assert.deepEqual([refused.code, refused.stderr], [1, 'hf:org/name: a running server uses it\n']);
    await assertAnswers(live, 'marker');
    live.process.signal('SIGTERM');
    await live.process.finished;
    assert.equal((await world.run(['model', 'rm', 'hf:org/name'])).code, 0);
    assert.ok(!existsSync(join(world.cache, 'models--org--name')));
  });

  test('rm removes what was fetched and not taken', async (t) => {
    const world = await HubWorld.start(t, 'marker');
    world.hub.publish('org/name', { ...(await filesOfFixture('marker')), 'model.onnx': 'no graph' });
    const { code, stderr } = await world.run(['model', 'pull', 'hf:org/name', '--device', 'cpu']);
    assert.equal(code, 1);
    assert.match(stderr, /^hf:org\/name: .*model\.onnx/m);
    assert.ok(existsSync(join(world.cache, 'models--org--name')));
    assert.equal((await world.run(['model', 'rm', 'hf:org/name'])).code, 0);
    assert.ok(!existsSync(join(world.cache, 'models--org--name')));
  });

  test('check names the family that it recognized, and by which file', async (t) => {
    const world = await HubWorld.start(t, 'shared-state');
    const { code, stdout } = await world.run(['model', 'check', 'hf:org/name', '--device', 'cpu']);
    assert.equal(code, 0);
    assert.match(stdout, /^family {3}shared-state, by config\.json$/m);
    const json = JSON.parse(
      (await world.run(['model', 'check', fixture('pair-bert'), '--device', 'cpu', '--json'])).stdout,
    );
    assert.deepEqual(json.family, { name: 'pair', file: 'config.json' });
  });
});
