/** `svc doctor`: looks at everything that a server needs, and says what to do. */

import { checkCpu } from '../doctor/cpu.ts';
import { type Finding, problem } from '../doctor/finding.ts';
import { checkHub } from '../doctor/hub.ts';
import { checkMemory, checkNode } from '../doctor/machine.ts';
import { checkModel } from '../doctor/model.ts';
import { checkConfig, checkCredentials, checkFolders, checkPort } from '../doctor/settings.ts';
import { printable } from '../log/printable.ts';
import { Refusal } from '../refusal.ts';
import { type Flags, type LoadedConfig, loadConfig, processEnvironment } from '../settings/config.ts';

export interface DoctorFlags extends Flags {
  readonly json?: boolean;
}

/** Resolves once everything is checked and the findings are on stdout; the exit code is 1 when there is a problem. */
export async function doctor({ json = false, ...flags }: DoctorFlags): Promise<void> {
  const findings = [checkNode(), checkCpu(), checkMemory(), ...(await checkSettings(flags))];
  const status = worst(findings);
  process.stdout.write(json ? `${JSON.stringify({ status, findings }, null, 2)}\n` : report(findings));
  if (status === 'problem') process.exitCode = 1;
}

/** Returns the findings about the settings and all that depends on them; wrong settings are the only finding then. */
async function checkSettings(flags: Flags): Promise<Finding[]> {
  let loaded: LoadedConfig;
  try {
    loaded = loadConfig({ flags, listens: true });
  } catch (error) {
    if (error instanceof Refusal) return [problem('config', error.message, 'correct it, then look again')];
    throw error;
  }
  const { config } = loaded;
  return [
    ...checkConfig(loaded),
    ...checkFolders(config),
    ...checkCredentials(config, processEnvironment().SVC_CONTAINER === '1'),
    await checkPort(config),
    ...checkHub(config),
    ...(await checkModel(config)),
  ];
}

function worst(findings: readonly Finding[]): Finding['status'] {
  const all = findings.map(({ status }) => status);
  return (['problem', 'warning'] as const).find((status) => all.includes(status)) ?? 'ok';
}

function report(findings: readonly Finding[]): string {
  const lines = findings.flatMap(({ check, status, message, advice }) => [
    `${status.padEnd(8)} ${check.padEnd(11)} ${printable(message)}`,
    ...(advice === undefined ? [] : [`${' '.repeat(21)}-> ${printable(advice)}`]),
  ]);
  const count = (status: Finding['status']) => findings.filter((finding) => finding.status === status).length;
  const plural = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`;
  const total = `${count('ok')} ok, ${plural(count('warning'), 'warning')}, ${plural(count('problem'), 'problem')}`;
  return [...lines, total, ''].join('\n');
}
