/**
 * Checks the answers on processors that this machine does not have: the reference answers of the embedded model and of
 * the tiny ones in int8, under an emulator. Haswell and EPYC-Rome multiply 8-bit integers in pairs whose sums saturate
 * at 16 bits.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';
import { after, suite, type TestContext, test } from 'node:test';
import { defaultModel } from '../../src/engine/addon.ts';
import { fixture, PROCESSOR_TOLERANCE, REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { type Ending, temporaryFolder } from '../temporary-folder.ts';
import type { Checked } from './programs/golden.ts';

/** An emulator needs minutes for a processor's answers, and more if other programs also run. */
const TIMEOUT_MS = 1_800_000;

/** Processors with AVX2 and without VNNI, whose sums saturate, and one without AVX. */
const PROCESSORS = [
  { name: 'Haswell', saturates: true },
  { name: 'EPYC-Rome', saturates: true },
  { name: 'Nehalem', saturates: false },
] as const;

/**
 * Processors for arm64, with the graphs whose weights are replaced there. Without instructions for 8-bit products, two
 * products of -128 by -128 are too large, so weights are replaced that are -128 or are not known before the graph runs.
 * With SME, which the last processor has, ONNX Runtime quantizes the inputs of `DynamicQuantizeMatMul` row by row if
 * the weights are signed.
 */
const ARM_PROCESSORS = [
  {
    name: 'cortex-a53',
    mended: ['least-weights', 'computed-weights', 'branch-weights', 'conv-integer-signed', 'sequence'],
  },
  { name: 'neoverse-n1', mended: [] },
  { name: 'max', mended: ['dynamic-quantize-mat-mul', 'dynamic-quantize-linear'] },
] as const;

/** The graph that no rewrite can mend. */
const NOT_TO_BE_MENDED = 'sequence';

const PRODUCTS = join(REPOSITORY, 'crates', 'engine', 'tests', 'fixtures', 'products');
const GOLDEN: Readonly<Record<string, readonly object[]>> = JSON.parse(
  readFileSync(join(PRODUCTS, 'golden.json'), 'utf8'),
);

