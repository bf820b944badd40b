import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { resumeCommand } from '../../src/commands/batch.ts';
import { progressLine } from '../../src/file-run/progress.ts';
import { fixture } from '../addon/model-folders.ts';
import { LiveServer } from '../real/live-server.ts';
import { runSvc, SvcProcess } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';
import { outputFiles, QUESTIONS, writeRows } from './run-files.ts';

const MODEL = fixture('shared-state-int8');
const HERE = ['--model', MODEL, '--device', 'cpu'];
const KEY = 'a-key-of-at-least-sixteen';

function folderWith(t: TestContext, name: string, rows: number): string {
  const folder = temporaryFolder(t);
  writeRows(join(folder, name), rows);
  writeFileSync(join(folder, 'q.json'), QUESTIONS);
  return folder;
}

const batch = (name: string, ...args: string[]) => ['batch', name, '--questions', 'q.json', ...args];

suite('svc batch', () => {
  test('ends at a signal with what is done, and says how it goes on', async (t) => {
    const cwd = folderWith(t, 'some rows.jsonl', 20_000);
    const args = batch('some rows.jsonl', '--state', 'text', ...HERE);
    const svc = new SvcProcess(t, args, { cwd });
    const journal = join(cwd, 'some rows.answers.jsonl.progress');
    const noted = () => {
      try {
        return Number(JSON.parse(readFileSync(journal, 'utf8')).row);
      } catch {
        return 0;
      }
    };
    await until(() => noted() > 0);
    svc.signal('SIGINT');
    const { code, stderr, stdout } = await svc.finished;
    if (process.platform === 'win32') return;
    const said = /^stopped after ([\d,]+) rows; this goes on:\n {2}(.*)\n$/m.exec(stderr);
    assert.ok(said, stderr);
    assert.equal(said[2], resumeCommand(args));
    assert.deepEqual([code, stdout], [130, '']);
    const rows = readFileSync(join(cwd, 'some rows.answers.jsonl'), 'utf8').trimEnd().split('\n');
    const { answered, bad } = JSON.parse(readFileSync(journal, 'utf8'));
    assert.equal(rows.length, answered);
    assert.equal(Number(said[1]?.replaceAll(',', '')), answered + bad);
    assert.doesNotThrow(() => JSON.parse(rows.at(-1) ?? ''));
  });

  test('by servers has the same output as here', async (t) => {
    const cwd = folderWith(t, 'rows.jsonl', 300);
    const servers = [1, 2].map(() => LiveServer.start(t, { model: MODEL, env: { SVC_API_KEY: KEY } }));
    const urls = (await Promise.all(servers)).flatMap(({ url }) => ['--url', url.origin]);
    const args = ['--state', 'text', '--output', 'there.answers.jsonl'];
    const refused = await runSvc(t, batch('rows.jsonl', ...args, ...urls), { cwd });
    assert.match(refused.stderr, /^http:\S+ answers 401: \{"error":"missing or wrong API key"\}\n$/);
    assert.equal(refused.code, 1);
    const there = await runSvc(t, batch('rows.jsonl', ...args, ...urls), { cwd, env: { SVC_API_KEY: KEY } });
    assert.deepEqual([there.code, there.stdout], [0, ''], there.stderr);
    const here = await runSvc(t, batch('rows.jsonl', '--state', 'text', ...HERE), { cwd });
    assert.match(
      here.stderr,
      /rows\.answers\.jsonl: 297 rows answered, 3 bad, see .*rows\.answers\.jsonl\.errors\.jsonl, in \d+ s\n$/,
    );
    const files = outputFiles(cwd);
    assert.equal(files['there.answers.jsonl'], files['rows.answers.jsonl']);
    assert.equal(files['there.answers.jsonl.errors.jsonl'], files['rows.answers.jsonl.errors.jsonl']);
  });

  test('says in one line what is wrong with the questions, and leaves nothing behind', async (t) => {
    const cwd = folderWith(t, 'rows.csv', 5);
    writeFileSync(join(cwd, 'q.json'), '{"team":{"type":"choice","criteria":["one"]}}');
    const { code, stderr } = await runSvc(t, batch('rows.csv', ...HERE), { cwd });
    assert.deepEqual([code, stderr], [1, 'q.json: team: need at least two options\n']);
    assert.deepEqual(outputFiles(cwd), {});
  });
});

suite('the progress of a run', () => {
  const before = { rows: 1000, bad: 0, share: 0.1, timeMs: 0 };

  test('is a bar with the rate and the time left', () => {
    const line = progressLine(before, { rows: 2500, bad: 3, share: 0.25, timeMs: 10_000 }, true);
    assert.equal(line, '[######------------------] 25 %, 2,500 rows, 150 rows/s, 50 s left, 3 bad');
  });

  test('is a plain line in a log, and tells no time that it cannot know', () => {
    assert.equal(progressLine(before, { ...before, timeMs: 10_000 }, false), '10 %, 1,000 rows, 0.0 rows/s');
    const slow = progressLine(before, { rows: 1010, bad: 0, share: 0.101, timeMs: 10_000 }, false);
    assert.equal(slow, '10 %, 1,010 rows, 1.0 rows/s, 2.5 h left');
  });
});

test('the command that goes on can be pasted into a shell', () => {
  const args = ['batch', 'my file.csv', '--overwrite', '--state', "it's", '--keep', ''];
  const quoted =
    process.platform === 'win32'
      ? `"my file.csv" --state "it's" --keep ""`
      : `'my file.csv' --state 'it'\\''s' --keep ''`;
  assert.equal(resumeCommand(args), `svc batch ${quoted} --resume`);
});
