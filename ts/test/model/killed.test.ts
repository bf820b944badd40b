import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ModelCache } from '../../src/model/cache.ts';
import { filesIn } from '../../src/model/file-digest.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { tarOf } from './archives.ts';
import { HostileServer } from './hostile-server.ts';

const PROGRAM = fileURLToPath(new URL('programs/fetch.js', import.meta.url));
const URL_PATH = '/m.tar.gz';
/** Enough for each step to take some time. */
const ARCHIVE = tarOf({ 'm/config.json': '{"name":"m","version":"1"}', 'm/model.onnx': randomBytes(2 ** 24) });

/** What is in the cache at some moment, by patterns; what comes and goes while it is read counts as not there. */
async function has(folder: string, pattern: RegExp): Promise<boolean> {
  const files = await filesIn(folder).catch(() => []);
  return files.some(({ path }) => pattern.test(path));
}

/** The steps of a fetch, each by the first file that shows it. */
const STEPS: readonly (readonly [string, RegExp])[] = [
  ['begins', /^\.fetch-/],
  ['downloads', /^\.fetch-[^/]+\/archive$/],
  ['unpacks', /^\.fetch-[^/]+\/model\//],
  ['has unpacked', /^\.fetch-[^/]+\/model\/m\/model\.onnx$/],
  ['is about to publish', /^\.fetch-[^/]+\/entry\//],
  ['has published', /^[0-9a-f]{64}\/entry\.json$/],
  ['notes that it is good', /^sources\//],
];

suite('a process that is killed', () => {
  for (const [step, pattern] of STEPS) {
    test(`when it ${step} leaves nothing that is taken for good unless it is whole; the next one gets it`, async (t) => {
      const server = await HostileServer.start(t);
      server.serve(URL_PATH, ARCHIVE);
      const folder = temporaryFolder(t);
      const args = [PROGRAM, server.url + URL_PATH, folder];
      const killed = spawn(process.execPath, args, { stdio: 'inherit' });
      while (killed.exitCode === null && !(await has(folder, pattern))) await setImmediate();
      killed.kill('SIGKILL');
      if (killed.exitCode === null && killed.signalCode === null) await once(killed, 'exit');
      assert.ok(await has(folder, /./), step);
      const cache = new ModelCache({ folder, maxBytes: 2 ** 30 });
      for (const name of readdirSync(folder).filter((entry) => /^[0-9a-f]{64}$/.test(entry))) {
        const model = await cache.open(name);
        assert.ok(model, `${name} has its name and is not whole`);
        await model.release();
      }
      const good = await cache.lastGood(server.url + URL_PATH);
      if (good !== undefined) assert.ok(existsSync(join(folder, good.sha256, 'm', 'model.onnx')));
      const next = spawn(process.execPath, args, { stdio: 'inherit' });
      assert.deepEqual(await once(next, 'exit'), [0, null]);
      assert.ok(await cache.open((await cache.lastGood(server.url + URL_PATH))?.sha256 ?? ''));
    });
  }
});
