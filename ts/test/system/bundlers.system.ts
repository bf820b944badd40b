/** Bundlers and other runtimes, in the versions and with the settings that docs/in-process.md names. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, type RunOptions, runCommand } from '../addon/program.ts';
import { freePort } from '../free-port.ts';
import { ProcessOutput } from '../process-output.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { published } from './published.ts';

const PAGE = readFileSync(join(REPOSITORY, 'docs', 'in-process.md'), 'utf8');

/** The tools of the page's table, with their versions. */
const TOOLS = [...PAGE.matchAll(/^\| (\w+) (\d+\.\d+\.\d+) \|/gm)].map(([, name = '', version = '']) => ({
  name,
  version,
}));

/** The packages that some of these tools need in addition. */
const COMPANIONS = ['webpack-cli', 'react', 'react-dom'];

/** Bun and Deno are programs, which the packages of these names get when they are installed. */
const INSTALLERS = { bun: 'install.js', deno: 'install.cjs' };

const LONG_MS = 600_000;

const DECIDE = `(await createEngine()).decide({ state: 'I was charged twice', questions: { refund: { type: 'noul' } } })`;
const MAIN = `import { createEngine } from '@svc/server';
const { answers } = await ${DECIDE};
console.log(answers.refund.noul);`;

const folder = mkdtempSync(join(tmpdir(), 'svc-bundlers-'));
let expected = '';

before(async () => {
  const release = join(folder, 'release');
  const env = { ...process.env, SVC_RELEASE_FOLDER: release };
  execFileSync(process.execPath, [join('scripts', 'release', 'packages.mjs'), '--local'], { cwd: REPOSITORY, env });
  const own = published.map((name) => join(release, 'node_modules', '@svc', name));
  const tools = [...TOOLS.map(({ name, version }) => `${name}@${version}`), ...COMPANIONS];
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  const quiet = ['--no-audit', '--no-fund', '--install-links'];
  const { code, stderr } = await here('npm', { args: ['install', ...quiet, ...own, ...tools], timeoutMs: LONG_MS });
  assert.equal(code, 0, stderr);
  for (const [name, script] of Object.entries(INSTALLERS))
    await here('node', { args: [join('node_modules', name, script)] });
  writeFileSync(join(folder, 'main.js'), MAIN);
  expected = await answer('node', 'main.js');
  assert.match(expected, /^0\.\d+\n$/);
});
after(() => rmSync(folder, { recursive: true, force: true }));

function here(command: string, options: RunOptions): Promise<Ended> {
  const { PATH = '' } = process.env;
  const path = [join(folder, 'node_modules', '.bin'), PATH].join(':');
  return runCommand(command, { cwd: folder, timeoutMs: LONG_MS, ...options, env: { PATH: path, ...options.env } });
}

/** Runs a command that must succeed, and returns its output. */
async function answer(command: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await here(command, { args });
  assert.equal(code, 0, stdout + stderr);
  return stdout;
}

test('the page names the tools that are tried here', () => {
  assert.deepEqual(
    TOOLS.map(({ name }) => name),
    ['esbuild', 'vite', 'webpack', 'next', 'bun', 'deno'],
  );
});

