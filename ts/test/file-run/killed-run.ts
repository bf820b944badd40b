/** A run that is killed again and again and resumed each time. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { fixture } from '../addon/model-folders.ts';
import { QUESTIONS, writeRows } from './run-files.ts';

const SVC = fileURLToPath(new URL('../../../bin/svc.js', import.meta.url));

export interface KillOptions {
  /** An empty folder for the run. */
  readonly folder: string;
  /** The name of the input; its ending is the format. */
  readonly name: string;
  readonly rows: number;
  /** The greatest number of kills; there may be fewer, since a run may be done before its kill. */
  readonly kills: number;
  /** The time that a run takes without a kill, in milliseconds; the kills come within it. */
  readonly runMs?: number;
}

export interface Killed {
  readonly kills: number;
  /** The time that the last run took, in milliseconds. */
  readonly runMs: number;
  /** The exit code or signal of the run that was not killed, and its messages. */
  readonly end: string;
}

/** Runs a file in `folder` to its end, and kills and resumes it at random moments before. */
export async function killedRun({ folder, name, rows, kills, runMs = 0 }: KillOptions): Promise<Killed> {
  writeRows(join(folder, name), rows);
  writeFileSync(join(folder, 'q.json'), QUESTIONS);
  for (let killed = 0; ; ) {
    const args = ['batch', name, '--questions', 'q.json', '--resume', '--part-rows', '300', '--state', 'text'];
    const model = ['--model', fixture('shared-state-int8'), '--device', 'cpu'];
    const started = performance.now();
    const child = spawn(process.execPath, [SVC, ...args, ...model], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const said = text(child.stderr);
    const ended = once(child, 'close');
    if (killed < kills) void killWithin(runMs, child, join(folder, `${name.replace('.', '.answers.')}.progress`));
    const [code, signal] = await ended;
    if (signal === 'SIGKILL') killed += 1;
    else return { kills: killed, runMs: performance.now() - started, end: `${code ?? signal} ${await said}` };
  }
}

/**
 * Kills a run: half of the time at any moment, otherwise soon after its journal has noted more rows, or late in the run
 * if the journal notes none.
 */
async function killWithin(runMs: number, child: ReturnType<typeof spawn>, journal: string): Promise<void> {
  if (Math.random() < 1 / 2) await sleep(Math.random() * runMs);
  else {
    const before = rowsNoted(journal);
    const late = performance.now() + 0.8 * runMs;
    while (child.exitCode === null && rowsNoted(journal) === before && performance.now() < late) await sleep(5);
    await sleep(Math.random() * 50);
  }
  child.kill('SIGKILL');
}

function rowsNoted(journal: string): number {
  try {
    return Number(JSON.parse(readFileSync(journal, 'utf8')).row);
  } catch {
    return 0;
  }
}
