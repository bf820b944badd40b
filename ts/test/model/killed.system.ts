import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ModelCache } from '../../src/model/cache.ts';
import { filesIn } from '../../src/model/file-digest.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { tarOf } from './archives.ts';
import { HostileServer } from './hostile-server.ts';

const program = (name: string) => fileURLToPath(new URL(`programs/${name}.js`, import.meta.url));
const URL_PATH = '/m.tar.gz';
const ARCHIVE = tarOf({ 'm/config.json': '{"name":"m","version":"1"}', 'm/model.onnx': randomBytes(2 ** 14) });

/** The steps of a fetch, each with the pattern of a file that shows it. */
const STEPS: Readonly<Record<string, RegExp>> = {
  begins: /^\.fetch-/,
  downloads: /^\.fetch-[^/]+\/archive$/,
  unpacks: /^\.fetch-[^/]+\/model\//,
  'has unpacked': /^\.fetch-[^/]+\/model\/m\/model\.onnx$/,
  'is about to publish': /^\.fetch-[^/]+\/entry\//,
  'has published': /^[0-9a-f]{64}\/entry\.json$/,
  'notes that it is good': /^sources\//,
};

/** Fetches from one URL, each time in a process of its own. */
class Fetches {
  readonly url: string;

  private constructor(url: string) {
    this.url = url;
  }

  static async from(t: TestContext): Promise<Fetches> {
    const server = await HostileServer.start(t);
    server.serve(URL_PATH, ARCHIVE);
    return new Fetches(server.url + URL_PATH);
  }

  /** Fetches into a cache; if `changes` is given, the process kills itself in place of that change of files. */
  into(folder: string, changes?: number): Promise<Ended> {
    const kill = changes === undefined ? [] : ['--import', pathToFileURL(program('kill-at-change')).href];
    const args = [...kill, program('fetch'), this.url, folder];
    return runCommand(process.execPath, { args, env: { KILL_AT: String(changes) } });
  }

  /** Fails unless the cache takes only whole models for good ones and the next fetch gets the model. */
  async assertSound(folder: string, names: readonly string[]): Promise<void> {
    const cache = new ModelCache({ folder, maxBytes: 2 ** 30 });
    for (const name of new Set(names.map((path) => path.split('/')[0] ?? ''))) {
      if (!/^[0-9a-f]{64}$/.test(name)) continue;
      const model = await cache.open(name);
      assert.ok(model, `${name} has its name and is not whole`);
      await model.release();
    }
    const good = await cache.lastGood(this.url);
    if (good !== undefined) assert.ok(existsSync(join(folder, good.sha256, 'm', 'model.onnx')));
    const { code, stderr } = await this.into(folder);
    assert.deepEqual([code, stderr], [0, '']);
    const model = await cache.open((await cache.lastGood(this.url))?.sha256 ?? '');
    assert.ok(model);
    await model.release();
  }
}

test('a fetch that is killed at any change of files leaves nothing that is taken for good unless it is whole; the next one gets it', async (t) => {
  const fetches = await Fetches.from(t);
  const states = new Map<string, readonly string[]>();
  let changes = 0;
  for (; ; changes += 1) {
    const folder = temporaryFolder(t);
    const { code } = await fetches.into(folder, changes);
    const names = (await filesIn(folder)).map(({ path }) => path).sort();
    const state = names.join('\n').replaceAll(/\.(fetch|gone|in-use)-\w+/g, '.$1');
    // A state like this one has already been checked.
    if (!states.has(state)) await fetches.assertSound(folder, names);
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
