import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { chooseFiles } from '../../../src/model/hub/choice.ts';

const blobOf = (index: number) => index.toString(16).padStart(64, '0');
const files = (...paths: string[]) =>
  ['config.json', 'tokenizer.json', ...paths].map((path, index) => ({ path, bytes: 1, blob: blobOf(index) }));
const wish = { device: 'cpu', graph: '', config: {} };
const graphOf = (paths: readonly string[], changes: Partial<typeof wish> = {}) =>
  chooseFiles(files(...paths), { ...wish, ...changes }).graph;

const EXPORTED = ['onnx/model.onnx', 'onnx/model_fp16.onnx', 'onnx/model_int8.onnx', 'onnx/model_q4f16.onnx'];

suite('of the files of a repository', () => {
  test('those that the model needs are taken, and no others', () => {
    const found = chooseFiles(
      files(
        'README.md',
        'golden.jsonl',
        'model.safetensors',
        'model.onnx',
        'model.onnx_data',
        'vocab.txt',
        'x/config.json',
      ),
      wish,
    );
    assert.deepEqual(
      found.files.map(({ path }) => path),
      ['config.json', 'tokenizer.json', 'golden.jsonl', 'model.onnx', 'model.onnx_data'],
    );
    assert.deepEqual(found.others, []);
  });

  test('those that config.json names with their digests are taken too', () => {
    const found = chooseFiles(files('model.onnx', 'labels.txt'), {
      ...wish,
      config: { files: { 'labels.txt': 'ab' } },
    });
    assert.deepEqual(
      found.files.map(({ path }) => path),
      ['config.json', 'tokenizer.json', 'model.onnx', 'labels.txt'],
    );
  });

  test('those of a family with files of its own are taken, and it must have them', () => {
    const family = {
      file: 'noulxp.json',
      needs: { tokenizer: 't/tokenizer.json', settings: ['template.json', 'w/decide.bin'], graph: 'w/decide.onnx' },
    };
    const listed = files('model.onnx', 'template.json', 'w/decide.bin', 'w/decide.onnx', 't/tokenizer.json', 'x.json');
    const repository = [...listed, { path: 'noulxp.json', bytes: 1, blob: blobOf(99) }];
    const found = chooseFiles(repository, { ...wish, family });
    assert.equal(found.graph, 'w/decide.onnx');
    assert.deepEqual(found.others, ['model.onnx']);
    assert.deepEqual(
      found.files.map(({ path }) => path),
      ['config.json', 'template.json', 'w/decide.bin', 'w/decide.onnx', 't/tokenizer.json', 'noulxp.json'],
    );
    for (const missing of ['noulxp.json', 't/tokenizer.json']) {
      const others = repository.filter(({ path }) => path !== missing);
      assert.throws(() => chooseFiles(others, { ...wish, family }), { message: `there is no ${missing} in it` });
    }
  });

  for (const [what, graph, weights] of [
    ['one file of weights', 'model.onnx', ['model.onnx_data']],
    ['several', 'onnx/model.onnx', ['onnx/model.onnx_data', 'onnx/model.onnx_data_1']],
    ['those of PyTorch', 'model.onnx', ['model.onnx.data']],
    ['those without its ending', 'model.onnx', ['model.data']],
  ] as const) {
    test(`a graph comes with its weights: ${what}`, () => {
      const found = chooseFiles(files(graph, ...weights, 'onnx/model_fp16.onnx_data'), wish);
      assert.deepEqual(
        found.files.map(({ path }) => path),
        ['config.json', 'tokenizer.json', graph, ...weights],
      );
    });
  }
});

