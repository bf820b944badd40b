/** `svc batch`: answers one set of questions about many states from a file, and writes the answers to a file. */
import { engineDecider } from '../file-run/here.ts';
import type { Journal } from '../file-run/journal.ts';
import { type FileRunOptions, type FileRunPlan, fileRunPlan, wholeNumber } from '../file-run/plan.ts';
import { duration, ERASE_LINE, grouped, showProgress } from '../file-run/progress.ts';
import type { Source } from '../file-run/row.ts';
import { beginning, openInput, runFile } from '../file-run/run.ts';
import { serversDecider } from '../file-run/servers.ts';
import { tell } from '../log/tell.ts';
import { Refusal } from '../refusal.ts';
import type { Config, Flags } from '../settings/config.ts';
import { commandSettings } from './command-settings.ts';
import { Stopped, stopSignal } from './stop-signal.ts';

export interface BatchFlags extends Flags, FileRunOptions {
  /** The URLs of the servers that answer; without one the model is loaded in this process. */
  readonly url?: readonly string[];
  readonly concurrency?: string;
  readonly giveUp?: string;
  readonly allowDifferentServers?: boolean;
}

const DEFAULT_CONCURRENCY = '8';
const DEFAULT_GIVE_UP_SECONDS = '300';

/**
 * Resolves once every row has its answer or the reason why it has none, or a signal has ended the run; the command
 * that goes on with it is then printed.
 *
 * @throws Refusal when the run cannot begin or go on.
 */
export async function batch(input: string, flags: BatchFlags): Promise<void> {
  const config = commandSettings(flags);
  const plan = fileRunPlan(input, flags);
  const source = await openInput(plan, config.maxBodyBytes);
  const begun = await beginning(plan, source);
  try {
    if (begun.done) tell(`${plan.output}: complete already, ${counts(begun, plan)}`);
    else await work({ plan, source, begun, flags, config });
  } finally {
    await source.close();
  }
}

interface Work {
  readonly plan: FileRunPlan;
  readonly source: Source;
  readonly begun: Journal;
  readonly flags: BatchFlags;
  readonly config: Config;
}

async function work({ plan, source, begun, flags, config }: Work): Promise<void> {
  const startMs = performance.now();
  const stop = stopSignal();
  const decider = flags.url
    ? await serversDecider(servers(flags.url, flags, config), stop)
    : await engineDecider(config, stop);
  let journal = begun;
  const onRow = (now: Journal) => {
    journal = now;
  };
  const state = () => ({ rows: journal.answered + journal.bad, bad: journal.bad, share: source.share(journal) });
  const endProgress = showProgress({
    isTerminal: process.stderr.isTTY,
    write: (text) => process.stderr.write(text),
    state,
  });
  try {
    journal = await runFile({ plan, source, decider, stop, onRow }, begun);
    endProgress();
    tell(`${plan.output}: ${counts(journal, plan)}, in ${duration((performance.now() - startMs) / 1000)}`);
  } catch (error) {
    endProgress();
    endRun(error, state().rows);
  } finally {
    await decider.close();
  }
}

function endRun(error: unknown, rows: number): void {
  if (error instanceof Stopped) {
    tell(`stopped after ${grouped(rows)} rows; this goes on:`);
    // The command is written as it was typed, since it is meant to be pasted.
    process.stderr.write(`  ${resumeCommand(process.argv.slice(2))}\n`);
    process.exitCode = error.exitCode;
  } else if (error instanceof Refusal && rows > 0) {
    throw new Refusal(`${error.message}; --resume goes on`, { cause: error });
  } else {
    throw error;
  }
}

function servers(urls: readonly string[], flags: BatchFlags, config: Config) {
  const concurrency = wholeNumber('--concurrency', flags.concurrency ?? DEFAULT_CONCURRENCY, 1000);
  const giveUpMs = 1000 * wholeNumber('--give-up', flags.giveUp ?? DEFAULT_GIVE_UP_SECONDS, 1_000_000);
  return { urls, concurrency, giveUpMs, mayDiffer: flags.allowDifferentServers === true, config, tell: tellBetween };
}

/** Writes a line in the place of the progress, which is then drawn again below it. */
function tellBetween(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(ERASE_LINE);
  tell(line);
}

function counts({ answered, bad, parts }: Journal, { paths }: FileRunPlan): string {
  const refused = bad === 0 ? 'none bad' : `${grouped(bad)} bad, see ${paths.errors}`;
  return `${grouped(answered)} rows answered${parts > 0 ? ` in ${grouped(parts)} parts` : ''}, ${refused}`;
}

/** Returns the command with `--resume`, to be pasted into a shell. */
export function resumeCommand(args: readonly string[]): string {
  const again = args.filter((arg) => arg !== '--resume' && arg !== '--overwrite');
  return ['svc', ...again, '--resume'].map(shellQuoted).join(' ');
}

function shellQuoted(arg: string): string {
  if (/^[\w./:@%+=,\\-]+$/.test(arg) && (process.platform === 'win32' || !arg.includes('\\'))) return arg;
  return process.platform === 'win32' ? `"${arg}"` : `'${arg.replaceAll("'", "'\\''")}'`;
}
