/**
 * Makes the inputs next to this file: requests on states of an exact length, and the rows of tokens that the engine
 * makes from them for the embedded model.
 *
 *     node benches/inputs/make.mjs          remakes every input
 *     node benches/inputs/make.mjs --check  checks whether the inputs are up to date
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));

const FOLDER = 'benches/inputs';
const MODEL = 'models/svc-small';

/** The tokens of a state, including special ones: a short message, most of one chunk, four chunks, and sixteen. */
const STATE_TOKENS = [20, 164, 912, 4000];

/** The number of copies of the text in a row, which is enough for the longest state. */
const COPIES = 5;

/**
 * Every measured number of questions takes the first of these 16; the stages outside the model have files of their own.
 */
const MOST_QUESTIONS = 16;
const STAGE_QUESTIONS = [1, 8];
const STAGE_STATE_TOKENS = 912;

/** The questions, of 9 to 17 tokens each; a request with one question has the first. */
const QUESTIONS = {
  refund: { type: 'noul', instructions: 'Does the customer want money back?' },
  team: {
    type: 'choice',
    instructions: 'Which team?',
    criteria: { billing: 'payments', tech: 'bugs', sales: 'prices' },
  },
  anger: { type: 'score', instructions: 'How angry?', criteria: ['calm', 'annoyed'] },
  damage: { type: 'noul', instructions: 'Did something arrive broken?', criteria: { true: 'broken' } },
  channel: { type: 'choice', instructions: 'How did they write?', criteria: ['mail', 'phone', 'chat'] },
  twice: { type: 'noul', instructions: 'Was the customer charged twice?' },
  product: { type: 'choice', instructions: 'What was bought?', criteria: ['lamp', 'chair', 'phone'] },
  security: { type: 'noul', instructions: 'Is this about the safety of data?' },
  patience: { type: 'score', instructions: 'How patient?', criteria: ['no', 'yes'] },
  order: { type: 'noul', instructions: 'Does the message name an order?' },
  reason: {
    type: 'choice',
    instructions: 'Why do they write?',
    criteria: { money: 'payment', goods: 'delivery' },
  },
  again: { type: 'noul', instructions: 'Have they written to us before?' },
  urgency: { type: 'score', instructions: 'How urgent?', criteria: ['later', 'now'] },
  thanks: { type: 'noul', instructions: 'Does the customer thank anyone?', criteria: { false: 'no thanks' } },
  tone: { type: 'choice', instructions: 'What is the tone?', criteria: ['polite', 'cold', 'rude'] },
  person: { type: 'noul', instructions: 'Did they talk to a person of ours?' },
};

const text = readFileSync(`${FOLDER}/ticket.txt`, 'utf8');
const words = Array.from({ length: COPIES }, () => text.match(/\S+\s*/g)).flat();

/** Returns the rows of tokens that the engine makes from each request. */
function rows(bodies) {
  const args = ['run', '--quiet', '--release', '--locked', '-p', 'svc-engine', '--example', 'rows', '--', MODEL];
  const input = bodies.map((body) => `${body}\n`).join('');
  const { status, stdout } = spawnSync('cargo', args, {
    input,
    stdio: ['pipe', 'pipe', 'inherit'],
    maxBuffer: 2 ** 30,
  });
  if (status !== 0) process.exit(1);
  return stdout.toString().trimEnd().split('\n').map(JSON.parse);
}

function request(state, count) {
  return JSON.stringify({ state, questions: Object.fromEntries(Object.entries(QUESTIONS).slice(0, count)) });
}

const stateTokens = ({ state }) => state.reduce((total, row) => total + row.ids.length, 0);

/** Returns the beginnings of the text that have exactly the wanted numbers of tokens. */
function states() {
  const beginnings = words.map((_, index) =>
    words
      .slice(0, index + 1)
      .join('')
      .trimEnd(),
  );
  const lengths = rows(beginnings.map((text) => request(text, 1))).map(stateTokens);
  return STATE_TOKENS.map((tokens) => {
    const index = lengths.indexOf(tokens);
    if (index < 0) throw new Error(`no beginning of ticket.txt has ${tokens} tokens; it has ${lengths.at(-1)} in all`);
    return { tokens, text: beginnings[index] };
  });
}

const { sha256, files } = JSON.parse(readFileSync(`${MODEL}/config.json`, 'utf8'));
const model = { sha256, tokenizer: files['tokenizer.json'] };
const inputs = states().flatMap(({ tokens, text }) =>
  [...(tokens > STAGE_STATE_TOKENS ? [] : STAGE_QUESTIONS), MOST_QUESTIONS].map((questions) => ({
    stateTokens: tokens,
    questions,
    body: request(text, questions),
  })),
);
const plans = rows(inputs.map(({ body }) => body));
let changed = 0;
for (const [index, input] of inputs.entries()) {
  const file = `${FOLDER}/state-${input.stateTokens}-questions-${input.questions}.json`;
  const text = `${JSON.stringify({ ...input, model, rows: plans[index] })}\n`;
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) changed += 1;
  const lengths = plans[index].questions.map((question) => question.rows.map((row) => row.ids.length).join('+'));
  process.stdout.write(`${file}: questions of ${lengths.join(', ')} tokens\n`);
}
if (changed > 0) process.stderr.write(`${changed} of ${inputs.length} inputs are not what make.mjs makes\n`);
process.exitCode = changed > 0 ? 1 : 0;
