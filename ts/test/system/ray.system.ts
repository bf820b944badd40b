import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { runPython, runScript } from './python.ts';

const SVC = `${process.execPath} ${join(REPOSITORY, 'bin', 'svc.js')}`;
const DECIDE = join(REPOSITORY, 'deploy', 'ray', 'decide.py');
const FILES = 24;
const ROWS_OF_FILE = 60;
const ROWS = FILES * ROWS_OF_FILE;
const TIMEOUT_MS = 15 * 60_000;

Object.assign(process.env, {
  // On a busy machine, a node of the cluster takes longer to start than the 30 s that Ray waits by default.
  RAY_raylet_start_wait_time_s: '240',
  // By default, Ray ends an idle worker after a second if a node has more of them than processors, and starts another
  // one for the next task; a start takes seconds of a processor.
  RAY_num_workers_soft_limit: '16',
});

interface Row {
  readonly id: number;
  readonly text: string;
  readonly 'svc.error': string | null;
}

interface Written {
  readonly said: string;
  readonly killed: readonly string[];
  readonly left: readonly number[];
  readonly rows: readonly Row[];
}

suite('the pipeline on Ray', () => {
  test('writes each row once, with its answer, whatever of the cluster is killed', async (t) => {
    const args = [temporaryFolder(t), SVC, String(FILES), String(ROWS_OF_FILE)];
    const { code, stdout, stderr } = await runScript('ray_cluster.py', args, { timeoutMs: TIMEOUT_MS });
    assert.equal(code, 0, stderr);
    const { said, killed, left, rows } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Written;
    assert.equal(said, `out: ${ROWS} rows`);
    assert.deepEqual(killed, ['server', 'actor', 'task', 'registry', 'node']);
    assert.deepEqual(left, []);
    const ids = rows.map(({ id }) => Number(id)).sort((a, b) => a - b);
    assert.deepEqual(
      ids,
      Array.from({ length: ROWS }, (_, n) => n),
    );
    assert.ok(rows.every((row) => row['svc.error'] === null));

    const server = await LiveServer.start(t);
    const questions = {
      refund: { type: 'noul', instructions: 'Does the customer want money back?' },
      team: { type: 'choice', instructions: 'Which team?', criteria: ['billing', 'tech'] },
      anger: { type: 'score', instructions: 'How angry?', criteria: ['calm', 'cross', 'furious'] },
    };
    for (const row of rows.slice(0, 3)) {
      const { answers, usage } = JSON.parse(await server.answer(JSON.stringify({ state: row.text, questions })));
      const { refund, team, anger } = answers;
      assert.deepEqual(row, {
        id: row.id,
        text: row.text,
        refund: refund.noul,
        ...columns('refund', refund),
        team: team.choice,
        ...columns('team', team),
        anger: anger.score,
        ...columns('anger', anger),
        'svc.input_tokens': usage.input_tokens,
        'svc.error': null,
      });
    }
  });

  test('says in one line what is wrong, before anything is written', async (t) => {
    const folder = temporaryFolder(t);
    mkdirSync(join(folder, 'in'));
    const table =
      'import pyarrow as p, pyarrow.parquet as q; q.write_table(p.table({"a": ["x"], "q": [1]}), "in/a.parquet")';
    assert.equal((await runPython(['-c', table], { cwd: folder })).code, 0);
    const ask = async (questions: string, args: readonly string[] = [], svc = SVC) => {
      writeFileSync(join(folder, 'questions.json'), questions);
      const all = [DECIDE, 'in', 'out', '--questions', 'questions.json', '--svc', svc, ...args];
      const { code, stderr } = await runPython(all, { cwd: folder, env: { RAY_ADDRESS: 'local' } });
      return [code, stderr.trim().split('\n').at(-1)];
    };
    const noul = '{"good": {"type": "noul"}}';
    assert.deepEqual(await ask('[]'), [
      1,
      'decide: questions.json: must be an object of questions, as in "questions" of a request',
    ]);
    assert.deepEqual(await ask('{"q": {"type": "x"}}'), [1, 'decide: q: unknown type "x"']);
    assert.deepEqual(await ask('{"q": {"type": "noul"}}'), [
      1,
      'decide: q: the input has a column of this name already; rename the question',
    ]);
    assert.deepEqual(await ask(noul, ['--state', 'b']), [
      1,
      'decide: --state b: is no column of the input; they are a, q',
    ]);
    assert.match(
      String((await ask(noul, [], 'no-such-program'))[1]),
      /^decide: no-such-program: No such file or directory/,
    );
    mkdirSync(join(folder, 'out'));
    assert.deepEqual(await ask(noul), [1, 'decide: out: is there already; remove it, or name another']);
  });
});

interface Answer {
  readonly confidence: number;
  readonly answer_confidence: number;
  readonly probabilities: object;
  readonly action: { readonly act_probability: number };
}

function columns(name: string, answer: Answer) {
  const shares = Object.entries(answer.probabilities).map(([label, share]) => [`${name}.p.${label}`, share]);
  return {
    [`${name}.confidence`]: answer.confidence,
    [`${name}.answer_confidence`]: answer.answer_confidence,
    ...Object.fromEntries(shares),
    [`${name}.act_probability`]: answer.action.act_probability,
  };
}
