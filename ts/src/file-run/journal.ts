/** The progress of a run, in a file next to its output: a written state is synced to the disk. */
import { readFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/schema';
import { errorCode } from '../files/system-error.ts';
import { Refusal } from '../refusal.ts';

const JournalSchema = Type.Object({
  format: Type.Literal(1),
  run: Type.String({ description: 'which process writes it, at random' }),
  settings: Type.String({ description: 'a digest of all that the answers and their form depend on' }),
  model: Type.Union([Type.String(), Type.Null()]),
  read: Type.String({ description: 'the fingerprint of the input before `offset`' }),
  row: Type.Integer(),
  offset: Type.Integer(),
  answered: Type.Integer(),
  bad: Type.Integer(),
  output_bytes: Type.Integer(),
  error_bytes: Type.Integer(),
  parts: Type.Integer({ description: 'finished parts of a Parquet output' }),
  part_rows: Type.Integer({ description: 'rows of the part that is being made' }),
  done: Type.Boolean(),
});

/**
 * One state of a run. `row` and `offset` are the position in the input; the other numbers are counts of rows, bytes and
 * parts.
 */
export type Journal = Static<typeof JournalSchema>;

/**
 * Returns the journal at `path`; undefined if there is none.
 *
 * @throws Refusal when the file cannot be read or is no journal.
 */
export function readJournal(path: string): Journal | undefined {
  try {
    const journal: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (Check(JournalSchema, journal)) return journal;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    if (!(error instanceof SyntaxError)) throw new Refusal(`${path}: cannot be read (${errorCode(error)})`);
  }
  throw new Refusal(`${path}: does not say how far a run has come; --overwrite starts anew`);
}

/** Replaces the journal atomically, so that a complete one exists at any time. */
export async function writeJournal(path: string, journal: Journal): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w');
  try {
    await file.writeFile(`${JSON.stringify(journal, null, 2)}\n`);
    await file.datasync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/** Syncs a folder, so that its new file names survive a crash; Windows neither can nor needs to do this. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
