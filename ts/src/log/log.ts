/** The log: to stderr, as JSON lines for a machine or as plain lines for a person. */
import pino, { type Logger } from 'pino';
import { LineWriter, stderrWrite, type Write } from './line-writer.ts';
import { printable, printableJson } from './printable.ts';

/** Fields that every line has and that a person does not need. */
const HIDDEN = new Set(['level', 'time', 'msg', 'pid', 'hostname']);

/** The fields that every line of pino has. */
interface Line {
  readonly time: string;
  readonly level: number;
  readonly msg?: string;
  readonly [field: string]: unknown;
}

interface LogOptions {
  /** A `log_level` of `svc.json`. */
  readonly level: string;
  /** A `log_format` of `svc.json`. */
  readonly format: string;
  /** Whether a person reads the log at a terminal. */
  readonly isTerminal: boolean;
}

/** The log of the process. */
interface Log {
  readonly log: Logger;
  /** Returns how many lines were lost since the start because they could not be written. */
  readonly lostLines: () => number;
}

/**
 * Returns the log of the process. Lines are written before the call returns, so that none is lost when the process
 * exits. Where lines cannot be written, no caller waits for them: see `LineWriter`.
 *
 * @param write - The function that takes the lines; that of stderr when left out.
 */
export function createLog({ level, format, isTerminal }: LogOptions, write: Write = stderrWrite()): Log {
  const lines = new LineWriter(write, (lost) => told.warn({ lost }, 'the log works again; lines of it were lost'));
  process.on('exit', () => lines.finish());
  const isPretty = format === 'auto' ? isTerminal : format === 'pretty';
  const shown = isPretty ? (json: string) => `${plainLine(json)}\n` : seenLine;
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  const log = pino(options, { write: (json) => lines.write(shown(json)) });
  // Lost lines are reported at every level of the log.
  const told = log.child({}, { level: 'warn' });
  return { log, lostLines: () => lines.lost };
}

/** Returns one line for a person: `12:00:01 warn  text key=value`. */
export function plainLine(json: string): string {
  const line = JSON.parse(json) as Line;
  const time = new Date(line.time).toTimeString().slice(0, 8);
  const level = pino.levels.labels[line.level] ?? 'info';
  const fields = Object.entries(line).flatMap(([key, value]) =>
    HIDDEN.has(key) ? [] : [`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`],
  );
  return printable([time, level.padEnd(5), line.msg ?? '', ...fields].join(' ').trimEnd());
}

/** Returns the same line of JSON with invisible characters escaped: such characters can stand only in strings. */
export function seenLine(json: string): string {
  return `${printableJson(json.trimEnd())}\n`;
}
