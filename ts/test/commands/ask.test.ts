import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { fixture } from '../addon/model-folders.ts';
import { listen } from '../gate/gate-under-test.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const MODEL = { SVC_MODEL: fixture('shared-state-int8') };
const REQUEST = '{"state":"x","questions":{"q":{"type":"noul","instructions":"y?"}}}';

/** Starts a server that answers every request in the same way, and returns its URL. */
async function answering(t: TestContext, status: number, type: string, body: string): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status, { 'content-type': type }).end(body));
  return `http://127.0.0.1:${await listen(t, server)}`;
}

suite('svc ask with a request file', { concurrency: 2 }, () => {
  for (const [content, message] of [
    ['{', 'invalid JSON at byte 1'],
    ['{"state":"x"}', 'questions missing'],
    ['{"state":"x","questions":{"q":{"type":"choice","criteria":["a"]}}}', 'q: need at least two options'],
  ] as const) {
    test(`names the file in front of: ${message}`, async (t) => {
      const cwd = temporaryFolder(t);
      writeFileSync(join(cwd, 'bad.json'), content);
      const fromFile = await runSvc(t, ['ask', 'bad.json'], { cwd, env: MODEL });
      assert.deepEqual([fromFile.code, fromFile.stderr], [1, `bad.json: ${message}\n`]);
      const fromStdin = await runSvc(t, ['ask', '-'], { cwd, env: MODEL, input: content });
      assert.deepEqual([fromStdin.code, fromStdin.stderr], [1, `stdin: ${message}\n`]);
    });
  }

  test('takes a byte order mark at its beginning', async (t) => {
    const cwd = temporaryFolder(t);
    writeFileSync(join(cwd, 'r.json'), `\uFEFF${REQUEST}`);
    const { code, stdout, stderr } = await runSvc(t, ['ask', 'r.json', '--json'], { cwd, env: MODEL });
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^\{"model":"svc","answers":\{"q":/);
  });
});

suite('svc ask --url', { concurrency: 2 }, () => {
  const ask = (t: TestContext, url: string) =>
    runSvc(t, ['ask', '-', '--url', url], { cwd: temporaryFolder(t), input: REQUEST });

  test('shows no page of a server of another kind', async (t) => {
    const url = await answering(t, 404, 'text/html; charset=utf-8', '<html>\n<p>long</p>\n</html>');
    const { code, stderr } = await ask(t, url);
    const line = `${url} answers 404: no decision but text/html; is this a server of svc?\n`;
    assert.deepEqual([code, stderr], [1, line]);
  });

  test('takes no other JSON for an answer', async (t) => {
    const url = await answering(t, 200, 'application/json', '{"hello":1}');
    const { code, stdout, stderr } = await ask(t, url);
    const line = `${url} answers 200: no decision but application/json; is this a server of svc?\n`;
    assert.deepEqual([code, stdout, stderr], [1, '', line]);
  });

  test('shows the beginning of a long line', async (t) => {
    const url = await answering(t, 500, 'text/plain', 'x'.repeat(1000));
    assert.equal((await ask(t, url)).stderr, `${url} answers 500: ${'x'.repeat(300)}…\n`);
  });

  test('names stdin where the server finds the request wrong', async (t) => {
    const url = await answering(t, 400, 'text/plain', 'q: must be an object');
    assert.equal((await ask(t, url)).stderr, `stdin: ${url} answers 400: q: must be an object\n`);
  });
});

suite('svc ask --interactive', { concurrency: 2 }, () => {
  const answers = (stdout: string) =>
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => Object.entries(JSON.parse(line).answers)[0] ?? []);

  test('answers each line about the same state, as single requests do', async (t) => {
    const cwd = temporaryFolder(t);
    writeFileSync(join(cwd, 'mail.txt'), 'The parcel arrived crushed.');
    const questions = ['Is it late?', 'team: Which team? = 10 | 9', '', 'Angry? = calm < furious'];
    const args = ['ask', '-i', '--json', '--state', '@mail.txt'];
    const { code, stdout, stderr } = await runSvc(t, args, {
      cwd,
      env: MODEL,
      input: `${questions.join('\n')}\n/quit\nlate`,
    });
    assert.deepEqual([code, stderr], [0, '']);
    const single = await Promise.all(
      questions
        .filter((line) => line !== '')
        .map(async (line) => {
          const once = ['ask', '--json', '--state', '@mail.txt', '--question', line];
          return answers((await runSvc(t, once, { cwd, env: MODEL })).stdout)[0];
        }),
    );
    assert.deepEqual(answers(stdout), single);
  });

  test('takes another state in between, from a file too, and the first line without --state', async (t) => {
    const cwd = temporaryFolder(t);
    writeFileSync(join(cwd, 'two.json'), '{"n": 2}');
    const lines = ['one', 'Is it?', '/state @two.json', 'Is it?', '/state one', 'Is it?'];
    const { stdout, code } = await runSvc(t, ['ask', '-i', '--json'], { cwd, env: MODEL, input: lines.join('\n') });
    assert.equal(code, 0);
    const [first, second, third] = answers(stdout);
    assert.deepEqual(first, third);
    assert.notDeepEqual(first, second);
  });

  test('goes on after a line without an answer, and ends with 1 then', async (t) => {
    const input = ['Which? = a', '/nope', '/state @no.txt', 'Which? = a | a', 'Is it?'].join('\n');
    const args = ['ask', '-i', '--json', '--state', 'x'];
    const { code, stdout, stderr } = await runSvc(t, args, { cwd: temporaryFolder(t), env: MODEL, input });
    assert.equal(code, 1);
    assert.equal(answers(stdout).length, 1);
    assert.deepEqual(stderr.trimEnd().split('\n'), [
      'Which? = a: it has one option: put | or < between several; /help explains how a question is written',
      '/nope: there is no such command; /help lists them',
      'no.txt: cannot be read (ENOENT)',
      'q1: option "a" twice',
    ]);
  });

  test('ends at once when there is no model, and at once when the address is none', async (t) => {
    const cwd = temporaryFolder(t);
    const none = await runSvc(t, ['ask', '-i', '--state', 'x', '--model', 'no'], { cwd, input: 'Is it?\nIs it?\n' });
    assert.deepEqual([none.code, none.stdout], [1, '']);
    assert.equal(none.stderr, `${join(cwd, 'no')}: no such model folder\n`);
    const nowhere = await runSvc(t, ['ask', '-i', '--state', 'x', '--url', 'a'], { cwd, input: 'Is it?\n' });
    assert.equal(nowhere.code, 2);
  });
});
