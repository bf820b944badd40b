/**
 * The embedded model must give two kinds of answers on every processor: those that the documentation prints, and
 * those that `svc batch` compares. Both are among its reference requests (training/folder/golden.py), so that its
 * scales are settled for them.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { defaultModel } from '../../src/engine/addon.ts';
import { PROBES } from '../../src/file-run/probes.ts';
import { ANSWER_EXAMPLES, REQUEST_EXAMPLES } from '../../src/openapi/examples.ts';
import { docBlocks } from '../doc-blocks.ts';
import { goldenLines, PROCESSOR_TOLERANCE, startEngine, textOf } from './model-folders.ts';

interface Documented {
  readonly where: string;
  /** The body of the request, exactly as it is sent. */
  readonly body: string;
  /** The answers by question id. */
  readonly answers: Readonly<Record<string, unknown>>;
}

interface Request {
  readonly state: unknown;
  readonly questions: Readonly<Record<string, unknown>>;
}

/** Returns the requests of a page that are directly followed by their answers. */
function documented(page: string): Documented[] {
  const blocks = docBlocks(page);
  return blocks.flatMap(({ language, text }, at) => {
    const body = / -d '(\{.*\})'$/s.exec(blocks[at - 1]?.text.trimEnd() ?? '')?.[1];
    if (language !== 'json' || body === undefined) return [];
    return [{ where: `${page}, block ${at + 1}`, body, answers: JSON.parse(text).answers }];
  });
}

const PAGES = { '../README.md': 1, 'quick-start.md': 1, 'api.md': 3 };
const ALL = Object.keys(PAGES).flatMap(documented);
const REFERENCE = goldenLines(defaultModel()).map(({ body }) => body);

/** Fails if two answers differ; numbers may differ by as much as they do between processors. */
function requireAlike(got: unknown, expected: unknown, where: string): void {
  if (typeof expected === 'number' && typeof got === 'number')
    assert.ok(Math.abs(got - expected) <= PROCESSOR_TOLERANCE, `${where}: ${got} instead of ${expected}`);
  else if (typeof expected === 'object' && expected !== null && typeof got === 'object' && got !== null) {
    assert.deepEqual(Object.keys(got), Object.keys(expected), where);
    const own = new Map(Object.entries(got));
    for (const [key, value] of Object.entries(expected)) requireAlike(own.get(key), value, `${where}.${key}`);
  } else assert.equal(got, expected, where);
}

/** Whether one of the reference requests has this state and all of these questions. */
function isReference({ state, questions }: Request): boolean {
  return REFERENCE.some((body) => {
    const other: Request = JSON.parse(body);
    const isAsked = ([id, question]: [string, unknown]) =>
      JSON.stringify(other.questions[id]) === JSON.stringify(question);
    return JSON.stringify(other.state) === JSON.stringify(state) && Object.entries(questions).every(isAsked);
  });
}

suite('among the reference requests of the embedded model', () => {
  test('is every probe of several servers', () => {
    for (const { id, stateJson, questionsJson } of PROBES)
      assert.ok(REFERENCE.includes(`{"state":${stateJson},"questions":${questionsJson}}`), id);
  });

  test('is every request whose answer the documentation prints', () => {
    for (const [page, count] of Object.entries(PAGES)) assert.equal(documented(page).length, count, page);
    for (const { where, body } of ALL) assert.ok(isReference(JSON.parse(body)), where);
  });
});

test('the embedded model gives the answers that the documentation and the API description print', async (t) => {
  const engine = await startEngine(t);
  const ask = async (body: string) => JSON.parse(textOf(await engine.decide(Buffer.from(body)))).answers;
  for (const { where, body, answers } of ALL) requireAlike(await ask(body), answers, where);
  const { refund, anger } = await ask(JSON.stringify(REQUEST_EXAMPLES.DecisionRequest.text.value));
  requireAlike({ refund, anger }, ANSWER_EXAMPLES.DecisionResponse.answers, 'openapi');
});
