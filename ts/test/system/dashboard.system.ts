import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { THREE_TYPES } from '../addon/requests.ts';
import { LiveServer } from '../real/live-server.ts';
import { until } from '../until.ts';
import { field, inspect, openPage, textOf } from './browser.ts';

/** The time between two looks at a page, in milliseconds. */
const LOOK_MS = 50;

const PASSWORD = 'the öperator knows & more';
const httpCredentials = { username: 'anyone', password: PASSWORD };
const env = { SVC_PASSWORD: PASSWORD };

test('the pages open with the password, typed into the browser’s own dialog', async (t) => {
  const server = await LiveServer.start(t, { env });
  const stranger = await openPage(t);
  // A browser may report a 401 with an empty body as an error of its own.
  const refused = await stranger.goto(server.url.href).catch(() => undefined);
  assert.equal(refused?.status() ?? 401, 401);
  const page = await openPage(t, { httpCredentials });
  assert.equal((await page.goto(server.url.href))?.status(), 200);
  await page.getByRole('heading', { name: 'Healthy' }).waitFor();
  await page.locator('[data-state="live"]').waitFor();
});

test('a password in the address leaves it at once, and everything works on', async (t) => {
  const server = await LiveServer.start(t, { env });
  const page = await openPage(t);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url() + JSON.stringify(request.headers())));
  await page.goto(new URL(`/?password=${encodeURIComponent(PASSWORD)}`, server.url).href);
  await page.locator('[data-state="live"]').waitFor();
  assert.equal(page.url(), server.url.href);
  const before = await field(page, 'total');
  await page.getByRole('button', { name: 'Decide' }).click();
  await page.locator('.answer').first().waitFor();
  await until(async () => (await field(page, 'total')) === before + 1, LOOK_MS);
  await page.getByRole('link', { name: 'Recipes', exact: true }).click();
  await page.getByRole('heading', { name: 'Recipes' }).waitFor();
  // Only the very first request had the password: no later address has it, and no Referer.
  assert.deepEqual(
    asked.slice(1).filter((request) => request.includes('password=')),
    [],
  );
  const kept = await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie, history.state])');
  assert.equal(kept, '[{},{},"",null]');
});

test('the numbers move under load, rest while nobody looks, and say when the server is gone', async (t) => {
  const server = await LiveServer.start(t, { env });
  const page = await openPage(t, { httpCredentials });
  await page.goto(server.url.href);
  assert.equal(await field(page, 'total'), 0);
  for (let count = 0; count < 40; count += 1) await server.decide(count % 4 === 0 ? '{}' : THREE_TYPES);
  await until(async () => (await field(page, 'total')) === 40, LOOK_MS);
  await until(async () => (await field(page, 'rate')) > 0, LOOK_MS);
  assert.equal(await field(page, 'recent_errors'), 10);
  assert.ok((await field(page, 'p99')) >= (await field(page, 'p50')));
  assert.equal(await page.locator('[data-rows=recent] tr').count(), 40);
  await page.getByLabel('Only errors').check();
  assert.equal(await page.locator('[data-rows=recent] tr').count(), 10);
  assert.match(await textOf(page.locator('[data-rows=recent] tr').first()), /400\s*state_missing/);
  assert.ok(await page.getByRole('img', { name: /^choice: 30 answers/ }).isVisible());
  assert.equal(await page.locator('canvas').count(), 3);

  let asked = 0;
  page.on('request', () => {
    asked += 1;
  });
  await page.getByRole('button', { name: 'Pause' }).click();
  await sleep(500);
  asked = 0;
  await sleep(2500);
  assert.equal(asked, 0, 'asked while paused');
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.waitForRequest(/stats/);
  await page.evaluate("Object.defineProperty(document, 'hidden', { configurable: true, value: true })");
  await sleep(1500);
  asked = 0;
  await sleep(2500);
  assert.equal(asked, 0, 'asked while hidden');
  await page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))");
  await page.waitForRequest(/stats/);
  server.process.signal('SIGKILL');
  await page.getByText('Not reachable').waitFor();
  await page.getByRole('heading', { name: 'The server does not answer' }).waitFor();
  assert.equal(await page.locator('[data-status="ok"]').count(), 0);
});

