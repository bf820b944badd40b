import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { loadEngine } from '../../src/engine/addon.ts';
import type { EngineError } from '../../src/engine/contract.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { copyOfFixture, engineOptions, type Fixture, fixture, startEngine, textOf } from './model-folders.ts';
import { THREE_TYPES } from './requests.ts';

type Json = Record<string, unknown>;

/** A change to a copy of a good folder, and the message about it: the paths in it are relative to the folder. */
interface Spoilt {
  readonly what: string;
  readonly model?: Fixture;
  readonly spoil: (folder: string) => void;
  /** The file that the message starts with; empty for the folder itself. */
  readonly file?: string;
  readonly problem: RegExp;
}

/** Changes `config.json`. */
const config = (change: (config: Json) => void) => (folder: string) => {
  const file = join(folder, 'config.json');
  const value = JSON.parse(readFileSync(file, 'utf8'));
  change(value);
  writeFileSync(file, JSON.stringify(value));
};

const set = (key: string, value: unknown) => config((object) => Object.assign(object, { [key]: value }));
const without = (key: string) => config((object) => Reflect.deleteProperty(object, key));

const setIn = (key: string, inner: string, value: unknown) =>
  config((object) => Object.assign(object[key] as Json, { [inner]: value }));

const write = (name: string, text: string) => (folder: string) => writeFileSync(join(folder, name), text);
const remove = (name: string) => (folder: string) => rmSync(join(folder, name));

/** Removes the digests, so that loading goes on past the check that would stop at a changed file. */
const unchecked = config((object) => {
  for (const key of ['sha256', 'files']) Reflect.deleteProperty(object, key);
});

const both =
  (...changes: ((folder: string) => void)[]) =>
  (folder: string) => {
    for (const change of changes) change(folder);
  };

const DIGEST = '[0-9a-f]{64}';

const FOLDERS: readonly Spoilt[] = [
  { what: 'config.json is missing', spoil: remove('config.json'), file: 'config.json', problem: /^no such file$/ },
  {
    what: 'tokenizer.json is missing',
    spoil: remove('tokenizer.json'),
    file: 'tokenizer.json',
    problem: /^no such file$/,
  },
  // Reading one of these devices would never end.
  ...['config.json', 'tokenizer.json', 'model.onnx'].map((file) => ({
    what: `${file} is a device`,
    spoil: both(remove(file), (folder) => symlinkSync('/dev/zero', join(folder, file))),
    file,
    problem: /^not a file$/,
  })),
  { what: 'the graph is missing', spoil: remove('model.onnx'), file: '', problem: /^no \.onnx file$/ },
  {
    what: 'a listed file is missing',
    spoil: setIn('files', 'extra.bin', '0'.repeat(64)),
    file: 'extra.bin',
    problem: /^no such file$/,
  },
];

