/** Tiny models in the forms of their makers, and the answers of the makers' code to requests about them. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Engine } from '../../src/engine/contract.ts';
import { REPOSITORY } from './model-folders.ts';

/** The folder of the committed tiny models in the forms of their makers. */
export const PUBLISHED = join(REPOSITORY, 'crates', 'engine', 'tests', 'fixtures', 'published');

/** The largest difference of a probability: both run the same graph with fp32 weights. */
const TOLERANCE = 1e-5;

/** A family, whose tiny folder and whose answers come from one Python program. */
export interface Oracle {
  /** The program, without its ending. */
  readonly name: string;
  /** The variant of the tiny folder, for a program that makes several. */
  readonly variant?: string;
  /** The error codes that answer a request which the maker's code refuses. */
  readonly refusals?: readonly string[];
  /** Words in the requests that this family may stumble over. */
  readonly odd?: readonly string[];
  /** The least part of the requests that have answers. */
  readonly answered?: number;
}

/** A package may refuse a mask in a text, a number of options, or options without a description. */
const REFUSALS = ['too_many_tokens', 'bad_field'];

/** The tokens and the kinds of words that a model of DeBERTa reads in its own way. */
const ODD = [
  '[DESCRIPTION]',
  '[L]',
  '[SEP_TEXT]',
  '[OPT]',
  '[Q]',
  'https://x.io/a?b=[L]',
  'a.b+c@x-y.com',
  'well-known',
];

/** Every family that is served from the folders of its maker: one line each, by the name of its tiny model. */
export const FAMILIES: Readonly<Record<string, Oracle>> = {
  'laya-english': { name: 'laya', variant: 'english' },
  'laya-multilingual': { name: 'laya', variant: 'multilingual' },
  'laya-whole-mask': { name: 'laya', variant: 'whole-mask' },
  'laya-split-q8': { name: 'laya_split', variant: 'q8' },
  'laya-split': { name: 'laya_split', variant: 'plain' },
  julia: { name: 'julia' },
  jevhome: { name: 'jevhome' },
  'jevhome-e': { name: 'jevhome_e' },
  'decima-read-once': { name: 'decima_folder', variant: 'read-once' },
  'decima-with-question': { name: 'decima_folder', variant: 'with-question' },
  'decima-bare': { name: 'decima_folder', variant: 'bare' },
  opendecider: { name: 'opendecider' },
  'gliner2.5-decide': { name: 'gliner_decide', odd: ODD },
  'open-jev': { name: 'open_jev', variant: 'apart', odd: ODD },
  'open-jev-packed': { name: 'open_jev', variant: 'packed', odd: ODD, answered: 0.7 },
  'noulxp-cut': { name: 'nxp', variant: 'cut', refusals: REFUSALS },
  'noulxp-strict': { name: 'nxp', variant: 'strict', refusals: REFUSALS, answered: 0.6 },
  'noulxp-other': { name: 'nxp', variant: 'other', refusals: REFUSALS },
};

/** The answer of a maker's code: the probabilities by question and label, or the reason of a refusal. */
export interface Expected {
  readonly answers?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly error?: string;
  /** The tokens that the maker's code reads and cuts, for families whose programs count them. */
  readonly usage?: { readonly input_tokens: number; readonly truncated_tokens?: number };
}

/** A request, and the answer of a maker's code. */
export interface PublishedGolden extends Expected {
  readonly body: string;
}

/** Returns the committed answers of a maker's code. */
export function publishedGolden(family: string): PublishedGolden[] {
  const text = readFileSync(join(PUBLISHED, `${family}.golden.jsonl`), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as PublishedGolden);
}

/** Fails unless the engine gives the same answer, or refuses the request as the maker's code does. */
export async function assertPublished(
  engine: Engine,
  { body, answers: expected, error, usage: counts }: PublishedGolden,
  { name, refusals = ['too_many_tokens'] }: Oracle,
): Promise<void> {
  const reply = await engine.decide(Buffer.from(body));
  const what = `${name}: ${body.slice(0, 2000)}`;
  if (expected === undefined) {
    const { code } = reply.failure ?? assert.fail(`has an answer, but the reference says ${error}: ${what}`);
    assert.ok(refusals.includes(code), `${code}, ${error}: ${what}`);
    return;
  }
  assert.equal(reply.failure, undefined, what);
  const { answers, usage } = JSON.parse(reply.body?.toString('utf8') ?? '');
  if (counts !== undefined) {
    assert.equal(usage.input_tokens, counts.input_tokens, what);
    if (counts.truncated_tokens !== undefined) assert.equal(usage.truncated_tokens ?? 0, counts.truncated_tokens, what);
  }
  for (const [id, probabilities] of Object.entries(expected)) {
    const got: Readonly<Record<string, number>> = answers[id].probabilities;
    assert.deepEqual(Object.keys(got).toSorted(), Object.keys(probabilities).toSorted(), what);
    assertNear(got, probabilities, `${id}: ${what}`);
  }
}

/** Fails unless each expected probability is there, up to what processors round differently. */
export function assertNear(
  got: Readonly<Record<string, number>> | undefined,
  expected: Readonly<Record<string, number>>,
  what: string,
): void {
  for (const [label, value] of Object.entries(expected)) {
    const difference = Math.abs((got?.[label] ?? Number.NaN) - value);
    assert.ok(difference <= TOLERANCE, `${label} is off by ${difference}: ${what}`);
  }
}
