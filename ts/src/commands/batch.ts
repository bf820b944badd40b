/** `svc batch`: answers one set of questions about many states from a file, and writes the answers to a file. */
import type { Decider } from '../file-run/decider.ts';
import { engineDecider } from '../file-run/here.ts';
import type { Journal } from '../file-run/journal.ts';
import { type FileRunOptions, type FileRunPlan, fileRunPlan, wholeNumber } from '../file-run/plan.ts';
import { duration, ERASE_LINE, grouped, showProgress } from '../file-run/progress.ts';
import type { Source } from '../file-run/row.ts';
import { beginning, openInput, runFile } from '../file-run/run.ts';
import { serversDecider } from '../file-run/servers.ts';
import { tell } from '../log/tell.ts';
import { Refusal } from '../refusal.ts';
import { type Config, type Flags, processEnvironment } from '../settings/config.ts';
import { commandSettings } from './command-settings.ts';
import { Stopped, stopSignal } from './stop-signal.ts';
import { programName, shellQuoted } from './welcome.ts';

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
  if (plan.input === '-' && process.stdin.isTTY)
    tell('type the rows, one on each line; the end of the input ends them');
  const source = await openInput(plan, config.maxBodyBytes);
  try {
    if (plan.isStream) {
      await stream({ plan, source, flags, config });
      return;
    }
    const begun = await beginning(plan, source);
    if (begun.done) tell(`${plan.output}: complete already, ${counts(begun, plan)}`);
    else await work({ plan, source, begun, flags, config });
  } finally {
    await source.close();
  }
}

interface StreamWork {
  readonly plan: FileRunPlan;
  readonly source: Source;
  readonly flags: BatchFlags;
  readonly config: Config;
}

interface Work extends StreamWork {
  readonly begun: Journal;
}

async function stream({ plan, source, flags, config }: StreamWork): Promise<void> {
  const startMs = performance.now();
  const stop = stopSignal();
  const decider = await openDecider(flags, config, stop);
  let rows = 0;
  try {
    const { answerStream } = await import('./batch-stream.ts');
    const onRow = ({ answered, bad }: Journal) => {
      rows = answered + bad;
    };
    const { answered, bad } = await answerStream({ plan, source, decider, stop, onRow });
    const refused = bad === 0 ? 'none bad' : `${grouped(bad)} bad`;
    tell(`${grouped(answered)} rows answered, ${refused}, in ${duration((performance.now() - startMs) / 1000)}`);
    const isGuessed = plan.input === '-' && flags.format === undefined;
    if (isGuessed && answered === 0 && bad > 0) tell('stdin was read as JSON lines; --format csv reads CSV');
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    tell(`stopped after ${grouped(rows)} rows`);
    process.exitCode = error.exitCode;
  } finally {
    await decider.close();
  }
}

function openDecider(flags: BatchFlags, config: Config, stop: AbortSignal): Promise<Decider> {
  return flags.url ? serversDecider(servers(flags.url, flags, config), stop) : engineDecider(config, stop);
}

async function work({ plan, source, begun, flags, config }: Work): Promise<void> {
  const startMs = performance.now();
  const stop = stopSignal();
  const decider = await openDecider(flags, config, stop);
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
export function resumeCommand(args: readonly string[], program = programName(processEnvironment())): string {
  const again = args.filter((arg) => arg !== '--resume' && arg !== '--overwrite');
  return `${program} ${[...again, '--resume'].map(shellQuoted).join(' ')}`;
}
