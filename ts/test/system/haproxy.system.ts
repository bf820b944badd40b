import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { noul, TypeSafeClient } from '@typesafe-ai/sdk';
import { STATE_HEADER, stateDigest } from '../../src/network/state-header.ts';
import { runCommand } from '../addon/program.ts';
import { docBlocks } from '../doc-blocks.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { HAPROXY_CONFIG, StandingServer, startBalancer } from './balancer.ts';

const REQUESTS = 6_000;
const CALLERS = 48;
const STATES = Array.from({ length: 60 }, (_, n) => `Ticket ${n}: I was charged ${n + 2} times and nobody answers`);
const QUESTIONS = { refund: noul('Does the customer want money back?') };

const client = (url: string) => new TypeSafeClient({ baseURL: url, apiKey: 'none is asked for', logLevel: 'off' });

const threeServers = (t: TestContext) => Promise.all([1, 2, 3].map(() => StandingServer.start(t)));

async function decide(to: TypeSafeClient, state: string, headers: Record<string, string>): Promise<number> {
  return (await to.systemOne({ state, questions: QUESTIONS }, { headers })).answers.refund.noul;
}

const withDigest = (state: string) => ({ [STATE_HEADER]: stateDigest(JSON.stringify(state)) });

/** Callers that ask without a pause, each about one state after another, until they are told to stop. */
class Load {
  done = 0;
  readonly failures: string[] = [];
  readonly #callers: Promise<void>[];
  #isOver = false;

  constructor(to: TypeSafeClient, expected: ReadonlyMap<string, number>) {
    this.#callers = Array.from({ length: CALLERS }, (_, caller) => this.#ask(to, expected, caller));
  }

  async #ask(to: TypeSafeClient, expected: ReadonlyMap<string, number>, caller: number): Promise<void> {
    for (let n = caller; !this.#isOver; n += 1) {
      const state = STATES[n % STATES.length] ?? '';
      // Every fourth request has no header that names its state.
      const headers = n % 4 === 0 ? {} : withDigest(state);
      try {
        const answer = await decide(to, state, headers);
        if (answer !== expected.get(state)) this.failures.push(`${state}: ${answer}`);
      } catch (error) {
        this.failures.push(String(error));
      }
      this.done += 1;
    }
  }

  async reaches(requests: number): Promise<void> {
    while (this.done < requests) await sleep(20);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
  }
}

/** Callers that send plain requests and never retry, each time about a new state. */
class PlainLoad {
  done = 0;
  longestMs = 0;
  readonly failures: string[] = [];
  readonly #callers: Promise<void>[];
  #isOver = false;

  constructor(url: string) {
    this.#callers = Array.from({ length: 6 }, (_, caller) => this.#ask(url, caller));
  }

  async #ask(url: string, caller: number): Promise<void> {
    for (let n = 0; !this.#isOver; n += 1) {
      const state = `Caller ${caller} was charged ${n} times`;
      const body = JSON.stringify({ state, questions: QUESTIONS });
      const startMs = performance.now();
      const headers = n % 4 === 0 ? {} : withDigest(state);
      const status = await fetch(`${url}/v1/systemone`, { method: 'POST', body, headers }).then(
        async (response) => `${response.status} ${await response.text()}`,
        String,
      );
      if (!status.startsWith('200 ')) this.failures.push(status);
      this.longestMs = Math.max(this.longestMs, performance.now() - startMs);
      this.done += 1;
    }
  }

  async reaches(requests: number): Promise<void> {
    while (this.done < requests) await sleep(20);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
  }
}

