import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { suite, test } from 'node:test';
import { ConfigSchema } from '../../src/schemas/config.ts';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';

const read = (path: string) => readFileSync(join(REPOSITORY, path), 'utf8').replaceAll('\r\n', '\n');

/** The pages for users. */
const PAGES = [
  ...['README.md', 'SECURITY.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'],
  'deploy/proxy/README.md',
  ...readdirSync(join(REPOSITORY, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.replaceAll('\\', '/')}`),
];

/** Returns a page without its code, in which brackets mean other things. */
function prose(path: string): string {
  return read(path)
    .replaceAll(/^```.*?^```$/gms, '')
    .replaceAll(/`[^`\n]*`/g, '');
}

/** Returns the names by which links find the headings of a page. */
function headings(path: string): string[] {
  const titles = read(path)
    .replaceAll(/^```.*?^```$/gms, '')
    .matchAll(/^#+ (.+)$/gm);
  return [...titles].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );
}

suite('the pages for users', () => {
  test('link to files and headings that are there', () => {
    const links = PAGES.flatMap((page) =>
      [...prose(page).matchAll(/(?:\]\(|\bsrc(?:set)?=")(?!\w+:)([^)"\s]+)[)"]/g)].map(([, target = '']) => ({
        page,
        target,
      })),
    );
    assert.ok(links.length > 100);
    for (const { page, target } of links) {
      const [path = '', fragment] = target.split('#');
      const file = path === '' ? page : posix.normalize(posix.join(posix.dirname(page), path));
      assert.ok(existsSync(join(REPOSITORY, file)), `${page}: ${target}`);
      if (fragment !== undefined && file.endsWith('.md')) {
        assert.ok(headings(file).includes(fragment), `${page}: ${target}`);
      }
    }
  });

  test('begin with one of at most 150 lines, which shows the dashboard in light and dark', () => {
    const page = read('README.md');
    assert.ok(page.trimEnd().split('\n').length <= 150);
    for (const scheme of ['light', 'dark']) assert.match(page, new RegExp(`"docs/images/dashboard-${scheme}\\.png"`));
  });

  test('never tell a reader to run npx svc, which is a package of somebody else', () => {
    for (const page of PAGES) assert.doesNotMatch(read(page), /\bnpx (?:--\S+ )*svc\b/, page);
  });

  test('tell nobody but contributors to run the program of a clone', () => {
    const inClone = PAGES.filter((page) => /node bin\/svc\.js/.test(read(page)));
    assert.deepEqual(inClone.sort(), ['README.md', 'docs/quick-start.md']);
  });
});

suite('docs/settings.md', () => {
  test('is what its script makes of the schema', async () => {
    const args = [join('scripts', 'settings-page.mjs'), '--check'];
    const { code, stderr } = await runCommand(process.execPath, { args, cwd: REPOSITORY });
    assert.deepEqual([code, stderr], [0, '']);
  });

  test('has every setting once', () => {
    const keys = [...read('docs/settings.md').matchAll(/^\| `(\w+)` \|/gm)].map(([, key]) => key);
    assert.deepEqual(keys.toSorted(), Object.keys(ConfigSchema.properties).toSorted());
  });

  test('is what the README and the page on programs lead to', () => {
    assert.match(read('README.md'), /\(docs\/settings\.md\)/);
    assert.match(read('docs/in-process.md'), /\(settings\.md\)/);
  });
});
