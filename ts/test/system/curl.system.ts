import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { PROCESSOR_TOLERANCE, REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { THREE_TYPES } from '../addon/requests.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** Returns the text of the README's first code block that starts with `start`. */
function readmeBlock(start: string): string {
  const page = readFileSync(join(REPOSITORY, 'README.md'), 'utf8');
  const blocks = [...page.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  const found = blocks.find((block) => block.startsWith(start));
  assert.ok(found, `README.md has no block that starts with ${start}`);
  return found;
}

/** Returns the text of a JSON value with its numbers replaced by 0, and the list of the numbers. */
function withoutNumbers(value: unknown): [shape: string, numbers: number[]] {
  const numbers: number[] = [];
  const shape = JSON.stringify(value, (_, item) => {
    if (typeof item !== 'number') return item;
    numbers.push(item);
    return 0;
  });
  return [shape, numbers];
}

test("the README's request gets the README's answer", async (t) => {
  const server = await LiveServer.start(t);
  const command = readmeBlock('curl ').replace('http://127.0.0.1:21118/', server.url.href);
  const { code, stdout, stderr } = await runCommand('bash', { args: ['-c', command] });
  assert.deepEqual([code, stderr], [0, '']);
  const [got, expected] = [JSON.parse(stdout), JSON.parse(readmeBlock('{\n  "model": "svc"'))];
  assert.equal(got.usage.input_tokens, expected.usage.input_tokens);
  const [[shape, numbers], [expectedShape, expectedNumbers]] = [got.answers, expected.answers].map(withoutNumbers) as [
    [string, number[]],
    [string, number[]],
  ];
  assert.equal(shape, expectedShape);
  for (const [index, value] of expectedNumbers.entries()) {
    const difference = Math.abs((numbers[index] ?? Number.NaN) - value);
    // In derived numbers, such as a score, the differences of several probabilities add up.
    assert.ok(difference <= 3 * PROCESSOR_TOLERANCE, `${numbers[index]} instead of ${value}`);
  }
});

test('curl', async (t) => {
  const server = await LiveServer.start(t);
  const url = new URL('/v1/systemone', server.url).href;
  const expected = JSON.parse(await server.answer(THREE_TYPES)).answers;

  /** Runs curl, and returns the body and its log of the connection, which -v writes. */
  async function curl(...args: string[]): Promise<{ readonly body: string; readonly log: string }> {
    const { code, stdout, stderr } = await runCommand('curl', { args: ['-sSv', '--max-time', '20', ...args, url] });
    assert.equal(code, 0, stderr);
    return { body: stdout, log: stderr };
  }

  await t.test('with HTTP/1.0 is answered, and the connection closed', async () => {
    const { body, log } = await curl('--http1.0', '-d', THREE_TYPES);
    assert.deepEqual(JSON.parse(body).answers, expected);
    assert.match(log, /< Connection: close/i);
  });

  await t.test('that expects 100-continue is told to go on', async () => {
    const { body, log } = await curl('-H', 'Expect: 100-continue', '-d', THREE_TYPES);
    assert.deepEqual(JSON.parse(body).answers, expected);
    assert.match(log, /< HTTP\/1\.1 100 Continue/);
  });

  await t.test('that would rather speak HTTP/2 is answered in HTTP/1.1', async () => {
    const { body, log } = await curl('--http2', '-d', THREE_TYPES);
    assert.deepEqual(JSON.parse(body).answers, expected);
    assert.match(log, /< HTTP\/1\.1 200 OK/);
  });

  await t.test('that sends a chunked body is answered', async () => {
    const { body } = await curl('-H', 'Transfer-Encoding: chunked', '-d', THREE_TYPES);
    assert.deepEqual(JSON.parse(body).answers, expected);
  });

  await t.test('that sends a gzip file is answered', async (t) => {
    const file = join(temporaryFolder(t), 'request.json.gz');
    writeFileSync(file, gzipSync(THREE_TYPES));
    const { body } = await curl('-H', 'Content-Encoding: gzip', '--data-binary', `@${file}`);
    assert.deepEqual(JSON.parse(body).answers, expected);
  });

  await t.test('that asks twice keeps its connection', async () => {
    const { log } = await curl('-d', THREE_TYPES, url);
    assert.match(log, /Re-using existing connection/);
  });

  await t.test('--fail ends with an error for a bad request', async () => {
    const { code, stdout } = await runCommand('curl', { args: ['-sSf', '-d', '{}', url] });
    assert.deepEqual([code, stdout], [22, '']);
  });
});