suite('HAProxy', () => {
  test('takes the configuration without a warning', async () => {
    const { code, stderr } = await runCommand('haproxy', { args: ['-dW', '-q', '-c', '-f', HAPROXY_CONFIG] });
    assert.deepEqual([code, stderr], [0, '']);
  });

  test('takes the lines for Kubernetes that docs/scaling.md has', async (t) => {
    const [resolvers, template] = docBlocks('scaling.md').filter(({ language }) => language === 'haproxy');
    const lines = readFileSync(HAPROXY_CONFIG, 'utf8').split('\n');
    const changed = lines.flatMap((line) => {
      if (line.startsWith('  server one')) return [template?.text];
      return line.startsWith('  server ') ? [] : [line];
    });
    const file = join(temporaryFolder(t), 'haproxy.cfg');
    writeFileSync(file, [...changed, resolvers?.text].join('\n'));
    const { code, stderr } = await runCommand('haproxy', { args: ['-dW', '-q', '-c', '-f', file] });
    assert.deepEqual([code, stderr], [0, '']);
  });

  test('sends what has the same digest to one server, and spreads the rest', async (t) => {
    const servers = await threeServers(t);
    const { url } = await startBalancer(t, servers);
    const to = client(url);
    for (let n = 0; n < 12; n += 1) {
      await decide(to, 'the same', withDigest('the same'));
      // HAProxy counts a request until its stream has ended, a moment after its answer; a second request at that time
      // would be too many for one server.
      await sleep(20);
    }
    const counts = await Promise.all(servers.map((server) => server.answered()));
    assert.deepEqual(
      counts.toSorted((a, b) => a - b),
      [0, 0, 12],
    );
    for (let n = 0; n < 12; n += 1) await decide(to, 'the same', {});
    const spread = await Promise.all(servers.map((server) => server.answered()));
    assert.ok(
      spread.every((count) => count >= 1),
      String(spread),
    );
    for (const path of ['/', '/stats', '/metrics', '/v1', '/v1/../stats', '//v1/systemone']) {
      assert.equal((await fetch(url + path)).status, 404, path);
    }
  });

  test('loses no request when a server is killed and all are rolled under load', async (t) => {
    const servers = await threeServers(t);
    const { url, sees } = await startBalancer(t, servers);
    const direct = client(`http://${servers[0]?.address}`);
    const expected = new Map<string, number>();
    for (const state of STATES) expected.set(state, await decide(direct, state, {}));

    const load = new Load(client(url), expected);
    await load.reaches(2000);
    assert.deepEqual(await servers[1]?.end('SIGKILL'), [null, 'SIGKILL']);
    await sees(2);
    await load.reaches(load.done + 2000);
    await servers[1]?.start();
    await sees(3);
    for (const server of servers) {
      assert.deepEqual(await server.end('SIGTERM'), [0, null]);
      await server.start();
      await sees(3);
      await load.reaches(load.done + 500);
    }
    await load.reaches(REQUESTS);
    await load.stop();
    assert.deepEqual(load.failures, []);
  });

  test('takes from a server that is frozen what it has: no request fails, none takes over five seconds', async (t) => {
    const servers = await threeServers(t);
    const { url, sees } = await startBalancer(t, servers);
    const load = new PlainLoad(url);
    await load.reaches(200);
    servers[1]?.signal('SIGSTOP');
    await sees(2);
    // If the frozen server's requests are not given to others, all callers may be waiting for it by now.
    await Promise.race([load.reaches(load.done + 200), sleep(10_000)]);
    servers[1]?.signal('SIGCONT');
    await sees(3);
    await load.stop();
    assert.deepEqual(load.failures, []);
    assert.ok(load.longestMs < 5000, `${load.longestMs} ms`);
    // The long time shows that the server was frozen while it had requests.
    assert.ok(load.longestMs > 1000, `${load.longestMs} ms`);
  });

  test('lets a server that drains finish the batch that it has', async (t) => {
    const servers = await threeServers(t);
    const { url } = await startBalancer(t, servers);
    const headers = withDigest('of a batch');
    const batch = async (states: number) => {
      const body = { states: Array.from({ length: states }, (_, n) => `${STATES[0]} ${n}`), questions: QUESTIONS };
      const accept = { accept: 'application/x-ndjson', ...headers };
      return fetch(`${url}/v1/systemone/batch`, { method: 'POST', body: JSON.stringify(body), headers: accept });
    };
    const startMs = performance.now();
    await (await batch(100)).text();
    const counts = await Promise.all(servers.map((server) => server.answered()));
    const server = servers[counts.findIndex((count) => count > 0)] ?? assert.fail();
    // The batch takes longer than two health checks and less than the longest drain.
    const states = Math.ceil((100 * 9000) / (performance.now() - startMs));
    const response = await batch(states);
    const [, text] = await Promise.all([server.end('SIGTERM'), response.text()]);
    assert.ok(text.trimEnd().split('\n').length >= states);
    assert.match(text, /\n$/);
  });
});
