import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { after, before, suite, type TestContext, test } from 'node:test';
import { build } from 'esbuild';
import { REPOSITORY } from '../addon/model-folders.ts';
import { typeCheck } from '../in-process/consumer.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import type { IsolatedRegistry } from './isolated-registry.ts';
import { platform, published, publishPackages } from './published.ts';

/** The largest allowed size of the packages for one platform, in bytes. */
const MAX_PACKED_BYTES = 60e6;

/** The longest allowed time from `npm install` to the first answer. */
const MAX_FIRST_ANSWER_MS = 60_000;

/** The longest allowed time from one command in an empty folder to its answer, the download not counted. */
const MAX_BEYOND_DOWNLOAD_MS = 10_000;

/** The option that runs a command as a user that is bound by file modes, which is any user but root. */
const HELD_BACK = process.geteuid?.() === 0 ? { user: 65_534 } : {};

const ASK = ['ask', '--state', 'I was charged twice.', '--question', 'refund: Money back?', '--json'];

let registry: IsolatedRegistry;

before(async () => {
  registry = await publishPackages();
});
after(() => registry?.stop());

/** Runs a command that must succeed, and returns its output. */
async function output(...[command, options]: Parameters<IsolatedRegistry['run']>): Promise<string> {
  const { code, stdout, stderr } = await registry.run(command, options);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** Returns a folder in which the package is installed. */
async function installed(t: TestContext, ...flags: string[]): Promise<string> {
  const cwd = temporaryFolder(t);
  await output(['npm', 'install', '@svc/server', ...flags], { cwd });
  return cwd;
}

function refund(answer: string): number {
  const { noul } = JSON.parse(answer).answers.refund;
  assert.equal(typeof noul, 'number');
  return noul;
}

suite('npm install @svc/server, with no network, no compiler and no other package', () => {
  test('gives an answer within a minute from an empty folder', async (t) => {
    const startMs = performance.now();
    const cwd = await installed(t);
    refund(await output(['npx', 'svc', ...ASK], { cwd }));
    const firstAnswerMs = performance.now() - startMs;
    const packedBytes = registry.packedBytes();
    t.diagnostic(`${(firstAnswerMs / 1000).toFixed(1)} s to the first answer, ${packedBytes} bytes packed`);
    assert.ok(firstAnswerMs < MAX_FIRST_ANSWER_MS);
    const tree = readdirSync(join(cwd, 'node_modules', '@svc')).sort();
    assert.deepEqual(tree, published.toSorted());
    assert.ok(packedBytes < MAX_PACKED_BYTES, `${packedBytes} bytes`);
  });

  test('runs nothing when it is installed, and has no package but its own', async (t) => {
    const cwd = await installed(t);
    const { packages } = JSON.parse(readFileSync(join(cwd, 'package-lock.json'), 'utf8'));
    const names = Object.keys(packages).filter((path) => path !== '');
    assert.ok(
      names.every((path) => path.startsWith('node_modules/@svc/')),
      names.join(),
    );
    assert.ok(Object.values<{ hasInstallScript?: boolean }>(packages).every((one) => one.hasInstallScript !== true));
  });

  test('is not needed for npx @svc/server', async (t) => {
    const cwd = temporaryFolder(t);
    refund(await output(['npx', '@svc/server', ...ASK], { cwd }));
    assert.deepEqual(readdirSync(cwd), []);
    // The second call has nothing to download.
    const startMs = performance.now();
    refund(await output(['npx', '@svc/server', ...ASK], { cwd }));
    const answerMs = performance.now() - startMs;
    t.diagnostic(`${(answerMs / 1000).toFixed(1)} s beyond the download`);
    assert.ok(answerMs < MAX_BEYOND_DOWNLOAD_MS);
  });

  test('gives programs createEngine, imported and required', async (t) => {
    const cwd = await installed(t);
    const ask = `(await createEngine()).decide({ state: 'x', questions: { refund: { type: 'noul' } } })
      .then((answer) => console.log(JSON.stringify(answer)))`;
    writeFileSync(join(cwd, 'esm.mjs'), `import { createEngine } from '@svc/server'; await ${ask}`);
    writeFileSync(
      join(cwd, 'cjs.cjs'),
      `const { createEngine } = require('@svc/server'); (async () => { await ${ask} })()`,
    );
    assert.equal(
      refund(await output(['node', 'esm.mjs'], { cwd })),
      refund(await output(['node', 'cjs.cjs'], { cwd })),
    );
  });

  test('gives programs that esbuild has bundled next to it, in both formats, the same answers', async (t) => {
    const cwd = await installed(t);
    const ask = `createEngine().then((engine) => engine.decide({ state: 'x', questions: { refund: { type: 'noul' } } }))
      .then((answer) => console.log(JSON.stringify(answer)));`;
    writeFileSync(join(cwd, 'main.js'), `import { createEngine } from '@svc/server'; ${ask}`);
    const plain = refund(
      await output(['node', '--input-type=module', '-e', readFileSync(join(cwd, 'main.js'), 'utf8')], { cwd }),
    );
    for (const [format, ending] of [
      ['esm', 'mjs'],
      ['cjs', 'cjs'],
    ] as const) {
      for (const external of [[], ['@svc/server']]) {
        const outfile = `out.${ending}`;
        const options = { absWorkingDir: cwd, bundle: true, platform: 'node', format } as const;
        await build({ ...options, entryPoints: ['main.js'], external, outfile, logLevel: 'silent' });
        assert.equal(refund(await output(['node', outfile], { cwd })), plain);
      }
    }
  });

  test('has pages whose links lead to files that are there, or to addresses', async (t) => {
    const cwd = await installed(t);
    const pages = published.flatMap((name) => {
      const folder = join(cwd, 'node_modules', '@svc', name);
      const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
      return files.filter((file) => file.endsWith('.md')).map((file) => join(folder, file));
    });
    const links = pages.flatMap((page) =>
      [...readFileSync(page, 'utf8').matchAll(/\]\((?![#\s])([^)\s]+)\)/g)].map(([, target = '']) => ({
        page,
        target,
      })),
    );
    assert.ok(pages.length > 25 && links.length > 100, `${pages.length} pages, ${links.length} links`);
    for (const { page, target } of links) {
      if (/^https?:/.test(target)) continue;
      assert.ok(existsSync(resolve(dirname(page), target.replace(/#.*/, ''))), `${page}: ${target}`);
    }
  });

  test('says in each package where it comes from, and unpacks where archives are the rule', async (t) => {
    const cwd = await installed(t);
    for (const name of published) {
      const text = readFileSync(join(cwd, 'node_modules', '@svc', name, 'package.json'), 'utf8');
      const { homepage, bugs, repository, preferUnplugged, keywords } = JSON.parse(text);
      const home = String(homepage).replace('#readme', '');
      assert.match(home, /^https:\/\/\S+$/);
      assert.deepEqual([bugs, repository.url, preferUnplugged], [`${home}/issues`, `git+${home}.git`, true]);
      assert.equal(Array.isArray(keywords) && keywords.length > 5, name === 'server', name);
    }
    const examples = readdirSync(join(cwd, 'node_modules', '@svc', 'server', 'examples'));
    assert.deepEqual(examples.toSorted(), readdirSync(join(REPOSITORY, 'examples')).toSorted());
  });

  test('leaves no npm file in what svc tune writes', async (t) => {
    const cwd = await installed(t);
    const data = join('node_modules', '@svc', 'server', 'examples', 'labelled.jsonl');
    await output(['npx', 'svc', 'tune', '--data', data, '--out', 'mine'], { cwd });
    const expected = ['LICENSE', 'config.json', 'golden.jsonl', 'model.onnx', 'tokenizer.json'];
    assert.deepEqual(readdirSync(join(cwd, 'mine')).toSorted(), expected);
    await output(['npx', 'svc', 'model', 'check', 'mine'], { cwd });
  });

  test('gives programs its types, in both module systems', async (t) => {
    const cwd = await installed(t);
    mkdirSync(join(cwd, 'node_modules', '@types'));
    symlinkSync(join(REPOSITORY, 'node_modules', '@types', 'node'), join(cwd, 'node_modules', '@types', 'node'));
    const use = `
      export const team = async (engine: LocalEngine): Promise<'a' | 'b'> =>
        (await engine.decide({ state: 1, questions: { q: { type: 'choice', criteria: ['a', 'b'] } } })).answers.q.choice;`;
    for (const name of ['esm.mts', 'cjs.cts']) {
      writeFileSync(join(cwd, name), `import { type LocalEngine } from '@svc/server';${use}`);
    }
    const { code, stdout } = await typeCheck(cwd, 'nodenext', ['esm.mts', 'cjs.cts']);
    assert.deepEqual([code, stdout], [0, '']);
  });

  test('without its optional packages says in one line what is missing', async (t) => {
    const cwd = await installed(t, '--omit=optional');
    const { code, stdout, stderr } = await registry.run(['npx', 'svc', ...ASK], { cwd });
    assert.deepEqual([code, stdout], [1, '']);
    const advice = 'is not installed: run npm install again, without --omit=optional';
    assert.equal(stderr, `the package @svc/engine-${platform} ${advice}\n`);
  });

  test('without its model says in one line what is missing', async (t) => {
    const cwd = await installed(t);
    rmSync(join(cwd, 'node_modules', '@svc', 'model-small'), { recursive: true });
    const { code, stderr } = await registry.run(['npx', 'svc', ...ASK], { cwd });
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^the embedded model is not installed: there is no package @svc\/model-small and no folder .+svc-small\n$/,
    );
  });
});

suite('for a user who may write neither to the package nor to the working folder', () => {
  const LISTEN = ['serve', '--listen', '127.0.0.1:0'];

  async function unwritable(t: TestContext): Promise<string> {
    let cwd = '';
    // This runs before the removal of the folder, which is registered later.
    t.after(() => execFileSync('chmod', ['-R', 'u+w', cwd]));
    cwd = await installed(t);
    execFileSync('chmod', ['-R', 'a-w', cwd]);
    return cwd;
  }

  test('one question is answered', async (t) => {
    const cwd = await unwritable(t);
    refund(await output(['node_modules/.bin/svc', ...ASK], { cwd, ...HELD_BACK }));
  });

  test('the server serves, with what it generates in $SVC_DATA', async (t) => {
    const cwd = await unwritable(t);
    const data = join(temporaryFolder(t), 'data');
    mkdirSync(data);
    if (HELD_BACK.user !== undefined) chownSync(data, HELD_BACK.user, HELD_BACK.user);
    const options = { cwd, ...HELD_BACK, env: { SVC_DATA: data } };
    // The server answers a request, and ends when it is told to.
    writeFileSync(join(data, 'first.mjs'), FIRST_REQUEST);
    refund(await output(['node', join(data, 'first.mjs'), ...LISTEN], options));
    assert.deepEqual(readdirSync(data).sort(), ['first.mjs', 'svc.password']);
    assert.deepEqual(readdirSync(cwd).sort(), ['node_modules', 'package-lock.json', 'package.json']);
  });

  test('and without $SVC_DATA the server says what to set', async (t) => {
    const cwd = await unwritable(t);
    const { code, stderr } = await registry.run(['node_modules/.bin/svc', ...LISTEN], { cwd, ...HELD_BACK });
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^svc\.password: cannot be written to .+ \(EACCES\); set SVC_PASSWORD, or SVC_DATA to a writable folder\n$/m,
    );
  });
});

/** A program that starts the server installed in the working folder, prints its answer to a request, and ends it. */
const FIRST_REQUEST = `
import { spawn } from 'node:child_process';
const server = spawn('node_modules/.bin/svc', process.argv.slice(2), { stdio: ['ignore', 'inherit', 'pipe'] });
let log = '';
for await (const part of server.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
  log += part;
  if (/model .* loaded/.test(log) && /listening on/.test(log)) break;
}
server.stderr.resume();
const [, url] = /listening on (http:[^"\\s]+)/.exec(log);
const body = JSON.stringify({ state: 'I was charged twice.', questions: { refund: { type: 'noul', instructions: 'Money back?' } } });
const response = await fetch(url + '/v1/systemone', { method: 'POST', body });
console.log(await response.text());
server.kill('SIGTERM');
server.on('exit', (code) => process.exit(code));
`;
