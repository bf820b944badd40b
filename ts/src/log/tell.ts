import { printableLines } from './printable.ts';

/** Writes a line to stderr for the person who runs the command, made printable: many lines hold text from elsewhere. */
export function tell(line: string): void {
  process.stderr.write(`${printableLines(line)}\n`);
}
