import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { CommanderError } from 'commander';
import { type Actions, createCommand } from '../src/cli.ts';
import { WrongUsage } from '../src/refusal.ts';

/** Returns what the command line makes of `args`: the name of the command, and its arguments. */
async function parsed(...args: string[]): Promise<readonly unknown[]> {
  const calls: (readonly unknown[])[] = [];
  const noted = (name: string) => async (flags: object) => void calls.push([name, { ...flags }]);
  const command = createCommand({
    serve: noted('serve'),
    ask: async (file, options) => void calls.push(['ask', file, { ...options }]),
    batch: async (input, flags) => void calls.push(['batch', input, { ...flags }]),
    tune: noted('tune'),
    bench: async (url, flags) => void calls.push(['bench', url, { ...flags }]),
    gate: noted('gate'),
    mcp: noted('mcp'),
    doctor: noted('doctor'),
    config: noted('config'),
    addMissing: async (file) => void calls.push(['add missing', file]),
    health: noted('health'),
    modelCheck: async (dir, flags) => void calls.push(['model check', dir, { ...flags }]),
    modelManifest: async (dir) => void calls.push(['model manifest', dir]),
    modelPull: async (model, flags) => void calls.push(['model pull', model, { ...flags }]),
    modelList: noted('model list'),
    modelRm: async (model, flags) => void calls.push(['model rm', model, { ...flags }]),
    completion: async (shell) => void calls.push(['completion', shell]),
  });
  await command.parseAsync(args, { from: 'user' });
  assert.equal(calls.length, 1);
  return calls[0] ?? [];
}

