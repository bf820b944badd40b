import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type Calibration, calibrated, type Example, fit } from '../../src/tune/fit.ts';
import { judge } from '../../src/tune/judge.ts';
import { logLoss, mean, measures } from '../../src/tune/measures.ts';
import { drawn, randomNumbers } from './labelled-rows.ts';

interface Truth extends Calibration {
  readonly options: number;
  readonly count: number;
}

/** Returns examples with random logits and labels that are drawn from the probabilities of `truth`. */
function examplesOf(truth: Truth, seed = 1): Example[] {
  const random = randomNumbers(seed);
  return Array.from({ length: truth.count }, (_, index) => {
    const logits = Array.from({ length: truth.options }, () => 6 * random() - 3);
    return { logits, label: drawn(calibrated(logits, truth), random), state: `"${index}"` };
  });
}

const near = (got: number | undefined, wanted: number, by: number) =>
  assert.ok(Math.abs((got ?? Number.NaN) - wanted) < by, `${got} is not ${wanted}`);

const UNCALIBRATED = { temperature: 1, bias: [] };

suite('fitting', () => {
  for (const temperature of [0.4, 1, 2.5]) {
    test(`finds the temperature ${temperature} that the labels were drawn with`, () => {
      const examples = examplesOf({ temperature, bias: [], options: 3, count: 20_000 });
      const found = fit(examples, { start: 1, hasBias: false });
      near(found.temperature / temperature, 1, 0.05);
      assert.deepEqual(found.bias, []);
    });
  }

  test('finds the temperature and the bias that the labels were drawn with', () => {
    const bias = [0.8, -0.5, -0.3];
    const found = fit(examplesOf({ temperature: 1.7, bias, options: 3, count: 20_000 }), { start: 1, hasBias: true });
    near(found.temperature, 1.7, 0.08);
    for (const [index, value] of bias.entries()) near(found.bias[index], value, 0.06);
    near(mean(found.bias), 0, 1e-6);
  });

  test('does not depend on where it starts, but for a penalty as small as one label', () => {
    const examples = examplesOf({ temperature: 1.7, bias: [0.5, -0.5], options: 2, count: 5000 });
    const temperatures = [0.1, 1, 10].map((start) => fit(examples, { start, hasBias: true }).temperature);
    for (const temperature of temperatures) near(temperature, temperatures[1] ?? 0, 0.05);
  });

  test('has no better neighbour', () => {
    const examples = examplesOf({ temperature: 0.7, bias: [0.4, 0, -0.4], options: 3, count: 400 });
    const found = fit(examples, { start: 1, hasBias: true });
    const penalized = ({ temperature, bias }: Calibration) => {
      const losses = examples.map(({ logits, label }) => {
        return logLoss({ probabilities: calibrated(logits, { temperature, bias }), label });
      });
      const penalty = 1 / temperature - 1 + Math.log(temperature) + bias.reduce((sum, b) => sum + b * b, 0) / 2;
      return mean(losses) + penalty / examples.length;
    };
    const best = penalized(found);
    for (const step of [-1e-3, 1e-3]) {
      assert.ok(penalized({ ...found, temperature: found.temperature + step }) > best);
      for (const index of found.bias.keys()) {
        assert.ok(penalized({ ...found, bias: found.bias.map((b, at) => (at === index ? b + step : b)) }) > best);
      }
    }
  });

  test('stays finite where the labels alone would go to an end', () => {
    const separable = examplesOf({ temperature: 1, bias: [], options: 3, count: 100 }).map((example) => ({
      ...example,
      label: example.logits.indexOf(Math.max(...example.logits)),
    }));
    const opposite = separable.map((example) => ({
      ...example,
      label: example.logits.indexOf(Math.min(...example.logits)),
    }));
    for (const examples of [separable, opposite]) {
      for (const hasBias of [false, true]) {
        const { temperature, bias } = fit(examples, { start: 1, hasBias });
        assert.ok(temperature > 0 && [temperature, ...bias].every(Number.isFinite), `${temperature} ${bias}`);
      }
    }
  });
});

