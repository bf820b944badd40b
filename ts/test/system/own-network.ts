/** A network of its own, in which every port of loopback is free and from which nothing else can be reached. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { type Ended, type RunOptions, runCommand } from '../addon/program.ts';

/** The command that becomes root, which makes and enters networks. */
const AS_ROOT = process.geteuid?.() === 0 ? [] : ['sudo', '-n'];

/** The longest life of a network; a test that fails to end it does not leave it behind for ever. */
const MAX_SECONDS = '3600';

export class OwnNetwork {
  readonly #enter: readonly string[];

  private constructor(pid: string) {
    this.#enter = [...AS_ROOT, 'nsenter', '--target', pid, '--net'];
  }

  /** Returns a network that exists until the test ends. */
  static async make(t: TestContext): Promise<OwnNetwork> {
    const script = `ip link set lo up && echo $$ && exec sleep ${MAX_SECONDS}`;
    const [command = '', ...args] = [...AS_ROOT, 'unshare', '--net', 'sh', '-c', script];
    const holder = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [pid] = await once(holder.stdout.setEncoding('utf8'), 'data');
    const network = new OwnNetwork(String(pid).trim());
    t.after(() => network.run(['kill', String(pid).trim()]));
    return network;
  }

  /** Returns the command that runs `command` in the network, as root. */
  command(command: readonly string[]): readonly [string, ...string[]] {
    const [program = '', ...args] = [...this.#enter, ...command];
    return [program, ...args];
  }

  /** Starts a command in the network. */
  start(command: readonly string[], { cwd, env = {} }: Pick<RunOptions, 'cwd' | 'env'> = {}): ChildProcess {
    const [program, ...args] = this.command(['env', ...pairs(env), ...command]);
    return spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** Runs a command in the network to its end. */
  run(command: readonly string[], { env = {}, ...options }: RunOptions = {}): Promise<Ended> {
    const [program, ...args] = this.command(['env', ...pairs(env), ...command]);
    return runCommand(program, { ...options, args });
  }
}

const pairs = (env: Readonly<Record<string, string>>) => Object.entries(env).map(([name, value]) => `${name}=${value}`);
