import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { atCommit, hubNameOfPage, parseHubName } from '../../../src/model/hub/name.ts';
import { parseLocation } from '../../../src/model/location.ts';

const COMMIT = 'ab'.repeat(20);

suite('a name at a hub', () => {
  for (const [model, repository, revision, folder] of [
    ['hf:org/name', 'org/name', 'main', ''],
    ['hf:Org-1/name_2.onnx', 'Org-1/name_2.onnx', 'main', ''],
    ['hf:org/name@v1.0', 'org/name', 'v1.0', ''],
    ['hf:org/name@refs/pr/7', 'org/name', 'refs/pr/7', ''],
    ['hf:org/name@refs/pr/7/onnx', 'org/name', 'refs/pr/7', 'onnx'],
    ['hf:org/name@feature%2Fx', 'org/name', 'feature/x', ''],
    ['hf:org/name/onnx/int8/', 'org/name', 'main', 'onnx/int8'],
    [`hf:org/name@${COMMIT}/a folder`, 'org/name', COMMIT, 'a folder'],
  ] as const) {
    test(`is read: ${model}`, () => {
      assert.deepEqual(parseLocation({ model, modelAllowHttp: false }), {
        at: 'hub',
        name: { repository, revision, folder },
      });
    });
  }

  const form = 'must be hf:org/name, hf:org/name@revision or hf:org/name/folder';
  for (const [model, problem] of [
    ['hf:', form],
    ['hf:name', form],
    ['hf://org/name', form],
    ['hf:org/', form],
    ['hf:org/na--me', form],
    ['hf:org/na..me', form],
    ['hf:.org/name', form],
    ['hf:org/name.git', form],
    ['hf:../../etc', form],
    [`hf:org/${'n'.repeat(97)}`, form],
    ['hf:org/name@..', '".." can be no revision'],
    ['hf:org/name@a%2F..%2Fb', '"a/../b" can be no revision'],
    ['hf:org/name@.hidden', '".hidden" can be no revision'],
    ['hf:org/name@a b', '"a b" can be no revision'],
    ['hf:org/name/../x', 'a file may not have the name "../x"'],
    ['hf:org/name/onnx@v1', 'a revision stands behind the name: hf:org/name@revision/folder'],
  ] as const) {
    test(`is refused: ${model}`, () => {
      assert.throws(() => parseHubName(model), { name: 'Refusal', message: `model: ${model}: ${problem}` });
    });
  }

  test('at a commit has the commit in it, and the folder', () => {
    assert.equal(atCommit(parseHubName('hf:org/name@v1'), COMMIT), `hf:org/name@${COMMIT}`);
    assert.equal(atCommit(parseHubName('hf:org/name/a/b'), COMMIT), `hf:org/name@${COMMIT}/a/b`);
  });

  for (const [page, model] of [
    ['https://huggingface.co/org/name', 'hf:org/name'],
    ['https://huggingface.co/org/name/', 'hf:org/name'],
    ['http://www.huggingface.co/org/name?library=x#usage', 'hf:org/name'],
    ['huggingface.co/org/name', 'hf:org/name'],
    ['hf.co/org/name', 'hf:org/name'],
    ['https://huggingface.co/org/name/tree/main', 'hf:org/name'],
    ['https://huggingface.co/org/name/tree/main/onnx', 'hf:org/name/onnx'],
    ['https://huggingface.co/org/name/tree/v1.2/onnx', 'hf:org/name@v1.2/onnx'],
    ['https://huggingface.co/org/name/blob/main/config.json', 'hf:org/name'],
    ['https://huggingface.co/org/name/blob/v1/onnx/model.onnx', 'hf:org/name@v1/onnx'],
    ['https://huggingface.co/org', undefined],
    ['https://huggingface.co/datasets/name', undefined],
    ['https://huggingface.co/org/name/discussions', undefined],
    ['https://hub.example/org/name', undefined],
    ['org/name', undefined],
  ] as const) {
    test(`is ${model ?? 'not'} meant by ${page}`, () => {
      assert.equal(hubNameOfPage(page), model);
    });
  }
});
