import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import { pauseOf } from '../../../src/model/hub/client.ts';
import { until } from '../../until.ts';
import { hubSource, never, repositoryOf, type SourceChanges } from './hub-source.ts';
import { type Access, type Fault, StandInHub } from './stand-in-hub.ts';

const TOKEN = 'hf_aVerySecretTokenIndeed';

async function hubWith(t: TestContext, access: Access = 'public') {
  const hub = await StandInHub.start(t);
  hub.publish('org/name', repositoryOf('1'), { access });
  hub.tokens.set(TOKEN, ['org/name']);
  hub.tokens.set('hf_other', []);
  return hub;
}

/** Returns the message with which a source refuses. */
async function refusal(t: TestContext, hub: StandInHub, changes: SourceChanges = {}): Promise<string> {
  const error = await hubSource(t, hub, changes)
    .refresh(never)
    .then(
      () => undefined,
      (reason: unknown) => reason,
    );
  assert.ok(error instanceof Error && error.name === 'Refusal', inspect(error));
  assert.doesNotMatch(inspect(error), /averysecret|\n {2}.*authorization/i);
  return error.message;
}

suite('a hub that gives no model says why, and what to do:', () => {
  for (const [what, access, changes, message] of [
    [
      'the repository does not exist',
      'public',
      { model: 'hf:org/none' },
      'there is no such repository, or it is private, which needs HF_TOKEN',
    ],
    [
      'nor with a token',
      'public',
      { model: 'hf:org/none', token: TOKEN },
      'there is no such repository, or the token of HF_TOKEN may not read it',
    ],
    ['it is private', 'private', {}, 'there is no such repository, or it is private, which needs HF_TOKEN'],
    [
      'it is private for this token',
      'private',
      { token: 'hf_other' },
      'there is no such repository, or the token of HF_TOKEN may not read it',
    ],
    ['the token is none', 'public', { token: 'hf_no' }, 'the hub does not know the token of HF_TOKEN'],
    ['there is no such revision', 'public', { model: 'hf:org/name@v9' }, 'there is no such revision'],
    ['there is no such folder', 'public', { model: 'hf:org/name/int8' }, 'there is no such file or folder'],
  ] as const) {
    test(what, async (t) => {
      const hub = await hubWith(t, access);
      const model = 'model' in changes ? changes.model : 'hf:org/name';
      assert.equal(await refusal(t, hub, changes), `${model}: ${message}`);
    });
  }

  test('it is gated', async (t) => {
    const hub = await hubWith(t, 'gated');
    const page = `${hub.url}/org/name`;
    const asked = `hf:org/name: README.md: the repository is gated`;
    assert.equal(await refusal(t, hub), `${asked}: accept its terms at ${page}, then set HF_TOKEN`);
    assert.equal(
      await refusal(t, hub, { token: 'hf_other' }),
      `${asked}, and HF_TOKEN has no access: ask for it at ${page}`,
    );
    assert.equal((await hubSource(t, hub, { token: TOKEN }).find(never)).fallback, false);
  });

  test('it is gated at an address with a path', async (t) => {
    const hub = await hubWith(t);
    hub.faults.push((_, response) => response.writeHead(401, { 'x-error-code': 'GatedRepo' }).end());
    const endpoint = new URL(`${hub.url}/mirror/`);
    assert.match(await refusal(t, hub, { client: { endpoint } }), new RegExp(` at ${hub.url}/mirror/org/name,`));
  });

  for (const [status, headers, message] of [
    [403, { 'x-error-message': 'Your plan does not have it' }, 'status 403: Your plan does not have it'],
    [501, {}, 'status 501'],
    [404, {}, 'status 404'],
  ] as const) {
    test(`it answers ${status}`, async (t) => {
      const hub = await hubWith(t);
      hub.faults.push((_, response) => response.writeHead(status, headers).end());
      assert.equal(await refusal(t, hub), `hf:org/name: ${message}`);
    });
  }

  test('it is not there', async (t) => {
    const hub = await hubWith(t);
    hub.stop();
    const source = hubSource(t, hub);
    assert.equal((await source.find(never)).fallback, true);
    assert.equal(source.report().offline, true);
    assert.match(await refusal(t, hub), /^hf:org\/name: 127\.0\.0\.1:\d+: connect ECONNREFUSED/);
  });

  test('it does not answer', async (t) => {
    const hub = await hubWith(t);
    hub.faults.push(() => {});
    const { host } = new URL(hub.url);
    assert.equal(await refusal(t, hub, { client: { answerMs: 100 } }), `hf:org/name: ${host}: no answer within 0.1 s`);
  });
});

