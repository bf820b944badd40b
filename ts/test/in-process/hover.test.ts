/** The texts that an editor shows for the package: each has what somebody needs who sees nothing else. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { expectTypeOf } from 'expect-type';
import type { EngineOptions } from '../../src/engine/contract.ts';
import type { LocalEngineOptions } from '../../src/in-process/index.ts';
import { type ConfigKey, settingSchema } from '../../src/schemas/config.ts';
import { REPOSITORY } from '../addon/model-folders.ts';

/** Returns the text above each member of an interface in the package's types, by the member's name, in one line. */
function hoversOf(file: string, name: string): ReadonlyMap<string, string> {
  const types = join(REPOSITORY, 'dist', 'lib', 'types', 'in-process', `${file}.d.ts`);
  const [, body = ''] =
    new RegExp(`interface ${name}\\b[^{]*\\{\\n(.*?)\\n\\}`, 's').exec(readFileSync(types, 'utf8')) ?? [];
  // The types of a member that has several lines are indented further.
  const members = body.matchAll(
    /(?:\/\*\*((?:(?!\*\/).)*)\*\/\n)?^ {4}(?:readonly )?(\[Symbol\.\w+\]|\w+)(?=[?<(:])/gms,
  );
  return new Map(
    [...members].map(([, text = '', member = '']) => [member, text.replaceAll(/\s*\n\s*\*\s?/g, ' ').trim()]),
  );
}

interface Ranged {
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) as ConfigKey;

suite('the hover text of an option', () => {
  const hovers = hoversOf('options', 'LocalEngineOptions');

  test('is there for each option of an engine', () => {
    expectTypeOf<keyof LocalEngineOptions>().toEqualTypeOf<keyof EngineOptions>();
    assert.ok(hovers.size > 10);
    for (const [name, text] of hovers) assert.match(text, /\.$/, name);
  });

  for (const [name, text] of hovers) {
    test(`has the default and the range of the setting: ${name}`, () => {
      const { default: value, anyOf = [], ...own } = settingSchema(snakeCase(name));
      // A number of requests may also be a word.
      const whole: Ranged | undefined =
        own.type === 'integer' ? own : anyOf.find((choice: Ranged) => choice.type === 'integer');
      if (value === '') assert.match(text, /Default: the \w/);
      else if (whole !== undefined) {
        const { minimum = 0, maximum = 0 } = whole;
        const [low, high, usual] = [minimum, maximum, Number(value)].map((number) => number.toLocaleString('en'));
        assert.ok(text.includes(`${low} to ${high}`), text);
        assert.match(text, new RegExp(`Default: ${usual}( \\(\\d+ MiB\\))?\\.$`));
      } else assert.ok(text.endsWith(`Default: \`${value}\`.`), text);
      for (const { const: choice } of anyOf) assert.ok(choice === undefined || text.includes(`\`${choice}\``), choice);
      if (/Ms$/.test(name)) assert.match(text, /milliseconds/);
      if (/Bytes$/.test(name)) assert.match(text, /bytes/);
    });
  }
});

test('every method and field of an engine and of a call has a hover text', () => {
  const all = [
    ['local-engine', 'LocalEngine', ['model', 'decide', 'decideJson', 'swap', 'close', '[Symbol.asyncDispose]']],
    ['local-engine', 'DecisionRequest', ['state', 'questions']],
    ['local-engine', 'CallOptions', ['signal']],
  ] as const;
  for (const [file, name, members] of all) {
    const hovers = hoversOf(file, name);
    assert.deepEqual([...hovers.keys()], members, name);
    for (const [member, text] of hovers) assert.match(text, /^[A-Z].*\.$/, `${name}.${member}`);
  }
});
