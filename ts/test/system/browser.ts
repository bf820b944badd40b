/** Opens pages in Debian's Chromium, and watches for everything that a page must not do. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import axe from 'axe-core';
import { type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core';
import { REPOSITORY } from '../addon/model-folders.ts';

/** The folder in which screenshots are kept for a person to look at. */
const SCREENSHOTS = join(REPOSITORY, 'dist', 'screenshots');

/** Flags under which the browser connects to nothing but the server under test. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Returns a page in a browser of its own; the test's end closes both. A problem in the page fails the test. */
export async function openPage(test: TestContext, options: BrowserContextOptions = {}): Promise<Page> {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
  const page = await browser.newPage(options);
  page.setDefaultTimeout(15_000);
  const problems = watch(page);
  test.after(async () => {
    await browser.close();
    assert.deepEqual(problems, []);
  });
  return page;
}

/** Returns a list that collects the problems of a page from now on. Policy violations appear as console errors. */
function watch(page: Page): string[] {
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    // The browser logs every 4xx status here; the tests check how the page handles them.
    const isStatus = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isStatus) problems.push(message.text());
  });
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (hostname !== '127.0.0.1' && protocol !== 'data:') problems.push(`asked ${request.url()}`);
  });
  return problems;
}

/** Saves a screenshot of the whole page, and fails if axe finds a problem on it. */
export async function inspect(page: Page, name: string): Promise<void> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  // Without this, the head of the page would appear in the middle of a long screenshot.
  await page.evaluate("scrollTo({ top: 0, behavior: 'instant' })");
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
  const { violations } = (await page.evaluate(`${axe.source}; axe.run()`)) as axe.AxeResults;
  assert.deepEqual(
    violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`),
    [],
    name,
  );
}

/** Returns the text of an element, even if it is scrolled out of sight. */
export async function textOf(locator: Locator): Promise<string> {
  return (await locator.textContent()) ?? '';
}

/** Returns the number in a field of the dashboard. */
export async function field(page: Page, name: string): Promise<number> {
  const text = await textOf(page.locator(`[data-field="${name}"]`).first());
  return Number(text.replace(/[,–]/g, ''));
}
