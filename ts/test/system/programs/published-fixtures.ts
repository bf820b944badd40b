/**
 * Makes the committed tiny models in the forms of their makers again, with the answers of the makers' code:
 *
 *     SYSTEM_TEST_PYTHON=venv/bin/python node dist/test/system/programs/published-fixtures.js [FAMILY...]
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { FAMILIES, type Oracle, PUBLISHED } from '../../addon/published-folders.ts';
import { askOracle, program } from '../published/oracle.ts';
import { publishedRequests } from '../published/requests.ts';

/** The width of the committed models, which are smaller than those of the system tests. */
const WIDTH = '8';
/** The most requests, and the length of one in bytes; a few long ones are taken as well. */
const MOST = 40;
const SHORT = 900;
const LONG = 4;

function requests({ odd }: Oracle): string[] {
  const all = publishedRequests(odd);
  const short = all.filter((body) => Buffer.byteLength(body) <= SHORT);
  const long = all.filter((body) => Buffer.byteLength(body) > 4 * SHORT);
  return [...short.slice(0, MOST - LONG), ...long.slice(0, LONG)];
}

/** Returns a probability with as many digits as the tests compare, and some more. */
function rounded(key: string, value: unknown): unknown {
  return typeof value === 'number' && key !== 'body' ? Number(value.toFixed(8)) : value;
}

const wanted = process.argv.slice(2);
for (const [family, oracle] of Object.entries(FAMILIES)) {
  if (wanted.length > 0 && !wanted.includes(family)) continue;
  const folder = join(PUBLISHED, family);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(PUBLISHED, { recursive: true });
  await program(oracle, ['make', folder], { env: { TINY_WIDTH: WIDTH } });
  const bodies = requests(oracle);
  const answers = await askOracle(oracle, folder, bodies);
  const lines = bodies.map((body, index) => `${JSON.stringify({ body, ...answers[index] }, rounded)}\n`);
  writeFileSync(join(PUBLISHED, `${family}.golden.jsonl`), lines.join(''));
}
