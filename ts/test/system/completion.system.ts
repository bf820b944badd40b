import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../addon/program.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** Lines to be completed, with words that are among the offered ones, and one that is not. */
const LINES = [
  ['svc se', ['serve'], 'ask'],
  ['svc model ', ['check', 'manifest'], 'serve'],
  ['svc serve --po', ['--port'], '--questions'],
  ['svc serve --device c', ['cpu', 'cuda', 'coreml'], 'auto'],
  ['svc completion ', ['bash', 'zsh', 'fish'], 'tcsh'],
  ['svc model check n', ['nli.zip'], 'serve'],
] as const;

test('fish completes commands, flags, values and files', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'nli.zip'), '');
  const { stdout: script } = await runSvc(t, ['completion', 'fish'], { cwd });
  for (const [line, words, other] of LINES) {
    const program = `${script}\ncomplete -C ${JSON.stringify(line)}`;
    const { code, stdout, stderr } = await runCommand('fish', { args: ['--no-config', '-c', program], cwd });
    assert.deepEqual([code, stderr], [0, ''], line);
    const offered = stdout.split('\n').map((each) => each.split('\t', 1)[0]);
    for (const word of words) assert.ok(offered.includes(word), `${line}: ${stdout}`);
    assert.ok(!offered.includes(other), `${line}: ${stdout}`);
  }
});

/**
 * A zsh that runs in a terminal of its own, to which a line is typed with the key Tab behind it, since zsh completes only
 * at its prompt; the key prints what the line has become. The terminal echoes what is typed before the prompt is there,
 * so the words that say that it is there are put together by the shell: their echo differs.
 */
const TYPED = `
zmodload zsh/zpty
zpty shell zsh -f -i
say() { zpty -w shell "$1"; }
say 'PS1=; fpath=("$PWD" $fpath); autoload -Uz compinit; compinit -u -D; setopt list_ambiguous no_beep'
say 'complete-and-report() { zle complete-word; print -r -- "<<$BUFFER>>" }; zle -N complete-and-report; bindkey "^I" complete-and-report'
say 'zle-line-init() { print "at the"" prompt" }; zle -N zle-line-init'
zpty -r -m shell seen '*at the prompt*'
zpty -w -n shell "$1"$'\\t'
zpty -r -m shell seen '*<<*>>*'
print -r -- "$seen"
`;

test('zsh completes commands, flags, values and files', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'nli.zip'), '');
  const { stdout: script } = await runSvc(t, ['completion', 'zsh'], { cwd });
  writeFileSync(join(cwd, '_svc'), script);
  for (const [line, completed] of [
    ['svc se', 'svc serve'],
    ['svc model ch', 'svc model check'],
    ['svc serve --po', 'svc serve --port'],
    ['svc serve --device cu', 'svc serve --device cuda'],
    ['svc completion z', 'svc completion zsh'],
    ['svc model check n', 'svc model check nli.zip'],
  ] as const) {
    const { stdout, stderr } = await runCommand('zsh', { args: ['-f', '-c', TYPED, 'zsh', line], cwd });
    assert.match(stdout, new RegExp(`<<${completed} ?>>`), `${line}: ${stdout}${stderr}`);
  }
});
