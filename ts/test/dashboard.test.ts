import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { readDecision } from '../src/dashboard/answer.ts';
import { draftText, type RequestDraft, readDraft } from '../src/dashboard/draft.ts';
import {
  formatAmount,
  formatBytes,
  formatCount,
  formatDuration,
  formatMs,
  formatPercent,
  formatRate,
} from '../src/dashboard/format.ts';
import { html } from '../src/dashboard/html.ts';
import { RECIPES } from '../src/dashboard/recipes/index.ts';
import { recipeText } from '../src/dashboard/recipes/recipe.ts';
import { requestFragment, requestInFragment } from '../src/dashboard/shared-request.ts';
import { snippets } from '../src/dashboard/snippets.ts';

suite('HTML', () => {
  test('escapes what is put into it, also in attributes and lists', () => {
    const evil = `<img src=x onerror="alert('1')">&`;
    const escaped = '&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;';
    assert.equal(html`<p title="${evil}">${[evil, 1]}</p>`.text, `<p title="${escaped}">${escaped}1</p>`);
  });

  test('takes its own templates as they are, and nothing for what is not there', () => {
    const none = undefined;
    assert.equal(html`<b>${html`<i>${'<'}</i>`}${false}${null}${none}</b>`.text, '<b><i>&lt;</i></b>');
  });
});

