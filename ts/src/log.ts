/** The log: to stderr, as JSON lines for a machine or as plain lines for a person. */
import pino, { type DestinationStream, type Logger } from 'pino';
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

/** The logger of the process. Lines are written before the call returns, so that none is lost when the process exits. */
export function createLog({ level, format, isTerminal }: LogOptions): Logger {
  const stderr = pino.destination({ fd: 2, sync: true });
  const isPretty = format === 'auto' ? isTerminal : format === 'pretty';
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, isPretty ? plain(stderr) : seen(stderr));
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

function seen(destination: DestinationStream): DestinationStream {
  return { write: (json) => destination.write(seenLine(json)) };
}

function plain(destination: DestinationStream): DestinationStream {
  return { write: (json) => destination.write(`${plainLine(json)}\n`) };
}
