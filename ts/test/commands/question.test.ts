import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { requestFromLines } from '../../src/commands/question.ts';
import { WrongUsage } from '../../src/refusal.ts';

/** Returns the JSON text of one question with its id. */
function questionText(line: string): string {
  const text = requestFromLines('""', [line]);
  assert.doesNotThrow(() => JSON.parse(text));
  return text.slice('{"state":"","questions":{'.length, -'}}'.length);
}

suite('a question on the command line', () => {
  for (const [line, json] of [
    ['Is it urgent?', '"q1":{"type":"noul","instructions":"Is it urgent?"}'],
    ['  urgent:  Is it?  ', '"urgent":{"type":"noul","instructions":"Is it?"}'],
    ['3: Is it?', '"3":{"type":"noul","instructions":"Is it?"}'],
    ['Is https://a.example/ up?', '"q1":{"type":"noul","instructions":"Is https://a.example/ up?"}'],
    ['Does it say: go?', '"q1":{"type":"noul","instructions":"Does it say: go?"}'],
    ['Is a = b?', '"q1":{"type":"noul","instructions":"Is a = b?"}'],
    ['Is a != b?', '"q1":{"type":"noul","instructions":"Is a != b?"}'],
    ['Is a < b | c?', '"q1":{"type":"noul","instructions":"Is a < b | c?"}'],
    ['Say "yes"\n?', '"q1":{"type":"noul","instructions":"Say \\"yes\\"\\n?"}'],
  ] as const) {
    test(`yes or no: ${JSON.stringify(line)}`, () => assert.equal(questionText(line), json));
  }

  for (const [line, instructions, criteria] of [
    ['Team? = billing | tech | sales', 'Team?', '{"billing":null,"tech":null,"sales":null}'],
    ['Team? = billing|tech', 'Team?', '{"billing":null,"tech":null}'],
    ['Team? = billing: payments, invoices | tech', 'Team?', '{"billing":"payments, invoices","tech":null}'],
    ['How many? = 10 | 9 | 1', 'How many?', '{"10":null,"9":null,"1":null}'],
    ['Is a = b? = yes | no', 'Is a = b?', '{"yes":null,"no":null}'],
    ['Which? = a=b | c:d | "e"', 'Which?', '{"a=b":null,"c:d":null,"\\"e\\"":null}'],
    ['Which? = __proto__ | constructor', 'Which?', '{"__proto__":null,"constructor":null}'],
    ['Which? = a | a', 'Which?', '{"a":null,"a":null}'],
    ['Which? = size: <5 | rest', 'Which?', '{"size":"<5","rest":null}'],
  ] as const) {
    test(`choice, options in their order: ${line}`, () => {
      const json = `"q1":{"type":"choice","instructions":${JSON.stringify(instructions)},"criteria":${criteria}}`;
      assert.equal(questionText(line), json);
    });
  }

  for (const [line, criteria] of [
    ['Angry? = calm < annoyed < furious', '["calm","annoyed","furious"]'],
    ['Angry? = not at all: calm < very', '["not at all: calm","very"]'],
    ['Angry? = <5 min < 5<x<60 < 2 h', '["<5 min","5<x<60","2 h"]'],
    ['Angry? = same < same', '["same","same"]'],
  ] as const) {
    test(`score, lowest first: ${line}`, () => {
      assert.equal(questionText(line), `"q1":{"type":"score","instructions":"Angry?","criteria":${criteria}}`);
    });
  }

  test('several keep their order, those without an id are called by their place', () => {
    const text = requestFromLines('{"a": 1.0}', ['9: Nine?', 'Second?', '1: One?']);
    assert.deepEqual(
      [...text.matchAll(/"([^"]+)":\{"type"/g)].map((match) => match[1]),
      ['9', 'q2', '1'],
    );
    assert.ok(text.startsWith('{"state":{"a": 1.0},"questions":{'));
  });

  for (const [line, why] of [
    ['', 'it has no text'],
    ['   ', 'it has no text'],
    ['Which? = a | ', 'an option has no name'],
    ['Which? = | a', 'an option has no name'],
    ['Which? = a | : what', 'an option has no name'],
    ['Angry? = calm < ', 'a level has no text'],
    ['Angry? = a < < b', 'a level has no text'],
    ['Angry? = a < b | c', 'it has both | and <: a choice or a score'],
    ['= a | b', 'it has no text in front of ='],
    ['team: = a | b', 'it has no text in front of ='],
    ['Which? = a', 'it has one option: put | or < between several'],
    ['Which? =', 'it has no options behind ='],
    ['Which? =a | b', 'the = in front of options needs a space on both sides'],
    ['Which?= a | b', 'the = in front of options needs a space on both sides'],
  ] as const) {
    test(`${JSON.stringify(line)} is refused: ${why}`, () => {
      const message = `--question ${JSON.stringify(line)}: ${why}; see svc ask --help`;
      assert.throws(() => requestFromLines('""', [line]), new WrongUsage(message));
    });
  }

  test('is refused in the words of the place that it was typed at', () => {
    const refusing = (line: string, why: string) => `${line} / ${why}`;
    assert.throws(
      () => requestFromLines('""', ['Which? = a | '], refusing),
      new WrongUsage('Which? = a |  / an option has no name'),
    );
  });
});