suite('the token', () => {
  test('is sent to the hub with every request, and to no other server', async (t) => {
    const hub = await hubWith(t, 'private');
    await hubSource(t, hub, { token: TOKEN }).find(never);
    const sent = (server: string) =>
      hub.requests.filter((seen) => seen.server === server).map(({ authorization }) => authorization);
    assert.ok(sent('hub').length >= 5 && sent('storage').length === 1);
    assert.deepEqual(new Set(sent('hub')), new Set([`Bearer ${TOKEN}`]));
    assert.deepEqual(sent('storage'), [undefined]);
  });

  test('is not sent where there is none', async (t) => {
    const hub = await hubWith(t);
    await hubSource(t, hub).find(never);
    assert.ok(hub.requests.every(({ authorization }) => authorization === undefined));
  });

  test('does not follow the link to the next page to another server', async (t) => {
    const [hub, other] = [await hubWith(t), await StandInHub.start(t)];
    const isTree: Fault = (_, response) => {
      const link = `<${other.url}/api/models/org/name/tree/main?cursor=1>; rel="next"`;
      response.writeHead(200, { link }).end('[]');
    };
    hub.faults.push((_, response) => response.end(JSON.stringify({ sha: 'ab'.repeat(20) })), isTree);
    await refusal(t, hub, { token: TOKEN });
    assert.deepEqual(other.requests, []);
    assert.match(hub.requests.at(-1)?.url ?? '', /^\/api\/models\/org\/name\/tree\/(ab){20}\?cursor=1$/);
  });

  for (const [what, fault] of [
    ['an error', (_, response) => response.writeHead(403, { 'x-error-message': `no, ${TOKEN}` }).end()],
    ['a redirect', (_, response) => response.writeHead(302, { location: `ftp://models.example/${TOKEN}/x` }).end()],
    [
      'a redirect to a private address',
      (_, response) => response.writeHead(302, { location: `https://10.0.0.1/${TOKEN}` }).end(),
    ],
    [
      'the name of a host, in small letters',
      (_, response) => response.writeHead(302, { location: `https://${TOKEN}.invalid/` }).end(),
    ],
    ...[400, 470, 475, 479].map((chars): readonly [string, Fault] => [
      `a message that is cut, after ${chars} characters`,
      (_, response) => response.writeHead(403, { 'x-error-message': `${'x'.repeat(chars)}${TOKEN} yz` }).end(),
    ]),
  ] as readonly (readonly [string, Fault])[]) {
    test(`is not told where a hub sends it back in ${what}`, async (t) => {
      const hub = await hubWith(t);
      hub.faults.push(fault);
      assert.doesNotMatch(await refusal(t, hub, { token: TOKEN }), /secret(?!\])|hf_a/i);
    });
  }

  test('is not told where the name of a graph has it', async (t) => {
    const hub = await hubWith(t);
    hub.publish('org/name', { ...repositoryOf('1'), [`onnx/${TOKEN}.onnx`]: 'x' });
    const told: string[] = [];
    const progress = {
      expects() {},
      had() {},
      got() {},
      leavesOut: (graphs: readonly string[]) => void told.push(...graphs),
    };
    await hubSource(t, hub, { token: TOKEN, source: { progress } }).find(never);
    assert.deepEqual(told, ['onnx/[secret].onnx']);
  });
});

suite('a redirect of a hub', () => {
  const redirect =
    (location: string): Fault =>
    (_, response) =>
      response.writeHead(302, { location }).end();

  for (const [what, location, message] of [
    [
      'a private address',
      'https://169.254.169.254/x',
      /a redirect to 169\.254\.169\.254 \(169\.254\.169\.254\), which is not a public address, is not followed$/,
    ],
    [
      'a name with a private address',
      'https://localhost:1/x',
      /a redirect to localhost \((127\.0\.0\.1|::1)\), which is not a public address, is not followed$/,
    ],
    [
      'plain HTTP elsewhere',
      'http://models.example/x',
      /redirects to http:\/\/models\.example\/x, which is not https:\/\/$/,
    ],
    ['what is no URL', 'https://[', /redirects to what is not a URL$/],
  ] as const) {
    test(`is not followed to ${what}`, async (t) => {
      const hub = await hubWith(t);
      hub.faults.push(redirect(location));
      assert.match(await refusal(t, hub), message);
    });
  }

  test('is followed on the hub itself, five times', async (t) => {
    const hub = await hubWith(t);
    hub.faults.push(...Array(5).fill(redirect('/api/models/org/name/revision/main')));
    await hubSource(t, hub).refresh(never);
    hub.faults.push(...Array(6).fill(redirect('/api/models/org/name/revision/main')));
    assert.equal(await refusal(t, hub), 'hf:org/name: more than 5 redirects');
  });
});

