/** The log: to stderr, as JSON lines for a machine or as plain lines for a person. */
import pino, { type Logger } from 'pino';
import { LineWriter, stderrWrite, type Write } from './line-writer.ts';
import { printable, printableJson } from './printable.ts';

/** Fields that every line has and that a person does not need. */
const HIDDEN = new Set(['level', 'time', 'msg', 'pid', 'hostname']);

/** What every line of pino has. */
interface Line {
  readonly time: string;
  readonly level: number;
  readonly msg?: string;
  readonly [field: string]: unknown;
}

export interface LogOptions {
  /** A `log_level` of `svc.json`. */
  readonly level: string;
  /** A `log_format` of `svc.json`. */
  readonly format: string;
  /** Whether a person reads along. */
  readonly isTerminal: boolean;
}

/** The log of the process. */
export interface Log {
  readonly log: Logger;
  /** How many lines were lost since the start, since they could not be written. */
  readonly lostLines: () => number;
}

/**
 * The log of the process. Lines are written before the call returns, so that none is lost when the process exits. Where
 * they cannot be, nobody waits for them: see `LineWriter`.
 *
 * @param write - What takes the lines; stderr when left out.
 */
export function createLog({ level, format, isTerminal }: LogOptions, write: Write = stderrWrite()): Log {
  const lines = new LineWriter(write, (lost) => told.warn({ lost }, 'the log works again; lines of it were lost'));
  process.on('exit', () => lines.finish());
  const isPretty = format === 'auto' ? isTerminal : format === 'pretty';
  const shown = isPretty ? (json: string) => `${plainLine(json)}\n` : seenLine;
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  const log = pino(options, { write: (json) => lines.write(shown(json)) });
  // Lines that are missing are told of at every level.
  const told = log.child({}, { level: 'warn' });
  return { log, lostLines: () => lines.lost };
}

/** One line for a person: `12:00:01 warn  text key=value`. */
export function plainLine(json: string): string {
  const line = JSON.parse(json) as Line;
  const time = new Date(line.time).toTimeString().slice(0, 8);
  const level = pino.levels.labels[line.level] ?? 'info';
  const fields = Object.entries(line).flatMap(([key, value]) =>
    HIDDEN.has(key) ? [] : [`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`],
  );
  return printable([time, level.padEnd(5), line.msg ?? '', ...fields].join(' ').trimEnd());
}

/** The same line of JSON, in which what is not seen is escaped: such characters can stand in strings alone. */
export function seenLine(json: string): string {
  return `${printableJson(json.trimEnd())}\n`;
}
