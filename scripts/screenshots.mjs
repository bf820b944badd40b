/**
 * Makes the screenshots in docs/images/ of the server that `npm run build` has made: `node scripts/screenshots.mjs`, in
 * six minutes. `--check` tells whether the pages still look as they did then, by what scripts/screenshots.json notes of
 * them. Both need Chromium, where Debian and Ubuntu install it.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const REPOSITORY = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(REPOSITORY, 'docs', 'images');
/** The file that notes what the screenshots show, apart from numbers. */
const RECORD = join(REPOSITORY, 'scripts', 'screenshots.json');
const PASSWORD = 'for the screenshots';
const SIZE = { width: 1280, height: 800 };
/** The time for which the server answers before it is shown, in milliseconds: its charts show five minutes. */
const LOAD_MS = 310_000;

/** The time after which the page shows numbers, in milliseconds. */
const FIRST_MS = 5000;

/** The texts that the requests are about. */
const STATES = [
  'My card was charged twice and nobody answers my mails',
  'The app crashes when I open the settings',
  'Do you have a plan for schools?',
  'I want to cancel, and I want my money back',
  'Thanks, that has solved it!',
];
const QUESTIONS = {
  refund: { type: 'noul', instructions: 'Does the customer want money back?' },
  team: {
    type: 'choice',
    instructions: 'Which team should handle this?',
    criteria: { billing: 'payments, invoices', tech: 'bugs, outages', sales: 'pricing' },
  },
  anger: {
    type: 'score',
    instructions: 'How angry is the customer?',
    criteria: ['calm', 'annoyed', 'furious'],
  },
};

/** Starts a server in `folder`; resolves with its process and address once the model is loaded. */
async function start(folder) {
  const args = [join(REPOSITORY, 'bin', 'svc.js'), 'serve', '--listen', '127.0.0.1:0', '--device', 'cpu'];
  const env = { ...process.env, SVC_PASSWORD: PASSWORD, SVC_DATA: folder, SVC_CONFIG: '' };
  const server = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  for await (const part of server.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    log += part;
    if (/model .* loaded/.test(log)) break;
  }
  server.stderr.resume();
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(log)?.[0];
  if (url === undefined) throw new Error(log);
  return { server, url };
}

/** Asks the server about the states in turn, in waves, until `signal` fires. */
async function load(url, signal) {
  for (let count = 0; !signal.aborted; count += 1) {
    const state = `${STATES[count % STATES.length]} (${Math.floor(count / STATES.length)})`;
    await fetch(`${url}/v1/systemone`, { method: 'POST', body: JSON.stringify({ state, questions: QUESTIONS }) });
    await sleep(60 + 50 * Math.sin(count / 150));
  }
}

/** Returns what the first screen of a page shows apart from numbers: its style, its headings and its buttons. */
async function shownBy(page, url) {
  const texts = await page.evaluate(
    `[...document.querySelectorAll('h1, h2, h3, th, button')]
      .filter((element) => element.checkVisibility() && element.getBoundingClientRect().top < innerHeight)
      .map((element) => element.textContent.replace(/\\s+/g, ' ').replace(/\\d[\\d,.]*/g, '#').trim())`,
  );
  const href = await page.evaluate("document.querySelector('link[rel=stylesheet]').href");
  const style = await page.evaluate(`fetch(${JSON.stringify(href)}).then((answer) => answer.text())`);
  const { version } = await (await fetch(`${url}/version`)).json();
  return { version, style: createHash('sha256').update(style).digest('hex'), texts };
}

/** Opens the dashboard in a colour scheme, once it is live. */
async function open(browser, url, colorScheme) {
  const httpCredentials = { username: 'me', password: PASSWORD };
  const page = await browser.newPage({ colorScheme, httpCredentials, viewport: SIZE, reducedMotion: 'reduce' });
  await page.goto(url);
  await page.locator('[data-state="live"]').waitFor();
  return page;
}

/** Runs `work` with the address of a server and a browser, and ends both. */
async function withServer(work) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-screenshots-'));
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  const stop = new AbortController();
  let started;
  try {
    started = await start(folder);
    const loaded = load(started.url, stop.signal);
    await work(started.url, browser);
    stop.abort();
    await loaded;
  } finally {
    stop.abort();
    started?.server.kill('SIGKILL');
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function make(url, browser) {
  await sleep(LOAD_MS);
  mkdirSync(FOLDER, { recursive: true });
  for (const scheme of ['light', 'dark']) {
    const page = await open(browser, url, scheme);
    const path = join(FOLDER, `dashboard-${scheme}.png`);
    await page.screenshot({ path });
    if (scheme === 'light') writeFileSync(RECORD, `${JSON.stringify(await shownBy(page, url), null, 2)}\n`);
    process.stdout.write(`screenshots: ${path}\n`);
    await page.close();
  }
}

async function check(url, browser) {
  // A page without traffic says what to do next.
  await sleep(FIRST_MS);
  const page = await open(browser, url, 'light');
  const [shown, noted] = [await shownBy(page, url), JSON.parse(readFileSync(RECORD, 'utf8'))];
  const changed = Object.keys(shown).filter((key) => JSON.stringify(shown[key]) !== JSON.stringify(noted[key]));
  if (changed.length === 0) return;
  process.stdout.write(`screenshots: another ${changed.join(', ')}: run node scripts/screenshots.mjs\n`);
  process.exitCode = 1;
}

await withServer(process.argv.includes('--check') ? check : make);