suite('a hub that limits requests', () => {
  const limit =
    (headers: Readonly<Record<string, string>>, status = 429): Fault =>
    (_, response) =>
      void response.writeHead(status, headers).end();

  for (const [what, status, headers, pauseMs] of [
    ['by Retry-After', 429, { 'retry-after': '7' }, 8000],
    [
      'by RateLimit',
      429,
      { ratelimit: '"api";r=0;t=55', 'ratelimit-policy': '"fixed window";"api";q=500;w=300' },
      56_000,
    ],
    ['by both, of which RateLimit is exact', 429, { ratelimit: '"resolvers";r=0;t=3', 'retry-after': '60' }, 4000],
    [
      'by another limit than the one with requests left',
      429,
      { ratelimit: '"api";r=5;t=55', 'retry-after': '2' },
      3000,
    ],
    ['without a time', 429, {}, 1500],
    ['while it is away for a time', 503, { 'retry-after': '4' }, 5000],
    ['by a date that is over', 429, { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 1000],
    ['by what is no time', 429, { 'retry-after': 'soon' }, 1500],
    ['for a year, of which a day is believed', 429, { 'retry-after': '31536000' }, 86_400_000],
    ['for a year by RateLimit', 429, { ratelimit: '"api";r=0;t=31536000' }, 86_400_000],
    ['by a fault that may pass, which says no time', 500, { 'retry-after': '4', ratelimit: '"api";r=0;t=55' }, 1500],
    ['by 502', 502, {}, 1500],
    ['by 503 alone', 503, {}, 1500],
    ['by 504', 504, {}, 1500],
    ['not at all', 501, { 'retry-after': '4' }, undefined],
    ['nor by a refusal', 403, { 'retry-after': '4' }, undefined],
  ] as const) {
    test(`is left alone for as long as it says: ${what}`, () => {
      assert.equal(pauseOf({ statusCode: status, headers }, 1500), pauseMs);
    });
  }

  test('by a date is left alone until then', () => {
    const headers = { 'retry-after': new Date(Date.now() + 30_000).toUTCString() };
    const pauseMs = pauseOf({ statusCode: 429, headers }, 1500) ?? 0;
    assert.ok(pauseMs > 20_000 && pauseMs <= 32_000, String(pauseMs));
  });

  test('is asked again after that, and then gives the model', async (t) => {
    const hub = await hubWith(t);
    hub.faults.push(limit({ 'retry-after': '7' }), limit({ ratelimit: '"api";r=0;t=3' }), limit({}));
    const pauses: number[] = [];
    const pause = async (ms: number) => pauses.push(ms);
    assert.equal((await hubSource(t, hub, { client: { pause } }).find(never)).fallback, false);
    assert.deepEqual(pauses, [8000, 4000, 4000]);
  });

  test('for longer than a minute is not waited for, and is not looked at before its time', async (t) => {
    const hub = await hubWith(t);
    hub.faults.push(limit({ 'retry-after': '299' }));
    const source = hubSource(t, hub, { source: { refreshMs: 1 } });
    const found = await source.find(never);
    const message = 'the hub limits requests (status 429); the next may come in 300 s';
    assert.deepEqual(found.notes, [`hf:org/name: ${message}; the embedded model answers until it can be had`]);
    await source.accept(found);
    const stop = new AbortController();
    const watching = source.watch({ found: async () => true, status: () => {}, note: () => {} }, stop.signal);
    const { length } = hub.requests;
    // Without the wait it would be asked every millisecond.
    let turns = 0;
    await until(() => ++turns > 100);
    assert.equal(hub.requests.length, length);
    stop.abort();
    await watching;
  });

  test('without end is given up', async (t) => {
    const hub = await hubWith(t);
    hub.faults.push(...Array(20).fill(limit({})));
    const pause = async () => {};
    assert.match(
      await refusal(t, hub, { client: { pause } }),
      /the hub limits requests \(status 429\); the next may come in 16 s$/,
    );
    assert.equal(hub.requests.length, 5);
  });

  test('or has a fault of its own is asked again with longer and longer pauses', async (t) => {
    const hub = await hubWith(t);
    hub.faults.push(limit({}, 500), limit({}, 503));
    hub.storageFaults.push(limit({}, 502));
    const pauses: number[] = [];
    const pause = async (ms: number) => pauses.push(ms);
    assert.equal((await hubSource(t, hub, { client: { pause } }).find(never)).fallback, false);
    assert.deepEqual(pauses, [1000, 2000, 1000]);
    hub.faults.push(...Array(20).fill(limit({}, 502)));
    hub.requests.length = 0;
    assert.equal(await refusal(t, hub, { client: { pause } }), 'hf:org/name: status 502');
    assert.equal(hub.requests.length, 5);
  });

  test('does not keep a process that is to end', async (t) => {
    const hub = await hubWith(t);
    const stop = new AbortController();
    hub.faults.push((request, response) => {
      limit({ 'retry-after': '50' })(request, response);
      response.on('close', () => stop.abort(new Error('the end')));
    });
    await assert.rejects(hubSource(t, hub).find(stop.signal), { message: 'the end' });
  });
});
