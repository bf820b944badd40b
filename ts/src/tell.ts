import { printableLines } from './printable.ts';

/** Writes a line to stderr for who runs the command. Names and messages of others are in many of them. */
export function tell(line: string): void {
  process.stderr.write(`${printableLines(line)}\n`);
}
