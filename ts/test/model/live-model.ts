/** Questions to a running server about the model that answers. */
import assert from 'node:assert/strict';
import { assertGolden, type Fixture, fixture, goldenLines, TOLERANCES } from '../addon/model-folders.ts';
import type { LiveServer } from '../real/live-server.ts';

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
