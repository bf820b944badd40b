import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { THREE_TYPES } from '../addon/requests.ts';
import { LiveServer } from '../real/live-server.ts';
import { KEY } from './refusing-servers.ts';

const BYTES = new TextEncoder().encode(THREE_TYPES);

/** Returns a body whose length is not known when it is sent. */
const chunked = () => ReadableStream.from([BYTES.subarray(0, 10), BYTES.subarray(10)]);

/** The ways to send a body; fetch requires `duplex` for a stream. */
const WAYS: readonly [string, () => RequestInit & { duplex?: 'half' }][] = [
  ['as a text, whose type is text/plain', () => ({ body: THREE_TYPES })],
  ['without a content type', () => ({ body: BYTES })],
  ['as a form', () => ({ body: BYTES, headers: { 'content-type': 'application/x-www-form-urlencoded' } })],
  ['with a content type that is none', () => ({ body: BYTES, headers: { 'content-type': 'nonsense' } })],
  ['as gzip', () => ({ body: gzipSync(BYTES), headers: { 'content-encoding': 'gzip' } })],
  ['as deflate', () => ({ body: deflateSync(BYTES), headers: { 'content-encoding': 'deflate' } })],
  ['as br', () => ({ body: brotliCompressSync(BYTES), headers: { 'content-encoding': 'br' } })],
  ['in chunks', () => ({ body: chunked(), duplex: 'half' })],
];

for (const env of [{}, { SVC_API_KEY: KEY }]) {
  const key = 'SVC_API_KEY' in env ? 'on' : 'off';

  test(`plain fetch is answered however it sends a body, with the key ${key}`, async (t) => {
    const server = await LiveServer.start(t, { env });
    const authorization = `Bearer ${KEY}`;
    const { answers } = JSON.parse(await server.answer(THREE_TYPES, { Authorization: authorization }));
    for (const [way, init] of WAYS) {
      const { headers, ...rest } = init();
      const options = { method: 'POST', headers: { ...headers, authorization }, ...rest };
      const response = await fetch(new URL('/v1/systemone', server.url), options);
      assert.equal(response.status, 200, way);
      assert.deepEqual(JSON.parse(await response.text()).answers, answers, way);
    }
  });
}
