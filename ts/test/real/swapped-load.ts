/** A server whose model is swapped again and again while callers ask. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answersText, fixture } from '../addon/model-folders.ts';
import { differentRequest } from '../addon/requests.ts';
import { type Ending, temporaryFolder } from '../temporary-folder.ts';
import { LiveServer } from './live-server.ts';

const MODELS = [fixture('shared-state'), fixture('marker')] as const;
const BODIES = Array.from({ length: 60 }, (_, n) => differentRequest(n));
const BATCH = JSON.stringify({
  states: Array.from({ length: 20 }, (_, n) => `state ${n}`),
  questions: { q: { type: 'noul', instructions: 'Is it late?' } },
});
const CALLERS = 8;
const SAMPLES = 20;

export interface SwappedLoad {
  /** The number of requests that were answered during the swaps, without batches. */
  readonly answers: number;
  readonly batches: number;
  /** The resident memory over time, in MiB. */
  readonly rssMiB: readonly number[];
}

/** The answers of one of the models without swaps: to every body, and to the batch. */
interface Known {
  readonly answers: readonly string[];
  readonly batch: string;
}

/**
 * Swaps the model of a server `swaps` times, back and forth, under load.
 *
 * @throws AssertionError if a request fails, or its answer is not that of one of the models.
 */
export async function swapUnderLoad(test: Ending, swaps: number): Promise<SwappedLoad> {
  const cwd = temporaryFolder(test);
  const setModel = (number: number) =>
    writeFileSync(join(cwd, 'svc.json'), JSON.stringify({ model: MODELS[number % 2], allow_no_password: true }));
  setModel(0);
  const server = await LiveServer.start(test, { cwd });
  const known: Known[] = [await answersOfNow(server)];
  setModel(1);
  await reload(server);
  known.push(await answersOfNow(server));
  for (const [at, answer] of (known[0]?.answers ?? []).entries()) assert.notEqual(answer, known[1]?.answers[at]);

  const load = new Load(server, known);
  const rssMiB: number[] = [];
  for (let number = 0; number < swaps; number++) {
    setModel(number);
    await reload(server);
    // A request after a reload is answered by the new model.
    const at = number % BODIES.length;
    assert.equal(answersText(await server.answer(BODIES[at] ?? '')), known[number % 2]?.answers[at]);
    if (number % Math.ceil(swaps / SAMPLES) === 0) rssMiB.push(await residentMiB(server));
  }
  return { ...(await load.end()), rssMiB };
}

/**
 * The greatest `growthMiB` that is allowed: V8's heap grows once by a step of about 13, and a process that kept all
 * models grew by 60 in 60 swaps.
 */
export const MAX_GROWTH_MIB = 30;

/** Returns by how many MiB the memory of a run's second half exceeds that of its first half, without the beginning. */
export function growthMiB(rssMiB: readonly number[]): number {
  const steady = rssMiB.slice(Math.ceil(rssMiB.length / 5));
  const half = Math.floor(steady.length / 2);
  return median(steady.slice(half)) - median(steady.slice(0, half));
}

class Load {
  readonly #server: LiveServer;
  readonly #known: readonly Known[];
  readonly #callers: Promise<unknown>;
  #isEnding = false;
  #answers = 0;
  #batches = 0;

  constructor(server: LiveServer, known: readonly Known[]) {
    this.#server = server;
    this.#known = known;
    this.#callers = Promise.all([this.#askBatches(), ...Array.from({ length: CALLERS }, () => this.#ask())]);
    // `end` throws the failure; until then no code waits for it, so the rejection is handled here.
    this.#callers.catch(() => {});
  }

  async end() {
    this.#isEnding = true;
    await this.#callers;
    return { answers: this.#answers, batches: this.#batches };
  }

  async #ask(): Promise<void> {
    while (!this.#isEnding) {
      const at = this.#answers++ % BODIES.length;
      const answer = answersText(await this.#server.answer(BODIES[at] ?? ''));
      assert.ok(
        this.#known.some(({ answers }) => answers[at] === answer),
        `${BODIES[at]}: ${answer}`,
      );
    }
  }

  async #askBatches(): Promise<void> {
    for (; !this.#isEnding; this.#batches++) {
      const answer = await batchAnswer(this.#server);
      assert.ok(
        this.#known.some(({ batch }) => batch === answer),
        answer,
      );
    }
  }
}

async function answersOfNow(server: LiveServer): Promise<Known> {
  const answers: string[] = [];
  for (const body of BODIES) answers.push(answersText(await server.answer(body)));
  return { answers, batch: await batchAnswer(server) };
}

async function batchAnswer(server: LiveServer): Promise<string> {
  const { status, text } = await server.send({ method: 'POST', path: '/v1/systemone/batch', body: BATCH });
  assert.equal(status, 200, text);
  return text.replaceAll(/"server_ms":[\d.]+/g, '');
}

async function reload(server: LiveServer): Promise<void> {
  const { status, text } = await server.send({ method: 'POST', path: '/reload' });
  assert.equal(status, 200, text);
}

async function residentMiB(server: LiveServer): Promise<number> {
  const { text } = await server.get('/metrics');
  return Math.round(Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1]) / 2 ** 20);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
