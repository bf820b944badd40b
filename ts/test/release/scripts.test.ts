import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { programFolder } from '../install/place.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const workflow = (name: string) => readFileSync(join(REPOSITORY, '.github', 'workflows', name), 'utf8');
const RELEASE = workflow('release.yml');
const { version } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));
const LIST = JSON.parse(readFileSync(join(REPOSITORY, 'npm', 'platforms.json'), 'utf8'));

function script(name: string, ...args: string[]): Promise<Ended> {
  return runCommand(process.execPath, { args: [join('scripts', 'release', `${name}.mjs`), ...args], cwd: REPOSITORY });
}

suite('the plan of a release', () => {
  test('has the version, the compiler, every platform, and the images of those with Linux', async () => {
    const { code, stdout } = await script('plan', `v${version}`);
    assert.equal(code, 0);
    const outputs = new Map([...stdout.matchAll(/^(\w+)=(.*)$/gm)].map(([, key = '', value = '']) => [key, value]));
    assert.equal(outputs.get('version'), version);
    assert.equal(outputs.get('rust'), LIST.rust);
    const names = (key: string) => JSON.parse(outputs.get(key) ?? '').map((one: { name: string }) => one.name);
    assert.deepEqual(
      names('platforms'),
      LIST.platforms.map((one: { name: string }) => one.name),
    );
    assert.equal(JSON.parse(outputs.get('images') ?? '').length, 2);
  });

  test('refuses a tag of another version', async () => {
    const { code, stdout, stderr } = await script('plan', 'v99.0.0');
    assert.deepEqual([code, stdout], [1, '']);
    assert.equal(stderr, `release: the tag is v99.0.0, the version is ${version}\n`);
  });
});

test('a platform that the list lacks is refused with the ones that it has', async () => {
  for (const name of ['packages', 'archive', 'engine', 'pack', 'try-archive']) {
    const { code, stderr } = await script(name, 'plan9-x64');
    assert.equal(code, 1);
    assert.match(stderr, /^release: there is no platform plan9-x64: linux-x64-gnu, .*\n$/);
  }
});

test('a flag that a script does not know is refused as a flag', async () => {
  const { code, stderr } = await script('packages', '--help');
  assert.deepEqual(
    [code, stderr],
    [1, 'release: unknown flag --help; docs/releasing.md says what each command takes\n'],
  );
});

test('packages that have not been made are not packed, and a line says what makes them', async (t) => {
  const { code, stderr } = await runCommand(process.execPath, {
    args: [join('scripts', 'release', 'pack.mjs'), 'darwin-arm64'],
    cwd: REPOSITORY,
    env: { SVC_RELEASE_FOLDER: temporaryFolder(t) },
  });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^release: \S+engine-darwin-arm64 is not there: run node scripts\/release\/packages\.mjs first\n$/,
  );
});

suite('a page in a package', () => {
  const isPacked = (file: string) => ['docs/api.md', 'README.md', 'LICENSE'].includes(file);

  /** Returns a page of the repository as a package has it, in which only `isPacked` files are. */
  async function packed(text: string, path: string): Promise<string> {
    const { packedPage } = await import(pathToFileURL(join(REPOSITORY, 'scripts', 'release', 'links.mjs')).href);
    return packedPage(text, path, isPacked);
  }

  test('keeps links to files of the package, to places and to addresses', async () => {
    const text = '[a](api.md) [b](../README.md#start) [c](#here) [d](https://a.example/x.md) ![e](../LICENSE)';
    assert.equal(await packed(text, 'docs/errors.md'), text);
  });

  test('leads to the repository, at its version, for every other file', async () => {
    const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
    const base = `${server && name ? `${server}/${name}` : 'https://github.com/svc/server'}/blob/v${version}`;
    const text = '[a](../ARCHITECTURE.md#rooms) and [b](errors.md)';
    assert.equal(
      await packed(text, 'docs/api.md'),
      `[a](${base}/ARCHITECTURE.md#rooms) and [b](${base}/docs/errors.md)`,
    );
  });

  test('shows pictures from the repository, since registries show it alone', async () => {
    const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
    const base = `${server && name ? `${server}/${name}` : 'https://github.com/svc/server'}/raw/v${version}`;
    const picture = (path: string) => `<source srcset="${path}"><img src="${path}" alt="x"><img src="data:,">`;
    assert.equal(await packed(picture('LICENSE'), 'README.md'), picture(`${base}/LICENSE`));
    await assert.rejects(packed('<img src="no.png">', 'README.md'), /there is no no\.png/);
  });

  test('with a link to nothing is refused', async () => {
    await assert.rejects(
      packed('[a](no.md)', 'docs/api.md'),
      /docs\/api\.md links to no\.md, and there is no docs\/no\.md/,
    );
  });
});

test('a script says which program it lacks, and which has failed', async (t) => {
  for (const [programs, line] of [
    [{}, 'cargo is not installed'],
    [{ cargo: 'exit 3' }, 'cargo metadata failed (exit code 3)'],
  ] as const) {
    // Windows cannot run such a script in the place of a program.
    if (process.platform === 'win32' && 'cargo' in programs) continue;
    const { code, stderr } = await runCommand(process.execPath, {
      args: [join('scripts', 'release', 'packages.mjs'), '--local'],
      cwd: REPOSITORY,
      env: { PATH: await programFolder(t, programs), SVC_RELEASE_FOLDER: temporaryFolder(t) },
    });
    assert.deepEqual([code, stderr], [1, `release: ${line}\n`]);
  }
});

test('the notes of a release are what CHANGELOG.md says of its version', async () => {
  const { code, stdout } = await script('notes');
  assert.equal(code, 0);
  const changelog = readFileSync(join(REPOSITORY, 'CHANGELOG.md'), 'utf8');
  const start = changelog.indexOf(`\n## ${version}`) + 1;
  assert.ok(start > 0);
  // The text between the line with the version and the next one of its kind.
  const [notes = ''] = changelog.slice(changelog.indexOf('\n', start)).split(/^## /m, 1);
  assert.notEqual(notes.trim(), '');
  assert.equal(stdout, `${notes.trim()}\n`);
});

for (const name of ['ci.yml', 'release.yml']) {
  test(`${name} takes every action by the digest of a commit`, () => {
    const uses = [...workflow(name).matchAll(/uses: (.+)/g)].map(([, action]) => action ?? '');
    assert.ok(uses.length > 0);
    for (const action of uses) {
      assert.match(action, /^[\w-]+\/[\w-]+@[0-9a-f]{40} # (v\d+\.\d+\.\d+|master, \d{4}-\d{2}-\d{2})$/);
    }
  });
}

suite('the release workflow', () => {
  test('can be run again: what a job hands on replaces what it handed on before', () => {
    const uploads = RELEASE.split(/uses: actions\/upload-artifact@/).slice(1);
    assert.ok(uploads.length > 0);
    for (const upload of uploads) assert.match(upload.split(/^ *- /m)[0] ?? '', /^ +overwrite: true/m);
  });

  test('calls scripts that are there', () => {
    const called = [...RELEASE.matchAll(/node (scripts\/\S+\.mjs)/g)].map(([, path]) => path ?? '');
    assert.ok(called.length > 0);
    for (const path of called) assert.ok(existsSync(join(REPOSITORY, path)), path);
  });

  test('builds with the compiler of the container', () => {
    assert.match(readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8'), new RegExp(`^FROM rust:${LIST.rust}-`, 'm'));
  });
});