suite('svc', () => {
  test('alone serves', async () => {
    assert.deepEqual(await parsed(), ['serve', {}]);
    assert.deepEqual(await parsed('serve'), ['serve', {}]);
  });

  test('takes every flag of serve, with and without its name', async () => {
    const args = ['--config', 'c.json', '--listen', '127.0.0.1:0', '--model', 'm', '--device', 'cpu', '--host', 'h'];
    args.push('--model-file', 'm.onnx');
    args.push('--threads', '2', '--runtime', 'r.so', '--log-level', 'warn', '--log-format', 'json', '-p', '1');
    const flags = {
      config: 'c.json',
      listen: '127.0.0.1:0',
      host: 'h',
      port: '1',
      model: 'm',
      modelFile: 'm.onnx',
      device: 'cpu',
      threads: '2',
      runtime: 'r.so',
      logLevel: 'warn',
      logFormat: 'json',
    };
    assert.deepEqual(await parsed(...args), ['serve', flags]);
    assert.deepEqual(await parsed('serve', ...args), ['serve', flags]);
  });

  test('ask takes a request file, or a state and questions in their order', async () => {
    assert.deepEqual(await parsed('ask', 'r.json', '--json'), ['ask', 'r.json', { json: true }]);
    assert.deepEqual(await parsed('ask', '-', '--url', 'http://a'), ['ask', '-', { url: 'http://a' }]);
    assert.deepEqual(await parsed('ask', '-i', '--state', 'x'), ['ask', undefined, { interactive: true, state: 'x' }]);
    assert.deepEqual(await parsed('ask', '--state', '-', '--question', 'b?', '--question', 'a?'), [
      'ask',
      undefined,
      { state: '-', question: ['b?', 'a?'] },
    ]);
  });

  test('batch takes a file and all of its flags', async () => {
    const files = ['--questions', 'q', '--output', 'o', '--errors', 'e', '--format', 'csv', '--delimiter', ';'];
    const rows = ['--state', 'a', '--state', 'b', '--keep', 'c,d', '--part-rows', '5', '--resume', '--overwrite'];
    const servers = ['--url', 'http://a', '--url', 'http://b', '--concurrency', '4', '--give-up', '9'];
    assert.deepEqual(await parsed('batch', 'i.csv', ...files, ...rows, ...servers), [
      'batch',
      'i.csv',
      {
        ...{ questions: 'q', output: 'o', errors: 'e', format: 'csv', delimiter: ';' },
        ...{ state: ['a', 'b'], keep: 'c,d', partRows: '5', resume: true, overwrite: true },
        ...{ url: ['http://a', 'http://b'], concurrency: '4', giveUp: '9' },
      },
    ]);
    await assert.rejects(parsed('batch'), CommanderError);
  });

  test('tune takes labelled rows and the folder to write', async () => {
    const flags = ['--data', 'd.csv', '--out', 'o', '--overwrite', '--seed', '3', '--json', '--model', 'm'];
    const taken = { data: 'd.csv', out: 'o', overwrite: true, seed: '3', json: true, model: 'm' };
    assert.deepEqual(await parsed('tune', ...flags), ['tune', taken]);
  });

  test('mcp takes a server or a model, and an address of its own', async () => {
    assert.deepEqual(await parsed('mcp'), ['mcp', {}]);
    assert.deepEqual(await parsed('mcp', '--url', 'unix:/run/svc.sock'), ['mcp', { url: 'unix:/run/svc.sock' }]);
    const own = ['--listen', '127.0.0.1:0', '--model', 'm', '--log-level', 'warn'];
    assert.deepEqual(await parsed('mcp', ...own), ['mcp', { listen: '127.0.0.1:0', model: 'm', logLevel: 'warn' }]);
  });

  test('gate takes its own flags and those of the server that it runs', async () => {
    assert.deepEqual(await parsed('gate'), ['gate', { key: true }]);
    const own = ['--listen', 'a:1', '--upstream', 'http://b', '--connect-timeout-ms', '2', '--timeout-ms', '3'];
    assert.deepEqual(await parsed('gate', ...own, '--run', '--no-key', '--threads', '1'), [
      'gate',
      {
        listen: 'a:1',
        upstream: 'http://b',
        connectTimeoutMs: '2',
        timeoutMs: '3',
        run: true,
        key: false,
        threads: '1',
      },
    ]);
  });

  test('doctor, config and health take the flags of the server that is meant', async () => {
    const flags = { listen: 'a:1', json: true };
    assert.deepEqual(await parsed('doctor', '--listen', 'a:1', '--json'), ['doctor', flags]);
    assert.deepEqual(await parsed('config', '--listen', 'a:1', '--json'), ['config', flags]);
    assert.deepEqual(await parsed('health', '--listen', 'a:1', '--config', 'c'), [
      'health',
      { listen: 'a:1', config: 'c' },
    ]);
  });

  test('bench takes a server and what it is asked', async () => {
    const flags = { requests: 'r.jsonl', seconds: '3', concurrency: '4', json: true };
    const args = ['--requests', 'r.jsonl', '--seconds', '3', '--concurrency', '4', '--json'];
    assert.deepEqual(await parsed('bench', 'http://a', ...args), ['bench', 'http://a', flags]);
    await assert.rejects(parsed('bench'), CommanderError);
  });

  for (const [args, help] of [
    [['--nope'], 'svc serve --help'],
    [['ask', '--listen', 'x'], 'svc ask --help'],
    [['ask', 'a', 'b'], 'svc ask --help'],
    [['serve', '--threads'], 'svc serve --help'],
    [['model', 'check', '--nope'], 'svc model check --help'],
    [['config', 'x'], 'svc config --help'],
    [['completion'], 'svc completion --help'],
  ] as const) {
    test(`${args.join(' ')} is wrong usage, and the help of that command is named`, async () => {
      await assert.rejects(
        parsed(...args),
        (error) => error instanceof CommanderError && error.exitCode === 2 && error.message.endsWith(`; see ${help}`),
      );
    });
  }

  test('model alone is wrong usage, and prints the help of model', async () => {
    await assert.rejects(
      parsed('model'),
      (error) =>
        error instanceof CommanderError &&
        error.exitCode === 2 &&
        /^Usage: svc model .*\n {2}check /s.test(error.message),
    );
  });

  test('config add-missing takes a file, and config alone still takes none', async () => {
    assert.deepEqual(await parsed('config', 'add-missing', 'a.json'), ['add missing', 'a.json']);
    await assert.rejects(parsed('config', 'a.json'), /too many arguments|unknown command/);
  });

  test('model check takes a folder, and what to run it on', async () => {
    assert.deepEqual(await parsed('model', 'check', 'nli'), ['model check', 'nli', {}]);
    const flags = { device: 'cpu', threads: '1', runtime: 'r.so', config: 'c.json', json: true };
    const args = ['--device', 'cpu', '--threads', '1', '--runtime', 'r.so', '--config', 'c.json', '--json'];
    assert.deepEqual(await parsed('model', 'check', 'nli', ...args), ['model check', 'nli', flags]);
    for (const args of [
      ['model', 'chek', 'nli'],
      ['model', 'check', 'a', 'b'],
    ]) {
      await assert.rejects(parsed(...args), CommanderError);
    }
    // Without a folder the model of the settings is meant, and that of the package.
    assert.deepEqual(await parsed('model', 'check'), ['model check', undefined, {}]);
    assert.deepEqual(await parsed('model', 'manifest'), ['model manifest', undefined]);
  });

  test('model pull, list and rm take the name of a model and the settings', async () => {
    const flags = ['--model-file', 'onnx/a.onnx', '--device', 'cpu', '--json'];
    assert.deepEqual(await parsed('model', 'pull', 'hf:org/name', ...flags), [
      'model pull',
      'hf:org/name',
      { modelFile: 'onnx/a.onnx', device: 'cpu', json: true },
    ]);
    assert.deepEqual(await parsed('model', 'list', '--json', '--config', 'c'), [
      'model list',
      { json: true, config: 'c' },
    ]);
    assert.deepEqual(await parsed('model', 'rm', 'hf:org/name'), ['model rm', 'hf:org/name', {}]);
    for (const args of [['pull'], ['rm'], ['list', 'x'], ['rm', 'a', 'b']]) {
      await assert.rejects(parsed('model', ...args), CommanderError);
    }
  });

  test('an unknown command is refused, not served', async () => {
    const meant = new WrongUsage('unknown command "sevre" (Did you mean serve?); see svc --help');
    await assert.rejects(parsed('sevre'), meant);
    await assert.rejects(
      parsed('nothing-like-it'),
      new WrongUsage('unknown command "nothing-like-it"; see svc --help'),
    );
    await assert.rejects(parsed('serve', 'x'), WrongUsage);
    await assert.rejects(parsed('help', 'modle'), /unknown command "modle" \(Did you mean model\?\); see svc --help/);
    const inModel = /unknown command "chekc" \(Did you mean check\?\); see svc model --help/;
    await assert.rejects(parsed('help', 'model', 'chekc'), inModel);
  });

  test('completion takes a shell', async () => {
    assert.deepEqual(await parsed('completion', 'bash'), ['completion', 'bash']);
  });

  test('help names every command and flag, and gives examples', () => {
    const none = async () => {};
    const actions: Actions = {
      serve: none,
      ask: none,
      batch: none,
      tune: none,
      bench: none,
      gate: none,
      mcp: none,
      doctor: none,
      config: none,
      addMissing: none,
      health: none,
      modelCheck: none,
      modelManifest: none,
      modelPull: none,
      modelList: none,
      modelRm: none,
      completion: none,
    };
    const command = createCommand(actions);
    let printed = '';
    command.configureOutput({
      writeOut: (text) => {
        printed += text;
      },
    });
    command.outputHelp();
    const names = command.commands.map((sub) => sub.name());
    const expected = ['serve', 'ask', 'batch', 'tune', 'gate', 'mcp', 'bench', 'doctor', 'config', 'health', 'model'];
    assert.deepEqual(names, [...expected, 'version', 'completion', 'help']);
    for (const name of names) assert.match(printed, new RegExp(`^ {2}${name} `, 'm'));
    assert.match(printed, /^Examples:\n {2}svc +serve on /m);
    const helps = command.commands.map((sub) => sub.helpInformation());
    for (const flag of [
      ...[
        '--config',
        '--listen',
        '--model',
        '--model-file',
        '--device',
        '--threads',
        '--runtime',
        '--log-level',
        '--log-format',
      ],
      ...['--state', '--question', '--url', '--json', '--questions', '--output', '--errors', '--format', '--keep'],
      ...['--delimiter', '--part-rows', '--resume', '--overwrite', '--concurrency', '--give-up'],
      ...['--allow-different-servers', '--data', '--out', '--seed', '--upstream', '--run', '--no-key'],
      ...['--connect-timeout-ms', '--timeout-ms', '--batch-timeout-ms', '--host', '-p, --port', '-i, --interactive'],
      ...['--requests', '--seconds'],
    ]) {
      assert.ok(
        helps.some((help) => new RegExp(`^ {2}${flag} `, 'm').test(help)),
        flag,
      );
    }
  });
});
