import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { answersText, fixture } from '../addon/model-folders.ts';
import { THREE_TYPES } from '../addon/requests.ts';
import { LiveServer } from './live-server.ts';

const about = (state: string) => `{"state":${state},"questions":{"q":{"type":"noul","instructions":"Is it?"}}}`;
const ask = (question: string) => `{"state":"The order 17 was late.","questions":{"q":${question}}}`;
const noul = (rest: string) => ask(`{"type":"noul","instructions":"Is it?"${rest}}`);
const choice = (criteria: string) => ask(`{"type":"choice","instructions":"Which?","criteria":${criteria}}`);
const score = (criteria: string) => ask(`{"type":"score","instructions":"How late?","criteria":${criteria}}`);
/** Returns a text as a JSON string. */
const text = (value: string) => JSON.stringify(value);

/** The two halves into which `text.slice` can split an emoji. */
const [HIGH, LOW] = ['\ud83d', '\ude00'];
const HALVES = {
  state: { [LOW]: 's' },
  questions: {
    [`id ${HIGH}`]: {
      type: 'choice',
      instructions: `Which? ${LOW}`,
      criteria: { [`a${HIGH}`]: `one ${LOW}`, b: 'two' },
    },
    names: { type: 'choice', instructions: { [HIGH]: LOW }, criteria: [`a${HIGH}`, 'b'] },
    levels: { type: 'score', instructions: HIGH, criteria: [`a${LOW}`, { b: HIGH }] },
    sides: { type: 'noul', instructions: '?', criteria: { true: HIGH, false: LOW } },
  },
};

/** Groups of bodies that mean the same to the model. */
const SAME: readonly (readonly [rule: string, ...bodies: string[]])[] = [
  ['a state of null is the text null', about('null'), about('"null"')],
  ['a state that is a boolean is its text', about('true'), about('"true"')],
  ['a number keeps its spelling', about('1.50'), about('"1.50"')],
  [
    'a number beyond what JavaScript can hold keeps its digits',
    about('123456789012345678901'),
    about('"123456789012345678901"'),
  ],
  ['a number with an exponent keeps it', about('12E+3'), about('"12E+3"')],
  [
    'an object is its raw text',
    about('{ "b":1, "10" :[ ],\n\t"2":1.0 }'),
    about(text('{ "b":1, "10" :[ ],\n\t"2":1.0 }')),
  ],
  ['a field twice inside the state is text as any', about('{"a":1,"a":2}'), about(text('{"a":1,"a":2}'))],
  ['escapes inside a state that is an object stay', about('{"a":"\\u00e9"}'), about(text('{"a":"\\u00e9"}'))],
  [
    'escapes of a state that is a string are read',
    about('"caf\\u00e9 \\"x\\" \\ud83d\\ude00"'),
    about('"café \\"x\\" 😀"'),
  ],
  ['half a surrogate pair in a state is U+FFFD', about('"caf\\ud83d \\udE00"'), about('"caf\ufffd \ufffd"')],
  [
    'half a surrogate pair in a state that is an object is the escape of U+FFFD, and all else stays as sent',
    about('{ "\\ud83d": ["\\udE00", 1.0, "\\\\ud83d"] }'),
    about(text('{ "\\ufffd": ["\\ufffd", 1.0, "\\\\ud83d"] }')),
  ],
  [
    'half a surrogate pair in ids, instructions, options and levels is U+FFFD',
    JSON.stringify(HALVES),
    JSON.stringify(HALVES).replaceAll(/\\ud[89a-f]../g, '\\ufffd'),
  ],
  [
    'instructions that are absent, null or empty are empty',
    ask('{"type":"noul"}'),
    ask('{"type":"noul","instructions":null}'),
    ask('{"type":"noul","instructions":""}'),
  ],
  [
    'instructions as an object are its compact JSON text, numbers as they are spelt',
    ask('{"type":"noul","instructions":{ "10" : 1.50,\n"2":[ true , null ] }}'),
    ask(`{"type":"noul","instructions":${text('{"10":1.50,"2":[true,null]}')}}`),
  ],
  [
    'noul criteria that say nothing are none',
    noul(''),
    noul(',"criteria":null'),
    noul(',"criteria":{}'),
    noul(',"criteria":{"true":null}'),
    noul(',"criteria":{"false":"","other":7}'),
  ],
  [
    'the sides of a noul have one order',
    noul(',"criteria":{"true":"a","false":"b"}'),
    noul(',"criteria":{"false":"b","true":"a"}'),
  ],
  [
    'a description that is null or empty is none, and a list has none',
    choice('{"late":null,"lost":""}'),
    choice('{"late":"","lost":null}'),
    choice('["late","lost"]'),
  ],
  ['a description may be an object', choice('{"a":{ "x" : 1 },"b":"c"}'), choice(`{"a":${text('{"x":1}')},"b":"c"}`)],
  [
    'other fields are ignored',
    noul(''),
    noul(',"x_note":{"type":"score"},"weight":0.5'),
    noul('').replace('{', '{"model":"jev-latest","x_y":[1],'),
  ],
  [
    'the order of fields and white space around them do not matter',
    noul(''),
    ` {"questions" : {"q":{ "instructions":"Is it?","type" :\n"noul"}},\r\n"state":"The order 17 was late."}\t`,
  ],
];

