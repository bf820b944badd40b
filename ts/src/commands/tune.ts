/** `svc tune`: fits the probabilities of a user's own questions to labelled rows, and writes a model folder. */
import { grouped, showProgress } from '../file-run/progress.ts';
import { printableLines } from '../log/printable.ts';
import { tell } from '../log/tell.ts';
import { familyOf, isMakersForm } from '../model/family.ts';
import { inspectConfiguredModel } from '../model/load.ts';
import { Refusal, WrongUsage } from '../refusal.ts';
import type { Flags } from '../settings/config.ts';
import { readLabels } from '../tune/labels.ts';
import { reportJson, reportText, type Tuned } from '../tune/report.ts';
import { runTune, type TuneRun } from '../tune/run.ts';
import { commandSettings } from './command-settings.ts';
import { Stopped, stopSignal } from './stop-signal.ts';

export interface TuneFlags extends Flags {
  readonly data?: string;
  readonly out?: string;
  readonly seed?: string;
  readonly overwrite?: boolean;
  readonly json?: boolean;
}

/**
 * Resolves once the report is on stdout and the folder is written.
 *
 * @throws Refusal when the rows, the model or the folder are wrong, and when no question gets a calibration.
 */
export async function tune(flags: TuneFlags): Promise<void> {
  const { data, out, seed = '0', overwrite = false, json = false, ...engineFlags } = flags;
  if (data === undefined) throw new WrongUsage('which labelled rows? Give --data FILE; see svc tune --help');
  if (out === undefined) throw new WrongUsage('where does the model folder go? Give --out DIR; see svc tune --help');
  if (!/^\d{1,9}$/.test(seed)) throw new WrongUsage('--seed: must be a whole number from 0 to 999999999');
  const config = commandSettings(engineFlags);
  const rows = await readLabels(data, config.maxBodyBytes);
  const { dir, problems } = await inspectConfiguredModel(config);
  if (problems[0] !== undefined) throw new Refusal(problems[0]);
  const family = await familyOf(dir);
  if (isMakersForm(family)) {
    throw new Refusal(`${dir}: calibrations go into a config.json, and ${family.file} takes its place in this folder`);
  }

  const destination = { model: dir, out, data, overwrite };
  try {
    const tuned = await fitWithProgress({ rows, destination, config, seed: Number(seed) });
    await report(tuned, { out, json });
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    tell('stopped; nothing is written');
    process.exitCode = error.exitCode;
  }
}

async function fitWithProgress(run: Omit<TuneRun, 'stop' | 'onRows'>): Promise<Tuned[]> {
  let answered = 0;
  const onRows = (count: number) => {
    answered += count;
  };
  const endProgress = showProgress({
    isTerminal: process.stderr.isTTY,
    write: (text) => process.stderr.write(text),
    state: () => ({ rows: answered, bad: 0, share: answered / run.rows.length }),
  });
  return runTune({ ...run, stop: stopSignal(), onRows }).finally(endProgress);
}

async function report(tuned: readonly Tuned[], { out, json }: { readonly out: string; readonly json: boolean }) {
  const text = json ? `${JSON.stringify(reportJson(tuned), null, 2)}\n` : printableLines(reportText(tuned));
  await new Promise((resolve) => process.stdout.write(text, resolve));
  const count = tuned.filter(({ verdict }) => verdict.calibration !== undefined).length;
  if (count === 0) throw new Refusal(`no question gets a calibration, so ${out} is not written`);
  const counts = `${grouped(count)} of ${grouped(tuned.length)} questions calibrated`;
  tell(`${out}: ${counts}; svc serve --model ${out}`);
}
