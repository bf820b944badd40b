/** The streams of `svc batch -`: stdout for the rows with answers, stderr or a file for the others. */
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { Writable } from 'node:stream';
import type { Journal } from '../file-run/journal.ts';
import type { Run } from '../file-run/run.ts';
import { streamBatch } from '../file-run/stream.ts';
import { errorCode } from '../files/system-error.ts';
import { printableJson } from '../log/printable.ts';
import { Refusal } from '../refusal.ts';

/**
 * Runs a batch over streams, and returns its counts once everything is written.
 *
 * @throws Refusal when the run cannot go on, or the file of bad rows cannot be made.
 */
export async function answerStream(run: Run): Promise<Journal> {
  const { stop, plan } = run;
  const errors =
    plan.streamErrors === undefined ? stderrLines() : await errorFile(plan.streamErrors, plan.isOverwritten);
  // A read of stdin may never end by itself.
  const leave = () => process.stdin.destroy();
  if (plan.input === '-') stop.addEventListener('abort', leave, { once: true });
  try {
    return await streamBatch(run, { rows: process.stdout, errors });
  } finally {
    stop.removeEventListener('abort', leave);
    errors.end();
    await once(errors, 'close');
  }
}

/** Returns a stream that writes lines of JSON to stderr, which may be a terminal. */
function stderrLines(): Writable {
  return new Writable({
    decodeStrings: false,
    write(chunk, _, done) {
      process.stderr.write(String(chunk).split('\n').map(printableJson).join('\n'), () => done());
    },
  });
}

async function errorFile(path: string, isOverwritten: boolean): Promise<Writable> {
  try {
    const stream = (await open(path, isOverwritten ? 'w' : 'wx')).createWriteStream();
    stream.on('error', (error) => {
      process.stderr.write(`${path}: cannot be written (${errorCode(error)})\n`, () => process.exit(1));
    });
    return stream;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') throw new Refusal(`${path}: is there already; --overwrite replaces it`);
    throw new Refusal(`${path}: cannot be written (${errorCode(error)})`);
  }
}
