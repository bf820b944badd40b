/**
 * The note that remains of a trial that has ended its process, mostly by its use of memory. It keeps the next starts
 * from trying the same model forever.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/schema';
import { isRunning } from '../files/running-process.ts';

const NoteSchema = Type.Object({
  /** The model that is tried. */
  sha256: Type.String(),
  /** How many earlier trials of the model have ended their process. */
  deaths: Type.Integer({ minimum: 0 }),
  pid: Type.Integer(),
  host: Type.String(),
});

type Note = Static<typeof NoteSchema>;

/** How many trials run in this process, by their note file: several sources may try the same model at once. */
const running = new Map<string, number>();

/** The note of the trials of one source. Where it cannot be written, no earlier trial is known. */
export class TrialNote {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** Notes that a trial begins, and returns how many earlier trials of the same model have ended their process. */
  async begin(sha256: string): Promise<number> {
    const others = running.get(this.#file) ?? 0;
    running.set(this.#file, others + 1);
    const before = await this.#read();
    const isSame = before?.sha256 === sha256;
    const deaths = isSame ? before.deaths + (hasDied(before, others) ? 1 : 0) : 0;
    const note: Note = { sha256, deaths, pid: process.pid, host: hostname() };
    await mkdir(dirname(this.#file), { recursive: true })
      .then(() => writeFile(this.#file, JSON.stringify(note)))
      .catch(() => {});
    return deaths;
  }

  /** Ends a trial that has begun. Its note goes with the last trial of this process, unless it is kept. */
  async end({ isKept = false } = {}): Promise<void> {
    if (!isKept && running.get(this.#file) === 1) await this.forget();
    // The trial counts as running until its note is gone: no other trial may take the note for that of a death.
    const others = (running.get(this.#file) ?? 1) - 1;
    if (others > 0) running.set(this.#file, others);
    else running.delete(this.#file);
  }

  /** Removes the note of earlier trials. */
  async forget(): Promise<void> {
    await rm(this.#file, { force: true }).catch(() => {});
  }

  async #read(): Promise<Note | undefined> {
    try {
      const note: unknown = JSON.parse(await readFile(this.#file, 'utf8'));
      return Check(NoteSchema, note) ? (note as Note) : undefined;
    } catch {
      return undefined;
    }
  }
}

/**
 * Whether the process that wrote the note has ended. In a container each process has the number of the one before it,
 * so a note with this process's own number is an earlier process's if no `others` of this process's trials run.
 */
function hasDied({ pid, host }: Note, others: number): boolean {
  if (host !== hostname()) return false;
  return pid === process.pid ? others === 0 : !isRunning(pid);
}
