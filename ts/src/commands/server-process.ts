/** The server beside the gate, a process that starts and ends with the gate. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { errorCode } from '../files/system-error.ts';
import { bareHost } from '../gate/loop.ts';
import type { GateFlags } from '../gate/settings.ts';
import { type Address, formatAddress, OWNER_ONLY } from '../network/address.ts';
import { requireFreeAddress } from '../network/listen.ts';
import { reach, socketOf } from '../network/reach.ts';
import type { Environment } from '../settings/config.ts';

const PROGRAM = fileURLToPath(new URL('./beside.js', import.meta.url));

const READY_CHECK_MS = 50;
/** A readiness check that takes longer than this is repeated. */
const MAX_ANSWER_MS = 1000;

/** The interval of the messages about a server that is not ready: it may be fetching a large model, or be stuck. */
const TELL_EVERY_MS = 60_000;

/** The flags that go to the server, by their names in `GateFlags`. */
const SERVER_FLAGS = [
  'config',
  'device',
  'model',
  'modelFile',
  'runtime',
  'threads',
  'parallel',
  'logLevel',
  'logFormat',
] as const;

export class ServerProcess {
  /** Resolves with the way in which the process ended, in words. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #upstream: URL;

  /**
   * Starts `svc serve` on the address of `upstream`. Its log goes to stderr, as the gate's own lines do.
   *
   * @throws Refusal when another process listens there: the gate would take it for the server.
   */
  static async start(upstream: URL, flags: GateFlags, env: Environment): Promise<ServerProcess> {
    const address = addressOf(upstream);
    await requireFreeAddress(address);
    const args = ['--listen', formatAddress(address), ...serverArguments(flags)];
    return new ServerProcess(upstream, args, serverEnvironment(env));
  }

  private constructor(upstream: URL, args: readonly string[], env: Environment) {
    this.#upstream = upstream;
    this.#child = spawn(process.execPath, [PROGRAM, ...args], {
      // The channel tells the server that the gate has ended, in whatever way it ends.
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // The server has a process group of its own: Ctrl-C is meant for the gate, which ends the server after itself.
      detached: process.platform !== 'win32',
      env,
    });
    this.ended = once(this.#child, 'exit').then(
      ([code, signal]) => signal ?? `exit code ${code}`,
      (error: unknown) => errorCode(error) || String(error),
    );
    // A gate that has to end at once does not leave the server behind.
    process.once('exit', () => this.#child.kill('SIGKILL'));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /**
   * Resolves with true once the server takes requests, or with false if it ends before that.
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
      const response = await reach(url, { redirect: 'error', signal: AbortSignal.timeout(MAX_ANSWER_MS) }).catch(
        () => undefined,
      );
      await response?.body?.cancel();
      if (response?.ok) return true;
      await sleep(READY_CHECK_MS);
    }
    return false;
  }

  /**
   * Resolves once the server has finished its requests and ended. A server that takes longer than `maxMs` is killed.
   *
   * @param maxMs - The longest time for it, in milliseconds.
   *
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
  const socket = socketOf(upstream);
  if (socket !== undefined) return { socket, mode: OWNER_ONLY };
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
 * Returns the environment of the server. The gate's key stays with the gate, whose check is the only one: behind it the
 * server's own key is off. The rules of the container image are for a server that can be reached from outside. Once the
 * gate disconnects, the server gets no further requests, so it needs no drain delay.
 */
function serverEnvironment(env: Environment): Environment {
  const kept = Object.entries(env).filter(([name]) => !/^(GATE_.*|SVC_API_KEY|SVC_CONTAINER)$/i.test(name));
  return { ...Object.fromEntries(kept), SVC_ALLOW_NO_API_KEY: '1', SVC_DRAIN_DELAY_MS: '0', SVC_LISTEN_MODE: '0600' };
}
