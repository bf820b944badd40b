import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { THREE_TYPES } from '../addon/requests.ts';
import { temporaryFolder } from '../temporary-folder.ts';

test('the server reaches out to nobody: no connection, no datagram, from start to end', async (t) => {
  const folder = temporaryFolder(t);
  const trace = join(folder, 'trace');
  // With -D, the server is the shell's child and strace runs next to it, so that a signal reaches the server.
  const server = `strace -D -f -qq -o "$0" -e trace=socket,connect,listen,sendto,sendmsg,sendmmsg \\
    "$1" "$2" serve --listen 127.0.0.1:0 --config svc.json 2>log &
    for _ in $(seq 300); do grep -q 'model .* loaded' log && break; sleep 0.1; done
    url=$(grep -o 'http://127.0.0.1:[0-9]*' log)
    for _ in 1 2 3; do curl -sSf "$url/v1/systemone" -d "$3"; echo; done
    sleep 3
    kill $!; wait $!`;
  await runCommand('bash', { args: ['-c', 'echo "{}" >svc.json'], cwd: folder });
  const args = ['-c', server, trace, process.execPath, join(REPOSITORY, 'bin', 'svc.js'), THREE_TYPES];
  const { code, stdout, stderr } = await runCommand('bash', { args, cwd: folder });
  assert.deepEqual([code, stdout.trimEnd().split('\n').length], [0, 3], stderr);
  const calls = readFileSync(trace, 'utf8').split('\n');
  // This call shows that the right process was traced.
  assert.ok(calls.some((call) => call.includes(' listen(')));
  const outgoing = calls.filter(
    (call) => / (connect|sendto|sendmsg|sendmmsg)\(/.test(call) && call.includes('AF_INET'),
  );
  const datagrams = calls.filter((call) => / socket\(AF_INET6?, SOCK_DGRAM/.test(call));
  assert.deepEqual([...outgoing, ...datagrams], []);
});

test('connections that ask nothing take not all descriptors: others are answered meanwhile', async (t) => {
  const folder = temporaryFolder(t);
  const [descriptors, callers] = [300, 600];
  // The callers are other processes, to which this limit does not apply.
  const script = `ulimit -n ${descriptors}
    "$0" "$1" serve --listen 127.0.0.1:0 --device cpu >log 2>&1 &
    for _ in $(seq 300); do grep -q 'model .* loaded' log && break; sleep 0.1; done
    kill -0 $! && echo $!; wait $!`;
  const server = spawn('bash', ['-c', script, process.execPath, join(REPOSITORY, 'bin', 'svc.js')], { cwd: folder });
  const [pid] = (await once(server.stdout, 'data')) as [Buffer];
  t.after(() => process.kill(Number(pid), 'SIGKILL'));
  const [, port] = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(readFileSync(join(folder, 'log'), 'utf8')) ?? [];
  const sockets = Array.from({ length: callers }, () => connect(Number(port), '127.0.0.1').on('error', () => {}));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  const url = `http://127.0.0.1:${port}`;
  for (const path of ['/health', '/livez', '/docs']) assert.equal((await fetch(url + path)).status, 200, path);
  const decision = await fetch(`${url}/v1/systemone`, { method: 'POST', body: THREE_TYPES });
  assert.equal(decision.status, 200);
  assert.match(readFileSync(join(folder, 'log'), 'utf8'), /too many connections/);
});
