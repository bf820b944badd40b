import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { type Actions, createCommand } from '../../src/cli.ts';
import { completedCommands } from '../../src/commands/completion.ts';
import { runCommand } from '../addon/program.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** Returns what bash offers for the last of the words, in a folder with a file and a folder. */
async function offered(t: TestContext, ...words: string[]): Promise<string[]> {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'svc.json'), '{}');
  mkdirSync(join(cwd, 'nli'));
  const { stdout: script } = await runSvc(t, ['completion', 'bash'], { cwd });
  const line = words.map((word) => `'${word}'`).join(' ');
  const ask = `COMP_WORDS=(svc ${line}); COMP_CWORD=${words.length}; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { code, stdout, stderr } = await runCommand('bash', { args: ['--norc', '-c', `${script}\n${ask}`], cwd });
  assert.deepEqual([code, stderr], [0, '']);
  return stdout.split('\n').filter((word) => word !== '');
}

// Windows has no bash of its own.
if (process.platform !== 'win32') {
  suite('the completion of bash', { concurrency: 2 }, () => {
    for (const [words, expected] of [
      [['se'], ['serve']],
      [
        ['model', ''],
        ['check', 'manifest', 'pull', 'list', 'rm', '-h', '--help'],
      ],
      [['model', 'check', '--d'], ['--device']],
      [['model', 'check', 'n'], ['nli']],
      [['--dev'], ['--device']],
      [['nothing'], []],
      [['serve', '--po'], ['--port']],
      [
        ['serve', '--device', 'c'],
        ['cpu', 'cuda', 'coreml'],
      ],
      [['serve', '--config', 's'], ['svc.json']],
      [['serve', '--threads', ''], []],
      [['serve', '--log-level', 'tr'], ['trace']],
      [['batch', '--format', 'p'], ['parquet']],
      [['completion', 'z'], ['zsh']],
      [['help', 'do'], ['doctor']],
      [['ask', '--state', 'model', '--q'], ['--question']],
    ] as const) {
      test(`offers ${expected.join(', ') || 'nothing'} for svc ${words.join(' ')}`, async (t) => {
        assert.deepEqual(await offered(t, ...words), expected);
      });
    }
  });
}

suite('the completion of every shell', () => {
  const none = async () => {};
  const program = createCommand(new Proxy({}, { get: () => none }) as Actions);
  const commands = completedCommands(program);

  for (const shell of ['bash', 'zsh', 'fish']) {
    test(`has every command and every flag: ${shell}`, async (t) => {
      const { code, stdout, stderr } = await runSvc(t, ['completion', shell], { cwd: temporaryFolder(t) });
      assert.deepEqual([code, stderr], [0, '']);
      assert.ok(commands.length > 12);
      for (const { subcommands, flags } of commands) {
        for (const { name } of subcommands) assert.match(stdout, new RegExp(`\\b${name}\\b`));
        for (const name of flags.flatMap(({ names }) => names)) {
          const spelled = shell === 'fish' ? name.replace(/^--/, '-l ').replace(/^-(?=\w$)/, '-s ') : name;
          assert.ok(stdout.includes(spelled), name);
        }
      }
      assert.doesNotMatch(stdout, /add-missing/);
    });
  }
});