suite('a request in a link', () => {
  test('comes back as it was, whatever it holds, and has no character that an address would change', () => {
    for (const text of ['', '{}', '{"state": "größe 日本 😀 ??>>~~", "questions": {}}', '\u0000\n"\\'.repeat(500)]) {
      const fragment = requestFragment(text);
      assert.match(fragment, /^#request=[\w-]*$/);
      assert.equal(requestInFragment(fragment), text);
    }
  });

  test('is told from other fragments, and from a damaged one', () => {
    assert.deepEqual(
      ['', '#', '#recipe=refund-policy', '#playground'].map(requestInFragment),
      Array(4).fill(undefined),
    );
    assert.deepEqual(['#request=%', '#request=/////', '#request=_w'].map(requestInFragment), Array(3).fill(null));
  });
});

suite('numbers', () => {
  test('keep three digits that count', () => {
    assert.deepEqual([0, 1.934, 9.996, 99.94, 99.96, 1930].map(formatMs), [
      '0.00',
      '1.93',
      '10.0',
      '99.9',
      '100',
      '1,930',
    ]);
    assert.deepEqual([0, 0.2, 37.46, 412.3].map(formatRate), ['0', '0.2', '37.5', '412']);
    assert.deepEqual([0, 12_345, 1_234_567].map(formatCount), ['0', '12,345', '1.2M']);
  });

  test('of things agree with their word', () => {
    assert.deepEqual(
      [0, 1, 2000].map((count) => formatAmount(count, 'answer')),
      ['0 answers', '1 answer', '2,000 answers'],
    );
  });

  test('of bytes stand in the largest unit that is not too large', () => {
    const bytes = [0, 1, 1023, 1536, 2 ** 20 - 1, 64 * 2 ** 20, 3 * 2 ** 30];
    assert.deepEqual(bytes.map(formatBytes), ['0 B', '1 B', '1,023 B', '1.5 KiB', '1,024 KiB', '64 MiB', '3 GiB']);
  });

  test('never call certain what is only nearly so', () => {
    const shares = [0, 0.0001, 0.004, 0.43, 0.9999, 1];
    assert.deepEqual(shares.map(formatPercent), ['0 %', '< 0.1 %', '0.4 %', '43 %', '> 99.9 %', '100 %']);
  });

  test('name a duration by its two largest units', () => {
    assert.deepEqual([45, 725, 11_520, 352_800].map(formatDuration), ['45 s', '12 min', '3 h 12 min', '4 d 2 h']);
  });
});

const DRAFT: RequestDraft = {
  isJson: true,
  state: '{ "price": 1.50, "2": 1e3 }',
  questions: [
    {
      id: '10',
      type: 'choice',
      instructions: 'a "quoted" line\nand another',
      options: [
        { name: '10', description: 'ten' },
        { name: '2', description: '' },
      ],
      levels: [],
      yes: '',
      no: '',
    },
    { id: '2', type: 'score', instructions: '', options: [], levels: ['low', 'high'], yes: '', no: '' },
    { id: 'n', type: 'noul', instructions: 'ok?', options: [], levels: [], yes: 'fine', no: '' },
  ],
};

suite('a request in a form', () => {
  test('becomes JSON in the order of the form, with the raw text of its state', () => {
    const text = draftText(DRAFT);
    assert.ok(text.includes('"state": { "price": 1.50, "2": 1e3 }'));
    assert.match(text, /"10": \{[\s\S]*"2": \{/);
    assert.match(text, /"10": "ten"[\s\S]*"2": ""/);
    assert.deepEqual(JSON.parse(text).questions.n, { type: 'noul', instructions: 'ok?', criteria: { true: 'fine' } });
  });

  test('comes back from its JSON as it was', () => {
    assert.deepEqual(readDraft(draftText(DRAFT)), DRAFT);
  });

  test('comes back from every recipe', () => {
    for (const recipe of RECIPES) {
      const draft = readDraft(recipeText(recipe));
      assert.ok(typeof draft === 'object', recipe.name);
      assert.deepEqual(JSON.parse(draftText(draft)), recipe.request, recipe.name);
    }
  });

  for (const [text, why] of [
    ['{"state": 1', 'it is not valid JSON'],
    ['{"state": 1 /* x */, "questions": {}}', 'it is not valid JSON'],
    ['[]', 'the request is not an object'],
    ['{"state": 1, "model": "svc"}', 'the request has a field that the form does not: model'],
    ['{"questions": {"q": {"type": "rank"}}}', 'q has no type that the form knows'],
    ['{"questions": {"q": {"type": "noul", "instructions": {}}}}', 'the instructions of q is not plain text'],
    ['{"questions": {"q": {"type": "score", "criteria": [null, "b"]}}}', 'the criteria of q is not plain text'],
    ['{"questions": {"q": {"type": "choice", "criteria": {"a": {}}}}}', 'the criteria of q is not plain text'],
    [`{"state": ${'['.repeat(100_000)}`, 'it is nested too deep'],
  ] as const) {
    test(`cannot show ${text.slice(0, 60)}: ${why}`, () => {
      assert.equal(readDraft(text), why);
    });
  }
});

test('an answer is read in its own order, whatever its options are called', () => {
  const { answers, inputTokens } = readDecision(
    '{"model":"svc","answers":{"b":{"type":"choice","choice":"10","probabilities":{"10":0.6,"2":0.4},"confidence":0.2,' +
      '"answer_confidence":0.6,"action":{"act_probability":0.5}},"1":{"type":"noul","noul":0.1,' +
      '"probabilities":{"false":0.9,"true":0.1},"confidence":0.8,"answer_confidence":0.9}},"usage":{"input_tokens":7}}',
  );
  assert.deepEqual(
    answers.map(({ id, outcomes }) => [id, ...outcomes.map(({ name }) => name)]),
    [
      ['b', '10', '2'],
      ['1', 'true', 'false'],
    ],
  );
  assert.deepEqual([answers[0]?.value, answers[0]?.actProbability, inputTokens], ['10', 0.5, 7]);
});

test('a snippet takes the key from its variable, and only where the key is on', () => {
  const options = { origin: 'http://h:1', body: '{}' };
  const [curl, typescript, python] = snippets({ ...options, needsKey: true });
  assert.ok(curl.text.includes('-H "Authorization: Bearer $SVC_API_KEY"'), curl.text);
  assert.match(typescript.text, /authorization: `Bearer \$\{process\.env\.SVC_API_KEY\}`/);
  assert.match(python.text, /"Authorization": f"Bearer \{os\.environ\['SVC_API_KEY'\]\}"/);
  for (const { text } of snippets({ ...options, needsKey: false }))
    assert.doesNotMatch(text, /SVC_API_KEY|authorization/i);
});
