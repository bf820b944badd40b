/** The template of the layout `marker`: a `config.json` with its keys gives the answers of a published folder. */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { temporaryFolder } from '../temporary-folder.ts';
import { startEngine } from './model-folders.ts';
import { assertPublished, FAMILIES, PUBLISHED, type PublishedGolden, publishedGolden } from './published-folders.ts';

/** The settings of the tiny Laya as keys of the layout, each of them named. */
function settings(): Record<string, unknown> {
  const { temperature_by_options: buckets } = JSON.parse(
    readFileSync(join(PUBLISHED, 'laya-english', 'rl_agent_config.json'), 'utf8'),
  );
  const ranges: Readonly<Record<string, object>> = {
    '2': { min: 2, max: 2 },
    '3-5': { min: 3, max: 5 },
    '6-10': { min: 6, max: 10 },
    '11+': { min: 11 },
  };
  const byOptions = Object.entries<number>(buckets).map(([key, value]) => {
    const [type, size = ''] = key.split(':');
    return { type, ...ranges[size], temperature: Math.min(5, Math.max(0.5, value)) };
  });
  return {
    name: 'm',
    version: '1',
    layout: 'marker',
    temperature: { choice: 1.3, score: 0.5, noul: 1.1 },
    temperature_by_options: byOptions,
    max_len: 128,
    head_max: 48,
    option_max: 48,
    head_reserve: 16,
    option_min: 4,
    head_min: 8,
    state_min: 0,
    overflow: 'cut',
    row: ['cls', 'head', 'sep', 'options', 'sep', 'state', 'sep'],
    type_ids: { choice: 0, score: 1, noul: 2 },
    inputs: ['input_ids', 'attention_mask', 'marker_pos', 'marker_mask', 'qtype'],
    output: 'logits',
    logits_at: 'markers',
    action_is_optional: false,
    template: template({}),
  };
}

/** Returns the texts of Laya with some of them changed. */
function template(changes: object): object {
  const options = {
    prefix: ' ',
    choice: { described: '{name}: {description}', bare: '{name}' },
    score: { described: 'level {index}: {description}', bare: 'level {index}: ' },
    noul: {
      false: { described: 'false: {description}', bare: 'false: no, the statement does not hold' },
      true: { described: 'true: {description}', bare: 'true: yes, the statement holds' },
    },
  };
  return {
    head: '{type} question: {instructions}',
    state: '{state}',
    state_json: 'python',
    options: { ...options, ...('options' in changes && typeof changes.options === 'object' ? changes.options : {}) },
    bare_if_equal: false,
    noul_order: ['false', 'true'],
    instructions: { choice: '', score: '', noul: '' },
    instructions_required: false,
    mask: '[MASK]',
    written_mask: 'space',
    ...Object.fromEntries(Object.entries(changes).filter(([key]) => key !== 'options')),
  };
}

/** Returns the requests whose answers on a folder with these settings differ from those of the maker's code. */
async function wrong(t: TestContext, changes: object): Promise<PublishedGolden[]> {
  const folder = join(temporaryFolder(t), 'm');
  cpSync(join(PUBLISHED, 'laya-english'), folder, { recursive: true });
  rmSync(join(folder, 'rl_agent_config.json'));
  const tokenizer = JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8'));
  const id = (name: string) =>
    tokenizer.added_tokens.find(({ content }: { content: string }) => content === name)?.id ?? assert.fail(name);
  const ids = { cls: id('[CLS]'), sep: id('[SEP]'), pad: id('[PAD]'), mask: id('[MASK]') };
  const config = { ...settings(), special_ids: ids, ...changes };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const engine = await startEngine(t, { model: folder });
  const found: PublishedGolden[] = [];
  for (const golden of publishedGolden('laya-english')) {
    await assertPublished(engine, golden, FAMILIES['laya-english'] ?? assert.fail()).catch(() => found.push(golden));
  }
  return found;
}

suite('a config.json with all keys of the template', () => {
  test('gives the answers of the published folder', async (t) => {
    assert.deepEqual(await wrong(t, {}), []);
  });

  for (const changes of [
    { temperature: { choice: 1, score: 1, noul: 1 } },
    { temperature_by_options: [] },
    { max_len: 120 },
    { head_max: 40 },
    { option_max: 8 },
    { head_reserve: 20 },
    { option_min: 3 },
    { head_min: 7 },
    { state_min: 100 },
    { overflow: 'refuse' },
    { overflow: 'split' },
    { max_options: 3 },
    { max_levels: 3 },
    { row: ['cls', 'head', 'sep', 'options', 'state', 'sep'] },
    { row: ['cls', 'state', 'sep', 'options', 'sep', 'head', 'sep'] },
    { row: ['cls', 'head', 9, 'options', 'sep', 'state', 'sep'] },
    { type_ids: { choice: 1, score: 0, noul: 2 } },
    { template: template({ head: '{type}: {instructions}' }) },
    { template: template({ state: ' {state}' }) },
    { template: template({ state_json: 'as-sent' }) },
    { template: template({ state_json: 'python-sorted' }) },
    { template: template({ options: { prefix: '' } }) },
    { template: template({ options: { choice: { described: '{name} {description}', bare: '{name}' } } }) },
    { template: template({ options: { score: { described: '{description}', bare: '' } } }) },
    { template: template({ bare_if_equal: true }) },
    { template: template({ noul_order: ['true', 'false'] }) },
    { template: template({ instructions: { choice: 'a', score: 'a', noul: 'a' } }) },
    { template: template({ instructions_required: true }) },
    { template: template({ mask: '' }) },
    { template: template({ written_mask: 'refuse' }) },
  ]) {
    test(`gives others with another value: ${JSON.stringify(changes).slice(0, 300)}`, async (t) => {
      assert.notDeepEqual(await wrong(t, changes), []);
    });
  }
});