/** Pairs of bodies that differ, although a careless JSON reader takes them for the same. */
const DIFFERENT: readonly (readonly [rule: string, one: string, other: string])[] = [
  ['1.50 and 1.5', about('1.50'), about('1.5')],
  ['white space inside a state that is an object', about('{"a":1}'), about('{"a": 1}')],
  ['the order of names that look like integers in a state', about('{"b":1,"1":2}'), about('{"1":2,"b":1}')],
  ['an escape and its letter in a state that is an object', about('{"a":"\\u00e9"}'), about('{"a":"é"}')],
  ['a state that is a string and one in quotes', about('"a"'), about('"\\"a\\""')],
];

/** Returns a response without `server_ms`, which differs every time. */
const steady = (response: string) => response.replace(/,"server_ms":[\d.]+/, '');

test('what a request means', async (t) => {
  const server = await LiveServer.start(t, { model: fixture('marker') });

  for (const [rule, ...bodies] of SAME) {
    await t.test(rule, async () => {
      const responses = new Set<string>();
      for (const body of bodies) responses.add(steady(await server.answer(body)));
      assert.equal(responses.size, 1, [...responses].join('\n'));
    });
  }

  for (const [rule, one, other] of DIFFERENT) {
    await t.test(`${rule} are different`, async () => {
      assert.notEqual(steady(await server.answer(one)), steady(await server.answer(other)));
    });
  }

  await t.test('options, questions and levels keep their order, integers or not', async () => {
    const criteria = '{"10":"ten","b":null,"2":"two","-1":"","a":"x"}';
    const questions = `{"10":{"type":"choice","criteria":${criteria}},"b":{"type":"score","criteria":["lo","hi"]},"2":{"type":"noul"}}`;
    const response = await server.answer(`{"state":"s","questions":${questions}}`);
    assert.match(response, /"answers":\{"10":\{.*"b":\{"type":"score".*"2":\{"type":"noul"/);
    assert.match(response, /"probabilities":\{"10":[\d.]+,"b":[\d.]+,"2":[\d.]+,"-1":[\d.]+,"a":[\d.]+\}/);
  });

  await t.test('a choice may be a name of any kind, and comes back as it was', async () => {
    const names = ['', ' ', 'a"b\\c', 'é', '😀', '\u0000\n', '__proto__', 'constructor', 'x'.repeat(500)];
    const criteria = names.map((name) => `${text(name)}:null`).join(',');
    const { probabilities, choice: chosen } = JSON.parse(await server.answer(choice(`{${criteria}}`))).answers.q;
    assert.deepEqual(Object.keys(probabilities), names);
    assert.ok(names.includes(chosen));
  });

  await t.test('ids are the caller’s, of any kind', async () => {
    const ids = ['', ' ', '__proto__', 'a"b', '\n', '😀', 'x'.repeat(1000)];
    const questions = ids.map((id) => `${text(id)}:{"type":"noul"}`).join(',');
    const { answers } = JSON.parse(await server.answer(`{"state":"s","questions":{${questions}}}`));
    assert.deepEqual(Object.keys(answers), ids);
  });

  await t.test('an answer is the same under another id, alone, among others and in another order', async () => {
    const { state, questions } = JSON.parse(THREE_TYPES);
    const entries = Object.entries(questions);
    const together = JSON.parse(await server.answer(THREE_TYPES)).answers;
    const turned = { state, questions: Object.fromEntries(entries.toReversed()) };
    const reversed = JSON.parse(await server.answer(JSON.stringify(turned))).answers;
    for (const [id, question] of entries) {
      const alone = JSON.parse(await server.answer(JSON.stringify({ state, questions: { other: question } }))).answers;
      assert.deepEqual([alone.other, reversed[id]], [together[id], together[id]]);
    }
  });

  await t.test('the legend has the levels as they were sent, and a number for null', async () => {
    const response = await server.answer(score('["on time",null,{ "days" : 1.50 },[ 2,3 ],""]'));
    assert.match(response, /"legend":\{"0":"on time","1":"1","2":\{ "days" : 1.50 \},"3":\[ 2,3 \],"4":""\}/);
  });

  await t.test('a level that is null is called by its number', async () => {
    const [one, other] = [await server.answer(score('["a",null]')), await server.answer(score('["a","1"]'))];
    assert.equal(steady(one), steady(other));
  });

  const encodings = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };
  for (const [encoding, compress] of Object.entries(encodings)) {
    await t.test(`a body in ${encoding} is answered as one that is not`, async () => {
      const plain = await server.answer(THREE_TYPES);
      const compressed = await server.answer(compress(THREE_TYPES), { 'Content-Encoding': encoding });
      assert.equal(answersText(compressed), answersText(plain));
    });
  }
});
