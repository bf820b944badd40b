/** `svc bench`: a load test of a server, with requests of the user's own or of the README's kind. */
import { readFileSync } from 'node:fs';
import { wholeNumber } from '../file-run/plan.ts';
import { errorCode } from '../files/system-error.ts';
import { tell } from '../log/tell.ts';
import { decisionHeaders, decisionUrl } from '../network/decision-url.ts';
import { serverName } from '../network/reach.ts';
import { Refusal } from '../refusal.ts';
import { loadConfig } from '../settings/config.ts';
import { openSockets, runLoad, send, type Target } from './bench/load.ts';
import { benchJson, benchText } from './bench/report.ts';

export interface BenchFlags {
  readonly requests?: string;
  readonly seconds?: string;
  readonly concurrency?: string;
  readonly json?: boolean;
}

const DEFAULT_SECONDS = '10';
const DEFAULT_CONCURRENCY = '8';
const MAX_SECONDS = 86_400;
const MAX_CONCURRENCY = 1000;

/** One question of each type, about the states that `nextState` makes. */
const QUESTIONS = JSON.stringify({
  refund: { type: 'noul', instructions: 'Does the customer want money back?' },
  team: { type: 'choice', instructions: 'Which team should handle this?', criteria: ['billing', 'tech', 'sales'] },
  anger: { type: 'score', instructions: 'How angry is the customer?', criteria: ['calm', 'annoyed', 'furious'] },
});

/**
 * Resolves once the time is over, or a signal has ended it, and the report is on stdout.
 *
 * @throws Refusal when a flag or a request is wrong, or the server does not decide.
 */
export async function bench(url: string, { requests, json = false, ...flags }: BenchFlags): Promise<void> {
  const target = targetOf(decisionUrl(url, 'URL'));
  const seconds = wholeNumber('--seconds', flags.seconds ?? DEFAULT_SECONDS, MAX_SECONDS);
  const concurrency = wholeNumber('--concurrency', flags.concurrency ?? DEFAULT_CONCURRENCY, MAX_CONCURRENCY);
  const nextBody = requests === undefined ? ownBodies() : inTurn(readRequests(requests));
  const server = serverName(target.url);
  await requireDecision(target, nextBody());
  if (process.stderr.isTTY) tell(`${server}: ${concurrency} requests at once for ${seconds} s; Ctrl-C ends it earlier`);
  const result = await runLoad({ ...target, nextBody, concurrency, seconds, stop: stopOnSignal() });
  if (result.samples.length === 0)
    throw new Refusal(`${server}: gave no decision: ${[...result.failures.keys()].join(', ')}`);
  const measured = { ...result, server, concurrency };
  process.stdout.write(json ? `${JSON.stringify(benchJson(measured), null, 2)}\n` : benchText(measured));
}

function targetOf(url: URL): Target {
  const { config, warnings } = loadConfig();
  for (const warning of warnings) tell(warning);
  return { url, headers: { ...decisionHeaders(config), accept: 'application/json, text/plain' } };
}

/** Sends one request before the load, so that a wrong request or a wrong key is told at once, and once. */
async function requireDecision(target: Target, body: Buffer): Promise<void> {
  const sockets = openSockets(target, 1);
  const { status, text } = await send(target, body, sockets).finally(() => sockets.destroy());
  const server = serverName(target.url);
  if (status === 0) throw new Refusal(`cannot reach ${server}: ${text}`);
  if (status !== 200)
    throw new Refusal(`${server} answers ${status}: ${text.trim().slice(0, 300).replace(/\s+/g, ' ')}`);
}

/** Returns a function that makes bodies about states that no server has read, not even in an earlier run. */
function ownBodies(): () => Buffer {
  const run = Date.now().toString(36);
  let count = 0;
  return () => {
    count += 1;
    const state = `Ticket ${run}-${count}: My card was charged twice and nobody answers my mails`;
    return Buffer.from(`{"state":${JSON.stringify(state)},"questions":${QUESTIONS}}`);
  };
}

function inTurn(bodies: readonly Buffer[]): () => Buffer {
  let at = -1;
  return () => {
    at = (at + 1) % bodies.length;
    return bodies[at] as Buffer;
  };
}

/** Returns the requests in the lines of a file. */
function readRequests(file: string): readonly Buffer[] {
  const bodies = textOf(file)
    .split('\n')
    .flatMap((line, at) => (line.trim() === '' ? [] : [requestOf(line.trim(), `${file}: line ${at + 1}`)]));
  if (bodies.length === 0) throw new Refusal(`${file}: no requests`);
  return bodies;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw new Refusal(`${file}: cannot be read (${errorCode(error)})`);
  }
}

function requestOf(line: string, where: string): Buffer {
  try {
    JSON.parse(line);
  } catch {
    throw new Refusal(`${where}: is not valid JSON`);
  }
  return Buffer.from(line);
}

/** Returns a signal that fires at the first SIGINT or SIGTERM; the report is about what was answered until then. */
function stopOnSignal(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort());
  return controller.signal;
}
