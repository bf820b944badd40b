import assert from 'node:assert/strict';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { type Journal, readJournal } from '../../src/file-run/journal.ts';
import { Output } from '../../src/file-run/output.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const BEGUN: Journal = {
  ...{ format: 1, run: '', settings: '', model: null, read: '', row: 0, offset: 0, answered: 0, bad: 0 },
  ...{ output_bytes: 0, error_bytes: 0, parts: 0, part_rows: 0, done: false },
};

/** A row of 36 MiB in a third of as many characters, so that two rows are longer than a part may be. */
const ROW = `${'日'.repeat(12 * 2 ** 20)}\n`;

suite('a part of many-byte characters', () => {
  for (const [what, isCommitted] of [
    ['that are not committed yet', false],
    ['of which some are committed', true],
  ] as const) {
    test(`is full by its bytes, ${what}`, async (t) => {
      const path = join(temporaryFolder(t), 'rows');
      const paths = { rows: path, errors: `${path}.errors`, journal: `${path}.progress`, part: String };
      const sink = { head: '', text: () => ROW };
      const parts = { columns: { input: [], answers: [] }, rows: 1000 };
      const output = await Output.open({ paths, sink, parts, fingerprint: async () => '' }, BEGUN);
      t.after(() => output.close());
      const answer = (number: number) => {
        const row = { number, end: { row: number, offset: 0 }, inputJson: () => '""', stateJson: '""', cells: [] };
        output.answered(row, { answersJson: '{}', inputTokens: 1, truncatedTokens: 0 });
      };
      answer(1);
      assert.equal(output.isPartFull, false);
      if (isCommitted) await output.commit();
      answer(2);
      assert.equal(output.isPartFull, true);
    });
  }
});

test('rows that could not be written are not recorded as done', async (t) => {
  const path = join(temporaryFolder(t), 'rows');
  const paths = { rows: path, errors: `${path}.errors`, journal: `${path}.progress` };
  const sink = { head: '', text: () => 'row\n' };
  const output = await Output.open({ paths, sink, fingerprint: async () => '' }, BEGUN);
  const answer = (number: number) => {
    const row = { number, end: { row: number, offset: 0 }, inputJson: () => '""', stateJson: '""', cells: [] };
    output.answered(row, { answersJson: '{}', inputTokens: 1, truncatedTokens: 0 });
  };
  answer(1);
  await output.commit();
  const any = await open(path);
  await any.close();
  const full = t.mock.method(Object.getPrototypeOf(any), 'write', async () => {
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  });
  answer(2);
  await assert.rejects(output.commit(), { code: 'ENOSPC' });
  full.mock.restore();
  await output.leave();
  const { row, answered, output_bytes: bytes } = readJournal(paths.journal) ?? BEGUN;
  assert.deepEqual({ row, answered, bytes }, { row: 1, answered: 1, bytes: 4 });
});
