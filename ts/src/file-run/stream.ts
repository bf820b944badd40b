/** A batch from stdin or to stdout: rows are written as they are answered, and nothing of it is kept. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { Answered } from './answer.ts';
import type { Journal } from './journal.ts';
import { errorLine, type RowOutput } from './output.ts';
import type { BadRow, GoodRow, Problem } from './row.ts';
import { askSample, freshJournal, outputOptions, type Run, writeRows } from './run.ts';
import type { Sink } from './sink.ts';

/** The streams of a run: that of the rows with their answers, and that of the rows without one. */
export interface Streams {
  readonly rows: Writable;
  readonly errors: Writable;
}

/**
 * Runs the batch and returns its counts, as the journal of a run over files has them.
 *
 * @throws Refusal when the run cannot go on; the reason of `stop` when that signal has fired.
 */
export async function streamBatch(run: Run, streams: Streams): Promise<Journal> {
  const sample = await askSample(run);
  const { sink } = outputOptions(run, sample);
  const output = new StreamOutput(streams, sink, freshJournal(run.plan, ''));
  try {
    await writeRows(run, output);
  } catch (error) {
    // The end of the input may be the consequence of the signal.
    run.stop.throwIfAborted();
    throw error;
  }
  await output.commit();
  return output.journal;
}

class StreamOutput implements RowOutput {
  readonly isPartFull = false;
  /** Every row is written at once: the reader of a pipe may wait for it. */
  readonly pendingBytes = Number.POSITIVE_INFINITY;
  readonly #streams: Streams;
  readonly #sink: Sink;
  #rows: string;
  #errors = '';
  #journal: Journal;

  constructor(streams: Streams, sink: Sink, journal: Journal) {
    this.#streams = streams;
    this.#sink = sink;
    this.#journal = journal;
    this.#rows = sink.head;
  }

  get journal(): Journal {
    return this.#journal;
  }

  answered(row: GoodRow, answered: Answered): void {
    this.#rows += this.#sink.text(row, answered);
    this.#journal = { ...this.#journal, ...row.end, answered: this.#journal.answered + 1 };
  }

  refused(row: GoodRow | BadRow, problem: Problem): void {
    this.#errors += errorLine(row, problem);
    this.#journal = { ...this.#journal, ...row.end, bad: this.#journal.bad + 1 };
  }

  /** Resolves when the streams have room again: a reader that stands still holds up the run. */
  async commit(): Promise<void> {
    const [rows, errors] = [this.#rows, this.#errors];
    [this.#rows, this.#errors] = ['', ''];
    await write(this.#streams.rows, rows);
    await write(this.#streams.errors, errors);
  }

  async finishPart(): Promise<void> {}
}

async function write(stream: Writable, text: string): Promise<void> {
  if (text !== '' && !stream.write(text)) await once(stream, 'drain');
}
