import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { CommanderError } from 'commander';
import { createCommand } from '../src/cli.ts';
import { Refusal } from '../src/refusal.ts';

/** What the command line makes of `args`: the command, and what it is given. */
async function parsed(...args: string[]): Promise<readonly unknown[]> {
  const calls: (readonly unknown[])[] = [];
  const command = createCommand({
    serve: async (flags) => void calls.push(['serve', { ...flags }]),
    ask: async (file, options) => void calls.push(['ask', file, { ...options }]),
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
    const args = ['--config', 'c.json', '--listen', '127.0.0.1:0', '--model', 'm', '--device', 'cpu'];
    args.push('--threads', '2', '--runtime', 'r.so', '--log-level', 'warn', '--log-format', 'json');
    const flags = {
      config: 'c.json',
      listen: '127.0.0.1:0',
      model: 'm',
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
    assert.deepEqual(await parsed('ask', '--state', '-', '--question', 'b?', '--question', 'a?'), [
      'ask',
      undefined,
      { state: '-', question: ['b?', 'a?'] },
    ]);
  });

  for (const args of [['--nope'], ['ask', '--listen', 'x'], ['ask', 'a', 'b'], ['serve', '--threads'], ['help', 'x']]) {
    test(`${args.join(' ')} is refused`, async () => {
      await assert.rejects(parsed(...args), (error) => error instanceof CommanderError && error.exitCode === 1);
    });
  }

  test('an unknown command is refused, not served', async () => {
    await assert.rejects(parsed('sevre'), new Refusal('unknown command "sevre"; see svc --help'));
    await assert.rejects(parsed('serve', 'x'), Refusal);
  });

  test('help names every command and flag, and gives examples', () => {
    const command = createCommand({ serve: async () => {}, ask: async () => {} });
    assert.match(command.helpInformation(), /serve.*ask/s);
    const helps = command.commands.map((sub) => sub.helpInformation());
    const flags = ['--config', '--listen', '--model', '--device', '--threads', '--runtime', '--log-level'];
    for (const flag of [...flags, '--state', '--question', '--url', '--json']) {
      assert.ok(
        helps.some((help) => help.includes(flag)),
        flag,
      );
    }
  });
});
