import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { FolderNames } from '../../src/model/folder-names.ts';

const addAll = (...names: readonly string[]) => {
  const folder = new FolderNames();
  return names.map((name) => folder.add(name, name.endsWith('/') ? 'folder' : 'file'));
};

suite('names of files in a model from elsewhere', () => {
  test('are taken with folders, with and without those being named', () => {
    assert.deepEqual(addAll('m/', 'm/config.json', 'm/onnx/model.onnx', './m/a b-ü.txt'), [
      'm',
      'm/config.json',
      'm/onnx/model.onnx',
      'm/a b-ü.txt',
    ]);
    assert.deepEqual(addAll('./', 'm/', 'm/'), ['', 'm', 'm']);
  });

  for (const name of [
    '../config.json',
    'm/../../config.json',
    '/etc/passwd',
    '//server/share',
    'm//config.json',
    'm/./config.json',
    'C:/config.json',
    'config.json:stream',
    '..\\config.json',
    'a\0b',
    'a\nb',
    'con',
    'm/NUL.txt',
    'com¹.txt',
    'con .txt',
    'conout$',
    'config.json.',
    'config.json ',
    '',
    './',
    `${'d/'.repeat(9)}f`,
    'x'.repeat(401),
  ]) {
    test(`are refused: ${JSON.stringify(name.slice(0, 40))}`, () => {
      assert.throws(() => new FolderNames().add(name, 'file'), { name: 'SourceError' });
    });
  }

  for (const names of [
    ['config.json', 'config.json'],
    ['config.json', 'Config.json'],
    ['stra\u00dfe', 'STRASSE'],
    ['\u017f', 's'],
    ['caf\u00e9', 'cafe\u0301'],
    ['./config.json', 'config.json'],
    ['m/a', 'M/b'],
    ['\u00fc', 'u\u0308'],
    ['m', 'm/a'],
    ['m/a', 'm'],
  ]) {
    test(`are refused when two are one: ${names.join(', ')}`, () => {
      assert.throws(() => addAll(...names), { name: 'SourceError', message: /is there twice/ });
    });
  }

  test('are refused when there are too many', () => {
    const names = Array.from({ length: 1001 }, (_, index) => `f${index}`);
    assert.throws(() => addAll(...names), { message: 'more than 1000 files' });
    assert.equal(addAll(...names.slice(1)).length, 1000);
  });
});
