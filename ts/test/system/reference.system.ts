import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { defaultModel } from '../../src/engine/addon.ts';
import { assertGolden, type Golden, goldenLines, PROCESSOR_TOLERANCE } from '../addon/model-folders.ts';
import { differentRequest } from '../addon/requests.ts';
import { LiveServer } from '../real/live-server.ts';
import { FIXTURES, runPython, runScript } from './python.ts';

/** The last of six decimals may differ: on one machine, the reference and the server run the same kernels. */
const SAME_MACHINE_TOLERANCE = 1.5e-6;

test('the tiny models and their reference answers are what make.py makes', async () => {
  const { code, stdout, stderr } = await runPython([join(FIXTURES, 'make.py'), '--check']);
  assert.deepEqual([code, stdout, stderr], [0, '', '']);
});

test('the graphs whose products saturate, and their answers, are what make_products.py makes', async () => {
  const { code, stdout, stderr } = await runPython([join(FIXTURES, 'make_products.py'), '--check']);
  assert.deepEqual([code, stdout, stderr], [0, '', '']);
});

test('the graphs with inputs and outputs of 16 bits are what make_halves.py makes', async () => {
  const { code, stdout, stderr } = await runPython([join(FIXTURES, 'make_halves.py'), '--check']);
  assert.deepEqual([code, stdout, stderr], [0, '', '']);
});

test('the tiny cross-encoders and the answers of PyTorch are what make_pair.py makes', async () => {
  const { code, stdout, stderr } = await runPython([join(FIXTURES, 'make_pair.py'), '--check']);
  assert.deepEqual([code, stdout, stderr], [0, '', '']);
});

test('Python and the server give the same answers, to the reference requests and to 200 others', async (t) => {
  const golden = goldenLines(defaultModel());
  const others = Array.from({ length: 200 }, (_, n) => differentRequest(n));
  const bodies = [...golden.map(({ body }) => body), ...others];
  const input = JSON.stringify(bodies);
  const { code, stdout, stderr } = await runScript('answer.py', [FIXTURES, defaultModel()], { input });
  assert.deepEqual([code, stderr], [0, '']);
  const lines = stdout.trimEnd().split('\n');
  assert.equal(lines.length, bodies.length);

  const server = await LiveServer.start(t);
  for (const [index, line] of lines.entries()) {
    const { body, probabilities, input_tokens, truncated_tokens } = JSON.parse(line);
    const python: Golden = {
      name: `request ${index}`,
      body,
      probabilities,
      inputTokens: input_tokens,
      truncatedTokens: truncated_tokens,
      action: undefined,
    };
    const response = await server.answer(body);
    assertGolden(response, python, SAME_MACHINE_TOLERANCE);
    const committed = golden[index];
    if (committed) assertGolden(response, committed, PROCESSOR_TOLERANCE);
  }
});
