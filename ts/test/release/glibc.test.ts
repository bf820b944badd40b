import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';

function read(...files: string[]): Promise<Ended> {
  return runCommand(process.execPath, { args: [join('scripts', 'release', 'glibc.mjs'), ...files], cwd: REPOSITORY });
}

const SECTION_BYTES = 64;
const VERNEED_TYPE = 0x6ffffffe;

function sectionHeader(type: number, { offset = 0, link = 0, count = 0 } = {}): Buffer {
  const header = Buffer.alloc(SECTION_BYTES);
  header.writeUInt32LE(type, 4);
  header.writeBigUInt64LE(BigInt(offset), 24);
  header.writeUInt32LE(link, 40);
  header.writeUInt32LE(count, 44);
  return header;
}

/** Returns the bytes of a table of names, and a function that returns the offset of a name in it. */
function stringTable(names: readonly string[]): { readonly bytes: Buffer; readonly at: (name: string) => number } {
  const bytes = Buffer.from(`\0${names.join('\0')}\0`);
  return { bytes, at: (name) => bytes.indexOf(`\0${name}\0`) + 1 };
}

function words(...values: readonly (readonly [bits: 16 | 32, value: number])[]): Buffer {
  return Buffer.concat(
    values.map(([bits, value]) => {
      const bytes = Buffer.alloc(bits / 8);
      if (bits === 16) bytes.writeUInt16LE(value);
      else bytes.writeUInt32LE(value);
      return bytes;
    }),
  );
}

/** Returns an ELF file that asks for these versions, by library. */
function elf(libraries: Readonly<Record<string, readonly string[]>>): Buffer {
  const entries = Object.entries(libraries);
  const names = stringTable(entries.flat(2));
  const needs = entries.map(([library, versions], index) => {
    const bytes = 16 + 16 * versions.length;
    const next = index === entries.length - 1 ? 0 : bytes;
    const head = words([16, 1], [16, versions.length], [32, names.at(library)], [32, 16], [32, next]);
    const auxiliary = versions.map((version, at) =>
      words([32, 0], [16, 0], [16, 0], [32, names.at(version)], [32, at === versions.length - 1 ? 0 : 16]),
    );
    return Buffer.concat([head, ...auxiliary]);
  });
  const verneed = Buffer.concat(needs);
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02\x01', 'latin1');
  header.writeBigUInt64LE(BigInt(64 + names.bytes.length + verneed.length), 40);
  header.writeUInt16LE(SECTION_BYTES, 58);
  header.writeUInt16LE(3, 60);
  const sections = [
    sectionHeader(0),
    sectionHeader(3, { offset: 64 }),
    sectionHeader(VERNEED_TYPE, { offset: 64 + names.bytes.length, link: 1, count: entries.length }),
  ];
  return Buffer.concat([header, names.bytes, verneed, ...sections]);
}

function elfFile(t: TestContext, libraries: Parameters<typeof elf>[0]): string {
  const file = join(temporaryFolder(t), 'addon.node');
  writeFileSync(file, elf(libraries));
  return file;
}

suite('the versions of the system that a file asks for', () => {
  test('are told when they are all there on the oldest system', async (t) => {
    const file = elfFile(t, {
      'libm.so.6': ['GLIBC_2.27'],
      'libc.so.6': ['GLIBC_2.2.5', 'GLIBC_2.28', 'GLIBC_2.9'],
      'libgcc_s.so.1': ['GCC_4.2.0'],
    });
    assert.deepEqual(await read(file), {
      code: 0,
      signal: null,
      stdout: `glibc: ${file} needs GLIBC_2.28\n`,
      stderr: '',
    });
  });

  test('are told when there is none', async (t) => {
    const file = elfFile(t, {});
    assert.equal((await read(file)).stdout, `glibc: ${file} needs none\n`);
  });

  for (const [library, version] of [
    ['libc.so.6', 'GLIBC_2.29'],
    ['libc.so.6', 'GLIBC_ABI_DT_RELR'],
    ['libc.so.6', 'GLIBC_PRIVATE'],
    ['libstdc++.so.6', 'GLIBCXX_3.4.26'],
    ['libatomic.so.1', 'LIBATOMIC_1.0'],
  ] as const) {
    test(`are refused when one is not: ${version}`, async (t) => {
      const file = elfFile(t, { 'libc.so.6': ['GLIBC_2.2.5'], ...{ [library]: [version] } });
      const { code, stderr } = await read(file);
      assert.equal(code, 1);
      assert.equal(stderr, `release: ${file} does not run on every system with glibc 2.28: it needs ${version}\n`);
    });
  }

  test('are not looked for in a file of another kind', async () => {
    const file = join(REPOSITORY, 'package.json');
    const { code, stderr } = await read(file);
    assert.deepEqual([code, stderr], [1, `release: ${file}: it is no 64-bit ELF file\n`]);
  });

  for (const cpu of ['x64', 'arm64']) {
    test(`are old enough in ONNX Runtime for ${cpu}`, async () => {
      const folder = join(REPOSITORY, 'node_modules', 'onnxruntime-node', 'bin', 'napi-v6', 'linux', cpu);
      const { code, stdout } = await read(join(folder, 'libonnxruntime.so.1'));
      assert.equal(code, 0);
      assert.match(stdout, /needs GLIBC_2\.28\n$/);
    });
  }
});
