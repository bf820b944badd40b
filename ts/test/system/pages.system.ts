/**
 * Runs the code of the documentation as its readers do, in a clone and in a folder in which the package is installed:
 * every block of every page, in order. A block that follows another one directly is its output.
 */
import assert from 'node:assert/strict';
import { cpSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, type TestContext, test } from 'node:test';
import { transformSync } from 'esbuild';
import { fixture, REPOSITORY } from '../addon/model-folders.ts';
import { type DocBlock, docBlocks } from '../doc-blocks.ts';
import { LiveServer } from '../real/live-server.ts';
import type { IsolatedRegistry } from './isolated-registry.ts';
import { publishPackages } from './published.ts';
import { type Reader, readerInClone, readerOfPackage } from './readers.ts';

const ORIGIN = 'http://127.0.0.1:21118';

/** The things that a page needs in addition to a server. */
interface Preparation {
  /** The model folder that the page speaks of as `my-model`. */
  readonly model?: 'pair-deberta';
  /** Whether the page has a second server, one port above the first. */
  readonly second?: boolean;
  /** Whether outputs are shown in part. */
  readonly isPart?: boolean;
}

const PAGES: Readonly<Record<string, Preparation>> = {
  '../README.md': {},
  'quick-start.md': {},
  'api.md': {},
  'batch-requests.md': {},
  'batch.md': { second: true },
  'calibration.md': {},
  'confidence.md': {},
  'in-process.md': {},
  'migration.md': {},
  'model-folders.md': { model: 'pair-deberta' },
  'model-sources.md': { isPart: true },
  'operations.md': {},
  'security.md': {},
};

/** The pages whose code is run elsewhere, or that have none which a reader could run anywhere. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'clients.md': 'clients-docs.system.ts, with the packages of others',
  'decisions.md': 'clients-docs.system.ts, with the packages of others',
  'hub-models.md': 'ts/test/model/hub/, at a stand-in of the hub',
  'install.md': 'ts/test/install/: installers, services, shells',
};

const RUNNABLE = ['sh', 'js', 'ts', 'python', 'powershell'];

/** Programs that the commands of the pages need. */
const COMMANDS = ['bash', 'cat', 'curl', 'grep', 'openssl'];

function starts({ text }: DocBlock): boolean {
  return /^npx @svc\/server(?: serve\b.*)?$/.test(text.trim());
}

/** Returns the file that a paragraph announces as the next block; undefined if it announces none. */
function fileIn({ before, language }: DocBlock): string | undefined {
  const isFile = before.endsWith(':') && ['csv', 'json', 'jsonl'].includes(language);
  return isFile ? /`([\w-]+\.(?:csv|jsonl?))`/.exec(before)?.[1] : undefined;
}

/** Returns the keys and types of a JSON value, without its numbers and texts, which depend on model and machine. */
function shape(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, own]) => [key, shape(own)]));
}

/** Returns the part of a shape that has the keys of another. */
function partOf(whole: unknown, wanted: unknown): unknown {
  if (typeof whole !== 'object' || whole === null || typeof wanted !== 'object' || wanted === null) return whole;
  const values = whole as Readonly<Record<string, unknown>>;
  return Object.fromEntries(Object.entries(wanted).map(([key, own]) => [key, partOf(values[key], own)]));
}

/** Runs a block as a reader, and returns what it prints. */
async function run(reader: Reader, { language, text }: DocBlock, second: string | undefined): Promise<string> {
  const own = text.replaceAll('http://127.0.0.1:21119', second ?? '').replaceAll(ORIGIN, reader.origin);
  let ended: Awaited<ReturnType<Reader['run']>>;
  if (language === 'sh') ended = await reader.shell(own);
  else {
    const code = language === 'ts' ? transformSync(own, { loader: 'ts', target: 'node20', format: 'esm' }).code : own;
    writeFileSync(join(reader.folder, 'block.mjs'), code);
    ended = await reader.run(['node', 'block.mjs']);
  }
  assert.equal(ended.code, 0, `${own}\n${ended.stdout}${ended.stderr}`);
  return ended.stdout;
}

async function read(t: TestContext, page: string, reader: Reader): Promise<void> {
  const { model, second, isPart = false } = PAGES[page] ?? {};
  if (model !== undefined) cpSync(fixture(model), join(reader.folder, 'my-model'), { recursive: true });
  const other = second === true ? await secondServer(t, reader) : undefined;
  let printed = '';
  for (const block of docBlocks(page)) {
    const { language, text, before: paragraph } = block;
    const file = fileIn(block);
    if (file !== undefined) writeFileSync(join(reader.folder, file), text);
    else if (starts(block)) await reader.serve(`${text.trim()} --port 0`);
    else if (RUNNABLE.includes(language)) printed = await run(reader, block, other);
    else if (paragraph !== '') continue;
    else if (language === 'json') {
      const [got, shown] = [shape(JSON.parse(printed)), shape(JSON.parse(text))];
      assert.deepEqual(isPart ? partOf(got, shown) : got, shown, page);
    } else if (language === 'text') assert.equal(printed.trim(), text.trim(), page);
  }
}

/** Returns the address of a second server that the reader can reach. */
async function secondServer(t: TestContext, reader: Reader): Promise<string> {
  if (reader.origin !== ORIGIN) return (await LiveServer.start(t)).url.origin;
  // In the network of the registry, one server is reached at two addresses as well.
  return 'http://localhost:21118';
}

test('every page with code is read, or is read elsewhere', () => {
  const pages = ['../README.md', ...readdirSync(join(REPOSITORY, 'docs')).filter((name) => name.endsWith('.md'))];
  const withCode = pages.filter((page) => docBlocks(page).some(({ language }) => RUNNABLE.includes(language)));
  assert.deepEqual(withCode.toSorted(), [...Object.keys(PAGES), ...Object.keys(ELSEWHERE)].toSorted());
});

suite('the code of the documentation runs in a clone', () => {
  for (const page of Object.keys(PAGES)) test(page, async (t) => read(t, page, await readerInClone(t)));
});

suite('the code of the documentation runs where the package is installed', () => {
  let registry: IsolatedRegistry;

  before(async () => {
    registry = await publishPackages(COMMANDS);
  });
  after(() => registry?.stop());

  for (const page of Object.keys(PAGES)) test(page, async (t) => read(t, page, await readerOfPackage(t, registry)));
});
