import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { stateDigest } from '../../src/network/state-header.ts';
import { REPOSITORY } from '../addon/model-folders.ts';

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);

suite('the digest of a state', () => {
  test('is of the text of a string, however the string is escaped', () => {
    assert.equal(stateDigest('"caf\\u00e9"'), digest('café'));
    assert.equal(stateDigest('"café"'), digest('café'));
    assert.equal(stateDigest('""'), 'e3b0c44298fc1c14');
  });

  test('is of the JSON text of any other value, as it is sent', () => {
    assert.equal(stateDigest('{"b": 1,  "a": 1.0}'), digest('{"b": 1,  "a": 1.0}'));
    assert.notEqual(stateDigest('{"a":1.0}'), stateDigest('{"a":1}'));
    assert.equal(stateDigest('null'), digest('null'));
  });

  test('is what docs/scaling.md says it is', () => {
    const page = readFileSync(join(REPOSITORY, 'docs', 'scaling.md'), 'utf8');
    const rows = [...page.matchAll(/^\| `(.+)` \| `([0-9a-f]{16})` \|$/gm)];
    assert.equal(rows.length, 4);
    for (const [, state = '', value] of rows) assert.equal(stateDigest(state), value, state);
  });

  test('has nothing of the space around the value', () => {
    assert.equal(stateDigest(' [1, 2]\r\n'), digest('[1, 2]'));
    assert.equal(stateDigest('\t"a"'), digest('a'));
  });
});
