import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { build } from 'esbuild';
import { fixture, REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { consumerFolder, typeCheck } from './consumer.ts';

const OPTIONS = JSON.stringify({ model: fixture('shared-state-int8'), device: 'cpu', threads: 1 });
const REQUEST = `{ state: 'The parcel arrived crushed.', questions: { team: { type: 'choice', criteria: ['tech', 'sales'] } } }`;

/** Runs `files[name]` with Node. */
function run(folder: string, name: string) {
  return runCommand(process.execPath, { args: [name], cwd: folder });
}

const PRINT_CHOICE = `
const engine = await createEngine(${OPTIONS});
const { answers } = await engine.decide(${REQUEST});
console.log(JSON.stringify(answers));`;

suite('the package', () => {
  test('is imported and required, with errors of one class for both, and no engine keeps the process', async (t) => {
    const folder = consumerFolder(t, {
      'esm.mjs': `import { createEngine } from '@svc/server';${PRINT_CHOICE}`,
      'cjs.cjs': `const { createEngine } = require('@svc/server');(async () => {${PRINT_CHOICE}})();`,
      'both.mjs': `import { createRequire } from 'node:module';
        import * as imported from '@svc/server';
        const required = createRequire(import.meta.url)('@svc/server');
        const names = (one) => Object.keys(one).filter((name) => !['default', 'module.exports'].includes(name)).sort();
        const error = (one, name) => new one[name]({ code: 'queue_full', message: 'm' });
        class Own extends imported.DecisionError {}
        console.log(names(imported).join(), names(required).join() === names(imported).join(),
          ...['DecisionError', 'EngineError'].flatMap((name) => [
            error(imported, name) instanceof required[name], error(required, name) instanceof imported[name],
            error(imported, name) instanceof imported[name], new Error('x') instanceof required[name],
          ]),
          error(imported, 'EngineError') instanceof required.DecisionError,
          error(required, 'DecisionError') instanceof Own, new Own({ code: 'a', message: 'b' }) instanceof Own,
          new Own({ code: 'a', message: 'b' }) instanceof required.DecisionError, null instanceof required.DecisionError);`,
    });
    const [esm, cjs, both] = await Promise.all(['esm.mjs', 'cjs.cjs', 'both.mjs'].map((name) => run(folder, name)));
    assert.equal(esm?.stderr, '');
    assert.match(esm?.stdout ?? '', /^\{"team":\{"type":"choice","choice":"(tech|sales)"/);
    assert.deepEqual(cjs, esm);
    assert.equal(both?.stderr, '');
    const alike = 'true true true false';
    assert.equal(
      both?.stdout,
      `DecisionError,EngineError,createEngine true ${alike} ${alike} false false true true false\n`,
    );
  });

  for (const format of ['esm', 'cjs'] as const) {
    test(`is bundled by esbuild into one file, and answers in its place: ${format}`, async (t) => {
      const ending = format === 'esm' ? 'mjs' : 'cjs';
      const program = format === 'esm' ? PRINT_CHOICE : `(async () => {${PRINT_CHOICE}})();`;
      const folder = consumerFolder(t, { 'main.ts': `import { createEngine } from '@svc/server';${program}` });
      const outfile = join(folder, 'node_modules', '@svc', 'server', 'dist', 'lib', `bundled-${process.pid}.${ending}`);
      t.after(() => rmSync(outfile, { force: true }));
      const { warnings } = await build({
        ...{ absWorkingDir: folder, entryPoints: ['main.ts'], bundle: true, platform: 'node', format, outfile },
        logLevel: 'silent',
      });
      // A CommonJS program has no import.meta, for which the library has a replacement.
      const others = warnings.filter(({ id }) => id !== 'empty-import-meta');
      assert.deepEqual(others, []);
      const { stdout, stderr } = await runCommand(process.execPath, { args: [outfile], cwd: folder });
      assert.equal(stderr, '');
      assert.match(stdout, /^\{"team":\{"type":"choice","choice":"(tech|sales)"/);
    });

    test(`says in a bundle elsewhere what the bundler must leave out: ${format}`, async (t) => {
      const ending = format === 'esm' ? 'mjs' : 'cjs';
      const program = `createEngine().then(() => {}, ({ message }) => console.log(message));`;
      const folder = consumerFolder(t, { 'main.ts': `import { createEngine } from '@svc/server';${program}` });
      const outfile = join(temporaryFolder(t), `moved.${ending}`);
      await build({
        ...{ absWorkingDir: folder, entryPoints: ['main.ts'], bundle: true, platform: 'node', format, outfile },
        logLevel: 'silent',
      });
      const { stdout, stderr } = await runCommand(process.execPath, { args: [outfile] });
      assert.equal(stderr, '');
      assert.match(stdout, /where @svc\/server is in a bundle: a bundler must leave @svc\/server out \("external"\)/);
    });
  }

  test('is an ES module for who imports it: it requires nothing when it is loaded', () => {
    const text = readFileSync(join(REPOSITORY, 'dist', 'lib', 'index.js'), 'utf8');
    assert.doesNotMatch(text, /(?<![\w.])require\(|__require/);
    assert.match(text, /^export \{/m);
    // This is the spelling that webpack replaces, so that neither the engine nor the model would be found.
    assert.doesNotMatch(text, /\{ createRequire\b/);
  });

  test('has types for both module systems and for bundlers, also for who checks its declarations', async (t) => {
    const uses = `
      export async function team(): Promise<'tech' | 'sales'> {
        const engine: LocalEngine = await createEngine({ threads: 1 });
        const { answers } = await engine.decide(${REQUEST}, { signal: AbortSignal.timeout(1000) });
        // @ts-expect-error there is no such option
        if (answers.team.choice === 'billing') throw new Error(String(new DecisionError({ code: 'a', message: 'b' }).status));
        return answers.team.choice;
      }`;
    const names = '{ createEngine, DecisionError, type LocalEngine }';
    const folder = consumerFolder(t, {
      'esm.mts': `import ${names} from '@svc/server';${uses}`,
      'cjs.cts': `import ${names} from '@svc/server';${uses}`,
      'required.cts': `import svc = require('@svc/server');
        export const engine: Promise<svc.LocalEngine> = svc.createEngine();`,
    });
    const files = ['esm.mts', 'cjs.cts', 'required.cts'];
    for (const [module, checked] of [
      ['node16', files],
      ['nodenext', files],
      ['bundler', ['esm.mts']],
    ] as const) {
      const { stdout, code } = await typeCheck(folder, module, checked);
      assert.deepEqual([code, stdout], [0, ''], module);
    }
  });
});

suite('worker threads', () => {
  test('each with an engine answer as the main thread does; one that is terminated harms no other', async (t) => {
    const folder = consumerFolder(t, {
      'worker.mjs': `import { parentPort } from 'node:worker_threads';
        import { createEngine } from '@svc/server';
        const engine = await createEngine(${OPTIONS});
        parentPort.postMessage((await engine.decide(${REQUEST})).answers);
        for (;;) await Promise.all([1, 2, 3].map(() => engine.decide(${REQUEST})));`,
      'worker.cjs': `const { parentPort } = require('node:worker_threads');
        const { createEngine } = require('@svc/server');
        (async () => {
          const engine = await createEngine(${OPTIONS});
          parentPort.postMessage((await engine.decide(${REQUEST})).answers);
          await engine.close();
        })();`,
      'main.mjs': `import { once } from 'node:events';
        import { Worker } from 'node:worker_threads';
        import { createEngine } from '@svc/server';
        const engine = await createEngine(${OPTIONS});
        const own = async () => JSON.stringify((await engine.decide(${REQUEST})).answers);
        const answers = new Set([await own()]);
        for (let round = 0; round < 3; round++) {
          const files = ['worker.mjs', 'worker.mjs', 'worker.cjs'];
          const workers = files.map((file) => new Worker(new URL(file, import.meta.url)));
          const ended = once(workers[2], 'exit');
          const messages = await Promise.all(workers.map((worker) => once(worker, 'message')));
          for (const [message] of messages) answers.add(JSON.stringify(message));
          await Promise.all([own(), ...workers.slice(0, 2).map((worker) => worker.terminate())]);
          answers.add(await own());
          await ended;
        }
        const early = new Worker(new URL('worker.mjs', import.meta.url));
        await new Promise((resolve) => setTimeout(resolve, 60));
        await early.terminate();
        answers.add(await own());
        await engine.close();
        console.log(answers.size);`,
    });
    const ended = await run(folder, 'main.mjs');
    assert.deepEqual(ended, { code: 0, signal: null, stdout: '1\n', stderr: '' });
  });
});
