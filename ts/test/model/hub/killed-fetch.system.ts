import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ModelCache } from '../../../src/model/cache.ts';
import { filesIn } from '../../../src/model/file-digest.ts';
import { isWhole } from '../../../src/model/hub/digest.ts';
import { CachedRepository } from '../../../src/model/hub/hub-cache.ts';
import { type Ended, runCommand } from '../../addon/program.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { never, repositoryOf } from './hub-source.ts';
import { StandInHub } from './stand-in-hub.ts';

const program = (name: string) => fileURLToPath(new URL(`../programs/${name}.js`, import.meta.url));
const MODEL = 'hf:org/name';

/** The steps of a fetch, each with the pattern of a file that shows it. */
const STEPS: Readonly<Record<string, RegExp>> = {
  'begins a transfer': /^hub\/models--org--name\/blobs\/[\w.-]+\.incomplete$/,
  'has a content': /^hub\/models--org--name\/blobs\/[0-9a-f]{64}$/,
  'has named a content': /^hub\/models--org--name\/snapshots\/[0-9a-f]{40}\/model\.onnx$/,
  'has noted the commit': /^hub\/models--org--name\/refs\/main$/,
  'links the model': /^models\/\.fetch-[^/]*\/name\/model\.onnx$/,
  'has published': /^models\/[0-9a-f]{64}\/entry\.json$/,
  'notes that it is good': /^models\/sources\//,
};

/** Two caches, into which a process of its own fetches. */
class Caches {
  readonly #url: string;
  readonly folder: string;

  constructor(t: TestContext, url: string) {
    this.#url = url;
    this.folder = temporaryFolder(t);
  }

  /** Fetches; if `changes` is given, the process kills itself in place of that change of files. */
  fetch(changes?: number): Promise<Ended> {
    const kill = changes === undefined ? [] : ['--import', pathToFileURL(program('kill-at-change')).href];
    const args = [...kill, program('fetch-hub'), this.#url, join(this.folder, 'hub'), join(this.folder, 'models')];
    return runCommand(process.execPath, { args, env: { KILL_AT: String(changes) } });
  }

  async names(): Promise<string[]> {
    return (await filesIn(this.folder)).map(({ path }) => path);
  }

  /** Fails unless all that has its final name is whole, and the next fetch gets the model. */
  async assertSound(commit: string): Promise<void> {
    const repository = new CachedRepository(join(this.folder, 'hub'), 'org/name');
    for (const file of await repository.filesAt(commit)) {
      assert.ok(await isWhole(join(repository.blobs, file.blob), file, never), `${file.path} is not whole`);
    }
    if ((await repository.commitOf('main')) !== undefined) {
      const names = (await repository.filesAt(commit)).map(({ path }) => path);
      assert.deepEqual(names, ['README.md', 'config.json', 'model.onnx', 'tokenizer.json']);
    }
    const { code, stderr } = await this.fetch();
    assert.deepEqual([code, stderr], [0, '']);
    const cache = new ModelCache({ folder: join(this.folder, 'models'), maxBytes: 2 ** 30 });
    const good = await cache.lastGood(MODEL);
    const model = (await cache.open(good?.sha256 ?? '')) ?? assert.fail('there is no good model');
    assert.equal(readFileSync(join(model.folder, 'model.onnx'), 'utf8'), repositoryOf('1')['model.onnx']);
    assert.equal(good?.revision, commit);
    await model.release();
    assert.ok(!(await this.names()).some((name) => name.endsWith('.incomplete')));
    assert.ok(existsSync(join(repository.folder, 'refs', 'main')));
  }
}

test('a fetch from a hub that is killed at any change of files leaves nothing wrong in either cache, and the next one goes on', async (t) => {
  const hub = await StandInHub.start(t, { storage: 'here' });
  const commit = hub.publish('org/name', repositoryOf('1'));
  const states = new Map<string, readonly string[]>();
  let changes = 0;
  for (; ; changes += 1) {
    const caches = new Caches(t, hub.url);
    const { code } = await caches.fetch(changes);
    const names = await caches.names();
    const state = names.join('\n').replaceAll(/\.(fetch|gone|in-use|svc)-[\w-]+|\.\w+\.tmp/g, '.$1');
    // A state like this one has already been checked.
    if (!states.has(state)) await caches.assertSound(commit);
    states.set(state, names);
    if (code === 0) break;
  }
  const left = [...states.values()].flat();
  assert.deepEqual(
    Object.keys(STEPS).filter((step) => !left.some((path) => STEPS[step]?.test(path))),
    [],
  );
  t.diagnostic(`${changes} changes, ${states.size} states`);
});