test('the dashboard of a server that nobody has asked yet has room for its charts, and says that they are empty', async (t) => {
  const server = await LiveServer.start(t, { env });
  for (const width of [1280, 360]) {
    const page = await openPage(t, { httpCredentials, viewport: { width, height: 800 } });
    await page.goto(server.url.href);
    await page.locator('[data-plot] canvas').first().waitFor();
    const [card, plot] = [page.locator('[aria-labelledby=load]'), page.locator('.plot').first()];
    assert.ok(((await plot.boundingBox())?.width ?? Number.NaN) < ((await card.boundingBox())?.width ?? 0));
    assert.equal(await page.evaluate("getComputedStyle(document.querySelector('.plot')).borderTopStyle"), 'none');
    await inspect(page, `idle-${width}`);
  }
  const page = await openPage(t, { httpCredentials });
  await page.goto(server.url.href);
  const steps = page.getByText('Nobody has asked this server yet.');
  assert.ok(await steps.isVisible());
  await page.getByRole('button', { name: 'Decide' }).click();
  await steps.waitFor({ state: 'hidden' });
});

test('a chart names each minute once, on narrow and on wide screens', async (t) => {
  const server = await LiveServer.start(t, { env });
  for (let count = 0; count < 5; count += 1) await server.answer(THREE_TYPES);
  for (const width of [360, 768, 1440]) {
    const page = await openPage(t, { httpCredentials, viewport: { width, height: 900 } });
    await page.addInitScript(NOTE_TEXTS);
    await page.goto(server.url.href);
    const drawn = async () =>
      (await page.evaluate<string[][]>('[...drawn.values()]')).filter(({ length }) => length > 0);
    await until(async () => (await drawn()).length === 3, LOOK_MS);
    for (const texts of await drawn()) {
      const minutes = texts.filter((text) => /^\d\d:\d\d$/.test(text));
      assert.ok(minutes.length > 0, `${texts}`);
      assert.deepEqual(minutes, [...new Set(minutes)], `at ${width}`);
    }
  }
});

/** Notes the texts that stand on each canvas of a page. */
const NOTE_TEXTS = `
  globalThis.drawn = new Map();
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...rect) {
    drawn.set(this.canvas, []);
    clearRect.apply(this, rect);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    drawn.get(this.canvas)?.push(text);
    fillText.call(this, text, ...place);
  };
`;

test('the kept states show when a state comes again', async (t) => {
  const server = await LiveServer.start(t, { env });
  const page = await openPage(t, { httpCredentials });
  await page.goto(server.url.href);
  assert.equal(await textOf(page.locator('[data-field="cache_share"]')), '–');
  for (let count = 0; count < 4; count += 1) await server.answer(THREE_TYPES);
  await until(async () => (await field(page, 'cache_hits')) === 3, LOOK_MS);
  assert.equal(await textOf(page.locator('[data-field="cache_share"]')), '75 %');
  assert.equal(await field(page, 'cache_misses'), 1);
  assert.match(await textOf(page.locator('[data-field="cache_bytes"]')), /^[\d.]+ KiB$/);
  const width = await page.locator('[data-cache-bar] rect').getAttribute('width');
  assert.ok(Number.parseFloat(width ?? '') > 0, String(width));
});

test('a page of another version than the server says so, keeps what was typed, and asks no more', async (t) => {
  const server = await LiveServer.start(t, { env });
  const page = await openPage(t, { httpCredentials });
  await page.goto(server.url.href);
  await page.getByLabel('State', { exact: true }).fill('typed');
  await page.route('**/stats', (route) => route.fulfill({ json: { version: '999.0.0' } }));
  await page.getByText('New version: reload').waitFor();
  await page.getByRole('heading', { name: 'Not known: the server is of another version' }).waitFor();
  assert.equal(await page.getByLabel('State', { exact: true }).inputValue(), 'typed');
  let asked = 0;
  page.on('request', () => {
    asked += 1;
  });
  await sleep(2500);
  assert.equal(asked, 0);
});

