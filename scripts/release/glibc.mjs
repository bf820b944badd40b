/**
 * Reads which versions of the system's libraries an ELF file requires: `node scripts/release/glibc.mjs FILE...` prints
 * the newest glibc that each file needs, and fails if one does not run with the oldest supported glibc. The format is
 * that of the System V ABI and, for the versions, of the Linux Standard Base, "Symbol Versioning".
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import process from 'node:process';
import { asProgram } from './command.mjs';
import { GLIBC } from './platforms.mjs';

/** The type of the section with the required versions, `SHT_GNU_verneed`. */
const VERSIONS_NEEDED = 0x6ffffffe;

/** Returns the sections of a 64-bit little-endian ELF file, as `{type, offset, link, count}`. */
function sections(bytes) {
  const isElf = bytes.subarray(0, 6).equals(Buffer.from('\x7fELF\x02\x01', 'latin1'));
  if (!isElf) throw new Error('it is no 64-bit ELF file');
  const start = Number(bytes.readBigUInt64LE(40));
  const size = bytes.readUInt16LE(58);
  return Array.from({ length: bytes.readUInt16LE(60) }, (_, at) => {
    const header = bytes.subarray(start + at * size, start + (at + 1) * size);
    const offset = Number(header.readBigUInt64LE(24));
    return { type: header.readUInt32LE(4), offset, link: header.readUInt32LE(40), count: header.readUInt32LE(44) };
  });
}

function textAt(bytes, offset) {
  return bytes.toString('latin1', offset, bytes.indexOf(0, offset));
}

/** Returns the versions that a file requires, by library: `{ 'libc.so.6': ['GLIBC_2.2.5', ...] }`. */
export function neededVersions(bytes) {
  const all = sections(bytes);
  const needed = all.find(({ type }) => type === VERSIONS_NEEDED);
  if (!needed) return {};
  const names = all[needed.link].offset;
  const libraries = {};
  // A library's entry has the number of versions at 2, the name at 4, the offset of the versions at 8, and the offset
  // of the next entry at 12.
  for (let library = needed.offset, left = needed.count; left > 0; left -= 1) {
    const versions = [];
    // A version's entry has the name at 8 and the offset of the next entry at 12.
    let version = library + bytes.readUInt32LE(library + 8);
    for (let more = bytes.readUInt16LE(library + 2); more > 0; more -= 1) {
      versions.push(textAt(bytes, names + bytes.readUInt32LE(version + 8)));
      version += bytes.readUInt32LE(version + 12);
    }
    libraries[textAt(bytes, names + bytes.readUInt32LE(library + 4))] = versions;
    library += bytes.readUInt32LE(library + 12);
  }
  return libraries;
}

/** The newest versions on a system with the oldest supported glibc; such systems come with the libraries of GCC 8. */
const NEWEST = { GLIBC, GLIBCXX: '3.4.25', CXXABI: '1.3.11', GCC: '8.0.0' };

/**
 * Whether the oldest supported system has a version such as `GLIBC_2.28`; a version without a number counts as newer.
 */
function isOldEnough(version) {
  const [, name, number] = /^([A-Z]+)_(\d[\d.]*)$/.exec(version) ?? [];
  return name in NEWEST && compareVersions(number, NEWEST[name]) <= 0;
}

function compareVersions(left, right) {
  return left.localeCompare(right, 'en', { numeric: true });
}

function versionsOf(file) {
  try {
    return neededVersions(readFileSync(file));
  } catch (error) {
    throw new Error(`${file}: ${error.message}`);
  }
}

/** Throws unless the file runs with the oldest supported glibc. */
export function requireOldGlibc(file) {
  const versions = [...new Set(Object.values(versionsOf(file)).flat())].sort(compareVersions);
  const tooNew = versions.filter((version) => !isOldEnough(version));
  if (tooNew.length > 0)
    throw new Error(`${file} does not run on every system with glibc ${GLIBC}: it needs ${tooNew.join(', ')}`);
  const newest = versions.findLast((version) => version.startsWith('GLIBC_')) ?? 'none';
  process.stdout.write(`glibc: ${file} needs ${newest}\n`);
}

const files = process.argv.slice(2).map((file) => resolve(file));
await asProgram(import.meta.url, () => files.forEach(requireOldGlibc));
