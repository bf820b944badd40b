import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sha256Of } from '../../../src/files/sha256.ts';
import { until } from '../../until.ts';
import { assertAnswers } from '../live-model.ts';
import { filesOfFixture, HubWorld } from './hub-world.ts';
import { largeContent } from './large-content.ts';

const MIB = 2 ** 20;
const KILLS = 3;

test('a download of 400 MB that is killed, again and again, goes on where it was, and ends with the right sha256', async (t) => {
  const world = await HubWorld.start(t, 'marker');
  const { hub } = world;
  const weights = largeContent(400);
  // The engine opens the graph; these bytes beside it are files of the model that the graph does not use.
  const commit = hub.publish('org/name', { ...(await filesOfFixture('marker')), 'model.onnx_data': weights });
  const blobs = join(world.cache, 'models--org--name', 'blobs');
  const incomplete = () =>
    readdirSync(blobs).filter((name) => name.startsWith(weights.sha256) && name.endsWith('.incomplete'));
  const bytesOf = (name: string) => statSync(join(blobs, name)).size;
  hub.pauseMs = 2;

  const args = ['model', 'pull', 'hf:org/name', '--device', 'cpu'];
  const left: number[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const before = left.at(-1) ?? 0;
    const pull = world.begin(args);
    await until(() => {
      try {
        return incomplete().some((name) => bytesOf(name) > before + 40 * MIB);
      } catch {
        return false;
      }
    });
    pull.signal('SIGKILL');
    await pull.finished;
    const [name = '', ...others] = incomplete();
    assert.deepEqual(others, []);
    left.push(bytesOf(name));
  }

  hub.pauseMs = 0;
  const { code, stdout, stderr } = await world.run(args);
  assert.deepEqual([code, stderr.replace(/^\d+ %.*\n/gm, '')], [0, '']);
  assert.match(stdout, new RegExp(`^model +hf:org/name@${commit}$`, 'm'));
  const ranges = hub.requests
    .filter(({ url }) => url.startsWith('/api/resolve-cache/') && url.endsWith('/model.onnx_data'))
    .map(({ range }) => range);
  assert.deepEqual(ranges, [undefined, ...left.map((bytes) => `bytes=${bytes}-`)]);
  assert.deepEqual(
    readdirSync(blobs).filter((name) => name.endsWith('.incomplete')),
    [],
  );
  assert.equal(sha256Of(readFileSync(join(blobs, weights.sha256))), weights.sha256);
  t.diagnostic(`killed at ${left.map((bytes) => Math.round(bytes / MIB)).join(', ')} MiB`);

  hub.stop();
  await assertAnswers(await world.serve(), 'marker');
});