suite('a program with the package outside of its bundle gives the same answer', () => {
  for (const format of ['esm', 'cjs']) {
    test(`by esbuild, as ${format}`, async () => {
      const program = format === 'esm' ? MAIN : MAIN.replace(/const[\s\S]*/, (text) => `(async () => {${text}})();`);
      writeFileSync(join(folder, `${format}.js`), program);
      const outfile = `esbuild-${format}.${format === 'esm' ? 'mjs' : 'cjs'}`;
      const options = ['--bundle', '--platform=node', `--format=${format}`, '--external:@svc/server'];
      await answer('esbuild', `${format}.js`, ...options, `--outfile=${outfile}`);
      assert.equal(await answer('node', outfile), expected);
    });
  }

  test('by Vite', async () => {
    writeFileSync(join(folder, 'vite.config.js'), "export default { build: { ssr: 'main.js', outDir: 'vite' } };");
    await answer('vite', 'build');
    assert.equal(await answer('node', join('vite', 'main.js')), expected);
  });

  for (const [name, type, ending] of [
    ['commonjs', 'commonjs @svc/server', 'cjs'],
    ['module', 'module @svc/server', 'mjs'],
  ] as const) {
    test(`by webpack, as ${name}`, async () => {
      const isModule = name === 'module';
      const output = { path: folder, filename: `webpack.${ending}`, module: isModule };
      const options = {
        mode: 'production',
        target: 'node',
        entry: './main.js',
        externals: { '@svc/server': type },
        output,
      };
      const config = { ...options, experiments: { outputModule: isModule } };
      assert.ok(PAGE.includes(type));
      writeFileSync(join(folder, 'webpack.config.cjs'), `module.exports = ${JSON.stringify(config)}`);
      await answer('webpack', '-c', 'webpack.config.cjs');
      assert.equal(await answer('node', `webpack.${ending}`), expected);
    });
  }

  test('by webpack, even if it takes the package in, as long as it is installed', async () => {
    const output = { path: folder, filename: 'whole.cjs' };
    const config = { mode: 'production', target: 'node', entry: './main.js', output };
    writeFileSync(join(folder, 'whole.config.cjs'), `module.exports = ${JSON.stringify(config)}`);
    await answer('webpack', '-c', 'whole.config.cjs');
    assert.equal(await answer('node', 'whole.cjs'), expected);
  });

  test('by Bun', async () => {
    await answer('bun', 'build', 'main.js', '--target=bun', '--external', '@svc/server', '--outfile', 'bun.js');
    assert.equal(await answer('bun', 'bun.js'), expected);
  });
});

suite('another runtime gives the same answer', () => {
  test('Bun', async () => assert.equal(await answer('bun', 'main.js'), expected));

  test('Deno, with the permissions of the page', async () => {
    const [permissions = ''] = /--allow-ffi[^`]*/.exec(PAGE) ?? [];
    assert.equal(await answer('deno', 'run', ...permissions.split(' '), 'main.js'), expected);
  });
});

test('a page of Next decides on the server, in the output that stands alone', async (t) => {
  // Next takes the outermost folder with a lockfile for the project's, and looks for packages in it.
  const next = temporaryFolder(t);
  mkdirSync(join(next, 'app'));
  renameSync(join(folder, 'node_modules'), join(next, 'node_modules'));
  writeFileSync(join(next, 'package.json'), '{"private":true}');
  const settings = ['serverExternalPackages', 'outputFileTracingIncludes'].map((name) => {
    const [, value = ''] = new RegExp(`\`(${name}: [^\`]+)\``).exec(PAGE) ?? [];
    return value;
  });
  writeFileSync(join(next, 'next.config.mjs'), `export default { output: 'standalone', ${settings.join(', ')} };`);
  const layout = 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;';
  writeFileSync(join(next, 'app', 'layout.js'), layout);
  const page = `import { createEngine } from '@svc/server';
    export const dynamic = 'force-dynamic';
    export default async function Page() { return <p>{(await ${DECIDE}).answers.refund.noul}</p>; }`;
  writeFileSync(join(next, 'app', 'page.js'), page);
  const env = { NEXT_TELEMETRY_DISABLED: '1' };
  const built = await runCommand(process.execPath, {
    ...{ args: [join('node_modules', 'next', 'dist', 'bin', 'next'), 'build'], cwd: next, env, timeoutMs: LONG_MS },
  });
  assert.equal(built.code, 0, built.stdout + built.stderr);
  const alone = join(folder, 'alone');
  cpSync(join(next, '.next', 'standalone'), alone, { recursive: true });
  assert.match(await pageOf(t, alone), new RegExp(`<p>${expected.trim()}</p>`));
});

/** Starts the server that Next has made, and returns its page. */
async function pageOf(t: TestContext, cwd: string): Promise<string> {
  const port = await freePort();
  const env = { ...process.env, PORT: String(port), HOSTNAME: '127.0.0.1' };
  const server = spawn(process.execPath, ['server.js'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => server.kill('SIGKILL'));
  const output = new ProcessOutput(server);
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
    if (response?.ok) return response.text();
    await sleep(100);
    if (server.exitCode !== null) throw new Error((await output.finished).stderr);
  }
}
