import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fixture } from '../addon/model-folders.ts';
import { LiveServer } from './live-server.ts';

/** Returns a body with these questions, as JSON text. */
const asks = (questions: string) => `{"state":"s","questions":${questions}}`;
/** Returns a body with one question `q`. */
const ask = (question: string) => asks(`{"q":${question}}`);
const nested = (levels: number) =>
  `{"state":${'['.repeat(levels)}${']'.repeat(levels)},"questions":{"q":{"type":"noul"}}}`;

const OBJECT = 'q: criteria must be an object';
const LIST = 'q: criteria must be a list';
const FEW = 'q: need at least two options';
const MISSING = 'q: missing criteria';
const LONG_ID = 'x'.repeat(1000);

/** Wrong bodies, each with the code and the message that it gets. */
const ERRORS: readonly (readonly [body: string | Buffer, code: string, message: string])[] = [
  ['', 'invalid_json', 'invalid JSON at byte 0'],
  ['not json', 'invalid_json', 'invalid JSON at byte 1'],
  ['{"state":"s",}', 'invalid_json', 'invalid JSON at byte 13'],
  ['{"state":"s"', 'invalid_json', 'invalid JSON at byte 12'],
  ['{"state":"s"} x', 'invalid_json', 'invalid JSON at byte 14'],
  ["{'state':1}", 'invalid_json', 'invalid JSON at byte 1'],
  ['{"state":NaN}', 'invalid_json', 'invalid JSON at byte 9'],
  ['{"state":01}', 'invalid_json', 'invalid JSON at byte 10'],
  ['{"state":"a\nb"}', 'invalid_json', 'invalid JSON at byte 11'],
  [Buffer.from('{"state":"\xff"}', 'latin1'), 'invalid_json', 'invalid JSON at byte 10'],
  [Buffer.from('\ufeff{}'), 'invalid_json', 'invalid JSON at byte 0'],
  [Buffer.from('{}', 'utf16le'), 'invalid_json', 'invalid JSON at byte 1'],
  // Syntax is checked before meaning: a syntax error is reported even behind an earlier error of meaning.
  ['{"questions":7,"questions":8', 'invalid_json', 'invalid JSON at byte 28'],

  [nested(64), 'nested_too_deep', 'JSON nested too deep'],
  [nested(100_000), 'nested_too_deep', 'JSON nested too deep'],
  ['['.repeat(1_000_000), 'nested_too_deep', 'JSON nested too deep'],

  ...['[]', '"s"', '1', 'true', 'null'].map((body) => [body, 'body_not_object', 'body must be an object'] as const),
  ['{"state":1,"state":2}', 'duplicate_field', 'state twice'],
  ['{"state":1,"questions":{},"questions":{}}', 'duplicate_field', 'questions twice'],
  ['{"model":1,"state":1,"model":2}', 'duplicate_field', 'model twice'],
  ['{"x_y":1,"state":1,"x\\u005fy":2}', 'duplicate_field', 'x_y twice'],
  ['{}', 'state_missing', 'state missing'],
  ['{"questions":{"q":{"type":"noul"}}}', 'state_missing', 'state missing'],

  ['{"state":"s"}', 'questions_missing', 'questions missing'],
  [asks('null'), 'questions_missing', 'questions missing'],
  [asks('{}'), 'questions_missing', 'questions missing'],
  ...['[]', '[{"type":"noul"}]', '"q"', '7', 'false'].map(
    (value) => [asks(value), 'questions_not_object', 'questions must be an object'] as const,
  ),
  [
    asks('{"a":{"type":"noul"},"b":{"type":"noul"},"a":{"type":"noul"}}'),
    'duplicate_question',
    'a: question id used twice',
  ],
  [asks('{"é":{"type":"noul"},"\\u00e9":{"type":"noul"}}'), 'duplicate_question', 'é: question id used twice'],

  ...['null', '"noul"', '1', '[]', 'true'].map(
    (value) => [ask(value), 'question_not_object', 'q: must be an object'] as const,
  ),
  [ask('{"type":"noul","type":"noul"}'), 'duplicate_field', 'q: type twice'],
  [ask('{"type":"noul","instructions":"a","instructions":"a"}'), 'duplicate_field', 'q: instructions twice'],
  [ask('{"type":"noul","criteria":null,"criteria":null}'), 'duplicate_field', 'q: criteria twice'],

  [ask('{}'), 'unknown_type', 'q: unknown type ""'],
  [ask('{"type":null}'), 'unknown_type', 'q: unknown type ""'],
  [ask('{"type":"yesno"}'), 'unknown_type', 'q: unknown type "yesno"'],
  [ask('{"type":"Noul"}'), 'unknown_type', 'q: unknown type "Noul"'],
  [ask('{"type":" noul"}'), 'unknown_type', 'q: unknown type " noul"'],
  [ask('{"type":7}'), 'unknown_type', 'q: unknown type "7"'],
  [ask('{"type":"a\\nb"}'), 'unknown_type', 'q: unknown type "a\\nb"'],
  [asks(`{"${LONG_ID}":{"type":"x"}}`), 'unknown_type', `${'x'.repeat(200)}…: unknown type "x"`],
  [asks('{"a\\r\\nb":{"type":"x"}}'), 'unknown_type', 'a\\r\\nb: unknown type "x"'],
  [asks('{"":{"type":"x"}}'), 'unknown_type', ': unknown type "x"'],

  ...['1', 'true', 'false', '-0.5'].map(
    (value) =>
      [
        ask(`{"type":"noul","instructions":${value}}`),
        'instructions_not_text',
        'q: instructions must be text',
      ] as const,
  ),

  ...['[]', '"yes"', '1', 'true'].map(
    (value) => [ask(`{"type":"noul","criteria":${value}}`), 'criteria_not_object', OBJECT] as const,
  ),
  ...['"a"', '1', 'true'].map(
    (value) => [ask(`{"type":"choice","criteria":${value}}`), 'criteria_not_object', OBJECT] as const,
  ),
  ...['{}', '{"a":1,"b":2}', '"a"', '1', 'false'].map(
    (value) => [ask(`{"type":"score","criteria":${value}}`), 'criteria_not_list', LIST] as const,
  ),
  ...[
    '{"type":"choice"}',
    '{"type":"score"}',
    '{"type":"choice","criteria":null}',
    '{"type":"score","criteria":null}',
  ].map((question) => [ask(question), 'missing_criteria', MISSING] as const),
  ...['{}', '{"a":"x"}', '[]', '["a"]'].map(
    (criteria) => [ask(`{"type":"choice","criteria":${criteria}}`), 'too_few_options', FEW] as const,
  ),
  ...['[]', '["a"]', '[null]'].map(
    (criteria) => [ask(`{"type":"score","criteria":${criteria}}`), 'too_few_options', FEW] as const,
  ),
  [ask('{"type":"choice","criteria":{"a":"1","b":"2","a":"3"}}'), 'duplicate_option', 'q: option "a" twice'],
  [ask('{"type":"choice","criteria":{"a":"1","\\u0061":"2"}}'), 'duplicate_option', 'q: option "a" twice'],
  [ask('{"type":"choice","criteria":["b","a","b"]}'), 'duplicate_option', 'q: option "b" twice'],
  [ask('{"type":"choice","criteria":{"a":7,"b":"x"}}'), 'criterion_not_text', 'q: criteria "a" must be text'],
  [ask('{"type":"choice","criteria":["a",true]}'), 'criterion_not_text', 'q: criteria "1" must be text'],
  [ask('{"type":"score","criteria":["a",2]}'), 'criterion_not_text', 'q: criteria "1" must be text'],
  [ask('{"type":"noul","criteria":{"true":1}}'), 'criterion_not_text', 'q: criteria "true" must be text'],

  // The error names the first bad question in the order of the request, which is not the order of a JavaScript object.
  [asks('{"z":{"type":"x"},"10":{"type":"y"},"2":{"type":"z"}}'), 'unknown_type', 'z: unknown type "x"'],
  [asks('{"ok":{"type":"noul"},"10":{"type":"y"},"2":{"type":"z"}}'), 'unknown_type', '10: unknown type "y"'],
  [asks('{"ok":{"type":"noul"},"b":{"type":"score"},"a":7}'), 'missing_criteria', 'b: missing criteria'],
];

