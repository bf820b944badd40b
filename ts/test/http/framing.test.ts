import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ANSWER } from '../fake-engine.ts';
import { DECISION, startServer, Wire } from './server-under-test.ts';

const HOST = 'Host: localhost\r\n';
/** The numbers of header lines before the one that counts. By default, Node shows only the first thousand. */
const FILLERS = [0, 999, 1000, 2000, 3500];
const filling = (lines: number) => 'a:\r\n'.repeat(lines);
const LENGTH = `Content-Length: ${DECISION.length}\r\n`;
const CODING = 'Transfer-Encoding: chunked\r\n';
const CHUNKS = `${DECISION.length.toString(16)}\r\n${DECISION}\r\n0\r\n\r\n`;

suite('header lines that are many hide', () => {
  test('no Origin of another site', async (t) => {
    const { port, engine } = await startServer(t);
    for (const lines of FILLERS) {
      const wire = await Wire.open(t, port);
      const headers = `${HOST}Connection: close\r\n${LENGTH}${filling(lines)}Origin: http://evil.example\r\n`;
      wire.send(`POST /v1/systemone HTTP/1.1\r\n${headers}\r\n${DECISION}`);
      assert.match(await wire.ends(), /^HTTP\/1\.1 403 [\s\S]*cross-site request refused/, `${lines}`);
    }
    assert.equal(engine.calls.length, 0);
  });

  for (const version of ['1.0', '1.1']) {
    test(`no Host of another name in HTTP/${version}`, async (t) => {
      const { port } = await startServer(t);
      for (const lines of FILLERS) {
        const wire = await Wire.open(t, port);
        wire.send(`GET /health HTTP/${version}\r\nConnection: close\r\n${filling(lines)}Host: evil.example\r\n\r\n`);
        assert.match(await wire.ends(), /^HTTP\/1\.1 403 [\s\S]*Host not allowed/, `${lines}`);
      }
    });
  }

  test('neither the key nor the body', async (t) => {
    const { port, engine } = await startServer(t, { apiKeys: ['the-key'] });
    for (const lines of FILLERS) {
      for (const [framing, sent] of [
        [LENGTH, DECISION],
        [CODING, CHUNKS],
      ]) {
        const wire = await Wire.open(t, port);
        const headers = `${HOST}Connection: close\r\n${filling(lines)}Authorization: Bearer the-key\r\n${framing}`;
        wire.send(`POST /v1/systemone HTTP/1.1\r\n${headers}\r\n${sent}`);
        assert.ok((await wire.ends()).endsWith(ANSWER), `${lines}`);
        assert.equal(engine.calls.at(-1)?.body.toString(), DECISION);
      }
    }
  });
});

suite('where a body ends must be plain:', () => {
  const AFTER = `POST /v1/systemone HTTP/1.1\r\n${HOST}${LENGTH}\r\n${DECISION}`;
  for (const [what, framing, sent] of [
    ['a length and chunks', LENGTH + CODING, CHUNKS],
    ['chunks and a length', CODING + LENGTH, CHUNKS],
    ['a length twice', LENGTH + LENGTH, DECISION],
    ['two lengths', `Content-Length: 0\r\n${LENGTH}`, DECISION],
    ['a signed length', `Content-Length: +${DECISION.length}\r\n`, DECISION],
    ['a coding before chunked', 'Transfer-Encoding: gzip, chunked\r\n', CHUNKS],
    ['chunked on two lines', CODING + CODING, CHUNKS],
    ['identity', 'Transfer-Encoding: identity\r\n', ''],
    ['an unknown coding', 'Transfer-Encoding: xchunked\r\n', CHUNKS],
    ['two Hosts', `${LENGTH}${HOST}`, DECISION],
  ] as const) {
    for (const version of ['1.0', '1.1']) {
      for (const lines of [0, 1000]) {
        test(`${what} in HTTP/${version} behind ${lines} header lines end the connection with 400`, async (t) => {
          const { port, engine } = await startServer(t);
          const wire = await Wire.open(t, port);
          const headers = `${HOST}Connection: keep-alive\r\n${filling(lines)}${framing}`;
          wire.send(`POST /v1/systemone HTTP/${version}\r\n${headers}\r\n${sent}${AFTER}`);
          const answer = await wire.ends();
          assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*\r\nConnection: close\r\n/);
          assert.equal(answer.split('HTTP/1.1 ').length, 2);
          assert.equal(engine.calls.length, 0);
        });
      }
    }
  }

  test('chunks in HTTP/1.0 end the connection with 400', async (t) => {
    const { port, engine } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send(`POST /v1/systemone HTTP/1.0\r\n${HOST}Connection: keep-alive\r\n${CODING}\r\n${CHUNKS}${AFTER}`);
    assert.match(await wire.ends(), /^HTTP\/1\.1 400 [\s\S]*\r\n\r\nunsupported Transfer-Encoding; use chunked$/);
    assert.equal(engine.calls.length, 0);
  });

  for (const version of ['0.9', '2.0']) {
    test(`HTTP/${version} ends the connection with 400`, async (t) => {
      const { port } = await startServer(t);
      const wire = await Wire.open(t, port);
      wire.send(`GET /livez HTTP/${version}\r\n${HOST}Connection: keep-alive\r\n\r\n`);
      assert.match(await wire.ends(), /^HTTP\/1\.1 400 [\s\S]*\r\n\r\nunsupported HTTP version; use 1\.1$/);
    });
  }
});
