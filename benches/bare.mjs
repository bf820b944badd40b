/**
 * Runs the bare graph with onnxruntime in a process of its own (`peers/python/bare.py`), for the floor and the sweep.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { MODEL } from './inputs.mjs';

/** Returns the settings of the engine's sessions. */
export function engineSetting(threads) {
  return { threads, entries: { 'session.intra_op.spin_duration_us': '20', 'session.force_spinning_stop': '1' } };
}

/** A process that runs the embedded model's graph. */
export class Bare {
  #child;
  #replies;

  constructor(python, environment = {}) {
    this.#child = spawn(python, [join('benches', 'peers', 'python', 'bare.py'), MODEL], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...environment },
    });
    this.#replies = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** Loads an input, and resolves with the logits of each question, in the order of its outcomes. */
  async load({ name, rows }) {
    return (await this.#order({ load: { name, rows } })).logits;
  }

  /** Resolves with the milliseconds of each of `times` runs of a loaded input. */
  async time({ name, kept, setting, way = 'plain', times }) {
    return (await this.#order({ time: name, kept, setting, way, times })).ms;
  }

  async close() {
    const exited = once(this.#child, 'exit');
    this.#child.stdin.end();
    await exited;
  }

  async #order(order) {
    this.#child.stdin.write(`${JSON.stringify(order)}\n`);
    const { value, done } = await this.#replies.next();
    if (done) throw new Error('bare.py ended');
    return JSON.parse(value);
  }
}
