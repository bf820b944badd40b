import assert from 'node:assert/strict';
import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createPlainServer } from 'node:net';
import { dirname, join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { formatAddress, isPrivate, parseAddress, type SocketAddress, shownAddress } from '../../src/network/address.ts';
import { decisionUrl } from '../../src/network/decision-url.ts';
import { listen, requireFreeAddress } from '../../src/network/listen.ts';
import { reach, serverName, socketOf, socketUrl } from '../../src/network/reach.ts';
import { closeServer } from '../../src/network/socket-file.ts';
import { loadConfig } from '../../src/settings/config.ts';
import { folderWithConfig, temporaryFolder } from '../temporary-folder.ts';

const at = (folder: string, mode = 0o600): SocketAddress => ({ socket: join(folder, 'svc.sock'), mode });

const closed = (server: { close(done: () => void): void }) => new Promise<void>((resolve) => server.close(resolve));

/** Returns a server that answers with what it was sent, and is closed when the test ends. */
function echo(t: TestContext): Server {
  const server = createServer((req, res) => {
    res.setHeader('x-url', `${req.method} ${req.url} ${req.headers.host}`);
    if (req.url === '/empty') res.writeHead(204).end();
    else req.pipe(res);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

/** Leaves a socket at `path` as a killed server does: Node removes only the file that it knows by its name. */
async function leaveStale(path: string): Promise<void> {
  const server = createPlainServer();
  await new Promise<void>((resolve) => server.listen(`${path}.live`, resolve));
  renameSync(`${path}.live`, path);
  await closed(server);
}

suite('addresses of sockets', () => {
  test('unix:/PATH is a socket that only its owner reaches, and is written as it was read', () => {
    const address = parseAddress('unix:/run/svc/svc.sock');
    assert.deepEqual(address, { socket: '/run/svc/svc.sock', mode: 0o600 });
    assert.ok(address && isPrivate(address));
    assert.deepEqual(
      [formatAddress(address), shownAddress(address)],
      ['unix:/run/svc/svc.sock', 'unix:/run/svc/svc.sock'],
    );
    assert.equal(shownAddress({ host: '::1', port: 80 }), 'http://[::1]:80');
  });

  for (const text of [
    'unix:',
    'unix:svc.sock',
    'unix:./svc.sock',
    'unix:/',
    'unix:/run/',
    'unix://run/x/',
    'unix:/a\0b',
  ]) {
    test(`${JSON.stringify(text)} is none`, () => assert.equal(parseAddress(text), undefined));
  }

  for (const [mode, isOwners] of [
    [0o600, true],
    [0o700, true],
    [0o660, false],
    [0o602, false],
    [0o610, false],
  ] as const) {
    test(`mode ${mode.toString(8)} is ${isOwners ? 'only for the owner' : 'for others too'}`, () => {
      assert.equal(isPrivate({ socket: '/x', mode }), isOwners);
    });
  }

  test('listen_mode is the mode of the socket, in octal digits', (t) => {
    const listening = (settings: object) => loadConfig({ env: {}, cwd: folderWithConfig(t, settings) }).config.listen;
    const listen = 'unix:/run/svc.sock';
    assert.deepEqual(listening({ listen }), { socket: '/run/svc.sock', mode: 0o600 });
    assert.deepEqual(listening({ listen, listen_mode: '0660' }), { socket: '/run/svc.sock', mode: 0o660 });
    assert.deepEqual(listening({ listen, listen_mode: '666' }), { socket: '/run/svc.sock', mode: 0o666 });
    for (const listen_mode of ['0060', '9999', '00600', 'rw', 600]) {
      assert.throws(
        () => listening({ listen, listen_mode }),
        /^Refusal: svc\.json: listen_mode: must be the mode of a file/,
      );
    }
  });

  test('a URL of a socket keeps its path, and is named as it was given', () => {
    const url = socketUrl('/run/a b/é:%.sock');
    assert.deepEqual([socketOf(url), serverName(url)], ['/run/a b/é:%.sock', 'unix:/run/a b/é:%.sock']);
    assert.equal(socketOf(new URL('http://127.0.0.1:1/')), undefined);
    const decision = decisionUrl('unix:/run/svc.sock');
    assert.deepEqual([socketOf(decision), decision.pathname], ['/run/svc.sock', '/v1/systemone']);
    assert.equal(new URL('../health', decision).pathname, '/health');
    assert.throws(() => decisionUrl('unix:svc.sock'), /^Refusal: --url: must be the address of a server/);
  });
});

if (process.platform !== 'win32') {
  suite('a server on a socket', () => {
    for (const mode of [0o600, 0o660, 0o666]) {
      test(`has a file of mode ${mode.toString(8)}, which is gone when it ends`, async (t) => {
        const address = at(temporaryFolder(t), mode);
        const server = echo(t);
        const umask = process.umask(0o022);
        t.after(() => process.umask(umask));
        assert.deepEqual(await listen(server, address), address);
        assert.equal(statSync(address.socket).mode & 0o777, mode);
        assert.equal(process.umask(0o022), 0o022);
        await new Promise<void>((resolve) => closeServer(server, resolve));
        assert.equal(existsSync(address.socket), false);
      });
    }

    test('is asked over the socket as over TCP', async (t) => {
      const address = at(temporaryFolder(t));
      await listen(echo(t), address);
      const url = new URL('a/b?c=d', socketUrl(address.socket));
      const answer = await reach(url, { method: 'POST', body: Buffer.from('é') });
      assert.deepEqual([answer.status, await answer.text()], [200, 'é']);
      assert.equal(answer.headers.get('x-url'), 'POST /a/b?c=d localhost');
      assert.equal((await reach(new URL('empty', socketUrl(address.socket)), {})).status, 204);
    });

    test('that is not there, or is left, is an error like that of fetch', async (t) => {
      const { socket } = at(temporaryFolder(t));
      await assert.rejects(reach(socketUrl(socket), {}), (error: TypeError) => {
        assert.deepEqual([error.name, (error.cause as NodeJS.ErrnoException).code], ['TypeError', 'ENOENT']);
        return true;
      });
      const silent = createServer(() => {});
      await listen(silent, { socket, mode: 0o600 });
      t.after(() => {
        silent.closeAllConnections();
        silent.close();
      });
      const controller = new AbortController();
      const asked = reach(socketUrl(socket), { signal: controller.signal });
      controller.abort(new Error('enough'));
      await assert.rejects(asked, /^Error: enough$/);
    });

    test('takes the place of a killed server, which a check does not touch', async (t) => {
      const address = at(temporaryFolder(t));
      await leaveStale(address.socket);
      await requireFreeAddress(address);
      assert.equal(statSync(address.socket).isSocket(), true);
      await listen(echo(t), address);
      assert.equal((await reach(socketUrl(address.socket), {})).status, 200);
    });

    test('that starts together with others in the place of a killed one is the only one', async (t) => {
      for (let round = 0; round < 20; round++) {
        const address = at(temporaryFolder(t));
        await leaveStale(address.socket);
        const starts = await Promise.allSettled(Array.from({ length: 4 }, () => listen(echo(t), address)));
        const losers = starts.flatMap((start) => (start.status === 'rejected' ? [String(start.reason)] : []));
        assert.equal(losers.length, 3);
        for (const loser of losers) assert.match(loser, /: a server listens there; /);
        assert.equal((await reach(socketUrl(address.socket), {})).status, 200);
        assert.deepEqual(readdirSync(dirname(address.socket)), ['svc.sock']);
      }
    });

    test('leaves the file of another server that has taken its place', async (t) => {
      const address = at(temporaryFolder(t));
      const old = echo(t);
      await listen(old, address);
      rmSync(address.socket);
      await listen(echo(t), address);
      await new Promise<void>((resolve) => closeServer(old, resolve));
      assert.equal((await reach(socketUrl(address.socket), {})).status, 200);
      assert.deepEqual(readdirSync(dirname(address.socket)), ['svc.sock']);
    });

    test('ends in order when its file has gone', async (t) => {
      const address = at(temporaryFolder(t));
      const server = echo(t);
      await listen(server, address);
      rmSync(dirname(address.socket), { recursive: true });
      await new Promise<void>((resolve) => closeServer(server, resolve));
      assert.equal(existsSync(address.socket), false);
    });

    test('takes the place of no server that listens, and of no other file', async (t) => {
      const address = at(temporaryFolder(t));
      await listen(echo(t), address);
      for (const work of [listen(createServer(), address), requireFreeAddress(address)]) {
        await assert.rejects(work, /^Refusal: cannot listen on unix:\/.*svc\.sock: a server listens there; /);
      }
      assert.equal((await reach(socketUrl(address.socket), {})).status, 200);
      const other = { socket: join(temporaryFolder(t), 'note'), mode: 0o600 };
      writeFileSync(other.socket, 'mine');
      await assert.rejects(listen(createServer(), other), /: there is a file that is no socket; /);
      assert.equal(existsSync(other.socket), true);
    });

    test('names the reason why it cannot listen', async (t) => {
      const folder = temporaryFolder(t);
      const nowhere = { socket: join(folder, 'no', 'svc.sock'), mode: 0o600 };
      await assert.rejects(listen(createServer(), nowhere), /^Refusal: cannot listen on unix:.*: no such folder; /);
      const long = { socket: join(folder, 'x'.repeat(200)), mode: 0o600 };
      await assert.rejects(
        listen(createServer(), long),
        /^Refusal: cannot listen on unix:.*: the path of a socket has at most 10\d bytes; /,
      );
    });
  });
}
