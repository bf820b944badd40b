/** Model folders for tests on the real addon, engines on them, and their reference answers. */
import assert from 'node:assert/strict';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Node, parseTree } from 'jsonc-parser';
import { defaultModel, defaultRuntime, loadEngine } from '../../src/engine/addon.ts';
import type { Engine, EngineOptions, Reply } from '../../src/engine/contract.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** The folder of the repository. */
export const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url));

/** The largest difference of an int8 model's answers from their reference answers on any processor. */
export const PROCESSOR_TOLERANCE = 1e-4;

/** The tiny models, and the largest difference of their probabilities from the reference. */
export const TOLERANCES = {
  marker: 1e-5,
  'marker-no-action': 1e-5,
  'shared-state': 1e-5,
  'shared-state-int8': PROCESSOR_TOLERANCE,
  'pair-bert': 1e-5,
  'pair-roberta': 1e-5,
  'pair-deberta': 1e-5,
  'pair-reranker': 1e-5,
} as const;

export type Fixture = keyof typeof TOLERANCES;

/** Returns the folder of a tiny model. */
export function fixture(name: Fixture): string {
  return join(REPOSITORY, 'crates', 'engine', 'tests', 'fixtures', name);
}

/** Returns a copy of a tiny model that a test may spoil. */
export function copyOfFixture(test: TestContext, name: Fixture): string {
  const folder = join(temporaryFolder(test), name);
  cpSync(fixture(name), folder, { recursive: true });
  return folder;
}

/** Returns the options of an engine on the processor, with generous limits. */
export function engineOptions(changes: Partial<EngineOptions> = {}): EngineOptions {
  return {
    runtime: defaultRuntime(),
    model: defaultModel(),
    device: 'cpu',
    threads: 2,
    parallel: 1,
    maxQuestions: 1024,
    maxTokens: 2 ** 20,
    truncate: 'count',
    maxQueue: 512,
    maxQueueBytes: 2 ** 26,
    requestTimeoutMs: 60_000,
    maxRunMs: 60_000,
    stateCacheBytes: 0,
    stateCachePrecision: 'fp32',
    ...changes,
  };
}

/** Returns an engine that is closed when the test ends. */
export async function startEngine(test: TestContext, changes: Partial<EngineOptions> = {}): Promise<Engine> {
  const engine = await loadEngine(engineOptions(changes));
  test.after(() => engine.close());
  return engine;
}

/** Returns the text of an answered request. */
export function textOf(reply: Reply): string {
  assert.equal(reply.failure, undefined);
  return reply.body?.toString('utf8') ?? '';
}

/** Returns the `answers` of a response as their exact text, which must not change by a bit. */
export function answersText(response: string): string {
  const end = response.lastIndexOf(',"usage":');
  assert.ok(response.startsWith('{"model":"svc","answers":{') && end > 0, response);
  return response.slice(0, end);
}

export type Probabilities = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** One line of a folder's reference answers. */
export interface Golden {
  readonly name: string;
  /** The request, exactly as it is sent. */
  readonly body: string;
  readonly probabilities: Probabilities;
  readonly inputTokens: number;
  /** The number of truncated tokens; undefined if the reference does not give it. */
  readonly truncatedTokens: number | undefined;
  /** The `act_probability` by question id; undefined if the model has no action head. */
  readonly action: Readonly<Record<string, number>> | undefined;
}

/** Returns the reference answers of a model folder. */
export function goldenLines(folder: string): Golden[] {
  const lines = readFileSync(join(folder, 'golden.jsonl'), 'utf8').trimEnd().split('\n');
  return lines.map((text, index) => {
    const line = JSON.parse(text);
    return {
      name: line.name ?? `line ${index + 1}`,
      // If the request is a JSON value in the line, its body is the exact text of that value.
      body: line.body ?? memberText(text, 'request'),
      probabilities: line.probabilities,
      inputTokens: line.input_tokens,
      truncatedTokens: line.truncated_tokens,
      action: line.action,
    };
  });
}

function memberText(json: string, name: string): string {
  const members: readonly Node[] = parseTree(json)?.children ?? [];
  const value = members.find(({ children }) => children?.[0]?.value === name)?.children?.[1];
  assert.ok(value, `${name} missing`);
  return json.slice(value.offset, value.offset + value.length);
}

/** Fails unless a response equals the reference answer to within `tolerance`. */
export function assertGolden(response: string, golden: Golden, tolerance: number): void {
  const { answers, usage } = JSON.parse(response);
  assert.equal(usage.input_tokens, golden.inputTokens, golden.name);
  if (golden.truncatedTokens !== undefined)
    assert.equal(usage.truncated_tokens ?? 0, golden.truncatedTokens, golden.name);
  assert.deepEqual(Object.keys(answers).toSorted(), Object.keys(golden.probabilities).toSorted(), golden.name);
  for (const [id, expected] of Object.entries(golden.probabilities)) {
    const { probabilities, action } = answers[id];
    assertClose(probabilities, expected, { tolerance, what: `${golden.name}: ${id}` });
    if (golden.action === undefined) continue;
    const act = golden.action[id];
    if (act === undefined) assert.equal(action, undefined, golden.name);
    else assertClose(action, { act_probability: act }, { tolerance, what: `${golden.name}: ${id}: action` });
  }
}

function assertClose(
  got: Readonly<Record<string, number>>,
  expected: Readonly<Record<string, number>>,
  { tolerance, what }: { readonly tolerance: number; readonly what: string },
): void {
  assert.deepEqual(Object.keys(got).toSorted(), Object.keys(expected).toSorted(), what);
  for (const [label, value] of Object.entries(expected)) {
    const difference = Math.abs((got[label] ?? Number.NaN) - value);
    assert.ok(difference <= tolerance, `${what}: ${label} is off by ${difference}`);
  }
}
