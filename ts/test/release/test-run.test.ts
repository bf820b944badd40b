import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { suite, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const skip = process.platform === 'win32' && 'the stand-in is a script';

suite('tests of Rust', { skip }, () => {
  test('that wait for ever are ended, with the processes that they have started', async (t) => {
    const folder = temporaryFolder(t);
    // A stand-in for cargo: its build ends, and its tests start a process that holds the output open.
    const program = `#!/bin/sh
      case "$*" in *--no-run*) exit 0;; esac
      sleep 300 &
      wait`;
    writeFileSync(join(folder, 'cargo'), program, { mode: 0o755 });
    const script =
      "const { cargoTests, close } = await import('./scripts/test-run.mjs');" +
      'close([await cargoTests([], {}, 2000)]);';
    const args = ['--input-type=module', '-e', script];
    const { PATH } = process.env;
    const env = { PATH: `${folder}${delimiter}${PATH}` };
    const startMs = performance.now();
    const { code, stdout, stderr } = await runCommand(process.execPath, { args, cwd: REPOSITORY, env });
    assert.equal(code, 1);
    assert.match(stderr, /^test: cargo: not at its end after 2 s$/m);
    assert.match(stdout, /^cargo test: no test has run$/m);
    assert.ok(performance.now() - startMs < 200_000, 'its process was waited for');
  });
});
