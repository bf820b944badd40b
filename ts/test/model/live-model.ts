/** Questions to a running server about its model, and a model that loads only when a test says so. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { filesIn } from '../../src/model/file-digest.ts';
import { assertGolden, type Fixture, fixture, goldenLines, TOLERANCES } from '../addon/model-folders.ts';
import type { LiveServer } from '../real/live-server.ts';
import { tarOf } from './archives.ts';
import { HostileServer } from './hostile-server.ts';

/** A model that is loaded when the test says so: until then its source does not answer. */
export async function slowModel(
  t: TestContext,
  folder: string,
): Promise<{ readonly url: string; readonly finish: () => void }> {
  const source = await HostileServer.start(t);
  const files = (await filesIn(folder)).map(({ path }) => [path, readFileSync(join(folder, path))] as const);
  const told = new EventEmitter();
  const isTold = once(told, 'finish');
  source.on('/m.tar.gz', (_request, response) => {
    void isTold.then(() => response.end(tarOf(Object.fromEntries(files))));
  });
  return { url: `${source.url}/m.tar.gz`, finish: () => told.emit('finish') };
}

/** Returns the health record. */
export async function health(live: LiveServer) {
  return JSON.parse((await live.get('/health')).text);
}

/** Makes the server look for its model again. */
export function reload(live: LiveServer) {
  return live.send({ method: 'POST', path: '/reload' });
}

/** Fails unless the server gives the fixture's reference answer. */
export async function assertAnswers(live: LiveServer, name: Fixture): Promise<void> {
  const [golden] = goldenLines(fixture(name));
  assert.ok(golden);
  assertGolden(await live.answer(golden.body), golden, TOLERANCES[name]);
}
