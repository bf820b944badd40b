import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { LiveServer } from '../real/live-server.ts';
import { openPage, textOf } from './browser.ts';

const KEY = '0123456789abcdef';

/** Opens the playground of a server without a password. */
async function open(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  const server = await LiveServer.start(t, { env: { SVC_ALLOW_NO_PASSWORD: '1', ...env } });
  const page = await openPage(t);
  await page.goto(server.url.href);
  return { server, page };
}

const decide = (page: Page) => page.getByRole('button', { name: 'Decide' }).click();
const json = (page: Page) => page.getByLabel('Request as JSON');
const view = (page: Page, name: 'Form' | 'JSON') =>
  page.getByRole('group', { name: 'How to edit the request' }).getByText(name, { exact: true }).click();

test('a recipe is opened in the playground and gets the answer of its page', async (t) => {
  const { server, page } = await open(t);
  await page.getByRole('link', { name: 'Recipes', exact: true }).click();
  await page.getByRole('link', { name: 'Alert urgency' }).click();
  const shown = await page.locator('.outcomes').allInnerTexts();
  assert.ok(shown.length === 2);
  await page.getByRole('link', { name: 'Open in the playground' }).click();
  assert.equal(await page.getByLabel('Start from').inputValue(), 'alert-urgency');
  await decide(page);
  await page.locator('.answer').first().waitFor();
  assert.deepEqual(await page.locator('.outcomes').allInnerTexts(), shown);
  await view(page, 'JSON');
  const answer = JSON.parse(await server.answer(await json(page).inputValue())).answers.urgency;
  const winner = page.locator('.answer', { hasText: 'urgency' }).locator('.verdict strong');
  assert.equal(await textOf(winner), answer.choice);
});

test('questions are edited in the form, and their order is kept in the JSON and in the answer', async (t) => {
  const { page } = await open(t);
  // The test removes three questions of the first recipe and adds a new one.
  for (let count = 0; count < 3; count += 1)
    await page
      .getByRole('button', { name: /^Remove question/ })
      .first()
      .click();
  await page.getByRole('button', { name: 'Add a question' }).click();
  const question = page.locator('[data-question]');
  await question.getByLabel('Name').fill('10');
  await question.getByLabel('Type').selectOption('choice');
  await question.getByLabel('Question', { exact: true }).fill('Which number?');
  await page.getByRole('button', { name: 'Add an option' }).click();
  for (const [index, name] of ['9', '10', '2'].entries()) {
    await question.getByLabel(`Option ${index + 1}`, { exact: true }).fill(name);
  }
  await page.getByRole('button', { name: 'Remove option 2' }).click();
  await page.getByRole('button', { name: 'Add a question' }).click();
  await page.locator('[data-question]').nth(1).getByLabel('Name').fill('1');
  await page.keyboard.press('Control+Enter');
  await page.locator('.answer').nth(1).waitFor();
  assert.deepEqual(await page.locator('.answer h3').allInnerTexts(), ['10', '1']);
  const rows = page.locator('.answer').first().locator('tbody th');
  assert.deepEqual(await rows.allInnerTexts(), ['9', '2']);
  await view(page, 'JSON');
  assert.match(await json(page).inputValue(), /"10": \{[^}]*"criteria": \["9", "2"\][^}]*\},\s*"1": \{/);
  await json(page).fill('{"state": {"b": 1.50}, "questions": {"q": {"type": "score", "criteria": ["x", "y", "z"]}}}');
  await view(page, 'Form');
  assert.equal(await page.getByLabel('State', { exact: true }).inputValue(), '{"b": 1.50}');
  for (const [index, level] of ['x', 'y', 'z'].entries()) {
    assert.equal(await page.getByLabel(`Level ${index}`, { exact: true }).inputValue(), level);
  }
});

test('what was typed stays when the view changes there and back, or the page is scrolled to the playground', async (t) => {
  const { page } = await open(t);
  await page.locator('[name=instructions]').nth(1).fill('How loud is the customer?');
  for (const name of ['JSON', 'Form'] as const) await view(page, name);
  await page.getByRole('link', { name: 'Try a decision' }).click();
  assert.equal(await page.locator('[data-question]').count(), 3);
  assert.equal(await page.locator('[name=instructions]').nth(1).inputValue(), 'How loud is the customer?');
  await page.getByLabel('Start from').selectOption('moderation');
  assert.equal(await page.locator('[data-question]').count(), 4);
  await decide(page);
  await page.locator('.answer').nth(3).waitFor();
});

test('bad input gets the server’s own words', async (t) => {
  const { page } = await open(t);
  const error = page.locator('[data-error]');
  await page.getByRole('button', { name: 'Remove option 4' }).click();
  await page.getByRole('button', { name: 'Remove option 3' }).click();
  await page.getByRole('button', { name: 'Remove option 2' }).click();
  await decide(page);
  await error.getByText('400: team: need at least two options').waitFor();
  await view(page, 'JSON');
  await json(page).fill('{"state": 1, "questions": {"q": {"type": "noul"}}');
  await decide(page);
  await error.getByText('400: invalid JSON at byte 49').waitFor();
  await view(page, 'Form');
  await page.getByText('The form cannot show this request: it is not valid JSON.').waitFor();
  assert.ok(await json(page).isVisible());
  await json(page).fill('{"state": 1, "questions": {"q": {"type": "noul"}}}');
  await decide(page);
  await page.locator('.answer').waitFor();
  assert.ok(!(await error.isVisible()));
});