test('without JavaScript the numbers are there', async (t) => {
  const server = await LiveServer.start(t, { env });
  await server.answer(THREE_TYPES);
  const page = await openPage(t, { httpCredentials, javaScriptEnabled: false });
  await page.goto(server.url.href);
  assert.equal(await field(page, 'total'), 1);
  assert.ok(await page.locator('noscript p').isVisible());
  assert.ok(await page.getByRole('img', { name: /^noul: 1 answer,/ }).isVisible());
  assert.ok(!(await page.getByRole('button', { name: 'Decide' }).isVisible()));
});

test('every control is reached and used by the keyboard alone, in the order of the page, and the focus is seen', async (t) => {
  const server = await LiveServer.start(t, { env });
  for (const width of [360, 1440]) {
    const page = await openPage(t, { httpCredentials, viewport: { width, height: 900 } });
    await page.goto(server.url.href);
    await page.locator('[data-plot] canvas').first().waitFor();
    // A group of radio buttons, and a row of tabs, is one stop.
    const controls = await page.evaluate<number>(CONTROLS);
    const places: number[] = [];
    for (let count = 0; count < controls; count += 1) {
      await page.keyboard.press('Tab');
      const { top, outline } = await page.evaluate<{ top: number; outline: string }>(FOCUS);
      assert.notEqual(outline, 'none', `stop ${count + 1} at ${width}`);
      places.push(top);
    }
    assert.ok(controls > 20 && (places.at(-1) ?? 0) > (places[0] ?? 0), String(places));
    await page.keyboard.press('Tab');
    assert.equal(
      await page.evaluate('document.activeElement === document.body'),
      true,
      'a stop more than the controls',
    );
  }
});

/** The number of elements that the key Tab should stop at. */
const CONTROLS = `(() => {
  const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')];
  const seen = all.filter((element) => element.checkVisibility() && element.tabIndex >= 0 && !element.disabled);
  const others = seen.filter((element) => element.type !== 'radio' || element.checked);
  return others.length;
})()`;

const FOCUS = `(() => {
  const element = document.activeElement;
  const ring = element.type === 'radio' ? element.nextElementSibling : element;
  const { outlineStyle, boxShadow } = getComputedStyle(ring);
  const outline = outlineStyle === 'none' && boxShadow !== 'none' ? 'shadow' : outlineStyle;
  return { top: element.getBoundingClientRect().top + scrollY, outline };
})()`;

test('the pages are readable in light, dark and on a phone, and axe finds nothing', async (t) => {
  const server = await LiveServer.start(t, { env });
  for (let count = 0; count < 60; count += 1) await server.decide(count % 9 === 0 ? '{}' : THREE_TYPES);
  // The wait gives the series a second step, so that the charts have lines.
  await sleep(6000);
  for (let count = 0; count < 30; count += 1) await server.answer(THREE_TYPES);
  for (const [name, colorScheme, width] of [
    ['light', 'light', 1440],
    ['dark', 'dark', 1440],
    ['tablet', 'light', 768],
    ['tablet-dark', 'dark', 768],
    ['phone', 'light', 360],
    ['phone-dark', 'dark', 360],
  ] as const) {
    const page = await openPage(t, { httpCredentials, colorScheme, viewport: { width, height: 800 } });
    for (const path of ['/', '/recipes', '/recipes/refund-policy']) {
      await page.goto(new URL(path, server.url).href);
      if (path === '/') {
        await page.getByRole('button', { name: 'Decide' }).click();
        await page.locator('.answer').first().waitFor();
      }
      const overhang = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
      assert.ok(overhang <= 0, `${path} is ${overhang} pixels too wide for ${width}`);
      await inspect(page, `${name}${path === '/' ? '-dashboard' : path.replaceAll('/', '-')}`);
    }
  }
});
