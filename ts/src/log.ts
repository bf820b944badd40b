/** The log: to stderr, as JSON lines for a machine and as plain lines for a person at a terminal. */
import pino, { type DestinationStream, type Logger } from 'pino';

/** Fields that every line has and that a person does not need. */
const HIDDEN = new Set(['level', 'time', 'msg', 'pid', 'hostname']);

/** What every line of pino has. */
interface Line {
  readonly time: string;
  readonly level: number;
  readonly msg?: string;
  readonly [field: string]: unknown;
}

/**
 * The logger of the process. Lines are written before the call returns, so that none is lost when the process exits.
 *
 * @param level - A `log_level` of `svc.json`.
 * @param isTerminal - Whether a person reads along.
 */
export function createLog(level: string, isTerminal: boolean): Logger {
  const stderr = pino.destination({ fd: 2, sync: true });
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, isTerminal ? plain(stderr) : stderr);
}

/** One line for a person: `12:00:01 warn  text key=value`. */
export function plainLine(json: string): string {
  const line = JSON.parse(json) as Line;
  const time = new Date(line.time).toTimeString().slice(0, 8);
  const level = pino.levels.labels[line.level] ?? 'info';
  const fields = Object.entries(line).flatMap(([key, value]) =>
    HIDDEN.has(key) ? [] : [`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`],
  );
  return [time, level.padEnd(5), line.msg ?? '', ...fields].join(' ').trimEnd();
}

function plain(destination: DestinationStream): DestinationStream {
  return { write: (json) => destination.write(`${plainLine(json)}\n`) };
}