const CONFIGS: readonly Spoilt[] = [
  { what: 'is empty', spoil: write('config.json', ''), problem: /^EOF while parsing/ },
  { what: 'is no JSON', spoil: write('config.json', '{"name": tiny}'), problem: /line 1 column 11$/ },
  {
    what: 'is not UTF-8',
    spoil: (folder) => writeFileSync(join(folder, 'config.json'), Buffer.of(0xff)),
    problem: /^not UTF-8$/,
  },
  { what: 'is a list', spoil: write('config.json', '[]'), problem: /^invalid length 0, expected struct Manifest / },
  ...['name', 'version', 'temperature', 'special_ids'].map((key) => ({
    what: `has no ${key}`,
    spoil: without(key),
    problem: new RegExp(`missing field \`${key}\``),
  })),
  ...[
    'chunk',
    'head_max',
    'option_max',
    'state_max',
    'run_tokens',
    'head_prefix',
    'type_ids',
    'layers',
    'heads',
    'head_dim',
  ].map(
    (key): Spoilt => ({
      what: `of shared-state has no ${key}`,
      model: 'shared-state',
      spoil: without(key),
      problem: new RegExp(`missing field \`${key}\``),
    }),
  ),
  { what: 'has a number for a name', spoil: set('name', 7), problem: /^name: invalid type/ },
  { what: 'has a text for a length', spoil: set('max_len', 'long'), problem: /^max_len: invalid type/ },
  { what: 'has a negative length', spoil: set('max_len', -1), problem: /^max_len: invalid value/ },
  { what: 'has a length too small for a row', spoil: set('max_len', 10), problem: /^max_len: must be at least \d+/ },
  { what: 'has a head too small for its text', spoil: set('head_max', 3), problem: /^head_max: must be at least \d+$/ },
  {
    what: 'of shared-state has a chunk without room',
    model: 'shared-state',
    spoil: set('chunk', 2),
    problem: /^chunk: must be at least 3$/,
  },
  {
    what: 'of shared-state has runs too short for one option',
    model: 'shared-state',
    spoil: set('run_tokens', 4),
    problem: /^run_tokens: must be at least \d+$/,
  },
  {
    what: 'has a temperature too few',
    spoil: set('temperature', { choice: 1, score: 1 }),
    problem: /^temperature: missing field `noul`/,
  },
  ...[0, -1].map((value) => ({
    what: `has the temperature ${value}`,
    spoil: setIn('temperature', 'score', value),
    problem: /^temperature\.score: must be greater than 0$/,
  })),
  {
    what: 'has a temperature as text',
    spoil: setIn('temperature', 'choice', '1.3'),
    problem: /^temperature\.choice: invalid type/,
  },
  {
    what: 'has a temperature beyond numbers',
    spoil: (folder) =>
      write('config.json', readFileSync(join(folder, 'config.json'), 'utf8').replace('1.3', '1e999'))(folder),
    problem: /^temperature\.choice: number out of range/,
  },
  {
    what: 'has a special id beyond the vocabulary',
    spoil: setIn('special_ids', 'mask', 1_000_000),
    problem: /^special_ids\.mask: 1000000 is not a token of the tokenizer, which has \d+$/,
  },
  {
    what: 'has a negative special id',
    spoil: setIn('special_ids', 'cls', -1),
    problem: /^special_ids\.cls: -1 is not a token/,
  },
  {
    what: 'has an unknown layout',
    spoil: set('layout', 'pairs'),
    problem: /^layout: "pairs" is not one of marker, shared-state, pair, labels, spans, bi-encoder, late-interaction$/,
  },
  ...(
    [
      [{ encoder: 'model.onnx' }, /^graphs: needs a head or a scorer, not both$/],
      [{ encoder: 'model.onnx', head: 'a.onnx', scorer: 'b.onnx' }, /^graphs: needs a head or a scorer, not both$/],
      [{ head: 'a.onnx' }, /^graphs: missing field `encoder`/],
      [{ encoder: '../model.onnx', head: 'a.onnx' }, /^graphs\.encoder: must be a file of this folder$/],
      [{ encoder: 'model.onnx', head: '/a.onnx' }, /^graphs\.head: must be a file of this folder$/],
      [{ encoder: 'model.onnx', scorer: 'model.onnx' }, /^graphs\.scorer: the layout marker has none$/],
    ] as const
  ).map(([graphs, problem]) => ({
    what: `has the graphs ${JSON.stringify(graphs)}`,
    spoil: set('graphs', graphs),
    problem,
  })),
  {
    what: 'has a layout of two graphs and names none',
    spoil: set('layout', 'bi-encoder'),
    problem: /^graphs\.scorer: is missing, the layout bi-encoder needs it$/,
  },
  {
    what: 'has another sha256 than the graph',
    spoil: set('sha256', 'ab'.repeat(32)),
    problem: new RegExp(`^sha256: does not match model\\.onnx, which has ${DIGEST}$`),
  },
  {
    what: 'has another digest than a file',
    spoil: setIn('files', 'tokenizer.json', 'ab'.repeat(32)),
    problem: new RegExp(`^files\\.tokenizer\\.json: does not match the file, which has ${DIGEST}$`),
  },
  {
    what: 'lists a file outside of the folder',
    spoil: setIn('files', '../secret', 'ab'.repeat(32)),
    problem: /^files\.\.\.\/secret: must be a file of this folder$/,
  },
  ...['name', 'version'].map((key) => ({
    what: `has a ${key} of a million characters`,
    spoil: set(key, 'x'.repeat(1_000_000)),
    problem: new RegExp(`^${key}: must have at most 200 characters$`),
  })),
  ...['max_len', 'head_max'].map((key) => ({
    what: `has an endless ${key}`,
    spoil: set(key, 2 ** 62),
    problem: new RegExp(`^${key}: must be at most 16777216$`),
  })),
  ...['chunk', 'head_max', 'option_max', 'state_max', 'run_tokens', 'layers', 'heads', 'head_dim'].map((key) => ({
    what: `of shared-state has an endless ${key}`,
    model: 'shared-state' as const,
    spoil: set(key, 2 ** 62),
    problem: new RegExp(`^${key}: must be at most \\d+$`),
  })),
  ...[1e-320, 1e-7, 1e300].map((value) => ({
    what: `has the temperature ${value}`,
    spoil: setIn('temperature', 'noul', value),
    problem: /^temperature\.noul: must be from 0\.000001 to 1000000$/,
  })),
  ...[{ temperature: 1e-320 }, { temperature: 1, bias: [0, 1e308] }, { temperature: 1, bias: [-1e7] }].map((own) => ({
    what: `has the calibration ${JSON.stringify(own)}`,
    spoil: set('calibration', { abc: own }),
    problem: /^calibration\.abc: needs a temperature .* and biases from -1000000 to 1000000$/,
  })),
  ...['named', 'question', 'statement'].map((form) => ({
    what: `has a bias of ${form} nouls that overflows`,
    spoil: set('noul_bias', { [form]: -1e7 }),
    problem: new RegExp(`^noul_bias\\.${form}: must be from -1000000 to 1000000$`),
  })),
  {
    what: 'has a config.json of 17 MiB',
    spoil: set('note', ' '.repeat(17 * 2 ** 20)),
    problem: /^longer than 16777216 bytes$/,
  },
  {
    what: 'has a calibration whose key is no digest of a question, by its length',
    spoil: set('calibration', { ['a'.repeat(201)]: { temperature: 1 } }),
    problem: /^calibration: a key must have at most 200 characters$/,
  },
  {
    what: 'has a calibration with far more biases than a question has options',
    spoil: set('calibration', { abc: { temperature: 1, bias: Array(100_001).fill(0) } }),
    problem: /^calibration\.abc: must have at most 100000 biases$/,
  },
  {
    what: 'has a calibration that cannot be',
    spoil: set('calibration', { abc: { temperature: 0 } }),
    problem: /^calibration\.abc: needs a temperature greater than 0/,
  },
];

