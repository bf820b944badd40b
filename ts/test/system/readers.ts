/**
 * The two kinds of readers of the documentation: one in a clone, and one who has installed the package with npm. Each
 * has a folder of its own, in which its server runs and its commands are given.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { ProcessOutput } from '../process-output.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import type { IsolatedRegistry } from './isolated-registry.ts';

export interface Reader {
  readonly folder: string;
  /** The address of the reader's server. */
  readonly origin: string;
  run(command: readonly string[]): Promise<Ended>;
  /** Runs a script of the shell. */
  shell(script: string): Promise<Ended>;
  /** Runs a script that starts a server, and ends it once its model is loaded. */
  serve(script: string): Promise<void>;
}

const STRICT = ['bash', '-euo', 'pipefail', '-c'];

/** In a clone there is no package of that name, so the program of the clone stands for it. */
const NPX = `npx() { [ "$1" = @svc/server ] && shift && '${process.execPath}' '${join(REPOSITORY, 'bin', 'svc.js')}' "$@"; }`;

/** Returns a reader in a clone. */
export async function readerInClone(test: TestContext): Promise<Reader> {
  const folder = temporaryFolder(test);
  mkdirSync(join(folder, 'node_modules', '@svc'), { recursive: true });
  symlinkSync(REPOSITORY, join(folder, 'node_modules', '@svc', 'server'));
  // Port 0 stands for a free port, whatever else runs on this machine.
  writeFileSync(join(folder, 'svc.json'), JSON.stringify({ listen: '127.0.0.1:0' }));
  const server = await LiveServer.start(test, { cwd: folder });
  const run = ([program = '', ...args]: readonly string[]) => runCommand(program, { args, cwd: folder });
  return {
    folder,
    origin: server.url.origin,
    run,
    shell: (script) => run([...STRICT, `${NPX}\n${script}`]),
    serve: (script) => served(spawnGroup([...STRICT, `${NPX}\n${script}`], folder)),
  };
}

/** Returns a reader who has installed the package from `registry`, in whose network its commands run. */
export async function readerOfPackage(test: TestContext, registry: IsolatedRegistry): Promise<Reader> {
  const folder = temporaryFolder(test);
  const run = (command: readonly string[]) => registry.run(command, { cwd: folder });
  const install = await run(['npm', 'install', '@svc/server']);
  if (install.code !== 0) throw new Error(install.stderr);
  const serve = (script: string) => registry.spawn([...STRICT, script], { cwd: folder });
  const server = serve('exec node_modules/.bin/svc');
  test.after(() => end(server));
  await new ProcessOutput(server).logged(/model .* loaded/);
  return {
    folder,
    origin: 'http://127.0.0.1:21118',
    run,
    shell: (script) => run([...STRICT, script]),
    serve: (script) => served(serve(script)),
  };
}

/** Starts a command in a process group of its own, which can be ended as a whole. */
export function spawnGroup([program = '', ...args]: readonly string[], cwd: string): ChildProcess {
  return spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
}

async function served(server: ChildProcess): Promise<void> {
  const output = new ProcessOutput(server);
  try {
    await output.logged(/model .* loaded/);
  } finally {
    end(server);
    await output.finished;
  }
}

function end({ pid }: ChildProcess): void {
  // Between npx and the server there may be a shell that does not pass a signal on.
  if (pid !== undefined) process.kill(-pid, 'SIGTERM');
}