suite('measures', () => {
  test('are those of a small case worked out by hand', () => {
    const found = measures([
      { probabilities: [0.8, 0.2], label: 0 },
      { probabilities: [0.6, 0.4], label: 1 },
    ]);
    near(found.accuracy, 0.5, 1e-12);
    near(found.negative_log_likelihood, -(Math.log(0.8) + Math.log(0.4)) / 2, 1e-12);
    near(found.brier, (0.08 + 0.72) / 2, 1e-12);
    near(found.ece, (0.2 + 0.6) / 2, 1e-12);
  });
});

suite('judging', () => {
  const over = { temperature: 2.5, bias: [], options: 3, count: 400 };

  test('calibrates what is too sure, with better likelihood on states that no fit has seen', () => {
    const verdict = judge({ examples: examplesOf(over), before: UNCALIBRATED, seed: 0 });
    near(verdict.calibration?.temperature, 2.5, 0.5);
    assert.deepEqual(verdict.calibration?.bias, []);
    assert.ok((verdict.after?.negative_log_likelihood ?? 9) < verdict.before.negative_log_likelihood);
    assert.ok((verdict.after?.ece ?? 9) < verdict.before.ece);
  });

  test('adds a bias where held-out states gain by it', () => {
    const examples = examplesOf({ ...over, bias: [1.5, -1, -0.5] });
    const { calibration } = judge({ examples, before: UNCALIBRATED, seed: 0 });
    assert.equal(calibration?.bias.length, 3);
    near(calibration?.bias[0], 1.5, 0.5);
  });

  test('adds no bias where an option was hardly ever right', () => {
    const examples = examplesOf({ ...over, bias: [3, 3, -4] });
    const { calibration } = judge({ examples, before: UNCALIBRATED, seed: 0 });
    assert.deepEqual(calibration?.bias, []);
  });

  test('leaves what is calibrated already', () => {
    const examples = examplesOf({ ...over, temperature: 1 });
    const { calibration, reason } = judge({ examples, before: UNCALIBRATED, seed: 0 });
    assert.equal(calibration, undefined);
    assert.match(reason ?? '', /^held-out log-likelihood (does not get|gets) better/);
  });

  test('says how many states are needed where there are fewer', () => {
    const examples = examplesOf({ ...over, count: 49 });
    const { reason, after } = judge({ examples, before: UNCALIBRATED, seed: 0 });
    assert.equal(reason, '49 labels about 49 different states, at least 50 states are needed');
    assert.equal(after, undefined);
  });

  test('counts labels about one state once', () => {
    const examples = examplesOf(over).map((example, index) => ({ ...example, state: `"${index % 10}"` }));
    const { reason } = judge({ examples, before: UNCALIBRATED, seed: 0 });
    assert.equal(reason, '400 labels about 10 different states, at least 50 states are needed');
  });

  test('is not fooled by rows that are there many times', () => {
    // If examples were held out one by one, copies would be judged by a fit on themselves.
    const few = examplesOf({ ...over, temperature: 1, count: 60 });
    const copied = Array.from({ length: 20 }, () => few).flat();
    assert.equal(judge({ examples: copied, before: UNCALIBRATED, seed: 0 }).calibration, undefined);
  });

  test('needs two different labels', () => {
    const examples = examplesOf(over).map((example) => ({ ...example, label: 1 }));
    const { reason } = judge({ examples, before: UNCALIBRATED, seed: 0 });
    assert.equal(reason, 'all 400 labels are the same, at least two different ones are needed');
  });

  test('finds the same in rows of another order', () => {
    const examples = examplesOf(over);
    const [one, other] = [examples, examples.toReversed()].map((rows) =>
      judge({ examples: rows, before: UNCALIBRATED, seed: 0 }),
    );
    near(one?.after?.negative_log_likelihood, other?.after?.negative_log_likelihood ?? 0, 1e-9);
    assert.deepEqual(one?.calibration, other?.calibration);
  });
});