/** Returns a test name for any body. */
function shown(body: string | Buffer): string {
  const text = JSON.stringify(body.toString('latin1'));
  return text.length > 90 ? `${text.slice(0, 60)}… (${body.length} bytes)` : text;
}

test('a bad request gets 400, one line that says what is wrong, and its code', async (t) => {
  const server = await LiveServer.start(t, { model: fixture('shared-state'), env: { SVC_ALLOW_NO_PASSWORD: '1' } });
  for (const [body, code, message] of ERRORS) {
    await t.test(`${message.slice(0, 60)} for ${shown(body)}`, async () => {
      const plain = await server.decide(body);
      assert.deepEqual([plain.status, plain.text], [400, message]);
      assert.equal(plain.headers['content-type'], 'text/plain; charset=utf-8');
      const json = await server.decide(body, { headers: { Accept: 'application/json' } });
      assert.equal(json.status, 400);
      assert.deepEqual(JSON.parse(json.text), {
        error: { code: 400, message },
        detail: { error_type: code, message },
      });
    });
  }

  await t.test('a body nested 64 levels deep is none', async () => {
    // The body itself is one of the 64 levels.
    assert.equal((await server.decide(nested(63))).status, 200);
  });

  await t.test('the method is looked at before the body', async () => {
    const { status, headers } = await server.decide('not json', { method: 'PUT' });
    assert.deepEqual([status, headers.allow], [405, 'POST']);
  });

  await t.test('one bad question among good ones fails the request, and nothing is run', async () => {
    const good = Array.from({ length: 300 }, (_, index) => `"g${index}":{"type":"noul"}`).join(',');
    // A run looks its state up in the cache, which counts as a hit or a miss.
    const statesRead = async () => {
      const { hits, misses } = JSON.parse((await server.get('/stats')).text).state_cache;
      return hits + misses;
    };
    const before = await statesRead();
    const { status, text } = await server.decide(asks(`{${good},"bad":{"type":"noul","instructions":1}}`));
    assert.deepEqual([status, text], [400, 'bad: instructions must be text']);
    assert.equal(await statesRead(), before);
    await server.answer(asks(`{${good}}`));
    assert.notEqual(await statesRead(), before);
  });
});
