import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { ProcessOutput } from '../process-output.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { OwnNetwork } from './own-network.ts';

const LAUNCHER = fileURLToPath(new URL('../../../bin/svc.js', import.meta.url));
const FOLDER = join(REPOSITORY, 'deploy', 'proxy');
const KEY = 'the-key-of-the-callers';
const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const QUESTIONS = { refund: { type: 'noul', instructions: 'Does the customer want money back?' } };
const DECISION = JSON.stringify({ state: 'I was charged twice.', questions: QUESTIONS });
const STATES = Array.from({ length: 300 }, (_, n) => `Ticket ${n}: I was charged ${n + 2} times.`);
const BATCH = JSON.stringify({ states: STATES, questions: QUESTIONS });

/** The programs that `scripts/test-system.mjs` installs as packages of Python lie next to its Python. */
const { SYSTEM_TEST_PYTHON: python = '/usr/bin/python3' } = process.env;
const fromPython = (name: string) => join(dirname(python), name);

interface Proxy {
  readonly file: string;
  /** Returns the command of deploy/proxy/README.md. */
  readonly command: (folder: string) => readonly string[];
  /** The address of the server in the file, and that of a socket in its place. */
  readonly address?: string;
  readonly socket: (path: string) => string;
}

const ADDRESS = '127.0.0.1:21118';
const PROXIES: Readonly<Record<string, Proxy>> = {
  Caddy: {
    file: 'Caddyfile',
    command: () => [fromPython('caddy'), 'run', '--config', 'Caddyfile'],
    socket: (path) => `unix/${path}`,
  },
  nginx: {
    file: 'nginx.conf',
    command: (folder) => ['nginx', '-p', '.', '-c', join(folder, 'nginx.conf')],
    socket: (path) => `unix:${path}`,
  },
  HAProxy: { file: 'haproxy.cfg', command: () => ['haproxy', '-f', 'haproxy.cfg'], socket: (path) => path },
  Envoy: {
    file: 'envoy.yaml',
    command: () => [fromPython('envoy'), '-c', 'envoy.yaml', '--log-level', 'warning', '--concurrency', '1'],
    address: 'socket_address: { address: 127.0.0.1, port_value: 21118 }',
    socket: (path) => `pipe: { path: ${path} }`,
  },
};

/** Makes a certificate for localhost in `folder`, under the names that the files have for it. */
async function makeCertificate(folder: string): Promise<void> {
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const files = ['-keyout', join(folder, 'tls.key'), '-out', join(folder, 'tls.crt')];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const { code, stderr } = await runCommand('openssl', { args: ['req', '-x509', ...key, ...names, ...files] });
  assert.equal(code, 0, stderr);
  const pem = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(folder, name), 'utf8')).join('');
  writeFileSync(join(folder, 'tls.pem'), pem);
}

/**
 * A program that sends its standard input over HTTP/2 and prints the status and the body of the answer. Answers that come
 * before the body was sent are right, but curl 7.88 loses them.
 */
const ASK_BY_NODE = `
  const request = require('node:http2').connect('https://localhost', { rejectUnauthorized: false }).request({
    ':method': 'POST', ':path': '/v1/systemone', authorization: 'Bearer ${KEY}',
  });
  request.on('response', (headers) => process.stdout.write(headers[':status'] + ' '));
  request.on('data', (part) => process.stdout.write(part)).on('close', () => process.exit());
  request.end(require('node:fs').readFileSync(0));
`;

interface Asked {
  readonly path?: string;
  readonly body?: string;
  readonly headers?: readonly string[];
  readonly isHttp1?: boolean;
  /** The scheme, host and port; those of the proxy by default. */
  readonly at?: string;
}

interface Answer {
  readonly status: number;
  readonly version: string;
  readonly headers: string;
  readonly body: string;
}

/** A server with a proxy in front, in a network of their own. */
class Proxied {
  readonly #network: OwnNetwork;
  readonly #folder: string;

  private constructor(network: OwnNetwork, folder: string) {
    this.#network = network;
    this.#folder = folder;
  }

  /** Starts both; the server listens on its default address, or on a socket. */
  static async start(t: TestContext, name: string, isOnSocket = false): Promise<Proxied> {
    const proxy = PROXIES[name] ?? assert.fail(name);
    const network = await OwnNetwork.make(t);
    const [cwd, folder] = [temporaryFolder(t), temporaryFolder(t)];
    const socket = join(cwd, 'svc.sock');
    const serve = [process.execPath, LAUNCHER, 'serve', '--device', 'cpu', '--threads', '1'];
    const listen = isOnSocket ? ['--listen', `unix:${socket}`] : [];
    const env = { SVC_API_KEY: KEY, SVC_LISTEN_MODE: '0666' };
    const server = network.start([...serve, ...listen], { cwd, env });
    const output = new ProcessOutput(server);
    t.after(async () => {
      server.kill('SIGTERM');
      await output.finished;
    });
    await output.logged(/"msg":"model .+ loaded"/);

    await makeCertificate(folder);
    const text = readFileSync(join(FOLDER, proxy.file), 'utf8');
    const { address = ADDRESS } = proxy;
    assert.equal(text.split(address).length, 2);
    writeFileSync(join(folder, proxy.file), isOnSocket ? text.replace(address, proxy.socket(socket)) : text);
    const own = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
    const child = network.start(proxy.command(folder), { cwd: folder, env: own });
    const { finished } = new ProcessOutput(child);
    t.after(async () => {
      child.kill('SIGTERM');
      await finished;
    });
    const proxied = new Proxied(network, folder);
    while ((await proxied.ask({ path: '/health' })).status !== 200) {
      if (child.exitCode !== null) assert.fail((await finished).stderr);
      await sleep(100);
    }
    return proxied;
  }

