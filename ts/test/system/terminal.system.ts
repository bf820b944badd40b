import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { fixture, REPOSITORY } from '../addon/model-folders.ts';
import { QUESTIONS, writeRows } from '../file-run/run-files.ts';
import { freePort } from '../free-port.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { runScript } from './python.ts';

const SVC = [process.execPath, join(REPOSITORY, 'bin', 'svc.js')];

/** Runs `npm start` on a terminal, on a free port and with settings of its own, until Ctrl-C is pressed. */
function start(test: TestContext, pattern: string, settings = '{}') {
  const config = join(temporaryFolder(test), 'svc.json');
  writeFileSync(config, settings);
  const npm = ['npm', '--prefix', REPOSITORY, 'start', '--', '--config', config, '--listen', '127.0.0.1:0'];
  return runScript('press_ctrl_c.py', [pattern, ...npm]);
}

/** Runs `svc serve` on a terminal in a folder, on an address that all may reach, until Ctrl-C is pressed. */
function startIn(folder: string) {
  const serve = ['env', '-C', folder, ...SVC, 'serve', '--listen', '0.0.0.0:0'];
  return runScript('press_ctrl_c.py', ['model .* loaded', ...serve]);
}

suite('Ctrl-C on a terminal', () => {
  for (const [moment, pattern] of [
    ['when the model is loaded', 'model .* loaded'],
    ['while the model is loading', 'listening on'],
  ] as const) {
    test(`ends npm start with 0, ${moment}`, async (t) => {
      const ended = await start(t, pattern);
      assert.equal(ended.code, 0, ended.stdout + ended.stderr);
      assert.match(ended.stdout, /^\d\d:\d\d:\d\d info {2}listening on http:\/\/127\.0\.0\.1:\d+\r$/m);
      // The terminal's echo of the key may stand before or after the line that the server writes on the signal.
      assert.match(ended.stdout, /^(\^C)?\d\d:\d\d:\d\d info {2}SIGINT: finishing the open requests/m);
    });
  }
});

test('Ctrl-C on a terminal ends the gate and then the server beside it, each of them once', async (t) => {
  const cwd = temporaryFolder(t);
  const config = join(cwd, 'svc.json');
  writeFileSync(config, '{}');
  const upstream = `http://127.0.0.1:${await freePort()}`;
  const flags = ['--run', '--no-key', '--listen', '127.0.0.1:0', '--upstream', upstream, '--config', config];
  const pattern = '(?s)listening on .*listening on ';
  const ended = await runScript('press_ctrl_c.py', [pattern, ...SVC, 'gate', ...flags]);
  assert.equal(ended.code, 0, ended.stdout + ended.stderr);
  const told = [...ended.stdout.matchAll(/(SIG\w+): finishing the open requests/g)].map(([, name]) => name);
  assert.deepEqual(told, ['SIGINT', 'SIGTERM']);
  // The address to try is that of the gate.
  assert.doesNotMatch(ended.stdout, /try in another terminal/);
});

test('Ctrl-C on a terminal ends a run, whose bar is gone then, and says how it goes on', async (t) => {
  const folder = temporaryFolder(t);
  writeRows(join(folder, 'rows.jsonl'), 100_000);
  writeFileSync(join(folder, 'q.json'), QUESTIONS);
  const batch = ['batch', 'rows.jsonl', '--questions', 'q.json', '--model', fixture('shared-state-int8')];
  const pattern = '\\[#*-+\\] \\d+ %, [\\d,]+ rows, [1-9][\\d.,]* rows/s, [\\d.]+ (s|min|h) left';
  const ended = await runScript('press_ctrl_c.py', [pattern, 'env', '-C', folder, ...SVC, ...batch]);
  assert.equal(ended.code, 130, ended.stdout);
  const again = `svc ${batch.join(' ')} --resume`;
  // The code that erases the bar's line stands before each drawing of the bar, and after the last.
  const said = ended.stdout.split('\r\u001b[K').at(-1) ?? '';
  assert.match(said, /^(\^C)?stopped after [\d,]+ rows; this goes on:\r\n {2}svc /);
  assert.ok(ended.stdout.endsWith(`${again}\r\n`), ended.stdout.slice(-500));
});

test('SIGHUP has a server on a terminal load its model anew, and ends it when the terminal is closed', async (t) => {
  const serve = [...SVC, 'serve', '--listen', '127.0.0.1:0', '--model', fixture('marker')];
  const loaded = 'model .* loaded';
  const patterns = [loaded, `(?s)${loaded}.*SIGHUP: loading the model anew.*${loaded}`];
  const closed = await runScript('close_terminal.py', [...patterns, 'env', '-C', temporaryFolder(t), ...serve]);
  // The signal, which is number 1, ended it.
  assert.equal(closed.code, 129, closed.stdout + closed.stderr);
});

test('a terminal is shown the key and the password that are made, once; the files have them', async (t) => {
  const folder = temporaryFolder(t);
  const ended = await startIn(folder);
  assert.equal(ended.code, 0, ended.stdout);
  const secrets = ['svc.api-key', 'svc.password'].map((name) => readFileSync(join(folder, name), 'utf8').trim());
  for (const secret of secrets) assert.equal(ended.stdout.split(secret).length - 1, 1);
  const again = await startIn(folder);
  assert.equal(again.code, 0, again.stdout);
  for (const secret of secrets) assert.ok(!again.stdout.includes(secret));
});

test('a terminal gets plain lines, and JSON when that is asked for', async (t) => {
  const ended = await start(t, 'model .* loaded', JSON.stringify({ log_format: 'json' }));
  assert.match(ended.stdout, /^\{"level":30,"time":"[^"]+","msg":"listening on /m);
});

test('a terminal is told where the server is and what to try; a log is not', async (t) => {
  const ended = await start(t, 'Ctrl-C ends the server');
  assert.equal(ended.code, 0, ended.stdout);
  const [, url = ''] = /listening on (http:\S+)\r$/m.exec(ended.stdout) ?? [];
  const ask = `info  try in another terminal: node bin/svc.js ask --url ${url} --state `;
  assert.ok(ended.stdout.includes(ask), ended.stdout);
  assert.ok(ended.stdout.includes(`info  try in a browser: ${url}/docs for every route`), ended.stdout);
  const json = await start(t, 'model .* loaded', JSON.stringify({ log_format: 'json' }));
  assert.doesNotMatch(json.stdout, /try in a/);
});

test('svc ask alone on a terminal asks for a state, then answers a question after the other', async (t) => {
  const ask = ['env', '-C', temporaryFolder(t), ...SVC, 'ask', '--model', fixture('marker')];
  const ended = await runScript('type_lines.py', [JSON.stringify(['I was late.', 'Is it?', '/help', '/quit']), ...ask]);
  assert.equal(ended.code, 0, ended.stdout + ended.stderr);
  assert.match(
    ended.stdout,
    /state: [\s\S]*\? [\s\S]*q1 {2}.*confidence.*\r\n.*█{20} [\s\S]*A question is one line of text:/,
  );
});

test('a terminal whose output is stopped holds up no answer, nor the end of the server', async (t) => {
  const serve = [...SVC, 'serve', '--listen', '127.0.0.1:0', '--model', fixture('marker')];
  const listening = 'listening on (http://[\\d.:]+)';
  const ended = await runScript('leave_terminal.py', [listening, 'env', '-C', temporaryFolder(t), ...serve]);
  assert.equal(ended.code, 0, ended.stderr);
});
