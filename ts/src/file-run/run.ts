/** The run of a file from its first row to its last: it reads, asks, writes in order and records its progress. */
import { existsSync, rmSync } from 'node:fs';
import { errorCode } from '../files/system-error.ts';
import { Refusal } from '../refusal.ts';
import { type Answered, answerColumns, readAnswered } from './answer.ts';
import { askedQuestions } from './asked.ts';
import { streamInput } from './byte-input.ts';
import type { Decider, Outcome } from './decider.ts';
import { inOrder } from './in-order.ts';
import { type Journal, readJournal } from './journal.ts';
import { Output, type OutputOptions, type RowOutput } from './output.ts';
import type { FileRunPlan } from './plan.ts';
import { openCsv } from './read-csv.ts';
import { openJsonl } from './read-jsonl.ts';
import { openParquet } from './read-parquet.ts';
import { type Row, type Source, START } from './row.ts';
import { csvSink, jsonlSink, parquetSink, tableColumns } from './sink.ts';

/** The interval between commits: a killed run loses the rows of at most about this time. */
const COMMIT_INTERVAL_MS = 1000;
const MAX_PENDING_BYTES = 16 * 1024 * 1024;
/**
 * The limit for the texts of the rows asked about at once: each text is in memory about ten times, as text, bytes and
 * tokens.
 */
const MAX_ASKED_CHARACTERS = 4 * 1024 * 1024;

/**
 * Opens the plan's input.
 *
 * @throws Refusal when it cannot be read.
 */
export async function openInput(plan: FileRunPlan, maxRowBytes: number): Promise<Source> {
  const { format, selection, delimiter } = plan;
  const isStdin = plan.input === '-';
  const path = isStdin ? 'stdin' : plan.input;
  const input = isStdin ? streamInput(process.stdin, maxRowBytes) : undefined;
  try {
    if (format === 'jsonl') return await openJsonl({ path, input, maxRowBytes, ...selection });
    if (format === 'csv') return await openCsv({ path, input, maxRowBytes, delimiter, ...selection });
    return await openParquet({ path, maxRowBytes, ...selection });
  } catch (error) {
    if (errorCode(error) === '' || error instanceof Refusal) throw error;
    throw new Refusal(`${path}: cannot be read (${errorCode(error)})`);
  }
}

/**
 * Returns the state in which the run begins: at the start of the input, or where the previous run ended.
 *
 * @throws Refusal when there is an output already that the run may not touch or cannot continue.
 */
export async function beginning(plan: FileRunPlan, source: Source): Promise<Journal> {
  const { paths, output, settings } = plan;
  if (plan.isOverwritten) return freshJournal(plan, await source.fingerprint(START));
  const journal = readJournal(paths.journal);
  if (journal === undefined) {
    const taken = [paths.part?.(1) ?? paths.rows, paths.errors].find((path) => existsSync(path));
    if (taken === undefined) return freshJournal(plan, await source.fingerprint(START));
    throw new Refusal(`${taken}: is there already; --overwrite replaces it`);
  }
  const done = journal.answered + journal.bad;
  if (!plan.isResumed) {
    throw new Refusal(`${output}: begun already, ${done} rows are done; --resume goes on, --overwrite starts anew`);
  }
  if (journal.settings !== settings) {
    throw new Refusal(`${output}: was begun with other questions or options; --overwrite starts anew`);
  }
  const isSame = (await source.fingerprint({ row: journal.row, offset: journal.offset })) === journal.read;
  if (!isSame) throw new Refusal(`${plan.input}: has changed since the run began; --overwrite starts anew`);
  return journal;
}

function removeOutput({ paths }: FileRunPlan): void {
  for (const path of [paths.journal, paths.rows, paths.errors]) rmSync(path, { force: true });
  if (paths.part === undefined) return;
  for (let number = 1; existsSync(paths.part(number)); number++) rmSync(paths.part(number));
}

/** Returns the journal of a run that has read nothing yet. */
export function freshJournal({ settings }: FileRunPlan, read: string): Journal {
  const counts = { row: 0, offset: 0, answered: 0, bad: 0, output_bytes: 0, error_bytes: 0, parts: 0, part_rows: 0 };
  return { format: 1, run: '', settings, model: null, read, ...counts, done: false };
}

export interface Run {
  readonly plan: FileRunPlan;
  readonly source: Source;
  readonly decider: Decider;
  readonly stop: AbortSignal;
  /** A callback after each row. */
  readonly onRow: (journal: Journal) => void;
}