const PAIRS: readonly Spoilt[] = (
  [
    ['has no id2label', without('id2label'), /^id2label: must name the graph's classes/],
    ['has classes with a gap', set('id2label', { 0: 'entailment', 2: 'neutral' }), /^id2label: must have the keys/],
    ['has classes that are no texts', set('id2label', { 0: 7 }), /^id2label\.0: invalid type/],
    [
      'has classes of which none is entailment',
      set('id2label', { 0: 'LABEL_0', 1: 'LABEL_1', 2: 'LABEL_2' }),
      /^id2label: none of the labels is entailment: LABEL_0, LABEL_1, LABEL_2; name one with the key entailment$/,
    ],
    [
      'has three classes of which none is contradiction',
      set('id2label', { 0: 'entailment', 1: 'neutral', 2: 'other' }),
      /^id2label: none of the labels is contradiction: .*; name one with the key contradiction$/,
    ],
    [
      'names a class that is not there',
      set('entailment', 'yes'),
      /^entailment: "yes" is none of the labels in id2label/,
    ],
    [
      'names one class for both sides',
      set('contradiction', 'entailment'),
      /^contradiction: must be another class than entailment$/,
    ],
    [
      'has a template without the option',
      set('template', { choice: '{instructions}' }),
      /^template\.choice: must have the place \{option\}$/,
    ],
    ['has a template of words alone', set('template', { noul: 'yes' }), /^template\.noul: must have a place/],
    [
      'has a template with an unknown place',
      set('template', { score: 'about {label}' }),
      /^template\.score: \{label\} is not one of \{instructions\}, \{option\}$/,
    ],
    [
      'has a template that leaves no room',
      set('template', { choice: `${'the '.repeat(40)}{option}` }),
      /^template\.choice: has 40 tokens of its own, head_max leaves \d+$/,
    ],
    ['has another order', set('first', 'option'), /^first: unknown variant `option`, expected `state` or `hypothesis`/],
    [
      'has rows longer than the model reads',
      set('max_len', 65),
      /^max_len: must be at most 64, the positions that the model knows$/,
    ],
    [
      'has endless rows',
      (folder: string) => {
        without('max_position_embeddings')(folder);
        set('max_len', 2 ** 62)(folder);
      },
      /^max_len: must be at most 16777216$/,
    ],
    ['has rows too short for two texts', set('max_len', 10), /^max_len: must be at least 19$/],
    ['has hypotheses as long as a row', set('head_max', 64), /^head_max: must be from 8 to 53$/],
    ['has a temperature too few', set('temperature', { choice: 1 }), /^temperature: missing field `score`/],
    ['has one temperature for all', set('temperature', 1), /^temperature: invalid type: integer `1`/],
  ] as const
).map(([what, spoil, problem]) => ({ what, model: 'pair-bert', spoil, problem }));

const PAIR_FILES: readonly Spoilt[] = [
  { what: 'no graph', model: 'pair-bert', spoil: remove('model.onnx'), file: '', problem: /^no \.onnx file$/ },
  {
    what: 'no tokenizer.json',
    model: 'pair-bert',
    spoil: remove('tokenizer.json'),
    file: 'tokenizer.json',
    problem: /^no such file$/,
  },
  {
    what: 'a tokenizer that makes no rows of two texts',
    model: 'pair-bert',
    spoil: (folder) => {
      const file = join(folder, 'tokenizer.json');
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), post_processor: null }));
    },
    file: 'tokenizer.json',
    problem: /^post_processor: does not say how two texts make one row$/,
  },
  {
    what: 'more labels than the graph has classes',
    model: 'pair-bert',
    spoil: set('id2label', { 0: 'entailment', 1: 'neutral', 2: 'contradiction', 3: 'other' }),
    file: 'model.onnx',
    problem: /^a trial decision failed: the graph gives 3 logits a row, id2label has labels for 4$/,
  },
  {
    what: 'the graph of another under the label of a reranker',
    model: 'pair-reranker',
    spoil: (folder) => copyFileSync(join(fixture('pair-roberta'), 'model.onnx'), join(folder, 'model.onnx')),
    file: 'model.onnx',
    problem: /^a trial decision failed: the graph gives 3 logits a row, id2label has labels for 1$/,
  },
  {
    what: 'the graph of another layout',
    model: 'pair-bert',
    spoil: (folder) => copyFileSync(join(fixture('marker'), 'model.onnx'), join(folder, 'model.onnx')),
    file: 'model.onnx',
    problem: /^the graph wants an input "marker_pos" that its layout does not give$/,
  },
];

