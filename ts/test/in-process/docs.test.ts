import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { transformSync } from 'esbuild';
import { PROCESSOR_TOLERANCE, REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { docBlocks } from '../doc-blocks.ts';
import { consumerFolder, typeCheck } from './consumer.ts';

const BLOCKS = docBlocks('in-process.md');

/** The output of the first block, as the page states it. */
const [, PRINTED = ''] =
  /It prints `([^`]+)`/.exec(readFileSync(join(REPOSITORY, 'docs', 'in-process.md'), 'utf8')) ?? [];
const NUMBERS = PRINTED.split(' ').slice(1).map(Number);

/** The outputs of the blocks, in their order. */
const OUTPUTS = [
  /^billing (0\.\d+) (0\.\d+)\n$/,
  /^$/,
  /^413 text_too_long \d+ tokens are beyond the model's window and truncate is "error" undefined\n$/,
];

suite('docs/in-process.md', () => {
  test('has blocks that the compiler takes', async (t) => {
    const files = BLOCKS.map(({ text }, at) => [`block${at}.mts`, text] as const);
    const folder = consumerFolder(t, Object.fromEntries(files));
    const names = files.map(([name]) => name);
    const { code, stdout } = await typeCheck(folder, 'nodenext', ['--lib', 'esnext', ...names]);
    assert.deepEqual([code, stdout], [0, '']);
  });

  test('has blocks that print what it says', async (t) => {
    const folder = consumerFolder(t, {});
    assert.deepEqual(
      BLOCKS.map(({ language }) => language),
      OUTPUTS.map(() => 'ts'),
    );
    for (const [at, { text }] of BLOCKS.entries()) {
      const { code } = transformSync(text, { loader: 'ts', target: 'node20', format: 'esm' });
      writeFileSync(join(folder, `block${at}.mjs`), code);
      const { stdout, stderr } = await runCommand(process.execPath, { args: [`block${at}.mjs`], cwd: folder });
      assert.equal(stderr, '');
      const numbers = OUTPUTS[at]?.exec(stdout)?.slice(1).map(Number);
      assert.ok(numbers, stdout);
      for (const [index, number] of numbers.entries()) {
        assert.ok(Math.abs(number - (NUMBERS[index] ?? Number.NaN)) <= PROCESSOR_TOLERANCE, stdout);
      }
    }
  });
});
