import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { suite, type TestContext, test } from 'node:test';
import { S3Store } from '../../src/model/s3-store.ts';
import { HostileServer } from './hostile-server.ts';

const never = new AbortController().signal;

/** The ordinary chain begins with these. */
Object.assign(process.env, {
  AWS_ACCESS_KEY_ID: 'test-key-id',
  AWS_SECRET_ACCESS_KEY: 'test-secret-key',
  AWS_MAX_ATTEMPTS: '1',
});

async function storeWith(t: TestContext, key: string, isFolder = true) {
  const server = await HostileServer.start(t);
  const options = { bucket: 'models', key, isFolder, endpoint: server.url, region: 'eu-test-1', pathStyle: true };
  return { server, store: new S3Store(options) };
}

const xml = (name: string, body: string) => `<?xml version="1.0"?><${name}>${body}</${name}>`;
const listing = (keys: readonly string[], isCut = false) =>
  xml(
    'ListBucketResult',
    `<IsTruncated>${isCut}</IsTruncated>${keys
      .map((key) => `<Contents><Key>${key}</Key><Size>3</Size><ETag>"e"</ETag></Contents>`)
      .join('')}`,
  );

suite('objects of a bucket', () => {
  test('are asked for by path, signed with the credentials of the ordinary chain', async (t) => {
    const { server, store } = await storeWith(t, 'a/b');
    const seen: IncomingMessage[] = [];
    server.on('/models/a/b/config.json', (request, response) => {
      seen.push(request);
      response.setHeader('etag', '"one"').end('{}');
    });
    const opened = await store.open('config.json', { signal: never });
    assert.ok(opened !== 'unchanged');
    assert.deepEqual([await text(opened.body), opened.bytes, opened.etag], ['{}', 2, '"one"']);
    assert.match(
      seen[0]?.headers.authorization ?? '',
      /^AWS4-HMAC-SHA256 Credential=test-key-id\/\d{8}\/eu-test-1\/s3\//,
    );
  });

  test('stand beside an object that is named itself', async (t) => {
    const { server, store } = await storeWith(t, 'a/v1.json', false);
    server.serve('/models/a/v1.json', 'manifest');
    server.serve('/models/a/config.json', 'config');
    for (const [path, body] of [
      [undefined, 'manifest'],
      ['config.json', 'config'],
    ] as const) {
      const opened = await store.open(path, { signal: never });
      assert.equal(opened === 'unchanged' ? '' : await text(opened.body), body);
    }
  });

  test('are unchanged while they have their tag', async (t) => {
    const { server, store } = await storeWith(t, 'm.zip', false);
    server.serve('/models/m.zip', 'x', '"one"');
    assert.equal(await store.open(undefined, { etag: '"one"', signal: never }), 'unchanged');
    assert.notEqual(await store.open(undefined, { etag: '"two"', signal: never }), 'unchanged');
  });

  test('are listed under the prefix alone, without what stands for folders', async (t) => {
    const { server, store } = await storeWith(t, 'a');
    const queries: (string | undefined)[] = [];
    server.on('/models', (request, response) => {
      queries.push(request.url);
      response.end(listing(['a/', 'a/config.json', 'a/onnx/', 'a/onnx/model.onnx']));
    });
    server.on('/models/', (request, response) => {
      queries.push(request.url);
      response.end(listing(['a/', 'a/config.json', 'a/onnx/', 'a/onnx/model.onnx']));
    });
    assert.deepEqual(await store.list(never), [
      { path: 'config.json', bytes: 3, etag: '"e"' },
      { path: 'onnx/model.onnx', bytes: 3, etag: '"e"' },
    ]);
    assert.match(queries[0] ?? '', /[?&]prefix=a%2F(&|$)/);
  });

  test('are not taken when there are too many', async (t) => {
    const { server, store } = await storeWith(t, 'a');
    for (const path of ['/models', '/models/']) server.on(path, (_, response) => response.end(listing(['a/b'], true)));
    await assert.rejects(store.list(never), { name: 'SourceError', message: 's3://models/a/: more than 1000 objects' });
  });

  for (const [status, code, message, isMissing] of [
    [404, 'NoSuchKey', /^s3:\/\/models\/a\/m: no such object$/, true],
    [404, 'NoSuchBucket', /^s3:\/\/models\/a\/m: .*\(status 404\)$/, false],
    [403, 'AccessDenied', /^s3:\/\/models\/a\/m: .*\(status 403\)$/, false],
    [500, 'InternalError', /^s3:\/\/models\/a\/m: .*\(status 500\)$/, false],
  ] as const) {
    test(`that cannot be had say why: ${code}`, async (t) => {
      const { server, store } = await storeWith(t, 'a');
      server.on('/models/a/m', (_, response) => {
        response.writeHead(status).end(xml('Error', `<Code>${code}</Code><Message>what the server says</Message>`));
      });
      await assert.rejects(store.open('m', { signal: never }), {
        name: 'SourceError',
        isAway: true,
        isMissing,
        message,
      });
    });
  }

  test('of a server that is not there are away', async (t) => {
    const { server, store } = await storeWith(t, 'a');
    server.stop();
    await assert.rejects(store.open('m', { signal: never }), { name: 'SourceError', isAway: true, isMissing: false });
  });

  test('are not waited for when the signal has fired', async (t) => {
    const { store } = await storeWith(t, 'a');
    const signal = AbortSignal.abort(new Error('the end'));
    await assert.rejects(store.open('m', { signal }), { message: 'the end' });
  });
});