test('names, texts and errors with HTML in them stay text', async (t) => {
  const { page } = await open(t);
  const evil = '<img src=x onerror=alert(1)>';
  await view(page, 'JSON');
  const question = { type: 'choice', instructions: evil, criteria: { [evil]: evil, [`</pre>${evil}`]: evil } };
  await json(page).fill(JSON.stringify({ state: evil, questions: { [evil]: question } }));
  await decide(page);
  await page.locator('.answer').waitFor();
  assert.equal(await textOf(page.locator('.answer h3')), evil);
  await view(page, 'Form');
  assert.equal(await page.getByLabel('State', { exact: true }).inputValue(), evil);
  await view(page, 'JSON');
  await json(page).fill(JSON.stringify({ state: evil, questions: { [evil]: { type: evil } } }));
  await decide(page);
  await page.locator('[data-error]').getByText(`400: ${evil}: unknown type "${evil}"`).waitFor();
  assert.equal(await page.locator('main img').count(), 0);
});

test('where the password is off and the key is on, the playground asks for the key', async (t) => {
  const { page } = await open(t, { SVC_API_KEY: KEY });
  await decide(page);
  await page.getByText('The API key is missing or wrong.').waitFor();
  await page.getByLabel('API key', { exact: true }).fill(KEY);
  await decide(page);
  await page.locator('.answer').first().waitFor();
  assert.ok(!(await page.content()).includes(KEY));
  assert.match(await textOf(page.locator('[data-tab=curl] pre')), /Bearer \$SVC_API_KEY/);
});

test('a request is sent once, however often it is asked for, and the focus stays', async (t) => {
  const { page } = await open(t);
  let sent = 0;
  await page.route('**/playground', async (route) => {
    sent += 1;
    await sleep(500);
    await route.continue();
  });
  const button = page.getByRole('button', { name: 'Decide' });
  await button.click();
  await button.press('Enter');
  await page.getByLabel('State', { exact: true }).press('Control+Enter');
  await button.focus();
  await page.locator('.answer').first().waitFor();
  assert.equal(sent, 1);
  assert.equal(await page.evaluate("document.activeElement.matches('[data-decide]')"), true);
  await button.press('Enter');
  await page.waitForResponse(/playground/);
  assert.equal(sent, 2);
});

test('the tabs of the code are used with the arrow keys, and hold the request that would be sent', async (t) => {
  const { page } = await open(t);
  await page.getByLabel('State', { exact: true }).fill("It's late");
  await page.getByRole('tab', { name: 'curl' }).focus();
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.getByRole('tab', { name: 'TypeScript' }).getAttribute('aria-selected'), 'true');
  assert.match(await textOf(page.getByRole('tabpanel', { name: 'TypeScript' })), /"state": "It's late"/);
  await page.keyboard.press('End');
  assert.match(await textOf(page.getByRole('tabpanel', { name: 'Python' })), /requests\.post/);
  await page.keyboard.press('ArrowRight');
  assert.match(await textOf(page.getByRole('tabpanel', { name: 'curl' })), /"state": "It'\\''s late"/);
});

test('a link holds the request, without key or password; it fills the playground and sends nothing by itself', async (t) => {
  const { server, page } = await open(t, { SVC_API_KEY: KEY });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.url.origin });
  await page.getByLabel('State', { exact: true }).fill('größe & 😀 "quoted"');
  await decide(page);
  await page.getByLabel('API key', { exact: true }).fill(KEY);
  await page.getByRole('button', { name: 'Copy a link to this request' }).click();
  await page.getByText('Copied. It holds the request, no key and no password.').waitFor();
  const link = await page.evaluate<string>('navigator.clipboard.readText()');
  assert.equal(await page.getByLabel('Link to this request').inputValue(), link);
  assert.ok(link.startsWith(`${server.url.origin}/#request=`) && !link.includes(KEY), link);
  await view(page, 'JSON');
  const sent = await json(page).inputValue();

  const other = await openPage(t);
  const asked: string[] = [];
  other.on('request', (request) => asked.push(`${request.method()} ${request.url()}`));
  await other.goto(link);
  assert.equal(await other.getByLabel('State', { exact: true }).inputValue(), 'größe & 😀 "quoted"');
  await view(other, 'JSON');
  assert.equal(await json(other).inputValue(), sent);
  await sleep(1500);
  assert.ok(asked.length > 0);
  assert.deepEqual(
    asked.filter((request) => request.startsWith('POST') || request.includes('request=')),
    [],
  );
  await other.goto(`${server.url.origin}/#request=%%`);
  await other.getByText('The link is damaged: it holds no request.').waitFor();
  await view(page, 'JSON');
  await json(page).fill(`{"state": "${'x'.repeat(20_000)}"}`);
  await page.getByRole('button', { name: 'Copy a link to this request' }).click();
  await page.getByText('The request is too long for a link.').waitFor();
  assert.ok(!(await page.getByLabel('Link to this request').isVisible()));
});
