/** The sweeps: the part that grows, its sizes, and the requests at each size. */
import os from 'node:os';
import { choice, QUESTION_TOKENS, questions, state } from './texts.mjs';

/** Settings with enough memory to keep every state of the sweeps, in chunks and joined. */
const KEEP_ALL = { SVC_STATE_CACHE_BYTES: String(2 ** 31) };
const KEEP_NONE = { SVC_STATE_CACHE_BYTES: '0' };

const STATE_TOKENS = 164;
const THREADS = os.availableParallelism();

const body = (stateTokens, asked) => JSON.stringify({ state: state(stateTokens), questions: asked });

/** Returns `first`, doubled again and again below `last`, and then `last`. */
function doubled(first, last) {
  const values = [];
  for (let value = first; value < last; value *= 2) values.push(value);
  return [...values, last];
}

/** Returns a series on a new state and one on a kept state. */
const newAndKept = (series) => [
  { name: 'new state', settings: () => KEEP_NONE, ...series },
  { name: 'kept state', settings: () => KEEP_ALL, ...series },
];

/**
 * The sweeps, with their `sizes` and their series. `settings` are those of a series' server at a size; sizes with the
 * same settings share a server. `body` is the request of a size, and `tokens` the number of tokens that it must have.
 * `tail` is the size at which fixed cost has stopped to matter: the slope from there on must not be above `bound`.
 */
export const SWEEPS = [
  {
    name: 'questions',
    unit: 'questions',
    title: 'Questions in a request',
    about: `of 20 tokens, on a state of ${STATE_TOKENS} tokens`,
    sizes: doubled(1, 400),
    tail: 64,
    bound: 1,
    series: newAndKept({
      body: (count) => body(STATE_TOKENS, questions(count)),
      tokens: (count) => STATE_TOKENS + QUESTION_TOKENS * count,
    }),
  },
  {
    name: 'options',
    unit: 'options',
    title: 'Options of a choice',
    about: `one question on a new state of ${STATE_TOKENS} tokens`,
    sizes: doubled(2, 255),
    tail: 32,
    series: [
      { name: 'options of 3 tokens', settings: () => KEEP_NONE, body: (n) => body(STATE_TOKENS, choice(n, false)) },
      { name: 'options of 11 tokens', settings: () => KEEP_NONE, body: (n) => body(STATE_TOKENS, choice(n, true)) },
    ],
  },
  {
    name: 'state',
    unit: 'tokens of the state',
    title: 'Tokens of the state',
    about: 'one question of 20 tokens',
    sizes: [10, 32, 128, ...doubled(256, 16_000)],
    tail: 1024,
    bound: 1,
    series: newAndKept({
      body: (tokens) => body(tokens, questions(1)),
      tokens: (tokens) => tokens + QUESTION_TOKENS,
    }),
  },
  {
    name: 'connections',
    unit: 'connections',
    title: 'Connections that ask at the same time',
    about: 'one question of 20 tokens each, each again as soon as it is answered',
    sizes: [1, 2, 4, 8, 32, 128, 512],
    tail: 8,
    bound: 1,
    isLoad: true,
    series: [
      { name: 'new state of 20 tokens', settings: () => KEEP_NONE, body: () => body(20, questions(1)) },
      { name: 'kept state of 164 tokens', settings: () => KEEP_ALL, body: () => body(STATE_TOKENS, questions(1)) },
    ],
  },
  {
    name: 'threads',
    unit: 'threads',
    title: 'Threads of the engine',
    about: `\`threads\` in the settings, on a machine of ${THREADS} cores`,
    sizes: doubled(1, THREADS),
    tail: 1,
    series: [
      series(1, 'new state of 164 tokens', KEEP_NONE, STATE_TOKENS),
      series(8, 'new state of 164 tokens', KEEP_NONE, STATE_TOKENS),
      series(1, 'new state of 912 tokens', KEEP_NONE, 912),
      series(1, 'kept state of 164 tokens', KEEP_ALL, STATE_TOKENS),
      series(8, 'kept state of 164 tokens', KEEP_ALL, STATE_TOKENS),
    ],
  },
];

function series(count, on, keep, stateTokens) {
  return {
    name: `${count} question${count > 1 ? 's' : ''}, ${on}`,
    settings: (threads) => ({ ...keep, SVC_THREADS: String(threads) }),
    body: () => body(stateTokens, questions(count)),
  };
}
