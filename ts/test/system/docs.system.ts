import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LiveServer } from '../real/live-server.ts';
import { until } from '../until.ts';
import { inspect, openPage, textOf } from './browser.ts';

test("the API's page has nothing that axe finds, in light and dark, on wide and on narrow screens, and fits them", async (t) => {
  const server = await LiveServer.start(t);
  for (const [width, colorScheme] of [
    [1440, 'light'],
    [1440, 'dark'],
    [768, 'light'],
    [360, 'light'],
    [360, 'dark'],
  ] as const) {
    const page = await openPage(t, { colorScheme, viewport: { width, height: 900 } });
    await page.goto(new URL('/docs', server.url).href);
    const decide = page.locator('#operations-Decisions-decide');
    await decide.locator('.opblock-summary').click();
    await decide.locator('.try-out__btn').click();
    await decide.locator('.execute').click();
    await decide.locator('.live-responses-table .response .highlight-code').first().waitFor();
    const overhang = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
    assert.ok(overhang <= 0, `${overhang} pixels too wide for ${width}`);
    await inspect(page, `docs-${colorScheme}-${width}`);
  }
});

test("the API's page has nothing that axe finds with every route open, and follows the system from dark to light", async (t) => {
  const server = await LiveServer.start(t);
  const page = await openPage(t, { colorScheme: 'dark', viewport: { width: 1440, height: 900 } });
  await page.goto(new URL('/docs', server.url).href);
  await page.locator('.opblock').first().waitFor();
  const summaries = await page.locator('.opblock-summary').all();
  for (const summary of summaries) await summary.click();
  await until(async () => (await page.locator('.responses-table').count()) === summaries.length);
  await inspect(page, 'docs-open-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.locator('html:not(.dark-mode)').waitFor();
  await inspect(page, 'docs-open-light');
});

test("the API's page shows every route and tries one out, asking nobody but the server", async (t) => {
  const server = await LiveServer.start(t);
  const page = await openPage(t);
  await page.goto(new URL('/docs', server.url).href);
  const operations = page.locator('.opblock');
  await operations.first().waitFor();
  const { paths } = JSON.parse((await server.get('/openapi.json')).text);
  assert.equal(await operations.count(), Object.keys(paths).length);
  const decide = page.locator('#operations-Decisions-decide');
  await decide.locator('.opblock-summary').click();
  await decide.locator('.try-out__btn').click();
  await decide.locator('.execute').click();
  const answer = decide.locator('.live-responses-table .response .highlight-code').first();
  await answer.waitFor();
  assert.match(await textOf(answer), /"model":\s*"svc"/);
  assert.match(await textOf(decide.locator('.live-responses-table tbody .response-col_status').first()), /200/);
});
