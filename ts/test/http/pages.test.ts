import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { RECIPES } from '../../src/dashboard/recipes/index.ts';
import { FakeEngine, REPLY } from '../fake-engine.ts';
import { type Options, type ServerUnderTest, startServer } from './server-under-test.ts';

const PASSWORD = 'the operator knows';
const BASIC = { Authorization: `Basic ${Buffer.from(`anyone:${PASSWORD}`).toString('base64')}` };
const PAGES = ['/', '/recipes', '/recipes/ticket-triage'];

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/** The answer of a real engine to one question. */
const DECISION =
  '{"model":"svc","answers":{"team":{"type":"choice","choice":"<q>","probabilities":{"<q>":0.75,"y":0.25},' +
  '"confidence":0.5,"answer_confidence":0.75}},"usage":{"input_tokens":12,"output_tokens":0,"server_ms":7.1}}';

/** Returns the paths of all assets that a page loads. */
function assetPaths(page: string): string[] {
  return [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
}

/** Returns a server whose engine gives an answer that a page can show. */
async function start(t: Parameters<typeof startServer>[0], options: Options = {}): Promise<ServerUnderTest> {
  const server = await startServer(t, options);
  server.engine.answer = () => ({ ...REPLY, body: Buffer.from(DECISION) });
  return server;
}

suite('the pages', () => {
  test('are the operator’s: without the password each is a 401, with it a page', async (t) => {
    const { get } = await start(t, { password: PASSWORD });
    for (const path of PAGES) {
      const { status, headers, text } = await get(path);
      assert.deepEqual([status, headers['www-authenticate']], [401, 'Basic realm="svc"'], path);
      assert.ok(!text.includes('<'), path);
      assert.equal((await get(path, BASIC)).status, 200, path);
      assert.equal((await get(`${path}?password=${encodeURIComponent(PASSWORD)}`)).status, 200, path);
    }
  });

  test('carry a strict policy and are kept by nobody', async (t) => {
    const { get } = await start(t);
    for (const path of PAGES) {
      const { headers } = await get(path);
      assert.equal(headers['content-security-policy'], POLICY);
      assert.equal(headers['cache-control'], 'no-store');
      assert.equal(headers['referrer-policy'], 'no-referrer');
      assert.equal(headers['x-content-type-options'], 'nosniff');
    }
  });

  test('have no script, style or handler in them, and nothing from another host', async (t) => {
    const { get } = await start(t);
    for (const path of PAGES) {
      const { text } = await get(path);
      assert.doesNotMatch(text, /<style|\sstyle=|\son[a-z]+=|javascript:/i);
      assert.doesNotMatch(text, /<script(?![^>]* src="\/assets\/)/);
      assert.doesNotMatch(text, /(?:src|href)="(?!\/|#)/);
    }
  });

  test('never hold the password nor the key', async (t) => {
    const { get } = await start(t, { password: PASSWORD, apiKeys: ['0123456789abcdef'] });
    for (const path of PAGES) {
      const { text } = await get(`${path}?password=${encodeURIComponent(PASSWORD)}`);
      assert.ok(!text.includes(PASSWORD) && !text.includes(encodeURIComponent(PASSWORD)));
      assert.ok(!text.includes('0123456789abcdef'));
    }
  });

  test('escape the name of the model and what the engine says', async (t) => {
    const { slot, get } = await start(t, { isLoading: true });
    const engine = new FakeEngine({ name: '<script>alert(1)</script>', version: '"><q>', dir: '/<i>' });
    engine.answer = () => ({ ...REPLY, body: Buffer.from(DECISION) });
    slot.loaded(engine, { source: 'folder/<u>' });
    const home = (await get('/')).text;
    for (const tag of ['<script>alert', '<q>', '<i>', '<u>']) assert.ok(!home.includes(tag), tag);
    assert.ok(home.includes('&lt;script&gt;alert(1)&lt;/script&gt;'));
    const recipe = (await get('/recipes/ticket-triage')).text;
    assert.ok(recipe.includes('<strong>&lt;q&gt;</strong>'));
    for (const tag of ['<script>alert', '<q>']) assert.ok(!recipe.includes(tag), tag);
  });

  test('take the address to call from the request, and none that a shell would run', async (t) => {
    const { get, port } = await start(t, { config: { listen: { host: '0.0.0.0', port: 21118 } } });
    const curl = async (Host: string) => /curl -sS (\S+)/.exec((await get('/', { Host })).text)?.[1];
    assert.equal(await curl(`127.0.0.1:${port}`), `http://127.0.0.1:${port}/v1/systemone`);
    assert.equal(await curl('[::1]:1'), 'http://[::1]:1/v1/systemone');
    for (const host of ['$(reboot)', 'a;reboot', "a'b", 'a`b`', '<script>']) {
      assert.equal(await curl(host), 'http://0.0.0.0:21118/v1/systemone', host);
    }
  });
});

suite('the dashboard', () => {
  test('has its numbers without a script', async (t) => {
    const { decide, engine, get } = await start(t);
    await decide();
    engine.answer = () => ({ failure: { code: 'queue_full', message: 'full' } });
    await decide();
    const { text } = await get('/');
    for (const [name, value] of [
      ['status', 'Healthy'],
      ['model', 'fake'],
      ['device', 'cpu'],
      ['total', '2'],
      ['questions', '6'],
      ['recent_errors', '1'],
      ['run_p50', '5.67'],
      ['cache_share', '75 %'],
      ['cache_bytes', '1.5 MiB'],
      ['cache_limit', '64 MiB'],
      ['cache_evictions', '1'],
    ]) {
      assert.ok(text.includes(`<span data-field="${name}">${value}</span>`), name);
    }
    assert.ok(text.includes('<code>queue_full</code>'));
    assert.ok(text.includes('noul: 3 answers, 2 of them with a confidence below 0.6'));
    assert.ok(!text.includes('Nothing is kept'));
  });

  test('gives no time for what got no answer', async (t) => {
    const { decide, engine, get } = await start(t);
    engine.answer = () => ({ failure: { code: 'queue_full', message: 'full' } });
    await decide();
    const { text } = await get('/');
    for (const name of ['p50', 'p99', 'max', 'run_p50']) {
      assert.ok(text.includes(`<span data-field="${name}">–</span>`), name);
    }
    assert.ok(text.includes('<td>– + – + –</td>'));
  });

  test('says so when no states are kept', async (t) => {
    const { engine, get } = await start(t);
    engine.cache = () => ({ hits: 0, misses: 9, evictions: 0, entries: 0, bytes: 0, limitBytes: 0 });
    const { text } = await get('/');
    assert.match(text, /Nothing is kept: state_cache_bytes is 0/);
    assert.match(text, /<span data-field="cache_share">0 %</);
  });

  test('says so while the model is loading, and when it failed to load', async (t) => {
    const { get, slot } = await start(t, { isLoading: true });
    assert.match((await get('/')).text, /Loading the model/);
    slot.failed('bad_model');
    assert.match((await get('/')).text, /No model: it failed to load/);
  });

  test('has a line to call the server, with the name of the variable where the key is on', async (t) => {
    const off = (await (await start(t)).get('/')).text;
    assert.ok(!off.includes('SVC_API_KEY'));
    const on = (await (await start(t, { apiKeys: ['0123456789abcdef'] })).get('/')).text;
    assert.ok(on.includes('-H &quot;Authorization: Bearer $SVC_API_KEY&quot;'));
  });
});

suite('static files', () => {
  test('need no password, are kept for ever, and are what they say', async (t) => {
    const { get } = await start(t, { password: PASSWORD });
    const paths = new Set(assetPaths((await get('/', BASIC)).text));
    assert.equal(paths.size, 3);
    for (const path of paths) {
      const { status, headers, text } = await get(path);
      assert.equal(status, 200, path);
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.match(`${path} ${headers['content-type']}`, /js text\/javascript|css text\/css|svg image\/svg/);
      assert.ok(text.length > 100);
    }
  });

  test('of another name are not there', async (t) => {
    const { get } = await start(t);
    for (const path of ['/assets/main.js', '/assets/', '/assets/..%2fcli.js', '/assets/main.0.js']) {
      assert.equal((await get(path)).status, 404, path);
    }
  });
});

suite('recipes', () => {
  test('are twelve at least, each with a page that the list leads to', async (t) => {
    const { get } = await start(t);
    const list = (await get('/recipes')).text;
    const paths = [...list.matchAll(/href="(\/recipes\/[^"]+)"/g)].map(([, path = '']) => path);
    assert.ok(paths.length >= 12);
    assert.deepEqual(new Set(paths), new Set(RECIPES.map(({ name }) => `/recipes/${name}`)));
    for (const path of paths) {
      const { status, text } = await get(path);
      assert.equal(status, 200, path);
      assert.ok(text.includes(`href="/#recipe=${path.slice('/recipes/'.length)}"`), path);
    }
    assert.equal((await get('/recipes/other')).status, 404);
  });

  test('ask the model when they are first looked at, and keep its answer while it is loaded', async (t) => {
    const { get, engine, slot, stats } = await start(t);
    await get('/recipes');
    assert.equal(engine.calls.length, 0);
    const [first, second] = await Promise.all([get('/recipes/ticket-triage'), get('/recipes/ticket-triage')]);
    assert.equal(engine.calls.length, 1);
    assert.deepEqual(JSON.parse(String(engine.calls[0]?.body)), RECIPES[0]?.request);
    for (const { text } of [first, second, await get('/recipes/ticket-triage')]) assert.ok(text.includes('75 %'));
    await get('/recipes/moderation');
    assert.equal(engine.calls.length, 2);
    // No request came from outside, so none is counted.
    assert.equal(stats.requests, 0);
    const newer = new FakeEngine({ digest: 'e'.repeat(64), version: '2' });
    newer.answer = engine.answer;
    slot.loaded(newer, { source: '/models/fake' });
    assert.match((await get('/recipes/ticket-triage')).text, /<b>fake<\/b> 2/);
    assert.equal(newer.calls.length, 1);
  });

  test('say why there is no answer, and ask again the next time', async (t) => {
    const { get, engine } = await start(t);
    const { answer } = engine;
    engine.answer = () => ({ failure: { code: 'queue_full', message: 'too many <requests>' } });
    const refused = (await get('/recipes/ticket-triage')).text;
    assert.match(refused, /There is no answer now: too many &lt;requests&gt;\./);
    engine.answer = () => Promise.reject(new Error('broken'));
    assert.equal((await get('/recipes/ticket-triage')).status, 500);
    engine.answer = answer;
    assert.ok((await get('/recipes/ticket-triage')).text.includes('75 %'));
  });

  test('say so while the model is loading', async (t) => {
    const { get } = await start(t, { isLoading: true });
    const { status, text } = await get('/recipes/ticket-triage');
    assert.equal(status, 200);
    assert.match(text, /There is no answer yet: the model is loading\./);
  });

  test('have the model asked by nobody who may not use it, and show everybody what it has answered', async (t) => {
    const key = '0123456789abcdef';
    const { get, engine } = await start(t, { apiKeys: [key] });
    const path = '/recipes/ticket-triage';
    const own = { Authorization: `Bearer ${key}` };
    for (const headers of [{}, { ...own, 'Sec-Fetch-Site': 'cross-site' }, { Authorization: 'Bearer wrong' }]) {
      const { status, text } = await get(path, headers);
      assert.equal(status, 200);
      assert.match(text, /There is no answer yet\. Open the request in the playground/);
    }
    assert.equal(engine.calls.length, 0);
    assert.match((await get(path, own)).text, /75 %/);
    assert.match((await get(path)).text, /75 %/);
    assert.equal(engine.calls.length, 1);
  });

  test('are not asked for by a page of another site, with the password either', async (t) => {
    const { get, engine } = await start(t, { password: PASSWORD });
    await get('/recipes/ticket-triage', { ...BASIC, 'Sec-Fetch-Site': 'cross-site' });
    await get('/recipes/ticket-triage');
    assert.equal(engine.calls.length, 0);
    await get('/recipes/ticket-triage', { ...BASIC, 'Sec-Fetch-Site': 'same-origin' });
    assert.equal(engine.calls.length, 1);
  });

  test('call only the model that comes with the server weak', async (t) => {
    const own = await start(t);
    assert.doesNotMatch((await own.get('/recipes/ticket-triage')).text, /it is weak/);
    const embedded = await start(t, { isLoading: true });
    embedded.slot.loaded(embedded.engine, { source: 'embedded' });
    assert.match((await embedded.get('/recipes/ticket-triage')).text, /it is weak/);
  });
});