/** Returns a folder for each graph whose products saturate: the folder of the tiny model `marker` with that graph. */
function productFolders(root: string): string[] {
  const { sha256: _, ...config } = JSON.parse(readFileSync(join(fixture('marker'), 'config.json'), 'utf8'));
  return Object.entries(GOLDEN).map(([name, lines]) => {
    const folder = join(root, name);
    mkdirSync(folder);
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    writeFileSync(join(folder, 'golden.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    cpSync(join(fixture('marker'), 'tokenizer.json'), join(folder, 'tokenizer.json'));
    cpSync(join(PRODUCTS, `${name}.onnx`), join(folder, 'model.onnx'));
    return folder;
  });
}

/** Something that ends after all tests of this file. */
const ENDING: Ending = { after: (end) => after(() => (end as () => void)()) };

/**
 * Returns a folder with a model and every `count`-th of its reference answers, from the one at `index` on: the share of
 * one of `count` processors, which have all of them together, since an emulator takes minutes for all.
 */
function share(model: string, index: number, count: number): string {
  const folder = temporaryFolder(ENDING);
  const others = readdirSync(model).filter((name) => name !== 'golden.jsonl');
  for (const name of others) symlinkSync(join(model, name), join(folder, name));
  const lines = readFileSync(join(model, 'golden.jsonl'), 'utf8').trimEnd().split('\n');
  const own = lines.filter((_line, at) => at % count === index);
  writeFileSync(join(folder, 'golden.jsonl'), own.map((line) => `${line}\n`).join(''));
  return folder;
}

/** Runs this checkout's program under an emulator of `processor`. */
function emulated(processor: string, ...args: string[]): Promise<Ended> {
  const all = ['-cpu', processor, process.execPath, ...args];
  return runCommand('qemu-x86_64', { args: all, timeoutMs: TIMEOUT_MS });
}

const program = (root: string) => join(root, 'dist', 'test', 'system', 'programs', 'golden.js');

function checked({ code, stdout, stderr }: Ended): Checked[] {
  assert.equal(code, 0, stderr);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

interface Expected {
  /** The folders of the models whose weights are replaced. */
  readonly mended: ReadonlySet<string>;
  /** Whether the graph that cannot be mended must give wrong answers, which shows that the graphs test something. */
  readonly isShown: boolean;
}

function requireExact(t: TestContext, all: readonly Checked[], { mended, isShown }: Expected): void {
  for (const { folder, exactness, answers, worst } of all) {
    t.diagnostic(`${folder}: ${exactness}, ${answers} requests, largest difference ${worst}`);
    const isLeft = mended.has(folder) && folder.endsWith(NOT_TO_BE_MENDED);
    const expected = isLeft ? 'cannot be' : mended.has(folder) ? 'made exact' : 'exact';
    assert.equal(exactness, expected, folder);
    if (isLeft && isShown) assert.ok(worst !== null && worst > 0.01, `${folder}: ${worst}`);
    else assert.ok(worst !== null && worst <= PROCESSOR_TOLERANCE, `${folder}: ${worst}`);
  }
}

// The emulators run on x64, and those of x64 run this machine's own program.
suite('the reference answers are the same to 1e-4', { concurrency: 2 }, () => {
  const products = productFolders(temporaryFolder(ENDING));
  /** Adds to each processor the folders whose answers it is asked for. */
  const withFolders = <Processor extends object>(processors: readonly Processor[]) =>
    processors.map((processor, index) => {
      const models = [defaultModel(), fixture('shared-state-int8')];
      const shares = models.map((model) => share(model, index, processors.length));
      return { ...processor, folders: [...shares, ...products] };
    });

  for (const { name, saturates, folders } of withFolders(PROCESSORS)) {
    test(`on ${name}`, async (t) => {
      const all = checked(await emulated(name, program(REPOSITORY), ...folders));
      assert.equal(all.length, folders.length);
      requireExact(t, all, { mended: new Set(saturates ? products : []), isShown: saturates });
    });
  }

  const root = armCheckout(ENDING);
  for (const { name, mended, folders } of withFolders(ARM_PROCESSORS)) {
    test(`on arm64, ${name}`, async (t) => {
      const { SYSTEM_TEST_ARM64: command = '[]' } = process.env;
      const [emulator = '', ...args] = JSON.parse(command) as string[];
      const all = ['-cpu', name, ...args, program(root), ...folders];
      const answers = checked(await runCommand(emulator, { args: all, timeoutMs: TIMEOUT_MS }));
      assert.equal(answers.length, folders.length);
      const paths = mended.map((graph) => products.find((folder) => basename(folder) === graph) ?? graph);
      requireExact(t, answers, { mended: new Set(paths), isShown: false });
    });
  }

  test('and the commands say what was done on a processor that saturates', async () => {
    const svc = join(REPOSITORY, 'bin', 'svc.js');
    const [mended = '', left = ''] = ['q-gemm', NOT_TO_BE_MENDED].map((name) =>
      products.find((folder) => folder.endsWith(name)),
    );
    const report = await emulated('EPYC-Rome', svc, 'model', 'check', mended, '--device', 'cpu');
    const note = /^products made exact: .* 1 product was made exact by unsigned weights, at \d+\.\d\d times the time/m;
    assert.match(report.stdout, note);
    const doctor = await emulated('EPYC-Rome', svc, 'doctor', '--model', left, '--device', 'cpu');
    assert.match(
      doctor.stdout,
      /^warning +products +.* not all .* MatMulInteger ".*": the type of its weights is not known; /m,
    );
  });
});

/**
 * Returns a copy of this checkout with the addon for arm64. Programs are copied, because links to them would lead back
 * to the addon of this machine.
 */
function armCheckout(ending: Ending): string {
  const root = temporaryFolder(ending);
  const dist = join(root, 'dist');
  for (const part of ['src', 'test']) cpSync(join(REPOSITORY, 'dist', part), join(dist, part), { recursive: true });
  for (const part of ['node_modules', 'models', 'crates', 'package.json'])
    symlinkSync(join(REPOSITORY, part), join(root, part));
  const addon = join(REPOSITORY, 'dist', 'release', 'engine', 'linux-arm64-gnu', 'svc_engine.node');
  const runtime = join('node_modules', 'onnxruntime-node', 'bin', 'napi-v6', 'linux', 'arm64', 'libonnxruntime.so.1');
  mkdirSync(join(dist, 'native'));
  cpSync(addon, join(dist, 'native', 'svc_engine.node'));
  cpSync(join(REPOSITORY, runtime), join(dist, 'native', 'libonnxruntime.so.1'));
  return root;
}