suite('of a model with two graphs', () => {
  const paths = (found: ReturnType<typeof chooseFiles>) => found.files.map(({ path }) => path);

  test('the second one comes with the encoder, and so do the weights of both', () => {
    const graphs = ['encoder_q8.onnx', 'encoder_q8.onnx.data', 'head_q8.onnx', 'head_q8.onnx.data'];
    const found = chooseFiles(files(...graphs, 'onnx/model_fp16.onnx'), wish);
    assert.equal(found.graph, 'encoder_q8.onnx');
    assert.deepEqual(paths(found), ['config.json', 'tokenizer.json', ...graphs]);
    assert.deepEqual(found.others, ['onnx/model_fp16.onnx']);
  });

  test('those of one precision are taken, with the tokenizer beside them', () => {
    const needs = { tokenizer: 'onnx/fp32/tokenizer/tokenizer.json', settings: [], graph: 'onnx/fp32/encoder.onnx' };
    const family = { file: 'onnx/fp32/decima.json', needs };
    const own = ['decima.json', 'encoder.onnx', 'scorer.onnx', 'tokenizer/tokenizer.json'];
    const all = ['fp32', 'int8'].flatMap((precision) => own.map((path) => `onnx/${precision}/${path}`));
    const found = chooseFiles(files(...all), { ...wish, family });
    assert.deepEqual(paths(found), ['config.json', ...own.map((path) => `onnx/fp32/${path}`)]);
  });

  test('those that config.json names are taken under any name', () => {
    const config = { graphs: { encoder: 'a.onnx', scorer: 'b.onnx' } };
    const family = { file: 'config.json', needs: { tokenizer: 'tokenizer.json', settings: [], graph: 'a.onnx' } };
    const found = chooseFiles(files('a.onnx', 'b.onnx', 'b.onnx.data', 'c.onnx'), { ...wish, config, family });
    assert.deepEqual(paths(found), ['config.json', 'tokenizer.json', 'a.onnx', 'b.onnx', 'b.onnx.data']);
    assert.deepEqual(found.others, ['c.onnx']);
  });
});

suite('of several graphs', () => {
  for (const [device, graph] of [
    ['cpu', 'onnx/model.onnx'],
    ['auto', 'onnx/model.onnx'],
    ['cuda', 'onnx/model_fp16.onnx'],
    ['coreml', 'onnx/model_fp16.onnx'],
  ] as const) {
    test(`the one that suits the device is taken: ${device}`, () => {
      assert.equal(graphOf(EXPORTED, { device }), graph);
      const { others } = chooseFiles(files(...EXPORTED), { ...wish, device });
      assert.deepEqual(
        others,
        EXPORTED.filter((path) => path !== graph),
      );
    });
  }

  for (const [paths, graph] of [
    [['a.onnx'], 'a.onnx'],
    [['model.onnx', 'model_O2.onnx', 'model_O4.onnx'], 'model.onnx'],
    [['model_fp16.onnx', 'model_quantized.onnx'], 'model_quantized.onnx'],
    [['model_fp16.onnx', 'model_q4.onnx'], 'model_fp16.onnx'],
    [['other.onnx', 'other_fp16.onnx', 'other-int8.onnx'], 'other.onnx'],
    [['model.onnx', 'onnx/model_int8.onnx'], 'model.onnx'],
    [['decoder/model.onnx', 'x.onnx'], 'x.onnx'],
  ] as const) {
    test(`names say which is the usual one: ${paths.join(', ')}`, () => {
      assert.equal(graphOf(paths), graph);
    });
  }

  test('the one whose sha256 is in config.json is taken', () => {
    const at = ['config.json', 'tokenizer.json', ...EXPORTED].indexOf('onnx/model_int8.onnx');
    assert.equal(graphOf(EXPORTED, { config: { sha256: blobOf(at).toUpperCase() } }), 'onnx/model_int8.onnx');
    assert.equal(graphOf(EXPORTED, { config: { sha256: 'ab'.repeat(32) } }), 'onnx/model.onnx');
  });

  test('the named one is taken, also in the folder for graphs', () => {
    assert.equal(graphOf(EXPORTED, { graph: 'onnx/model_int8.onnx' }), 'onnx/model_int8.onnx');
    assert.equal(graphOf(['model.onnx', 'onnx/a.onnx'], { graph: 'onnx/a.onnx' }), 'onnx/a.onnx');
  });
});

suite('a repository is refused', () => {
  for (const [what, paths, changes, message] of [
    ['without a graph', ['model.safetensors'], {}, 'there is no .onnx file in it: export the model first'],
    ['with nothing at all', [], {}, 'there is no .onnx file in it'],
    ['with graphs of unknown use', ['a.onnx', 'b.onnx'], {}, 'name one of its graphs by model_file: a.onnx, b.onnx'],
    ['without the named graph', ['model.onnx'], { graph: 'x.onnx' }, 'model_file: there is no x.onnx, but model.onnx'],
  ] as const) {
    test(what, () => {
      assert.throws(() => graphOf(paths, changes), { name: 'SourceError', message });
    });
  }

  for (const missing of ['config.json', 'tokenizer.json']) {
    test(`without its ${missing}`, () => {
      const found = files('model.onnx').filter(({ path }) => path !== missing);
      assert.throws(() => chooseFiles(found, wish), { name: 'SourceError', message: `there is no ${missing} in it` });
    });
  }
});
