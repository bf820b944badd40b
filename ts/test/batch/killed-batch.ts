/** A batch that is killed again and again, and goes on. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { fixture } from '../addon/model-folders.ts';
import { QUESTIONS, writeRows } from './batch-files.ts';

const SVC = fileURLToPath(new URL('../../../bin/svc.js', import.meta.url));

export interface KillOptions {
  /** An empty folder. */
  readonly folder: string;
  /** The input's name; the ending is the format. */
  readonly name: string;
  readonly rows: number;
  /** How often it is killed at most: a fast machine may be done before. */
  readonly kills: number;
}

export interface Killed {
  readonly kills: number;
  /** What each run said and how it ended, but for those that were killed. */
  readonly end: string;
}

/** Runs a batch in `folder` to its end, with kills at random moments before. */
export async function killedBatch({ folder, name, rows, kills }: KillOptions): Promise<Killed> {
  writeRows(join(folder, name), rows);
  writeFileSync(join(folder, 'q.json'), QUESTIONS);
  for (let killed = 0; ; ) {
    const args = ['batch', name, '--questions', 'q.json', '--resume', '--part-rows', '300', '--state', 'text'];
    const model = ['--model', fixture('shared-state-int8'), '--device', 'cpu'];
    const child = spawn(process.execPath, [SVC, ...args, ...model], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const said = text(child.stderr);
    const ended = once(child, 'close');
    if (killed < kills) void killAt(child, join(folder, `${name.replace('.', '.answers.')}.progress`));
    const [code, signal] = await ended;
    if (signal === 'SIGKILL') killed += 1;
    else return { kills: killed, end: `${code ?? signal} ${await said}` };
  }
}

/** Every third time while it starts, else some time after it has noted its first rows. */
async function killAt(child: ReturnType<typeof spawn>, journal: string): Promise<void> {
  const before = rowsNoted(journal);
  if (Math.random() < 1 / 3) await sleep(Math.random() * 600);
  else {
    while (child.exitCode === null && rowsNoted(journal) === before) await sleep(5);
    await sleep(Math.random() * 300);
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
