import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';

const read = (...path: readonly string[]) => readFileSync(join(REPOSITORY, ...path), 'utf8');
const TABLE = read('docs', 'stacks.md');
const FOLDER = join('ts', 'test', 'stacks', 'requirements');

/** Returns the version that the table has for a package. */
const listed = (name: string) =>
  new RegExp(`^\\| .*\`${name}\` \\| (\\S+) \\| \\d{4}-\\d\\d-\\d\\d \\|`, 'm').exec(TABLE)?.[1];

suite('docs/stacks.md', () => {
  for (const file of readdirSync(join(REPOSITORY, FOLDER))) {
    for (const [, name = '', version] of read(FOLDER, file).matchAll(/^([\w-]+)(?:\[\w+\])?==(\S+)$/gm)) {
      // The SDK is in a table of its own.
      if (name === 'typesafe-sdk') continue;
      test(`has the version of ${name} that is tested`, () => {
        assert.equal(listed(name), version);
        const page = file.replace(/\.txt$/, '.md');
        assert.match(
          read('docs', 'stacks', page),
          new RegExp(`${name}(\\[\\w+\\])?'?==${version}`.replaceAll('.', '\\.')),
        );
      });
    }
  }

  test('has the versions of the MCP SDK and of the collector', () => {
    const { dependencies } = JSON.parse(read('package.json'));
    assert.equal(listed('@modelcontextprotocol/sdk'), dependencies['@modelcontextprotocol/sdk']);
    const [, collector] =
      /go\.opentelemetry\.io\/collector\/receiver\/otlpreceiver v(\S+)/.exec(
        read('ts', 'test', 'stacks', 'collector', 'go.mod'),
      ) ?? [];
    assert.equal(listed('go.opentelemetry.io/collector'), collector);
  });

  test('leads to every page of docs/stacks', () => {
    const pages = readdirSync(join(REPOSITORY, 'docs', 'stacks'));
    const missing = pages.filter((page) => !TABLE.includes(`(stacks/${page}`));
    assert.deepEqual(missing, []);
  });
});
