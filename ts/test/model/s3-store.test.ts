import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { suite, type TestContext, test } from 'node:test';
import { S3Store } from '../../src/model/s3-store.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { HostileServer } from './hostile-server.ts';

const never = new AbortController().signal;

/** The environment variables with which the ordinary chain of credentials begins. */
Object.assign(process.env, {
  AWS_ACCESS_KEY_ID: 'test-key-id',
  AWS_SECRET_ACCESS_KEY: 'test-secret-key',
  AWS_MAX_ATTEMPTS: '1',
});

async function storeWith(t: TestContext, key: string, isFolder = true, answerMs?: number) {
  const server = await HostileServer.start(t);
  const options = { bucket: 'models', key, isFolder, endpoint: server.url, region: 'eu-test-1', pathStyle: true };
  return { server, store: new S3Store({ ...options, ...(answerMs !== undefined && { answerMs }) }) };
}

const xml = (name: string, body: string) => `<?xml version="1.0"?><${name}>${body}</${name}>`;
const listing = (keys: readonly string[], isCut = false) =>
  xml(
    'ListBucketResult',
    `<IsTruncated>${isCut}</IsTruncated>${keys
      .map((key) => `<Contents><Key>${key}</Key><Size>3</Size><ETag>"e"</ETag></Contents>`)
      .join('')}`,
  );

/** Sends `piece` again and again for as long as the caller takes it. */
function pump(response: ServerResponse, piece: string): void {
  const more = () => {
    while (!response.destroyed && response.write(piece));
    response.once('drain', more);
  };
  more();
}

const entry = (key: string, size: string) =>
  `<Contents><Key>${key}</Key><Size>${size}</Size><ETag>"e"</ETag></Contents>`;
const entities = [...'bcdefgh'].map((name, at) => `<!ENTITY ${name} "${`&${'abcdefgh'[at]};`.repeat(10)}">`).join('');

suite('a server of buckets that means harm', () => {
  for (const [what, answer, message] of [
    [
      'lists without end',
      (response: ServerResponse) => {
        response.write('<?xml version="1.0"?><ListBucketResult>');
        pump(response, entry('a/x', '3').repeat(1000));
      },
      'an answer of more than 4194304 bytes that is no object',
    ],
    [
      'says without end what is wrong',
      (response: ServerResponse) => pump(response.writeHead(500), 'x'.repeat(65_536)),
      'an answer of more than 4194304 bytes that is no object',
    ],
    [
      'drips',
      (response: ServerResponse) => {
        const drip = setInterval(() => response.write(' '), 20);
        response.on('close', () => clearInterval(drip));
      },
      'no answer within 1 s',
    ],
    [
      'asks to wait for an hour',
      (response: ServerResponse) => response.writeHead(503, { 'retry-after': '3600' }).end(),
      'no answer within 1 s',
    ],
    ['says nothing', () => {}, 'no answer within 1 s'],
    [
      'nests its listing without end',
      (response: ServerResponse) => response.end(`<?xml version="1.0"?>${'<a>'.repeat(200_000)}`),
      'what it answers makes no sense (status 200)',
    ],
    [
      'has an object that is smaller than nothing',
      (response: ServerResponse) => response.end(xml('ListBucketResult', entry('a/x', '-5'))),
      'its listing has a size that cannot be',
    ],
    [
      'has an object of a size that is no number',
      (response: ServerResponse) => response.end(xml('ListBucketResult', entry('a/x', 'many'))),
      'its listing has a size that cannot be',
    ],
    [
      'lists what was not asked for',
      (response: ServerResponse) => response.end(xml('ListBucketResult', entry('b/x', '5'))),
      'its listing has a key that is not under the prefix',
    ],
    [
      'has entities of entities',
      (response: ServerResponse) =>
        response.end(
          `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">${entities}]>` +
            `<ListBucketResult>${entry('a/&h;', '3')}</ListBucketResult>`,
        ),
      undefined,
    ],
  ] as const) {
    test(`is not believed when it ${what}`, async (t) => {
      // A server may ask for further tries, so this case allows them.
      Object.assign(process.env, { AWS_MAX_ATTEMPTS: what.startsWith('asks') ? '3' : '1' });
      t.after(() => Object.assign(process.env, { AWS_MAX_ATTEMPTS: '1' }));
      const quick = message?.startsWith('no answer') ? 1000 : 60_000;
      const { server, store } = await storeWith(t, 'a', true, quick);
      for (const path of ['/models', '/models/']) server.on(path, (_, response) => answer(response));
      const listed = await store.list(never).catch((error: Error) => error);
      if (message !== undefined) {
        assert.ok(listed instanceof Error);
        assert.deepEqual([listed.name, listed.message], ['SourceError', `s3://models/a/: ${message}`]);
      } else {
        // A hundred bytes of entities must not become 100 MB.
        assert.ok(JSON.stringify(listed instanceof Error ? listed.message : listed).length < 1000);
      }
    });
  }

  test('is not waited for when an object does not begin', async (t) => {
    const { server, store } = await storeWith(t, 'a', true, 500);
    server.on('/models/a/m', () => {});
    const message = 's3://models/a/m: no answer within 0.5 s';
    await assert.rejects(store.open('m', { signal: never }), { name: 'SourceError', isAway: true, message });
  });
});

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

  test('are not asked for without credentials, and that is said', async (t) => {
    const { server, store } = await storeWith(t, 'a');
    const names = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_EC2_METADATA_DISABLED', 'HOME'];
    const before = Object.fromEntries(names.map((name) => [name, process.env[name] ?? '']));
    t.after(() => Object.assign(process.env, before));
    const none = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_EC2_METADATA_DISABLED: 'true' };
    Object.assign(process.env, none, { HOME: temporaryFolder(t) });
    const message = 's3://models/a/m: Could not load credentials from any providers';
    await assert.rejects(store.open('m', { signal: never }), { name: 'SourceError', isAway: true, message });
    assert.deepEqual(server.requests, []);
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
