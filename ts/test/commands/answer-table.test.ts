import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { answerTable } from '../../src/commands/answer-table.ts';

const USAGE = '"usage":{"input_tokens":42,"output_tokens":0,"server_ms":12.34}';

function table(answers: string, colors = false): string {
  return answerTable(Buffer.from(`{"model":"svc","answers":{${answers}},${USAGE}}`), { colors });
}

suite('the table of answers', () => {
  test('shows each type with bars and percentages in columns', () => {
    const noul = '"refund":{"type":"noul","noul":0.9,"probabilities":{"true":0.9,"false":0.1},"confidence":0.8}';
    const choice =
      '"team":{"type":"choice","choice":"tech","probabilities":{"billing":0.25,"tech":0.75},"confidence":0.5}';
    const score =
      '"anger":{"type":"score","score":1.5,"probabilities":{"0":0,"1":0.5,"2":0.5},"confidence":0.1,' +
      '"legend":{"0":"calm","1":"annoyed","2":"furious"}}';
    assert.equal(
      table([noul, choice, score].join()),
      `refund  yes  confidence 0.80
  yes  ██████████████████     90.0%
  no   ██                     10.0%

team  tech  confidence 0.50
  tech     ███████████████        75.0%
  billing  █████                  25.0%

anger  annoyed  confidence 0.10, score 1.50 of 2
  calm                             0.0%
  annoyed  ██████████             50.0%
  furious  ██████████             50.0%

42 tokens in 12.34 ms
`,
    );
  });

  test('keeps the order of ids and of equal options that look like integers', () => {
    const probabilities = '"probabilities":{"9":0.5,"1":0.5},"confidence":0';
    const text = table(`"7":{"type":"choice",${probabilities}},"2":{"type":"choice",${probabilities}}`);
    assert.deepEqual(text.match(/^ *\d(?= )/gm), ['7', '  9', '  1', '2', '  9', '  1']);
  });

  test('shows the likeliest of many options and counts the rest', () => {
    const options = Array.from({ length: 14 }, (_, index) => `"o${index}":${index / 91}`);
    const text = table(`"q":{"type":"choice","probabilities":{${options}},"confidence":0.1}`);
    assert.match(text, /^q {2}o13 /);
    assert.equal(text.match(/%$/gm)?.length, 10);
    assert.match(text, /and 4 less likely/);
  });

  test('fits the width of a terminal: bars get shorter, then names are cut', () => {
    const name = 'a name of thirty-three characters';
    const answer = `"q":{"type":"choice","probabilities":{"${name}":1,"b":0},"confidence":1}`;
    const linesAt = (columns: number) =>
      answerTable(Buffer.from(`{"answers":{${answer}},${USAGE}}`), { colors: false, columns })
        .split('\n')
        .filter((line) => line.endsWith('%'));
    assert.deepEqual(linesAt(80), [`  ${name}  ${'█'.repeat(20)}  100.0%`, `  b${' '.repeat(54)}    0.0%`]);
    for (const columns of [60, 50, 30]) {
      for (const line of linesAt(columns)) assert.equal([...line].length, Math.min(columns, 65), line);
    }
    assert.equal(linesAt(50)[0], `  ${name}  ${'█'.repeat(5)}  100.0%`);
    assert.equal(linesAt(30)[0], '  a name of thi…  ████  100.0%');
    // No terminal is too narrow for something to be shown.
    assert.equal(linesAt(1)[0], '  a name …  ████  100.0%');
  });

  test('says when a text was cut', () => {
    const body = '{"answers":{},"usage":{"input_tokens":512,"server_ms":1,"truncated_tokens":9}}';
    assert.match(answerTable(Buffer.from(body), { colors: false }), /512 tokens in 1 ms, 9 more were cut off/);
  });

  test('lets no character through that turns the direction round or is not seen', () => {
    const text = table('"a\u202eb":{"type":"choice","probabilities":{"x\u200by\ufeff":1},"confidence":1}');
    assert.match(text, /^a\\u202eb {2}x\\u200by\\ufeff {2}/);
  });

  test('lets no control character of an id or an option through', () => {
    const text = table('"a\\u001b[2J":{"type":"choice","probabilities":{"x\\ny\\u009b":1},"confidence":1}');
    assert.match(text, /a\\u001b\[2J/);
    assert.match(text, /x\\u000ay\\u009b/);
  });

  test('has colors only when asked', () => {
    const answer = '"q":{"type":"noul","probabilities":{"true":1,"false":0},"confidence":1}';
    assert.equal(stripVTControlCharacters(table(answer)), table(answer));
    assert.notEqual(table(answer, true), table(answer));
    assert.equal(stripVTControlCharacters(table(answer, true)), table(answer));
  });
});
