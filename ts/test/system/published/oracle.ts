/** The comparison of the engine with the code of a model's maker, on a tiny folder in the maker's form. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Engine } from '../../../src/engine/contract.ts';
import { REPOSITORY, startEngine } from '../../addon/model-folders.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { FIXTURES, runPython } from '../python.ts';
import { publishedRequests } from './requests.ts';

/** The largest difference of a probability: both run the same graph with fp32 weights. */
const TOLERANCE = 1e-5;

/** A family, whose tiny folder and whose answers come from one Python program. */
export interface Oracle {
  /** The program in this folder, without its ending. */
  readonly name: string;
  /** The variant of the tiny folder, for a program that makes several. */
  readonly variant?: string;
  /** The error codes that answer a request which the maker's code refuses. */
  readonly refusals?: readonly string[];
  /** The least part of the requests that have answers. */
  readonly answered?: number;
}

type Probabilities = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** A line of a program's output: the probabilities by question and label, or the reason of a refusal. */
interface Expected {
  readonly answers?: Probabilities;
  readonly error?: string;
}

/** Makes a tiny folder in the form of its maker, and returns its path. */
export async function tinyFolder(t: TestContext, oracle: Oracle): Promise<string> {
  const folder = join(temporaryFolder(t), oracle.variant ?? oracle.name);
  await program(oracle, 'make', folder);
  return folder;
}

/** Returns the answers of the maker's code. */
export async function askOracle(oracle: Oracle, folder: string, bodies: readonly string[]): Promise<Expected[]> {
  const stdout = await program(oracle, 'answer', folder, `${bodies.join('\n')}\n`);
  const lines = stdout.trimEnd().split('\n');
  assert.equal(lines.length, bodies.length);
  return lines.map((line) => JSON.parse(line) as Expected);
}

/** Fails unless the engine gives the same answers as the maker's code, and refuses the requests that it refuses. */
export async function compareWithOracle(t: TestContext, oracle: Oracle): Promise<void> {
  const folder = await tinyFolder(t, oracle);
  const bodies = publishedRequests();
  const expected = await askOracle(oracle, folder, bodies);
  const engine = await startEngine(t, { model: folder });
  for (const [index, body] of bodies.entries()) await compareOne(engine, { oracle, body, expected: expected[index] });
  const answered = expected.filter(({ answers }) => answers !== undefined).length;
  t.diagnostic(`${answered} of ${bodies.length} requests have answers, the others are refused`);
  assert.ok(answered >= bodies.length * (oracle.answered ?? 0.8), `only ${answered} requests have answers`);
}

async function compareOne(
  engine: Engine,
  {
    oracle,
    body,
    expected,
  }: { readonly oracle: Oracle; readonly body: string; readonly expected: Expected | undefined },
): Promise<void> {
  const reply = await engine.decide(Buffer.from(body));
  const what = `${oracle.name}: ${body.slice(0, 2000)}`;
  if (expected?.answers === undefined) {
    const { code } = reply.failure ?? assert.fail(`has an answer, but the reference says ${expected?.error}: ${what}`);
    assert.ok((oracle.refusals ?? ['too_many_tokens']).includes(code), `${code}, ${expected?.error}: ${what}`);
    return;
  }
  assert.equal(reply.failure, undefined, what);
  const { answers } = JSON.parse(reply.body?.toString('utf8') ?? '');
  for (const [id, probabilities] of Object.entries(expected.answers)) {
    const got: Readonly<Record<string, number>> = answers[id].probabilities;
    assert.deepEqual(Object.keys(got).toSorted(), Object.keys(probabilities).toSorted(), what);
    for (const [label, value] of Object.entries(probabilities)) {
      const difference = Math.abs((got[label] ?? Number.NaN) - value);
      assert.ok(difference <= TOLERANCE, `${id}: ${label} is off by ${difference}: ${what}`);
    }
  }
}

/** Runs a program of this folder, and returns its output. */
async function program({ name, variant = '' }: Oracle, verb: string, folder: string, input?: string): Promise<string> {
  const script = join(REPOSITORY, 'ts', 'test', 'system', 'published', `${name}.py`);
  const env = { PYTHONPATH: FIXTURES, ORT_DISABLE_TELEMETRY: '1' };
  const options = input === undefined ? { env } : { env, input };
  const { code, stdout, stderr } = await runPython([script, verb, folder, ...(variant ? [variant] : [])], options);
  assert.deepEqual([code, stderr], [0, '']);
  return stdout;
}