  /** Asks with curl, over TLS and HTTP/2 unless told otherwise. */
  async ask({ path = '/v1/systemone', body, headers = [], isHttp1, at = 'https://localhost' }: Asked): Promise<Answer> {
    const [sent, got] = [join(this.#folder, 'sent'), join(this.#folder, 'got')];
    if (body !== undefined) writeFileSync(sent, body);
    const args = [
      ...['-sk', '--path-as-is', '--max-time', '60', isHttp1 ? '--http1.1' : '--http2', '-o', got, '-D', '-'],
      ...['-w', '\n%{http_code} %{http_version}', ...headers.flatMap((header) => ['-H', header])],
      ...(body === undefined ? [] : ['--data-binary', `@${sent}`]),
      `${at}${path}`,
    ];
    writeFileSync(got, '');
    const { stdout } = await this.#network.run(['curl', ...args]);
    const [, status = '0', version = ''] = /\n(\d+) ([\d.]+)$/.exec(stdout) ?? [];
    return { status: Number(status), version, headers: stdout, body: readFileSync(got, 'utf8') };
  }

  /** Sends a body with Node's own HTTP/2, and returns the status and the body of the answer in one text. */
  async askByNode(body: string): Promise<string> {
    const { stdout, stderr } = await this.#network.run([process.execPath, '-e', ASK_BY_NODE], { input: body });
    return stdout + stderr;
  }
}

const AUTHORIZATION = `Authorization: Bearer ${KEY}`;

/** The answers to the states of a batch, without the usage, which differs each time. */
const answersOf = (lines: readonly string[]) => lines.map((line) => JSON.parse(line).answers);

suite('the files of deploy/proxy, as they lie there', { timeout: 600_000 }, () => {
  for (const name of Object.keys(PROXIES)) {
    test(`${name} speaks TLS and HTTP/2, and passes on decisions and batches`, async (t) => {
      const proxied = await Proxied.start(t, name);
      const headers = [AUTHORIZATION, `traceparent: ${TRACEPARENT}`];
      for (const isHttp1 of [false, true]) {
        const answer = await proxied.ask({ body: DECISION, headers, isHttp1 });
        assert.deepEqual([answer.status, answer.version], [200, isHttp1 ? '1.1' : '2'], answer.body);
        assert.deepEqual(Object.keys(JSON.parse(answer.body).answers), ['refund']);
        assert.match(answer.headers, /^server-timing: encode;dur=/im);
        assert.match(answer.headers, new RegExp(`^traceresponse: ${TRACEPARENT}`, 'im'));
      }

      const batch = {
        path: '/v1/systemone/batch',
        body: BATCH,
        headers: [AUTHORIZATION, 'Accept: application/x-ndjson'],
      };
      const direct = await proxied.ask({ ...batch, at: 'http://127.0.0.1:21118', isHttp1: true });
      const lines = direct.body.trimEnd().split('\n').slice(0, STATES.length);
      assert.equal(lines.length, STATES.length, direct.body.slice(0, 200));
      const proxy = await proxied.ask(batch);
      assert.deepEqual(answersOf(proxy.body.trimEnd().split('\n').slice(0, STATES.length)), answersOf(lines));
    });

    test(`${name} reaches a server on a socket`, async (t) => {
      const proxied = await Proxied.start(t, name, true);
      assert.equal((await proxied.ask({ path: '/v1/models' })).status, 401);
      const { status, body } = await proxied.ask({ body: DECISION, headers: [AUTHORIZATION] });
      assert.equal(status, 200, body);
    });

    test(`${name} passes on refusals and long bodies, and nothing besides the API`, async (t) => {
      const proxied = await Proxied.start(t, name);
      assert.equal((await proxied.ask({ path: '/v1/models' })).status, 401);
      // Over HTTP/2, curl 7.88 may lose an answer that comes before its body is sent.
      assert.equal((await proxied.ask({ body: DECISION, isHttp1: true })).status, 401);
      const wrong = await proxied.ask({ body: '{}', headers: [AUTHORIZATION] });
      assert.deepEqual([wrong.status, wrong.body], [400, 'state missing']);
      // The body is longer than the server takes, and than the proxies take by themselves.
      const long = JSON.stringify({ state: 'x'.repeat(9 * 2 ** 20), questions: QUESTIONS });
      assert.match(await proxied.askByNode(long), /^413 body larger than .+ \(max_body_bytes\)$/);
      const tooLong = await proxied.ask({ body: long, headers: [AUTHORIZATION], isHttp1: true });
      assert.deepEqual([tooLong.status, /max_body_bytes/.test(tooLong.body)], [413, true], tooLong.body);
      const outside = [
        '/',
        '/stats',
        '/metrics',
        '/playground',
        '/v1',
        '/v1/../stats',
        '//v1/systemone',
        '/v1/%2e%2e/stats',
      ];
      for (const path of [...outside, '/healthz', '/stats?password=x']) {
        assert.equal((await proxied.ask({ path, headers: [AUTHORIZATION] })).status, 404, path);
      }
    });
  }
});
