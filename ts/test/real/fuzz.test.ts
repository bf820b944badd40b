import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { fixture, goldenLines } from '../addon/model-folders.ts';
import { THREE_TYPES } from '../addon/requests.ts';
import { LiveServer } from './live-server.ts';

const model = fixture('shared-state');

/** The request bodies of the reference that are short enough to be damaged in every place. */
const VALID = goldenLines(model)
  .map(({ body }) => body)
  .filter((body) => body.length < 1000);

/** A valid body of which one piece is replaced by another. */
const damaged = fc
  .record({ body: fc.constantFrom(...VALID), at: fc.nat(), cut: fc.nat(20), piece: fc.string({ maxLength: 12 }) })
  .map(({ body, at, cut, piece }) => {
    const start = at % body.length;
    return Buffer.from(body.slice(0, start) + piece + body.slice(start + cut));
  });

const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));
const json = fc.json({ maxDepth: 6 }).map((value) => Buffer.from(value));
const envelope = fc
  .record({ state: fc.json(), questions: fc.json() })
  .map(({ state, questions }) => Buffer.from(`{"state":${state},"questions":${questions}}`));
const body = fc.oneof(damaged, bytes, json, envelope);

const visible = fc.string({ unit: 'grapheme-ascii', maxLength: 60 });
const headers = fc.record(
  {
    'Content-Encoding': fc.oneof(fc.constantFrom('gzip', 'deflate', 'br', 'identity', 'gzip, br'), visible),
    'Content-Type': visible,
    Accept: fc.oneof(fc.constantFrom('application/json', '*/*', 'text/plain;q=0'), visible),
    Authorization: visible,
    Expect: visible,
    'X-Request-Id': visible,
    'X-Forwarded-For': visible,
    Cookie: visible,
  },
  { requiredKeys: [] },
);

suite('whatever comes', () => {
  test('500 bodies and headers get an answer or a refusal of their own, never a 5xx', async (t) => {
    const server = await LiveServer.start(t, { model });
    const before = JSON.parse(await server.answer(THREE_TYPES)).answers;
    await fc.assert(
      fc.asyncProperty(body, headers, async (sent, sentHeaders) => {
        const { status, text: line } = await server.decide(sent, { headers: sentHeaders });
        assert.ok([200, 400, 403, 413, 415].includes(status), `${status} ${line}`);
        if (status !== 200) assert.ok(line.length > 0 && !line.includes('\n'), line);
      }),
      { numRuns: 500 },
    );
    assert.deepEqual(JSON.parse(await server.answer(THREE_TYPES)).answers, before);
  });

  test('on a raw connection ends with an answer or the connection, and the server lives', async (t) => {
    const server = await LiveServer.start(t, { model });
    const lines = fc.array(
      fc.oneof(visible, fc.constantFrom('Host: localhost', 'Content-Length: 5', 'Transfer-Encoding: chunked')),
    );
    const start = fc.oneof(
      visible,
      fc.constantFrom('POST /v1/systemone HTTP/1.1', 'GET /health HTTP/1.1', 'PRI * HTTP/2.0'),
    );
    await fc.assert(
      fc.asyncProperty(start, lines, bytes, async (first, others, rest) => {
        const socket = connect({ host: '127.0.0.1', port: Number(server.url.port) });
        socket.on('error', () => {});
        socket.end(Buffer.concat([Buffer.from(`${[first, ...others].join('\r\n')}\r\n\r\n`), rest]));
        const received = await text(socket).catch(() => '');
        assert.doesNotMatch(received, /^HTTP\/1\.1 5/m);
      }),
      { numRuns: 300 },
    );
    assert.equal((await server.decide(THREE_TYPES)).status, 200);
  });
});
