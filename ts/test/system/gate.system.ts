import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { suite, type TestContext, test } from 'node:test';
import { listen } from '../gate/gate-under-test.ts';
import { SvcProcess } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const MIB = 2 ** 20;
const SIZE = 512 * MIB;
/** The most memory that the gate may take in addition to what it has when idle, in bytes. */
const MAX_GROWTH = 128 * MIB;

/** Starts `svc gate` as a process of its own, in front of `upstream`. */
async function start(t: TestContext, upstream: string, env: Readonly<Record<string, string>> = {}) {
  const args = ['gate', '--no-key', '--listen', '127.0.0.1:0', '--upstream', upstream];
  const gate = new SvcProcess(t, args, { cwd: temporaryFolder(t), env });
  return { gate, url: await gate.url() };
}

/** Returns the most memory that a process ever had, in bytes. */
function peakBytes(pid: number | undefined): number {
  const [, kib = ''] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}

async function* parts(): AsyncGenerator<Buffer> {
  for (let sent = 0; sent < SIZE; sent += MIB) yield Buffer.alloc(MIB);
}

suite('the memory of the gate', () => {
  test('does not grow with the body that passes', async (t) => {
    const server = createServer(async (req, res) => {
      let received = 0;
      for await (const chunk of req) received += chunk.length;
      res.end(String(received));
    });
    const { gate, url } = await start(t, `http://127.0.0.1:${await listen(t, server)}`);
    const before = peakBytes(gate.pid);
    const response = await fetch(`${url}/v1/systemone`, {
      method: 'POST',
      body: Readable.toWeb(Readable.from(parts())),
      duplex: 'half',
    } as RequestInit);
    assert.equal(await response.text(), String(SIZE));
    const growth = peakBytes(gate.pid) - before;
    assert.ok(growth < MAX_GROWTH, `${growth} bytes more`);
  });

  test('does not grow with the answer that passes to a caller who reads slowly', async (t) => {
    const server = createServer((_, res) => pipeline(parts(), res));
    const { gate, url } = await start(t, `http://127.0.0.1:${await listen(t, server)}`);
    const before = peakBytes(gate.pid);
    const [res] = (await once(request(`${url}/v1/x`).end(), 'response')) as [IncomingMessage];
    let received = 0;
    await new Promise((done) => setTimeout(done, 1000));
    for await (const chunk of res) received += chunk.length;
    assert.equal(received, SIZE);
    const growth = peakBytes(gate.pid) - before;
    assert.ok(growth < MAX_GROWTH, `${growth} bytes more`);
  });
});

test('the gate calls a server over TLS, and one whose certificate it does not know not at all', async (t) => {
  const folder = temporaryFolder(t);
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const files = ['-keyout', key, '-out', cert];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', ...subject, ...files], {
    stdio: 'ignore',
  });
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, res) => res.end('over TLS'));
  const upstream = `https://localhost:${await listen(t, server)}`;
  const known = await start(t, upstream, { NODE_EXTRA_CA_CERTS: cert });
  assert.equal(await (await fetch(`${known.url}/v1/x`)).text(), 'over TLS');
  const unknown = await start(t, upstream);
  const response = await fetch(`${unknown.url}/v1/x`);
  assert.equal(response.status, 502);
  assert.equal(await response.text(), 'the server cannot be reached');
  await unknown.gate.logged(/"cause":"DEPTH_ZERO_SELF_SIGNED_CERT"/);
});