const FILES: readonly Spoilt[] = [
  {
    what: 'a tokenizer that is none',
    spoil: both(unchecked, write('tokenizer.json', '{"model": 1}')),
    file: 'tokenizer.json',
    problem: /^not a tokenizer: /,
  },
  {
    what: 'a graph that is cut off',
    spoil: both(unchecked, (folder) => truncateSync(join(folder, 'model.onnx'), 2000)),
    file: 'model.onnx',
    problem: /^Load model from model\.onnx failed:Protobuf parsing failed/,
  },
  {
    what: 'a graph that is a text',
    spoil: both(unchecked, write('model.onnx', 'no graph')),
    file: 'model.onnx',
    problem: /^Load model from model\.onnx failed:Protobuf parsing failed/,
  },
  {
    what: 'the graph of another layout',
    spoil: both(unchecked, (folder) =>
      copyFileSync(join(fixture('shared-state'), 'model.onnx'), join(folder, 'model.onnx')),
    ),
    file: 'model.onnx',
    problem: /^the graph has no input "attention_mask"$/,
  },
  {
    what: 'a layout of another graph',
    model: 'shared-state',
    spoil: both(unchecked, (folder) => copyFileSync(join(fixture('marker'), 'model.onnx'), join(folder, 'model.onnx'))),
    file: 'model.onnx',
    problem: /^the graph has no input "positions"$/,
  },
  {
    what: 'fewer layers than the graph',
    model: 'shared-state',
    spoil: set('layers', 1),
    file: 'model.onnx',
    problem: /^the graph wants an input "past_k1" that its layout does not give$/,
  },
  {
    what: 'more layers than the graph',
    model: 'shared-state',
    spoil: set('layers', 3),
    file: 'model.onnx',
    problem: /^the graph has no input "past_k2"$/,
  },
  {
    what: 'other heads than the graph',
    model: 'shared-state',
    spoil: set('heads', 3),
    file: 'model.onnx',
    problem: /^a trial decision failed: /,
  },
  {
    what: 'a tokenizer with more tokens than the graph knows',
    model: 'shared-state',
    spoil: both(unchecked, (folder) =>
      copyFileSync(join(fixture('marker'), 'tokenizer.json'), join(folder, 'tokenizer.json')),
    ),
    file: 'model.onnx',
    problem: /^a trial decision failed: /,
  },
  {
    what: 'two graphs and none is the usual',
    spoil: both(unchecked, (folder) => {
      for (const name of ['a.onnx', 'b.onnx']) copyFileSync(join(folder, 'model.onnx'), join(folder, name));
      rmSync(join(folder, 'model.onnx'));
    }),
    file: '',
    problem: /^several \.onnx files and none is model\.onnx$/,
  },
];

