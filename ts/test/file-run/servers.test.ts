import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, type TestContext, test } from 'node:test';
import { Refusal } from '../../src/refusal.ts';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import { ANSWER, type Answering, answerTo, ask, decider, FakeServer, failing, QUESTIONS, well } from './fake-server.ts';

suite('servers', () => {
  test('get each row as a request, with the key and a digest of the state, over connections that stay', async (t) => {
    const server = await FakeServer.start(t, well);
    const servers = await decider({ urls: [`${server.url}/`] });
    for (const state of ['a', 'b', 'a']) assert.deepEqual(await ask(servers, state), { body: ANSWER });
    assert.deepEqual(
      server.asked.map(({ body }) => body),
      ['"a"', '"b"', '"a"'].map((state) => `{"state":${state},"questions":${QUESTIONS}}`),
    );
    const [first, second, third] = server.asked.map(({ headers }) => headers);
    // These are the first digits of the SHA-256 of the letter a.
    assert.equal(first?.['x-svc-state'], 'ca978112ca1bbdca');
    assert.equal(first?.['x-svc-state'], third?.['x-svc-state']);
    assert.notEqual(first?.['x-svc-state'], second?.['x-svc-state']);
    assert.equal(first?.authorization, 'Bearer a-key-of-sixteen-characters');
    for (let n = 0; n < 20; n++) await ask(servers, n);
    assert.ok(new Set(server.asked.map(({ port }) => port)).size <= 2);
  });

  test('get no more at once than they should, and equal states go to the same one', async (t) => {
    // The first two requests are held and answered together with the third.
    const together = () => {
      const held: ServerResponse[] = [];
      return (res: ServerResponse, _: string, n: number) => {
        held.push(res);
        for (const each of n < 3 ? [] : held.splice(0)) well(each);
      };
    };
    const both = await Promise.all([FakeServer.start(t, together()), FakeServer.start(t, together())]);
    const servers = await decider({ urls: both.map(({ url }) => url), concurrency: 3 });
    await Promise.all(Array.from({ length: 60 }, (_, n) => ask(servers, n)));
    assert.deepEqual(
      both.map(({ most }) => most),
      [3, 3],
    );
    const before = both.map(({ asked }) => asked.length);
    for (let n = 0; n < 10; n++) await ask(servers, 'the same');
    const more = both.map(({ asked }, at) => asked.length - (before[at] ?? 0));
    assert.deepEqual(more.sort(), [0, 10]);
  });

  test('have a window of four times as many rows as all of them get at once', async (t) => {
    const both = await Promise.all([FakeServer.start(t, well), FakeServer.start(t, well)]);
    assert.equal((await decider({ urls: both.map(({ url }) => url), concurrency: 3 })).window, 24);
  });

  test('that are busy are asked again after the time that they say', async (t) => {
    const times: number[] = [];
    const server = await FakeServer.start(t, (res, _, n) => {
      times.push(performance.now());
      return n === 1 ? failing(503, { 'retry-after': '1' })(res) : well(res);
    });
    assert.deepEqual(await ask(await decider({ urls: [server.url] })), { body: ANSWER });
    assert.ok((times[1] ?? 0) - (times[0] ?? 0) >= 990, String(times));
  });

  for (const status of [408, 425, 429, 502, 503, 504, 500]) {
    test(`that answer ${status} are asked again`, async (t) => {
      const server = await FakeServer.start(t, (res, _, n) => (n === 1 ? failing(status)(res) : well(res)));
      assert.deepEqual(await ask(await decider({ urls: [server.url] })), { body: ANSWER });
      assert.equal(server.asked.length, 2);
    });
  }

  test('that break off are asked again, and while one rests the other answers', async (t) => {
    const broken = await FakeServer.start(t, (res) => res.destroy());
    const good = await FakeServer.start(t, well);
    const servers = await decider({ urls: [broken.url, good.url] });
    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => ask(servers, n)));
    assert.ok(outcomes.every((outcome) => outcome.problem === undefined));
    assert.equal(good.asked.length, 20);
    assert.ok(broken.asked.length > 0);
  });

  test('that refuse a row are not asked again: it is bad, with their words', async (t) => {
    const body = JSON.stringify({ error: {}, detail: { error_type: 'too_many_tokens', message: 'too many tokens' } });
    const server = await FakeServer.start(t, (res, _, n) => (n === 1 ? failing(413, {}, body) : failing(400))(res));
    const servers = await decider({ urls: [server.url] });
    assert.deepEqual(await ask(servers), { problem: { code: 'too_many_tokens', message: 'too many tokens' } });
    assert.deepEqual(await ask(servers), { problem: { code: 'http_400', message: 'it failed' } });
    assert.equal(server.asked.length, 2);
  });

  test('that fail on a row three times have no answer to it', async (t) => {
    const server = await FakeServer.start(t, failing(500, { 'retry-after': '0' }));
    assert.deepEqual(await ask(await decider({ urls: [server.url] })), {
      problem: { code: 'http_500', message: 'it failed' },
    });
    assert.equal(server.asked.length, 3);
  });

  for (const status of [401, 403, 404, 405, 302]) {
    test(`that answer ${status} end the run`, async (t) => {
      const server = await FakeServer.start(t, failing(status));
      const asked = ask(await decider({ urls: [server.url] }));
      await assert.rejects(asked, new Refusal(`${server.url} answers ${status}: it failed`));
      assert.equal(server.asked.length, 1);
    });
  }

  test('that are not there end the run after a time', async () => {
    const gone = `http://127.0.0.1:${await freePort()}`;
    const asked = ask(await decider({ urls: [gone], giveUpMs: 1000 }));
    await assert.rejects(asked, new Refusal(`no server has answered for 1 s; ${gone}: ECONNREFUSED`));
  });

  test('are left at once when the run is stopped, with what waits for a turn', async (t) => {
    const server = await FakeServer.start(t, () => {});
    const stop = new AbortController();
    const servers = await decider({ urls: [server.url] }, stop.signal);
    const outcomes = Promise.allSettled(Array.from({ length: 5 }, () => ask(servers)));
    await until(() => server.asked.length >= 2);
    stop.abort(new Error('stopped'));
    const reasons = (await outcomes).map((outcome) => outcome.status === 'rejected' && outcome.reason.message);
    assert.deepEqual(reasons, Array(5).fill('stopped'));
  });

  test('with an address that is none are refused', async () => {
    await assert.rejects(decider({ urls: ['localhost'] }), /^Refusal: --url: must be the address of a server/);
  });

  test('with different models are refused, unless that is allowed; one that does not tell is taken', async (t) => {
    const all = await Promise.all([1, 2, 3].map(() => FakeServer.start(t, well)));
    const urls = all.map(({ url }) => url);
    for (const [at, sha256] of [undefined, 'aa', 'aa'].entries()) Object.assign(all[at] ?? {}, { sha256 });
    assert.equal((await decider({ urls })).model, 'graph aa');
    assert.equal((await decider({ urls: urls.slice(0, 1) })).model, null);
    Object.assign(all[2] ?? {}, { sha256: 'bb' });
    await assert.rejects(
      decider({ urls }),
      new Refusal(`${urls[2]}: has another model than ${urls[1]}; --allow-different-servers asks both all the same`),
    );
    assert.equal((await decider({ urls, mayDiffer: true })).model, null);
  });

  const answering =
    (share: number): Answering =>
    (res, body) =>
      res.end(answerTo(body, share));

  async function twoThatAnswer(t: TestContext, ...probed: readonly Answering[]): Promise<readonly FakeServer[]> {
    return Promise.all(
      probed.map(async (answer) => {
        const server = await FakeServer.start(t, well);
        server.answerProbe = answer;
        return server;
      }),
    );
  }

  test('that answer ten probes alike are asked, and the probes are no rows', async (t) => {
    const both = await twoThatAnswer(t, answering(0.72987), answering(0.7307));
    const servers = await decider({ urls: both.map(({ url }) => url) });
    assert.deepEqual(
      both.map(({ probes }) => new Set(probes).size),
      [10, 10],
    );
    for (let n = 0; n < 10; n++) assert.deepEqual(await ask(servers, n), { body: ANSWER });
    assert.equal(both.flatMap(({ asked }) => asked).length, 10);
    assert.deepEqual(
      both.map(({ probes }) => probes.length),
      [10, 10],
    );
  });

  test('that answer a probe otherwise are refused with both numbers, unless that is allowed', async (t) => {
    const both = await twoThatAnswer(t, answering(0.72987), answering(0.793242));
    const urls = both.map(({ url }) => url);
    await assert.rejects(
      decider({ urls }),
      new Refusal(
        `${urls[1]}: gives other answers than ${urls[0]}: of probe 1 it says money.false is 0.793242 instead of ` +
          '0.72987, and at most 0.001 apart is allowed; --allow-different-servers asks both all the same',
      ),
    );
    const servers = await decider({ urls, mayDiffer: true });
    assert.deepEqual(await ask(servers), { body: ANSWER });
  });

  test('alone are asked no probes', async (t) => {
    const [server] = await twoThatAnswer(t, answering(0.5));
    await ask(await decider({ urls: [server?.url ?? ''] }));
    assert.deepEqual(server?.probes, []);
  });

  test('that do not answer the probes at the start are compared before their first row', async (t) => {
    const [good, late] = await twoThatAnswer(t, answering(0.5), answering(0.6));
    assert.ok(good && late);
    late.answerProbe = failing(503, { 'retry-after': '0' });
    const told: string[] = [];
    const servers = await decider({ urls: [good.url, late.url], tell: (line) => told.push(line) });
    assert.deepEqual(told, [`${late.url}: answers 503: it failed; it gets no rows until it answers the probes`]);
    late.answerProbe = answering(0.6);
    const all = async () => {
      for (let n = 0; ; n++) await ask(servers, n);
    };
    await assert.rejects(all(), /^Refusal: .* gives other answers than /);
    assert.deepEqual(late.asked, []);
  });

  test('that refuse a probe are told of', async (t) => {
    const [good, other] = await twoThatAnswer(t, answering(0.5), answering(0.5));
    assert.ok(good && other);
    other.answerProbe = failing(413, {}, 'too many questions');
    await assert.rejects(
      decider({ urls: [good.url, other.url] }),
      new Refusal(`${other.url} refuses a probe: too many questions; --allow-different-servers asks it without`),
    );
  });
});
