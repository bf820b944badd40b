/** Checks of the runtime library and the model: both are loaded, and the model makes one decision. */

import { defaultRuntime } from '../engine/addon.ts';
import { type Engine, EngineError } from '../engine/contract.ts';
import type { ErrorCode } from '../errors.ts';
import { loadConfiguredEngine } from '../model/load.ts';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const REQUEST = Buffer.from(
  '{"state":"I was charged twice.","questions":{"q":{"type":"noul","instructions":"Does the customer want money back?"}}}',
);

/** The check that an error of the start belongs to, and the advice. */
const ADVICE: Partial<Record<ErrorCode, readonly [check: string, advice: string]>> = {
  runtime_not_found: ['runtime', 'correct runtime, or leave it out for the one that is shipped'],
  runtime_failed: ['runtime', 'use a build for this machine, or leave runtime out for the one that is shipped'],
  bad_threads: ['model', 'correct threads, or leave it out'],
  bad_model: ['model', 'restore the folder, or correct model'],
  bad_device: ['device', 'set device to auto or cpu, or install what is missing: docs/devices.md says what'],
};

export async function checkModel(config: Config): Promise<Finding[]> {
  const startMs = performance.now();
  try {
    const { engine } = await loadConfiguredEngine(config);
    const loadMs = performance.now() - startMs;
    const runtime = ok('runtime', `${config.runtime || defaultRuntime()} is loaded`);
    const parallel = parallelFindings(config.parallel, engine.info());
    return [runtime, ...(await decideOnce(engine, loadMs).finally(() => engine.close())), ...parallel];
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const code = error.cause instanceof EngineError ? error.cause.code : '';
    const [check, advice] = ADVICE[code as ErrorCode] ?? ['model', undefined];
    return [problem(check, error.message, advice)];
  }
}

async function decideOnce(engine: Engine, loadMs: number): Promise<Finding[]> {
  const { name, version, device, threads, deviceNotes, exactness, exactnessNote } = engine.info();
  // The processor only comes last where `device` is `auto`: that a machine has no accelerator is no fault then.
  const used = device === 'cpu' ? 'cpu is used, as no other was asked for; ' : '';
  const notes = deviceNotes.map((note) => ok('device', `${used}${note}`));
  if (exactnessNote === undefined)
    notes.push(ok('products', 'the 8-bit products of the model are exact here, or it has none'));
  else if (exactness === 'made exact') notes.push(ok('products', exactnessNote));
  else notes.push(warning('products', exactnessNote, INEXACT));
  const reply = await engine.decide(REQUEST);
  if (reply.failure !== undefined) {
    return [
      ...notes,
      problem('model', `${name} ${version} gives no answer: ${reply.failure.message}`, 'restore the folder'),
    ];
  }
  const times = `loaded in ${Math.round(loadMs)} ms, one decision in ${reply.timing.totalMs.toFixed(1)} ms`;
  const findings = [...notes, ok('model', `${name} ${version} on ${device}, ${threads} threads: ${times}`)];
  return reply.timing.totalMs > SLOW_MS ? [...findings, warning('model', SLOW)] : findings;
}

/** Returns the finding about the requests that may be on the model at once, unless that is one, as by default. */
export function parallelFindings(
  parallel: Config['parallel'],
  { device, threads }: Pick<ReturnType<Engine['info']>, 'device' | 'threads'>,
): Finding[] {
  if (parallel === 1) return [];
  const most = device === 'cpu' ? threads : 1;
  const atOnce = parallel === 'auto' ? most : Math.min(parallel, most);
  const message = `at most ${atOnce} on the model at once (parallel is ${parallel})`;
  if (parallel === 'auto' || parallel <= most) return [ok('parallel', message)];
  const reason = device === 'cpu' ? `there are ${threads} threads` : `${device} has one at a time`;
  return [warning('parallel', `${message}: ${reason}`, `set parallel to ${most === 1 ? '1' : `${most}, or to auto`}`)];
}

const INEXACT =
  'use a graph in fp32, or with weights of 7 bits or unsigned ones, or a processor with VNNI: docs/devices.md';
const SLOW_MS = 1000;
const SLOW = 'a decision takes more than a second: the machine is busy, or too slow for this model';