function refuses({ what, model = 'marker', spoil, file = 'config.json', problem }: Spoilt): void {
  test(what, async (t) => {
    const folder = realpathSync(copyOfFixture(t, model));
    spoil(folder);
    const error = await loadEngine(engineOptions({ model: folder })).then(
      () => assert.fail('it loads'),
      (reason: EngineError) => reason,
    );
    const start = `${join(folder, file)}: `;
    assert.deepEqual([error.code, error.message.slice(0, start.length)], ['bad_model', start]);
    const rest = error.message.slice(start.length);
    assert.match(rest, problem);
    assert.doesNotMatch(rest, /\n/);
    // The message names no path but the folder's: none of this machine, and none of the machine that built a library.
    assert.doesNotMatch(rest.replaceAll(folder, ''), /[\\/]\w+[\\/]\w+/);
  });
}

suite('a model folder refuses with one line when', () => FOLDERS.forEach(refuses));
suite('a model folder refuses with one line when its config.json', () => CONFIGS.forEach(refuses));
suite('a model folder refuses with one line when it has', () => FILES.forEach(refuses));
suite('an exported folder refuses with one line when its config.json', () => PAIRS.forEach(refuses));
suite('an exported folder refuses with one line when it has', () => PAIR_FILES.forEach(refuses));

