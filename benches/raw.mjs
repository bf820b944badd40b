/** The graph run bare: ONNX Runtime in this process, on rows that are ready, as a program without a server would. */
import { join } from 'node:path';
import process from 'node:process';
import { MODEL, modelConfig } from './inputs.mjs';

// The library uploads usage data unless this is set before it is loaded.
process.env.ORT_DISABLE_TELEMETRY = '1';
const { InferenceSession, Tensor } = (await import('onnxruntime-node')).default;

const config = modelConfig();
const PARTS = Array.from({ length: config.layers }, (_, layer) => [`k${layer}`, `v${layer}`]).flat();
const PRESENT = PARTS.map((part) => `present_${part}`);

/** Opens the embedded model with the options that the engine sets, on `threads` intra-op threads. */
export async function openRaw(threads) {
  const session = await InferenceSession.create(join(MODEL, 'model.onnx'), {
    executionProviders: ['cpu'],
    graphOptimizationLevel: 'all',
    intraOpNumThreads: threads,
    enableMemPattern: false,
    // Threads that spin between two runs would slow down the server, which has its turn next.
    extra: { session: { force_spinning_stop: '1' } },
  });
  return new Raw(session);
}

class Raw {
  #session;
  /** Milliseconds inside `session.run` since `run` began. */
  #ms = 0;

  constructor(session) {
    this.#session = session;
  }

  /**
   * Makes what `run` needs of an input, outside of every measurement: the tensors of its rows, and, when the state is
   * kept, what its rows leave.
   */
  async prepare({ rows }, isKept) {
    const state = rows.state.map(tensors);
    const questions = rows.questions.map((question) => ({ ...question, rows: question.rows.map(tensors) }));
    return { state, questions, memory: isKept ? await this.#read(state) : undefined };
  }

  /**
   * Runs the state's rows, unless they are kept, then the questions' rows on what the former left.
   * @returns the logits of each question in the order of its outcomes, and the milliseconds inside ONNX Runtime
   */
  async run({ state, questions, memory }) {
    this.#ms = 0;
    const past = memory ?? (await this.#read(state));
    const logits = [];
    for (const question of questions) {
      const own = new Array(question.outcomes.length);
      for (const row of question.rows) {
        const { logits: values } = await this.#timed({ ...row.feeds, ...past }, ['logits']);
        for (const [index, outcome] of row.outcomes.entries()) own[outcome] = values.data[index];
      }
      logits.push(own);
    }
    return { logits, ms: this.#ms };
  }

  async #read(state) {
    const chunks = [];
    for (const row of state) chunks.push(await this.#timed({ ...row.feeds, ...past(EMPTY) }, PRESENT));
    return past(chunks.length > 1 ? joined(chunks) : (chunks[0] ?? EMPTY));
  }

  async #timed(feeds, outputs) {
    const start = performance.now();
    const result = await this.#session.run(feeds, outputs);
    this.#ms += performance.now() - start;
    return result;
  }
}

function tensors({ ids, positions, option_ids, markers, type_id, outcomes }) {
  const int64 = (values) => new Tensor('int64', BigInt64Array.from(values, BigInt), [values.length]);
  const feeds = {
    input_ids: int64(ids),
    positions: int64(positions),
    types: int64(ids.map(() => type_id)),
    option_ids: int64(option_ids),
    markers: int64(markers),
  };
  return { feeds, outcomes };
}

/** What a run left, as what the next one is given. */
function past(present) {
  return Object.fromEntries(PARTS.map((part) => [`past_${part}`, present[`present_${part}`]]));
}

const kept = (tokens, data) => new Tensor('float32', data, [1, config.heads, tokens, config.head_dim]);

/** The memory of no tokens. */
const EMPTY = Object.fromEntries(PRESENT.map((name) => [name, kept(0, new Float32Array(0))]));

/** Joins what the chunks left, `[1, heads, tokens, head_dim]` each, along the tokens. */
function joined(chunks) {
  return Object.fromEntries(PRESENT.map((name) => [name, join4(chunks.map((chunk) => chunk[name]))]));
}

function join4(parts) {
  const lengths = parts.map(({ dims }) => dims[2] * config.head_dim);
  const data = new Float32Array(lengths.reduce((total, length) => total + length, 0) * config.heads);
  let at = 0;
  for (let head = 0; head < config.heads; head += 1) {
    for (const [index, part] of parts.entries()) {
      data.set(part.data.subarray(head * lengths[index], (head + 1) * lengths[index]), at);
      at += lengths[index];
    }
  }
  return kept(data.length / config.heads / config.head_dim, data);
}
