/**
 * An npm registry in a network of its own, from which nothing else can be reached, and commands that run in that
 * network. The commands find Node and npm, but no compiler.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';

const SOURCES = join(REPOSITORY, 'ts', 'test', 'system', 'registry');
const ADDRESS = '127.0.0.1:4873';

/** The command that becomes root, which makes and enters the network and then becomes a user again. */
const AS_ROOT = process.geteuid?.() === 0 ? [] : ['sudo', '-n'];
const [CALLER = 0, CALLER_GROUP = 0] = [process.geteuid?.(), process.getegid?.()];

/** Returns the command that becomes a user and group. */
function becoming(user: number, group: number): readonly string[] {
  return ['setpriv', `--reuid=${user}`, `--regid=${group}`, '--clear-groups'];
}

/** The programs that `npm` and the commands that it starts need in addition to Node. */
const COMMANDS = ['env', 'sh'];

export interface InsideOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The user and group of the command, which only root may choose; those of this process by default. */
  readonly user?: number;
  /** The time after which a command that hangs is killed. */
  readonly timeoutMs?: number;
}

/** Returns a folder with the programs of `IsolatedRegistry` and others, which is its whole PATH. */
function makePath(folder: string, others: readonly string[]): string {
  const path = join(folder, 'path');
  mkdirSync(path);
  const npm = join(dirname(execFileSync('which', ['npm'], { encoding: 'utf8' }).trim()), 'npm');
  symlinkSync(process.execPath, join(path, 'node'));
  for (const name of ['npm', 'npx']) symlinkSync(join(dirname(npm), name), join(path, name));
  for (const name of [...COMMANDS, ...others]) {
    symlinkSync(execFileSync('which', [name], { encoding: 'utf8' }).trim(), join(path, name));
  }
  return path;
}

export class IsolatedRegistry {
  readonly #folder: string;
  readonly #server: ChildProcess;
  readonly #path: string;

  private constructor(folder: string, server: ChildProcess, commands: readonly string[]) {
    this.#folder = folder;
    this.#server = server;
    this.#path = makePath(folder, commands);
  }

  /** Installs the registry and starts it, empty. `commands` are found in its network, in addition to Node and npm. */
  static async start(commands: readonly string[] = []): Promise<IsolatedRegistry> {
    const folder = mkdtempSync(join(tmpdir(), 'svc-registry-'));
    // Other users must be able to enter the folder.
    chmodSync(folder, 0o755);
    for (const name of ['package.json', 'config.yaml']) copyFileSync(join(SOURCES, name), join(folder, name));
    execFileSync('npm', ['install', '--no-audit', '--no-package-lock', '--silent'], { cwd: folder, stdio: 'inherit' });
    writeFileSync(join(folder, 'npmrc'), npmSettings(folder));
    const program = join(folder, 'node_modules', 'verdaccio', 'bin', 'verdaccio');
    const inside = ['unshare', '--net', 'sh', '-c', 'ip link set lo up && echo $$ >pid && exec "$@"', 'sh'];
    // NODE_NO_WARNINGS hides the registry's warning that it runs as root, which it must here if this process does.
    const serve = ['env', `HOME=${folder}`, 'NODE_NO_WARNINGS=1', process.execPath, program];
    const options = ['--config', join(folder, 'config.yaml'), '--listen', ADDRESS];
    const [command = '', ...args] = [...AS_ROOT, ...inside, ...becoming(CALLER, CALLER_GROUP), ...serve, ...options];
    const server = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'], cwd: folder });
    const registry = new IsolatedRegistry(folder, server, commands);
    await registry.#answers();
    return registry;
  }

  /** Runs a command in the registry's network. */
  run(command: readonly string[], options: InsideOptions): Promise<Ended> {
    const { cwd, timeoutMs = 120_000 } = options;
    const [program = '', ...args] = this.#inside(command, options);
    return runCommand(program, { args, cwd, timeoutMs });
  }

  /** Starts a command in the registry's network, in a process group of its own. */
  spawn(command: readonly string[], options: InsideOptions): ChildProcess {
    const [program = '', ...args] = this.#inside(command, options);
    return spawn(program, args, { cwd: options.cwd, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  }

  #inside(command: readonly string[], { cwd, env = {}, user }: InsideOptions): readonly string[] {
    const own = { PATH: this.#path, HOME: cwd, npm_config_userconfig: join(this.#folder, 'npmrc'), ...env };
    const variables = Object.entries(own).map(([name, value]) => `${name}=${value}`);
    const as = user === undefined ? becoming(CALLER, CALLER_GROUP) : becoming(user, user);
    const enter = ['nsenter', '--target', String(this.#pid), '--net'];
    return [...AS_ROOT, ...enter, ...as, '/usr/bin/env', '-i', ...variables, ...command];
  }

  /** Returns the size of all packages as they are transferred, in bytes. */
  packedBytes(): number {
    const storage = join(this.#folder, 'storage');
    const files = readdirSync(storage, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tgz'));
    return files.reduce((sum, name) => sum + statSync(join(storage, name)).size, 0);
  }

  stop(): void {
    if (this.#pid !== undefined) process.kill(this.#pid, 'SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The process id of the registry, once it is in its network; `#server` is another process if sudo has started it. */
  get #pid(): number | undefined {
    const file = join(this.#folder, 'pid');
    const [, pid] = existsSync(file) ? (/^(\d+)\n$/.exec(readFileSync(file, 'utf8')) ?? []) : [];
    return pid === undefined ? undefined : Number(pid);
  }

  async #answers(): Promise<void> {
    const ping = `fetch('http://${ADDRESS}/-/ping').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))`;
    while (this.#server.exitCode === null) {
      await setImmediate();
      if (this.#pid === undefined) continue;
      const { code } = await this.run(['node', '-e', ping], { cwd: this.#folder });
      if (code === 0) return;
    }
    throw new Error('the registry does not start');
  }
}

/** Returns the settings of npm: this registry as the only one, and a token, without which npm publishes nothing. */
function npmSettings(folder: string): string {
  const lines = [`registry=http://${ADDRESS}/`, `//${ADDRESS}/:_authToken=none`, `cache=${join(folder, 'cache')}`];
  return [...lines, 'audit=false', 'fund=false', 'update-notifier=false', 'yes=true', ''].join('\n');
}
