import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { fixture, goldenLines } from '../addon/model-folders.ts';
import { THREE_TYPES } from '../addon/requests.ts';
import { LiveServer } from './live-server.ts';

type Probabilities = Readonly<Record<string, number>>;

interface Answer {
  readonly type: 'choice' | 'score' | 'noul';
  readonly probabilities: Probabilities;
  readonly confidence: number;
  readonly answer_confidence: number;
  readonly choice?: string;
  readonly score?: number;
  readonly noul?: number;
  readonly legend?: Readonly<Record<string, unknown>>;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Returns the distance of a distribution from a blind guess, as the documentation defines it. */
function confidence({ type, probabilities }: Answer): number {
  const p = Object.values(probabilities);
  const [n, m] = [p.length, Math.max(...p)];
  if (type !== 'score') return (m - 1 / n) / (1 - 1 / n);
  const k = p.indexOf(m);
  const blind = sum(p.map((_, i) => Math.abs(i - (n - 1) / 2))) / n;
  return Math.max(0, 1 - sum(p.map((value, i) => value * Math.abs(i - k))) / blind);
}

/** Fails unless two numbers are the same except for the sixth decimal. */
function assertNear(got: number | undefined, expected: number, what: string): void {
  assert.ok(got !== undefined && Math.abs(got - expected) <= 2e-6, `${what}: ${got}, not ${expected}`);
}

function checkAnswer(answer: Answer, what: string): void {
  const { type, probabilities } = answer;
  const { true: yes } = probabilities;
  const p = Object.values(probabilities);
  const top = Math.max(...p);
  const millionths = p.map((value) => Math.round(value * 1e6));
  assert.deepEqual(
    p,
    millionths.map((value) => value / 1e6),
    what,
  );
  assert.equal(sum(millionths), 1_000_000, what);
  assert.equal(answer.answer_confidence, top, what);
  assertNear(answer.confidence, confidence(answer), what);
  if (type === 'choice') assert.ok(top - (probabilities[answer.choice ?? ''] ?? 0) <= 1e-6, what);
  if (type === 'score') assertNear(answer.score, sum(p.map((value, i) => value * i)), what);
  if (type === 'noul') assert.equal(answer.noul, yes, what);
  const values = {
    choice: type === 'choice',
    score: type === 'score',
    noul: type === 'noul',
    legend: type === 'score',
  };
  for (const [field, isThere] of Object.entries(values)) assert.equal(Object.hasOwn(answer, field), isThere, what);
}

suite('the answer of the embedded model', () => {
  test('to a question of each type has every field of the interface, and no other', async (t) => {
    const server = await LiveServer.start(t);
    const { status, headers, text } = await server.decide(THREE_TYPES, { headers: { 'X-Request-Id': 'mine-1' } });
    assert.equal(status, 200);
    const response = JSON.parse(text);
    assert.deepEqual(Object.keys(response), ['model', 'answers', 'usage']);
    assert.equal(response.model, 'svc');
    const { refund, team, anger } = response.answers;
    assert.deepEqual(Object.keys(response.answers), ['refund', 'team', 'anger']);
    const common = ['type', 'probabilities', 'confidence', 'answer_confidence', 'action'];
    assert.deepEqual(Object.keys(refund).toSorted(), [...common, 'noul'].toSorted());
    assert.deepEqual(Object.keys(team).toSorted(), [...common, 'choice'].toSorted());
    assert.deepEqual(Object.keys(anger).toSorted(), [...common, 'score', 'legend'].toSorted());
    assert.deepEqual([refund.type, team.type, anger.type], ['noul', 'choice', 'score']);
    assert.deepEqual(Object.keys(refund.probabilities).toSorted(), ['false', 'true']);
    assert.deepEqual(Object.keys(team.probabilities), ['billing', 'tech', 'sales']);
    assert.deepEqual(Object.keys(anger.probabilities), ['0', '1', '2']);
    assert.deepEqual(anger.legend, { 0: 'calm', 1: 'annoyed', 2: 'furious' });
    for (const answer of [refund, team, anger]) checkAnswer(answer, answer.type);

    assert.deepEqual(Object.keys(response.usage), ['input_tokens', 'output_tokens', 'server_ms']);
    assert.deepEqual([response.usage.input_tokens, response.usage.output_tokens], [63, 0]);
    const timing = /^encode;dur=([\d.]+), wait;dur=([\d.]+), run;dur=([\d.]+), total;dur=([\d.]+)$/.exec(
      String(headers['server-timing']),
    );
    const [encode = 0, wait = 0, run = 0, total = 0] = timing?.slice(1).map(Number) ?? [];
    assert.equal(total, response.usage.server_ms);
    assert.ok(run > 0 && encode + wait + run <= total + 0.03, headers['server-timing']?.toString());
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    assert.deepEqual([headers['x-request-id'], headers['x-typesafe-request-id']], ['mine-1', 'mine-1']);

    const health = JSON.parse((await server.get('/health')).text);
    assert.deepEqual(
      [health.status, health.device, health.model, health.source, health.fallback],
      ['ok', 'cpu', 'svc-small', 'embedded', false],
    );
    assert.match(health.sha256, /^[0-9a-f]{64}$/);
  });
});

suite('the numbers of an answer follow from its probabilities', () => {
  for (const name of ['shared-state', 'marker'] as const) {
    test(`for every reference request of ${name}`, async (t) => {
      const server = await LiveServer.start(t, { model: fixture(name) });
      for (const golden of goldenLines(fixture(name))) {
        const { answers } = JSON.parse(await server.answer(golden.body));
        for (const [id, answer] of Object.entries<Answer>(answers)) checkAnswer(answer, `${golden.name}: ${id}`);
      }
    });
  }
});

test('an answer has an action when both action outputs of the model are numbers, and only then', async (t) => {
  const [withAction, without] = [
    await LiveServer.start(t, { model: fixture('marker') }),
    await LiveServer.start(t, { model: fixture('marker-no-action') }),
  ];
  const acts = JSON.parse(await withAction.answer(THREE_TYPES)).answers;
  const plain = JSON.parse(await without.answer(THREE_TYPES)).answers;
  for (const id of ['refund', 'team', 'anger']) {
    const { act_probability } = acts[id].action;
    assert.ok(act_probability >= 0 && act_probability <= 1);
    assert.deepEqual(Object.keys(acts[id].action), ['act_probability']);
    assert.equal('action' in plain[id], false);
  }
});