/**
 * Runs the file and returns the journal of the finished run. If the run ends early, its finished rows are written and
 * recorded.
 *
 * @throws Refusal when the run cannot go on; the reason of `stop` when that signal has fired.
 */
export async function runFile(run: Run, begun: Journal): Promise<Journal> {
  const { plan, decider } = run;
  const { output } = plan;
  if (isOther(begun.model, decider.model)) {
    throw new Refusal(`${output}: was begun with another model; --overwrite starts anew`);
  }
  const sample = await askSample(run);
  try {
    // The old output is removed only now that the sample was answered, so that a new output will follow.
    if (plan.isOverwritten) removeOutput(plan);
    return await writeOutput(run, sample, { ...begun, model: decider.model ?? begun.model });
  } catch (error) {
    if (errorCode(error) === '' || error instanceof Refusal) throw error;
    throw new Refusal(`${output}, ${plan.paths.errors}: cannot be written (${errorCode(error)})`);
  }
}

async function writeOutput(run: Run, sample: Answered, begun: Journal): Promise<Journal> {
  const written = await Output.open(outputOptions(run, sample), begun);
  try {
    // The previous run may have ended while it made a part.
    if (written.isPartFull) await written.finishPart();
    await writeRows(run, written);
    await written.finish();
    return written.journal;
  } catch (error) {
    await written.leave();
    throw error;
  }
}

/** Whether the digests show two different models; unknown digests, and digests of different kinds, show nothing. */
function isOther(begun: string | null, now: string | null): boolean {
  return begun !== null && now !== null && begun !== now && begun.split(' ', 1)[0] === now.split(' ', 1)[0];
}

/**
 * Asks the questions about an empty text and returns the decision: it shows that they can be asked, and which columns
 * the table has.
 */
export async function askSample({ plan, decider }: Run): Promise<Answered> {
  const outcome = await decider.decide({ stateJson: '""', questionsJson: plan.questionsJson });
  if (outcome.problem?.code === 'bad_answer') throw new Refusal(`no server answers: ${outcome.problem.message}`);
  if (outcome.problem) throw new Refusal(`${plan.questionsFile}: ${outcome.problem.message}`);
  return answeredBy(outcome.body);
}

function answeredBy(body: string): Answered {
  const answered = readAnswered(body);
  // A server's answer was checked earlier, so this one must come from the engine itself.
  if (answered === undefined) throw new Error('an answer that is no decision');
  return answered;
}

/** Returns the options of an output whose columns are those of the input and of the sample's answers. */
export function outputOptions({ plan, source }: Run, sample: Answered): OutputOptions {
  const { format, paths, delimiter, partRows } = plan;
  const fingerprint = source.fingerprint;
  if (format === 'jsonl') return { paths, fingerprint, sink: jsonlSink() };
  const columns = tableColumns(source.columns, answerColumns(askedQuestions(plan.questionsJson), sample));
  if (format === 'csv') return { paths, fingerprint, sink: csvSink(columns, delimiter) };
  return { paths, fingerprint, sink: parquetSink(columns), parts: { columns, rows: partRows } };
}

/** Reads the rows behind those of the output's journal, and writes each with its answer, or the reason why it has none. */
export async function writeRows({ plan, source, decider, stop, onRow }: Run, output: RowOutput): Promise<void> {
  const { questionsJson } = plan;
  const ask = async (row: Row): Promise<Outcome> =>
    row.problem ? { problem: row.problem } : decider.decide({ stateJson: row.stateJson, questionsJson });
  const { row, offset } = output.journal;
  const window = { items: decider.window, size: { of: characters, most: MAX_ASKED_CHARACTERS } };
  let committedMs = performance.now();
  for await (const [asked, outcome] of inOrder(source.rows({ row, offset }), ask, window)) {
    stop.throwIfAborted();
    if (asked.problem) output.refused(asked, asked.problem);
    else if (outcome.problem) output.refused(asked, outcome.problem);
    else output.answered(asked, answeredBy(outcome.body));
    onRow(output.journal);
    const now = performance.now();
    if (output.isPartFull) await output.finishPart();
    else if (now - committedMs < COMMIT_INTERVAL_MS && output.pendingBytes < MAX_PENDING_BYTES) continue;
    else await output.commit();
    committedMs = now;
  }
}

/** Returns the number of characters of a row's texts, which stay in memory until its turn. */
function characters(row: Row): number {
  return row.problem ? 0 : row.cells.reduce((sum, cell) => sum + cell.length, row.stateJson.length);
}
