/** The bias of a noul's `true` in `config.json`, by the form of the instructions. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Engine } from '../../src/engine/contract.ts';
import { copyOfFixture, startEngine, textOf } from './model-folders.ts';

const BIAS = { named: 0.7, question: -0.4, statement: 1.1 };
const TEMPERATURE = 2;

/** Each form with an instruction of it, and the bias that it has. */
const NOULS = {
  named: ['Is the claim in `claim` true?', BIAS.named],
  question: ['Money back? ', BIAS.question],
  statement: ['They want money back.', BIAS.statement],
  none: ['', BIAS.statement],
} as const;

/** The key of the calibration of the question in `NOULS`. */
const KEY = createHash('sha256').update('["noul","Money back? ",[["false",null],["true",null]]]').digest('hex');

const QUESTIONS = {
  other: { type: 'noul', instructions: 'Is it urgent?' },
  ...Object.fromEntries(Object.entries(NOULS).map(([id, [instructions]]) => [id, { type: 'noul', instructions }])),
  team: { type: 'choice', instructions: 'Is it `billing`?', criteria: ['yes', 'no'] },
  level: { type: 'score', instructions: 'How angry?', criteria: ['calm', 'furious'] },
};

/** Starts an engine with a tiny model whose `config.json` has these entries, too. */
async function engineWith(t: TestContext, entries: object): Promise<Engine> {
  const model = copyOfFixture(t, 'shared-state');
  const path = join(model, 'config.json');
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...entries }));
  return startEngine(t, { model });
}

async function answersOf(engine: Engine): Promise<Map<string, { probabilities: { true: number } }>> {
  const body = JSON.stringify({ state: 'I was charged twice.', questions: QUESTIONS });
  return new Map(Object.entries(JSON.parse(textOf(await engine.decide(Buffer.from(body)))).answers));
}

const logOdds = (p: number) => Math.log(p / (1 - p));

test('a bias by the form of the instructions is added to the scaled logit of a yes, and to nothing else', async (t) => {
  const temperature = { choice: 1, score: 1, noul: TEMPERATURE };
  const [plain, biased] = [
    await answersOf(await engineWith(t, { temperature })),
    await answersOf(await engineWith(t, { temperature, noul_bias: BIAS })),
  ];
  for (const [id, [, bias]] of Object.entries(NOULS)) {
    const [before, after] = [plain, biased].map((answers) =>
      logOdds(answers.get(id)?.probabilities.true ?? Number.NaN),
    );
    assert.ok(Math.abs((after ?? 0) - (before ?? 0) - bias) < 1e-4, `${id}: ${before} and ${after}`);
  }
  for (const id of ['team', 'level']) assert.deepEqual(biased.get(id), plain.get(id));
});

test('a calibrated question has the bias of its calibration alone, and a form without a bias has none', async (t) => {
  const temperature = { choice: 1, score: 1, noul: TEMPERATURE };
  const own = { temperature: TEMPERATURE, bias: [0, 0.2] };
  const plain = await answersOf(await engineWith(t, { temperature, calibration: { [KEY]: own } }));
  const partly = { temperature, noul_bias: { question: BIAS.question }, calibration: { [KEY]: own } };
  const biased = await answersOf(await engineWith(t, partly));
  for (const id of ['named', 'statement', 'none', 'question']) assert.deepEqual(biased.get(id), plain.get(id));
  assert.notDeepEqual(biased.get('other'), plain.get('other'));
});
