import assert from 'node:assert/strict';
import dns from 'node:dns/promises';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { suite, test } from 'node:test';
import { refuseOwnAddress } from '../../src/gate/loop.ts';
import { parseAddress } from '../../src/network/address.ts';
import { Refusal } from '../../src/refusal.ts';
import { freePort } from '../free-port.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { listen, startGate } from './gate-under-test.ts';

const address = (text: string) => parseAddress(text) ?? assert.fail(text);

suite('a gate whose server is itself', () => {
  for (const [listens, upstream] of [
    ['127.0.0.1:21118', 'http://127.0.0.1:21118'],
    ['127.0.0.1:21118', 'http://localhost:21118'],
    ['localhost:21118', 'http://127.0.0.1:21118'],
    ['127.0.0.1:80', 'http://127.0.0.1'],
    ['127.0.0.1:443', 'https://127.0.0.1'],
    [':21118', 'http://127.0.0.1:21118'],
    [':21118', 'http://127.0.0.2:21118'],
    [':21118', 'http://0.0.0.0:21118'],
    ['127.0.0.1:21118', 'http://0.0.0.0:21118'],
    ['[::]:21118', 'http://127.0.0.1:21118'],
    ['[::]:21118', 'http://[::1]:21118'],
    ['[::1]:21118', 'http://[::1]:21118'],
    ['127.0.0.1:21118', 'http://[::ffff:127.0.0.1]:21118'],
  ] as const) {
    test(`is refused: ${upstream} at ${listens}`, async () => {
      const message = `--upstream: ${new URL(upstream).origin} is the gate itself, which listens on `;
      await assert.rejects(refuseOwnAddress(address(listens), new URL(upstream)), (error) => {
        assert.ok(error instanceof Refusal);
        assert.ok(error.message.startsWith(message), error.message);
        return true;
      });
    });
  }

  test('is refused by any address that this machine has, where it listens on all', async () => {
    const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
    for (const { address: ip, family } of own) {
      const upstream = new URL(`http://${family === 'IPv6' ? `[${ip}]` : ip}:21118`);
      await assert.rejects(refuseOwnAddress(address('[::]:21118'), upstream), Refusal);
    }
  });

  for (const [listens, upstream] of [
    ['127.0.0.1:21118', 'http://127.0.0.1:21119'],
    ['127.0.0.1:21118', 'http://127.0.0.2:21118'],
    [':21118', 'http://192.0.2.1:21118'],
    ['127.0.0.1:0', 'http://127.0.0.1:21118'],
    ['127.0.0.1:21118', 'https://127.0.0.1'],
    ['127.0.0.1:21118', 'http://nobody-knows.invalid:21118'],
  ] as const) {
    test(`is not what stands at ${upstream} for ${listens}`, async (t) => {
      if (upstream.includes('.invalid')) t.mock.method(dns, 'lookup', async () => assert.fail('ENOTFOUND'));
      await refuseOwnAddress(address(listens), new URL(upstream));
    });
  }

  test('does not start', async (t) => {
    const at = `127.0.0.1:${await freePort()}`;
    const args = ['gate', '--no-key', '--listen', at, '--upstream', `http://${at}`];
    const { code, stderr } = await runSvc(t, args, { cwd: temporaryFolder(t) });
    assert.equal(code, 1);
    const last = stderr.trim().split('\n').at(-1);
    assert.equal(last, `--upstream: http://${at} is the gate itself, which listens on ${at}`);
  });

  test('ends a request at its second coming, with or without the key', async (t) => {
    // The start cannot see this loop: another program leads back to the gate.
    const port = { gate: 0 };
    let [rounds, second] = [0, ''];
    const back = createServer((socket) => {
      rounds += 1;
      const on = connect(port.gate, '127.0.0.1').on('data', (bytes) => {
        second += bytes;
      });
      for (const end of [socket, on]) end.on('error', () => {});
      socket.pipe(on).pipe(socket);
    });
    const gate = await startGate(t, { upstream: new URL(`http://127.0.0.1:${await listen(t, back)}`) });
    port.gate = gate.port;
    const response = await fetch(`http://127.0.0.1:${gate.port}/health`);
    assert.equal(response.status, 508);
    assert.equal(await response.text(), 'the upstream of the gate leads back to the gate');
    assert.equal(rounds, 1);
    assert.match(second, /^HTTP\/1\.1 508 .*\r\nConnection: close\r\n/s);
    const codes = gate.log.map(({ code }) => code);
    assert.deepEqual(codes, ['gate_loop', undefined]);
    const headers = { authorization: 'Bearer the-key-of-the-gate' };
    assert.equal((await fetch(`http://127.0.0.1:${gate.port}/v1/x`, { headers })).status, 508);
  });

  test('is not another gate: gates in a row pass requests on, and each adds its name to Via', async (t) => {
    const last = await startGate(t, { hasKey: false });
    const first = await startGate(t, { upstream: new URL(`http://127.0.0.1:${last.port}`) });
    const headers = { authorization: 'Bearer the-key-of-the-gate', via: '1.0 proxy' };
    const response = await fetch(`http://127.0.0.1:${first.port}/v1/x`, { headers });
    assert.equal(response.status, 200);
    const via = last.requests[0]?.headers.via ?? '';
    assert.match(via, /^1\.0 proxy, 1\.1 svc-gate-[\da-f]{16}, 1\.1 svc-gate-[\da-f]{16}$/);
    const [, one, other] = via.split(', ');
    assert.notEqual(one, other);
  });
});
