/** The output of a run: its files, and the journal that says how much of them is committed. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { Refusal } from '../refusal.ts';
import type { Answered } from './answer.ts';
import { AppendFile } from './append-file.ts';
import { type Journal, readJournal, writeJournal } from './journal.ts';
import { writePart } from './parquet-part.ts';
import type { BadRow, GoodRow, Position, Problem } from './row.ts';
import type { Sink, TableColumns } from './sink.ts';

/** The files of a run. */
export interface OutputPaths {
  /** The file of the rows; for a Parquet output, of those of the part that is being made. */
  readonly rows: string;
  readonly errors: string;
  readonly journal: string;
  /** Returns the path of a finished part; undefined for an output without parts. */
  readonly part?: ((number: number) => string) | undefined;
}

/** The side of an output that rows are written to. */
export interface RowOutput {
  /** The current progress, committed or not. */
  readonly journal: Journal;
  /** The number of bytes that are not committed. */
  readonly pendingBytes: number;
  /** Whether the part that is being made is full. */
  readonly isPartFull: boolean;
  answered(row: GoodRow, answered: Answered): void;
  refused(row: GoodRow | BadRow, problem: Problem): void;
  /** Resolves when everything written so far has left the process. */
  commit(): Promise<void>;
  finishPart(): Promise<void>;
}

/** Returns the line of a row without an answer. */
export function errorLine(row: GoodRow | BadRow, problem: Problem): string {
  const error = JSON.stringify({ code: problem.code, message: problem.message });
  return `{"row":${row.number},"error":${error},"input":${row.inputJson()}}\n`;
}

export interface OutputOptions {
  readonly paths: OutputPaths;
  readonly sink: Sink;
  /** The columns of a part and its number of rows; undefined for an output without parts. */
  readonly parts?: { readonly columns: TableColumns; readonly rows: number } | undefined;
  /** Returns a digest that shows whether the input before a position is still the same. */
  readonly fingerprint: (position: Position) => Promise<string>;
}

/**
 * A part whose rows take more bytes than this is finished, however few they are. Bytes are counted, committed or not,
 * so that a part ends at the same row whenever the run was committed.
 */
const MAX_PART_BYTES = 64 * 1024 * 1024;

export class Output implements RowOutput {
  readonly #options: OutputOptions;
  readonly #rows: AppendFile;
  readonly #errors: AppendFile;
  #journal: Journal;
  #isBroken = false;

  private constructor(options: OutputOptions, files: readonly [AppendFile, AppendFile], journal: Journal) {
    this.#options = options;
    [this.#rows, this.#errors] = files;
    this.#journal = journal;
  }

  /**
   * Opens the output in the state that `journal` records: everything written after it is cut off.
   *
   * @throws Refusal when a file is shorter than the journal says.
   */
  static async open(options: OutputOptions, journal: Journal): Promise<Output> {
    const { paths, sink } = options;
    const own = { ...journal, run: randomUUID() };
    // The journal is written before the files are created, so that a run that ends here counts as begun.
    await writeJournal(paths.journal, own);
    const rows = await AppendFile.open(paths.rows, journal.output_bytes);
    const errors = await AppendFile.open(paths.errors, journal.error_bytes);
    const output = new Output(options, [rows, errors], own);
    if (journal.output_bytes === 0) rows.append(sink.head);
    return output;
  }

  /** The current progress, committed or not. */
  get journal(): Journal {
    return this.#journal;
  }

  /** The number of bytes that are not committed. */
  get pendingBytes(): number {
    return this.#rows.pendingBytes + this.#errors.pendingBytes;
  }

  answered(row: GoodRow, answered: Answered): void {
    this.#rows.append(this.#options.sink.text(row, answered));
    const { answered: count, part_rows: partRows } = this.#journal;
    this.#journal = { ...this.#journal, ...row.end, answered: count + 1, part_rows: partRows + 1 };
  }

  refused(row: GoodRow | BadRow, problem: Problem): void {
    this.#errors.append(errorLine(row, problem));
    this.#journal = { ...this.#journal, ...row.end, bad: this.#journal.bad + 1 };
  }

  /** Whether the part that is being made is full. */
  get isPartFull(): boolean {
    const { parts } = this.#options;
    if (parts === undefined) return false;
    return this.#journal.part_rows >= parts.rows || this.#rows.length + this.#rows.pendingBytes > MAX_PART_BYTES;
  }

  /** Resolves when everything written so far is on the disk and the journal says so. */
  commit(): Promise<void> {
    return this.#writing(() => this.#commit());
  }

  async #writing(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      this.#isBroken = true;
      throw error;
    }
  }

  /**
   * Closes the output after a failure. Finished rows are committed first, unless writing itself failed: then the memory
   * is ahead of the disk, and must not be recorded as done.
   */
  async leave(): Promise<void> {
    try {
      if (!this.#isBroken) await this.commit();
    } catch {
      // The caller reports the failure that came first, so a failure of this commit is not reported.
    } finally {
      await this.close();
    }
  }

  async #commit(): Promise<void> {
    const isOurs = readJournal(this.#options.paths.journal)?.run === this.#journal.run;
    if (!isOurs) throw new Refusal(`${this.#options.paths.journal}: another svc batch goes on with this output`);
    await this.#rows.commit();
    await this.#errors.commit();
    const { row, offset } = this.#journal;
    await this.#note({
      output_bytes: this.#rows.length,
      error_bytes: this.#errors.length,
      read: await this.#options.fingerprint({ row, offset }),
    });
  }

  /** Makes a part from the rows that were collected for it. */
  async finishPart(): Promise<void> {
    const { paths, parts } = this.#options;
    const { part } = paths;
    if (part === undefined || parts === undefined) return;
    await this.commit();
    await this.#writing(async () => {
      const number = this.#journal.parts + 1;
      await writePart(part(number), paths.rows, parts.columns);
      await this.#note({ parts: number, part_rows: 0, output_bytes: 0 });
      await this.#rows.clear();
    });
  }

  /** Resolves when the output is complete. An input without rows still gets one part, for its columns. */
  async finish(): Promise<void> {
    const { parts, part_rows: partRows } = this.#journal;
    if (partRows > 0 || parts === 0) await this.finishPart();
    await this.commit();
    await this.close();
    // A run that ends here creates these files again, empty, when it is resumed.
    const { parts: gathered, paths } = this.#options;
    if (gathered !== undefined) await rm(paths.rows, { force: true });
    if (this.#journal.bad === 0) await rm(paths.errors, { force: true });
    await this.#note({ done: true });
  }

  async close(): Promise<void> {
    await this.#rows.close();
    await this.#errors.close();
  }

  async #note(change: Partial<Journal>): Promise<void> {
    this.#journal = { ...this.#journal, ...change };
    await writeJournal(this.#options.paths.journal, this.#journal);
  }
}
