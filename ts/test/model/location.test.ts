import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseLocation } from '../../src/model/location.ts';
import { Refusal } from '../../src/refusal.ts';

const parse = (model: string, modelAllowHttp = false) => parseLocation({ model, modelAllowHttp });

suite('the setting `model`', () => {
  for (const [model, expected] of [
    ['', { at: 'embedded' }],
    ['/models/mine', { at: 'folder', path: '/models/mine' }],
    ['/models/mine.tar.gz', { at: 'file', path: '/models/mine.tar.gz', packaging: { kind: 'archive', format: 'tar' } }],
    [
      'C:\\models\\mine.ZIP',
      { at: 'file', path: 'C:\\models\\mine.ZIP', packaging: { kind: 'archive', format: 'zip' } },
    ],
    ['s3://models/a/b/', { at: 's3', bucket: 'models', key: 'a/b', packaging: { kind: 'folder' } }],
    ['s3://models', { at: 's3', bucket: 'models', key: '', packaging: { kind: 'folder' } }],
    ['s3://models/a.tgz', { at: 's3', bucket: 'models', key: 'a.tgz', packaging: { kind: 'archive', format: 'tar' } }],
    ['s3://models/a/m.json', { at: 's3', bucket: 'models', key: 'a/m.json', packaging: { kind: 'manifest' } }],
  ] as const) {
    test(`takes ${model || 'nothing'}`, () => {
      assert.deepEqual(parse(model), expected);
    });
  }

  test('takes a URL by the ending of its path, whatever its query', () => {
    const location = parse('https://models.example/a.zip?version=2#x');
    assert.ok(location.at === 'url');
    assert.deepEqual(location.packaging, { kind: 'archive', format: 'zip' });
  });

  test('takes plain HTTP from this machine, and from others only where that is allowed', () => {
    for (const host of ['127.0.0.1:80', 'localhost', '[::1]:8080', '127.1.2.3']) {
      assert.equal(parse(`http://${host}/m.json`).at, 'url');
    }
    for (const host of ['models.example', '127.0.0.1.example.com', '10.0.0.1', '[::2]']) {
      assert.throws(() => parse(`http://${host}/m.json`), Refusal);
      assert.equal(parse(`http://${host}/m.json`, true).at, 'url');
    }
  });

  for (const [model, message] of [
    ['http://u:p@models.example/m.json?k=1', 'model: http://models.example/m.json: http:// needs model_allow_http'],
    ['https://models.example/model', 'model: https://models.example/model: must end in .tar.gz, .tgz, .zip or .json'],
    [
      'https://huggingface.co/org/name?x=1',
      'model: https://huggingface.co/org/name: a model of a hub is named hf:org/name',
    ],
    [
      'http://huggingface.co/org/name/blob/main/config.json',
      'model: http://huggingface.co/org/name/blob/main/config.json: a model of a hub is named hf:org/name',
    ],
    ['ftp://u:p@h/m.zip', 'model: ftp://h/m.zip: must be a folder, an archive, or begin with hf:, https:// or s3://'],
    ['file:///m.zip', 'model: file:///m.zip: must be a folder, an archive, or begin with hf:, https:// or s3://'],
    ['https://[::x/m.zip?k', 'model: https://[::x/m.zip: is not a URL'],
    ['s3://', 'model: s3://: must be s3://bucket/prefix, and names no bucket'],
    ['s3:///x', 'model: s3:///x: must be s3://bucket/prefix, and names no bucket'],
    ['s3://b/p', 'model: s3://b/p: the name of a bucket has 3 to 63 characters, "b" has 1'],
    [
      's3://Bucket/x',
      'model: s3://Bucket/x: the name of a bucket has small letters, digits, dots and hyphens, "Bucket" has others',
    ],
    [
      's3://-bucket/x',
      'model: s3://-bucket/x: the name of a bucket begins and ends with a small letter or a digit, "-bucket" does not',
    ],
    [
      's3://key:secret@bucket/x',
      "model: s3://bucket/x: must be s3://bucket/prefix; keys are taken from the AWS client's own settings",
    ],
  ] as const) {
    test(`refuses ${model}`, () => {
      assert.throws(() => parse(model), { name: 'Refusal', message });
    });
  }
});
