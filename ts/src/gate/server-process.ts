/** The server beside the gate, as a process that starts and ends with it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Address, formatAddress } from '../address.ts';
import type { Environment } from '../config.ts';
import { errorCode } from '../exclusive-file.ts';
import { requireFree } from '../server.ts';
import { bareHost } from './loop.ts';
import type { GateFlags } from './settings.ts';

const PROGRAM = fileURLToPath(new URL('./beside.js', import.meta.url));

const READY_CHECK_MS = 50;
/** A server that takes longer to say whether it is ready is asked again. */
const MAX_ANSWER_MS = 1000;

/** How often a server that is not ready is told of: a large model may be on its way, or nothing at all. */
const TELL_EVERY_MS = 60_000;

/** Flags that are the server's, by their names in `GateFlags`. */
const SERVER_FLAGS = ['config', 'device', 'model', 'runtime', 'threads', 'logLevel', 'logFormat'] as const;

export class ServerProcess {
  /** Resolves with how the process ended, as words. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #upstream: URL;

  /**
   * Starts `svc serve` on the address of `upstream`. What it logs goes to stderr as the gate's own lines do.
   *
   * @throws Refusal when another process listens there: it would be taken for the server.
   */
  static async start(upstream: URL, flags: GateFlags, env: Environment): Promise<ServerProcess> {
    const address = addressOf(upstream);
    await requireFree(address);
    const args = ['--listen', formatAddress(address), ...serverArguments(flags)];
    return new ServerProcess(upstream, args, serverEnvironment(env));
  }

  private constructor(upstream: URL, args: readonly string[], env: Environment) {
    this.#upstream = upstream;
    this.#child = spawn(process.execPath, [PROGRAM, ...args], {
      // The channel tells the server when the gate ends, however it ends.
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // A group of its own: Ctrl-C is for the gate, which ends the server after itself.
      detached: process.platform !== 'win32',
      env,
    });
    this.ended = once(this.#child, 'exit').then(
      ([code, signal]) => signal ?? `exit code ${code}`,
      (error: unknown) => errorCode(error) || String(error),
    );
    // A gate that is told to end at once does not leave it behind.
    process.once('exit', () => this.#child.kill('SIGKILL'));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /**
   * True once the server takes requests, false when it has ended before that.
   *
   * @param tell - Called every minute, or every `everyMs`, until then.
   */
  async ready(tell: () => void, everyMs = TELL_EVERY_MS): Promise<boolean> {
    const timer = setInterval(tell, everyMs);
    try {
      return await this.#isReady();
    } finally {
      clearInterval(timer);
    }
  }

  async #isReady(): Promise<boolean> {
    let isOver = false;
    this.ended.then(() => {
      isOver = true;
    });
    const url = new URL('/readyz', this.#upstream);
    while (!isOver) {
      const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(MAX_ANSWER_MS) }).catch(
        () => undefined,
      );
      await response?.body?.cancel();
      if (response?.ok) return true;
      await sleep(READY_CHECK_MS);
    }
    return false;
  }

  /**
   * Resolves once the server has finished its requests and ended. One that hangs is killed.
   *
   * @param maxMs - How long it may take.
   * @returns whether it ended by itself
   */
  async stop(maxMs: number): Promise<boolean> {
    if (this.#child.connected) this.#child.disconnect();
    const over = sleep(maxMs, false, { ref: false });
    const hasEnded = await Promise.race([this.ended.then(() => true), over]);
    if (!hasEnded) this.#child.kill('SIGKILL');
    await this.ended;
    return hasEnded;
  }
}

function addressOf(upstream: URL): Address {
  return { host: bareHost(upstream), port: Number(upstream.port || 80) };
}

function serverArguments(flags: GateFlags): string[] {
  return SERVER_FLAGS.flatMap((flag) => {
    const value = flags[flag];
    const name = `--${flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return value === undefined ? [] : [name, value];
  });
}

/**
 * The gate's key is the gate's alone, and its check is the only one: behind it the server's own key is off. The rules of
 * the container image are for a server that can be reached from outside. When the gate lets go of it nobody asks it any
 * more, so there is nothing to wait for.
 */
function serverEnvironment(env: Environment): Environment {
  const kept = Object.entries(env).filter(([name]) => !/^(GATE_.*|SVC_API_KEY|SVC_CONTAINER)$/i.test(name));
  return { ...Object.fromEntries(kept), SVC_ALLOW_NO_API_KEY: '1', SVC_DRAIN_DELAY_MS: '0' };
}
