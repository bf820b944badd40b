import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { suite, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { type Ending, temporaryFolder } from '../temporary-folder.ts';

const NAMES = ['a.rs:1:1: one', 'a.rs:2:1: two', 'a.rs:3:1: three', 'a.rs:4:1: four'];

/** Runs the script with a stand-in for cargo-mutants, which writes these results and ends with this exit code. */
function mutants(t: Ending, results: Record<string, string[]>, exitCode: number): Promise<Ended> {
  const folder = temporaryFolder(t);
  const files = { caught: [], timeout: [], missed: [], unviable: [], ...results };
  const program = `#!${process.execPath}
    const { writeFileSync } = require('node:fs');
    const args = process.argv.slice(2);
    if (args.includes('--list')) console.log(${JSON.stringify(JSON.stringify(NAMES.map((name) => ({ name }))))});
    else {
      const out = args[args.indexOf('--output') + 1];
      for (const [name, lines] of Object.entries(${JSON.stringify(files)}))
        writeFileSync(out + '/mutants.out/' + name + '.txt', lines.join('\\n'));
      process.exitCode = ${exitCode};
    }`;
  writeFileSync(join(folder, 'cargo'), program, { mode: 0o755 });
  const args = [join('scripts', 'test-mutants.mjs'), '--areas', 'queue'];
  const { PATH } = process.env;
  return runCommand(process.execPath, { args, cwd: REPOSITORY, env: { PATH: `${folder}${delimiter}${PATH}` } });
}

suite('a sample of mutants', { skip: process.platform === 'win32' && 'the stand-in is a script' }, () => {
  test('has those that were tried, and says which were caught by time and which were not', async (t) => {
    const [one = '', two = '', three = '', four = ''] = NAMES;
    // A mutant that is not in the sample does not count.
    const caught = [one, 'a.rs:9:1: another'];
    const { code, stdout } = await mutants(t, { caught, timeout: [two], missed: [three], unviable: [four] }, 2);
    assert.equal(code, 0);
    assert.ok(stdout.endsWith(`\n| queue | 4 | 3 | 2 (67 %) | 1 |\n- ${three}\n`), stdout);
  });

  test('without a result for each of them is refused', async (t) => {
    const { code, stdout, stderr } = await mutants(t, { caught: NAMES.slice(0, 3) }, 0);
    assert.equal(code, 1);
    assert.match(stderr, /queue: of 4 mutants only 3 have a result/);
    assert.doesNotMatch(stdout, /%/);
  });
});