suite('the place of a model', () => {
  test('that is not there refuses', async (t) => {
    const model = join(temporaryFolder(t), 'model');
    await assert.rejects(loadEngine(engineOptions({ model })), {
      code: 'bad_model',
      message: `${model}: no such model folder`,
    });
  });

  test('that is a file refuses', async (t) => {
    const model = join(temporaryFolder(t), 'model');
    writeFileSync(model, '');
    await assert.rejects(loadEngine(engineOptions({ model })), {
      code: 'bad_model',
      message: `${model}: not a folder`,
    });
  });

  test('that is an empty folder refuses', async (t) => {
    const model = realpathSync(temporaryFolder(t));
    await assert.rejects(loadEngine(engineOptions({ model })), {
      code: 'bad_model',
      message: `${join(model, 'config.json')}: no such file`,
    });
  });

  test('may have spaces and letters of all kinds in its name', async (t) => {
    const model = join(temporaryFolder(t), 'mödel 日本 (1)');
    mkdirSync(model);
    for (const name of ['config.json', 'tokenizer.json', 'model.onnx']) {
      copyFileSync(join(fixture('marker'), name), join(model, name));
    }
    const engine = await startEngine(t, { model });
    assert.deepEqual([engine.info().dir, engine.info().name], [realpathSync(model), 'tiny-marker']);
  });
});

suite('of several graphs', () => {
  test('the one that sha256 names is taken', async (t) => {
    const folder = copyOfFixture(t, 'marker');
    writeFileSync(join(folder, 'a.onnx'), 'not it');
    writeFileSync(join(folder, 'z.onnx'), 'nor this');
    const engine = await startEngine(t, { model: folder });
    const graph = readFileSync(join(folder, 'model.onnx'));
    assert.equal(engine.info().sha256, createHash('sha256').update(graph).digest('hex'));
    assert.ok(textOf(await engine.decide(Buffer.from(THREE_TYPES))));
  });

  test('the one in the folder onnx is taken where there is none beside config.json', async (t) => {
    const folder = copyOfFixture(t, 'pair-bert');
    mkdirSync(join(folder, 'onnx'));
    writeFileSync(join(folder, 'onnx', 'model_O1.onnx'), 'not it');
    copyFileSync(join(folder, 'model.onnx'), join(folder, 'onnx', 'model.onnx'));
    rmSync(join(folder, 'model.onnx'));
    const { sha256 } = (await startEngine(t, { model: folder })).info();
    const graph = readFileSync(join(folder, 'onnx', 'model.onnx'));
    assert.equal(sha256, createHash('sha256').update(graph).digest('hex'));
  });

  test('model.onnx is taken where there is no sha256', async (t) => {
    const folder = copyOfFixture(t, 'marker');
    unchecked(folder);
    writeFileSync(join(folder, 'a.onnx'), 'not it');
    assert.equal((await startEngine(t, { model: folder })).info().name, 'tiny-marker');
  });
});

for (const file of ['model.onnx_data', 'model.onnx_data_1', 'model.onnx.data']) {
  test(`weights beside the graph are files of the model: ${file}`, async (t) => {
    const folder = copyOfFixture(t, 'pair-bert');
    const before = (await startEngine(t, { model: folder })).info();
    writeFileSync(join(folder, file), 'weights');
    const after = (await startEngine(t, { model: folder })).info();
    assert.equal(after.sha256, before.sha256);
    assert.notEqual(after.digest, before.digest);
  });
}

test('what is kept of a folder is keyed by all of its files, and the graph has a digest of its own', async (t) => {
  const [one, other] = [copyOfFixture(t, 'marker'), copyOfFixture(t, 'marker')];
  set('version', '0.0.2')(other);
  const [first, second] = [
    (await startEngine(t, { model: one })).info(),
    (await startEngine(t, { model: other })).info(),
  ];
  assert.equal(first.sha256, second.sha256);
  assert.notEqual(first.digest, second.digest);
  assert.match(first.digest, new RegExp(`^${DIGEST}$`));
});
