/** The comparison of the engine with the code of a model's maker, on a tiny folder in the maker's form. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { REPOSITORY, startEngine } from '../../addon/model-folders.ts';
import { assertPublished, type Expected, type Oracle } from '../../addon/published-folders.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { FIXTURES, runPython } from '../python.ts';
import { publishedRequests } from './requests.ts';

/** Makes a tiny folder in the form of its maker, and returns its path. */
export async function tinyFolder(t: TestContext, oracle: Oracle): Promise<string> {
  const folder = join(temporaryFolder(t), oracle.variant ?? oracle.name);
  await program(oracle, ['make', folder]);
  return folder;
}

/** Returns the answers of the maker's code. */
export async function askOracle(oracle: Oracle, folder: string, bodies: readonly string[]): Promise<Expected[]> {
  const stdout = await program(oracle, ['answer', folder], { input: `${bodies.join('\n')}\n` });
  const lines = stdout.trimEnd().split('\n');
  assert.equal(lines.length, bodies.length);
  return lines.map((line) => JSON.parse(line) as Expected);
}

/** Fails unless the engine gives the same answers as the maker's code, and refuses the requests that it refuses. */
export async function compareWithOracle(t: TestContext, oracle: Oracle): Promise<void> {
  const folder = await tinyFolder(t, oracle);
  const bodies = publishedRequests(oracle.odd);
  const expected = await askOracle(oracle, folder, bodies);
  const engine = await startEngine(t, { model: folder });
  for (const [index, body] of bodies.entries()) await assertPublished(engine, { body, ...expected[index] }, oracle);
  const answered = expected.filter(({ answers }) => answers !== undefined).length;
  t.diagnostic(`${answered} of ${bodies.length} requests have answers, the others are refused`);
  assert.ok(answered >= bodies.length * (oracle.answered ?? 0.8), `only ${answered} requests have answers`);
}

/** Runs a program of this folder, and returns its output. */
export async function program(
  { name, variant }: Oracle,
  args: readonly string[],
  { input, env }: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<string> {
  const script = join(REPOSITORY, 'ts', 'test', 'system', 'published', `${name}.py`);
  const { code, stdout, stderr } = await runPython([script, ...args, ...(variant === undefined ? [] : [variant])], {
    env: { PYTHONPATH: FIXTURES, ORT_DISABLE_TELEMETRY: '1', ...env },
    ...(input !== undefined && { input }),
  });
  assert.deepEqual([code, stderr], [0, '']);
  return stdout;
}
