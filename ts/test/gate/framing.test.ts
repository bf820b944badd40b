import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { suite, type TestContext, test } from 'node:test';
import { rawHeader, Wire } from '../http/server-under-test.ts';
import { AUTHORIZATION, type GateUnderTest, listen, startGate } from './gate-under-test.ts';

const HOST = 'Host: gate.example\r\n';
/** The content of a body: to a reader that sees no body, it is a request that the gate would have to refuse. */
const HIDDEN = `GET /v1/hidden HTTP/1.1\r\n${HOST}x-request-id: hidden\r\n\r\n`;
const CHUNKS = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`;
const LENGTH = `Content-Length: ${HIDDEN.length}\r\n`;
const CODING = 'Transfer-Encoding: chunked\r\n';

/** Each framing, the bytes behind the headers, and whether all readers agree on it: in HTTP/1.1, and in HTTP/1.0. */
const FRAMINGS = [
  ['none', '', '', true, true],
  ['a length', LENGTH, HIDDEN, true, true],
  ['a length of 0', 'Content-Length: 0\r\n', '', true, true],
  ['chunks', CODING, CHUNKS, true, false],
  ['chunks in capitals', 'TRANSFER-ENCODING: CHUNKED\r\n', CHUNKS, true, false],
  ['a length and chunks', LENGTH + CODING, CHUNKS, false, false],
  ['chunks and a length', CODING + LENGTH, CHUNKS, false, false],
  ['chunks and a length of 0', `${CODING}Content-Length: 0\r\n`, CHUNKS, false, false],
  ['a length twice', LENGTH + LENGTH, HIDDEN, false, false],
  ['two lengths', `Content-Length: 0\r\n${LENGTH}`, HIDDEN, false, false],
  ['two lengths in one', `Content-Length: 0, ${HIDDEN.length}\r\n`, HIDDEN, false, false],
  ['a signed length', `Content-Length: +${HIDDEN.length}\r\n`, HIDDEN, false, false],
  ['a length beyond all numbers', 'Content-Length: 99999999999999999\r\n', HIDDEN, false, false],
  ['a coding before chunked', 'Transfer-Encoding: gzip, chunked\r\n', CHUNKS, false, false],
  ['chunked twice', 'Transfer-Encoding: chunked, chunked\r\n', CHUNKS, false, false],
  ['chunked on two lines', CODING + CODING, CHUNKS, false, false],
  ['identity', 'Transfer-Encoding: identity\r\n', '', false, false],
  ['an empty coding', 'Transfer-Encoding:\r\n', '', false, false],
  ['an unknown coding', 'Transfer-Encoding: xchunked\r\n', CHUNKS, false, false],
  ['a coding after a tab', 'Transfer-Encoding: \x0bchunked\r\n', CHUNKS, false, false],
] as const;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];
const WITH_BODY = ['POST', 'PUT', 'PATCH'];
/** The numbers of header lines before the framing. By default, Node shows only the first thousand. */
const FILLERS = [0, 999, 1000, 2000, 3500];

interface Seen {
  readonly id: string;
  readonly url: string | undefined;
  readonly body: string;
}

/** Returns a gate in front of a server that records its requests and says in each answer which request it is for. */
async function start(t: TestContext): Promise<{ readonly gate: GateUnderTest; readonly seen: Seen[] }> {
  const seen: Seen[] = [];
  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    const body = (await buffer(req)).toString('latin1');
    const id = String(req.headers['x-request-id']);
    seen.push({ id, url: req.url, body });
    res.setHeader('x-answer-to', id);
    res.end();
  };
  return { gate: await startGate(t, { answer }), seen };
}

/** Returns, for each answer in `received`, the request that it is for: by the gate's word and by the server's word. */
function answers(received: string): (string | undefined)[][] {
  const heads = received.split(/(?=HTTP\/1\.1 \d{3} )/);
  return heads.map((head) => [rawHeader(head, 'x-request-id'), rawHeader(head, 'x-answer-to')]);
}

const KEYED = `${HOST}${AUTHORIZATION}`;
const AFTER = `GET /v1/after HTTP/1.1\r\n${KEYED}x-request-id: after\r\nConnection: close\r\n\r\n`;

suite('where a request ends', () => {
  for (const method of METHODS) {
    for (const version of ['1.1', '1.0']) {
      test(`${method} in HTTP/${version} is read alike by the gate and the server, or refused`, async (t) => {
        const { gate, seen } = await start(t);
        for (const [what, framing, sent, isSoundNow, isSoundBefore] of FRAMINGS) {
          for (const filler of FILLERS) {
            const name = `${what} behind ${filler} header lines`;
            const wire = await Wire.open(t, gate.port);
            const headers = `${KEYED}x-request-id: outer\r\n${'a:\r\n'.repeat(filler)}${framing}`;
            wire.send(`${method} /v1/outer HTTP/${version}\r\n${headers}\r\n${sent}${AFTER}`);
            const received = await wire.ends();
            // This request is the next one on the connection to the server.
            const next = await Wire.open(t, gate.port);
            next.send(AFTER.replaceAll('after', 'next'));
            assert.deepEqual(answers(await next.ends()), [['next', 'next']], name);

            const isSound = version === '1.1' ? isSoundNow : isSoundBefore;
            const outer = { id: 'outer', url: '/v1/outer', body: WITH_BODY.includes(method) && sent ? HIDDEN : '' };
            const after = { id: 'after', url: '/v1/after', body: '' };
            const last = { id: 'next', url: '/v1/next', body: '' };
            // A connection in HTTP/1.0 ends with its first answer.
            const expected = isSound ? [outer, ...(version === '1.1' ? [after] : []), last] : [last];
            assert.deepEqual(seen.splice(0), expected, name);
            if (isSound) {
              const to = expected.slice(0, -1).map(({ id }) => [id, id]);
              assert.deepEqual(answers(received), to, name);
            } else {
              assert.match(received, /^HTTP\/1\.1 400 [\s\S]*\r\nConnection: close\r\n/, name);
              assert.equal(answers(received).length, 1, name);
            }
          }
        }
      });
    }
  }

  for (const version of ['0.9', '2.0', '1.2', '3.0']) {
    test(`HTTP/${version} is refused, and what follows it`, async (t) => {
      const { gate, seen } = await start(t);
      const wire = await Wire.open(t, gate.port);
      wire.send(`GET /v1/outer HTTP/${version}\r\n${KEYED}\r\n${AFTER}`);
      assert.match(await wire.ends(), /^HTTP\/1\.1 400 /);
      assert.deepEqual(seen, []);
    });
  }

  test('more than one Host is refused', async (t) => {
    const { gate, seen } = await start(t);
    const wire = await Wire.open(t, gate.port);
    wire.send(`GET /health HTTP/1.1\r\n${HOST}${HOST}\r\n`);
    assert.match(await wire.ends(), /^HTTP\/1\.1 400 [\s\S]*\r\n\r\nmore than one Host$/);
    assert.deepEqual(seen, []);
  });

  test('without the key nothing is read as a request by the server, whatever the header lines before it', async (t) => {
    const { gate, seen } = await start(t);
    for (const method of METHODS) {
      for (const filler of FILLERS) {
        for (const [framing, sent] of [
          [LENGTH, HIDDEN],
          [CODING, CHUNKS],
        ]) {
          const wire = await Wire.open(t, gate.port);
          const headers = `${HOST}x-request-id: outer\r\n${'a:\r\n'.repeat(filler)}${framing}Connection: close\r\n`;
          wire.send(`${method} /health HTTP/1.1\r\n${headers}\r\n${sent}`);
          assert.deepEqual(answers(await wire.ends()), [['outer', 'outer']]);
          const body = WITH_BODY.includes(method) ? HIDDEN : '';
          assert.deepEqual(seen.splice(0), [{ id: 'outer', url: '/health', body }], `${method} ${filler}`);
        }
      }
    }
  });

  test('a body of which no header tells is sent to nobody, whoever hides the header', async (t) => {
    const { gate, seen } = await start(t);
    // Node's own HTTP server hides all headers after the thousandth.
    const port = await listen(t, createServer(gate.app.callback()));
    for (const method of METHODS) {
      const wire = await Wire.open(t, port);
      const headers = `${HOST}x-request-id: outer\r\n${'a:\r\n'.repeat(1100)}${LENGTH}`;
      wire.send(`${method} /health HTTP/1.1\r\n${headers}\r\n${HIDDEN}`);
      if (WITH_BODY.includes(method)) assert.equal(await wire.ends(), '');
      else assert.deepEqual(answers(await wire.receives('\r\n\r\n')), [['outer', 'outer']]);
      const next = await Wire.open(t, gate.port);
      next.send(AFTER.replaceAll('after', 'next'));
      assert.deepEqual(answers(await next.ends()), [['next', 'next']], method);
      const bodies = seen.splice(0).map(({ id, body }) => [id, body]);
      assert.deepEqual(
        bodies.filter(([id]) => id !== 'outer'),
        [['next', '']],
        method,
      );
      assert.deepEqual(
        bodies.filter(([, body]) => body !== ''),
        [],
        method,
      );
    }
  });
});
