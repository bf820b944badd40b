import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { openPage, textOf } from './browser.ts';

/** Runs `npm start` on a terminal until the test ends, and returns the terminal's text once the model is loaded. */
async function startOnTerminal(test: TestContext): Promise<string> {
  const config = join(temporaryFolder(test), 'svc.json');
  // The port is a free one, so that a running server is left alone.
  writeFileSync(config, '{"listen": "127.0.0.1:0"}');
  const start = `npm --prefix '${REPOSITORY}' start -- --config '${config}'`;
  const terminal = spawn('script', ['-q', '-e', '-c', start, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = new Promise((resolve) => terminal.on('close', resolve));
  test.after(async () => {
    // This is the byte that a typed Ctrl-C sends.
    terminal.stdin.write('\x03');
    await closed;
  });
  let shown = '';
  for await (const part of terminal.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    shown += part;
    if (/model .* loaded/.test(shown)) break;
  }
  terminal.stdout.resume();
  return stripVTControlCharacters(shown);
}

test('a newcomer goes from npm start to a decision, and to the same one by the copied curl', async (t) => {
  const shown = await startOnTerminal(t);
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(shown)?.[0];
  const password = /Dashboard password, shown only now: (\S+)/.exec(shown)?.[1];
  assert.ok(url && password, shown);

  const page = await openPage(t, { httpCredentials: { username: 'me', password } });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
  await page.goto(url);
  await page.getByRole('link', { name: 'Try a decision' }).click();
  await page.getByRole('button', { name: 'Decide' }).click();
  await page.locator('.answer').first().waitFor();
  const played = JSON.parse((await page.locator('[data-raw] pre').textContent()) ?? '');

  await page.getByRole('tabpanel', { name: 'curl' }).getByRole('button', { name: 'Copy' }).click();
  await page.getByRole('button', { name: 'Copy curl' }).getByText('Copied').waitFor();
  const copied = await page.evaluate<string>('navigator.clipboard.readText()');
  const { code, stdout, stderr } = await runCommand('bash', { args: ['-c', copied] });
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(JSON.parse(stdout).answers, played.answers);

  const line = await textOf(page.getByRole('region', { name: 'The line for curl' }));
  const example = await runCommand('bash', { args: ['-c', line] });
  assert.equal(JSON.parse(example.stdout).answers.refund.type, 'noul');
});
