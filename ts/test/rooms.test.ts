/** The rooms of ARCHITECTURE.md: its table and the imports of the code say the same. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SHELL = 'ts/src/';
const ENGINE = 'crates/engine/src/';
const MAX_ROOT_FILES = 8;
/** The files of the engine that are in no room: the root of the crate, and the files of tests. */
const NO_ROOM = ['lib.rs', 'rig.rs', 'tests.rs'];

/** One row of the table. */
interface Room {
  /** The short name by which other rows name the room, such as `model/`. */
  readonly name: string;
  /** The files and folders of the room, from the root of the repository on. */
  readonly paths: readonly string[];
  /** The short names of the rooms that this one may use. */
  readonly mayUse: readonly string[];
}

/** An import that leaves its room. */
interface Arrow {
  readonly from: string;
  readonly to: string;
  /** The file that imports, and the file that it imports. */
  readonly files: readonly [string, string];
}

function namesIn(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
}

/** Returns the rows of the table that are like `rows`, from the top down; `root` is the folder of their code. */
function readRooms(rows: RegExp, root: string): Room[] {
  const lines = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8').split('\n');
  return lines
    .filter((line) => rows.test(line))
    .map((row) => {
      const [, place, , mayUse] = row.split('|');
      const paths = namesIn(place).map((name) => (/^(?:ts|crates)\//.test(name) ? name : root + name));
      return { name: paths[0]?.replace(root, '') ?? '', paths, mayUse: namesIn(mayUse) };
    });
}

function filesIn(folder: string, ending: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith(ending)).map((name) => folder + name.replaceAll('\\', '/'));
}

/** Returns the files that a file imports, its types and what it loads later among them. */
function typeScriptImports(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const specifiers = text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g);
  return [...specifiers].map(([, specifier = '']) => posix.join(posix.dirname(file), specifier));
}

/**
 * Returns the files of the modules that a file names by `crate` or `super`, its tests apart. Modules that are named
 * together, as in `crate::{a, b}`, are not told apart: they count as one file, which is in no room.
 */
function rustImports(file: string): string[] {
  const [code = ''] = readFileSync(join(ROOT, file), 'utf8').split('#[cfg(test)]\nmod tests {');
  const depth = file.slice(ENGINE.length).replace('/mod.rs', '').split('/').length;
  const paths = new RegExp(String.raw`\b(?:crate::|(?:super::){${depth}})(\w+|\{|\*)`, 'g');
  const named = code.replaceAll(/^\s*\/\/.*$/gm, '').matchAll(paths);
  const modules = [...named].map(([, name = '']) => ENGINE + (name === 'Error' ? 'error' : name));
  return modules.map((path) => [`${path}.rs`, `${path}/mod.rs`].find((each) => ENGINE_FILES.includes(each)) ?? path);
}

const ENGINE_FILES = filesIn(ENGINE, '.rs').filter((file) => !NO_ROOM.includes(posix.basename(file)));

/** The part of the code that is written in one language. */
interface Part {
  readonly rooms: readonly Room[];
  readonly files: readonly string[];
  readonly importsOf: (file: string) => readonly string[];
  /** The room that every other may use, although its row does not say so. */
  readonly ground?: string | undefined;
}

function roomOf({ rooms }: Part, file: string): string {
  const holds = (path: string) => (path.endsWith('/') ? file.startsWith(path) : file === path);
  return rooms.find(({ paths }) => paths.some(holds))?.name ?? 'no room';
}

function arrowsOf(part: Part): Arrow[] {
  const imports = part.files.flatMap((file) => part.importsOf(file).map((target) => [file, target] as const));
  const arrows = imports.map((files) => ({ from: roomOf(part, files[0]), to: roomOf(part, files[1]), files }));
  return arrows.filter(({ from, to }) => from !== to && to !== part.ground);
}

const SHELL_PART: Part = {
  rooms: readRooms(/^\| `ts\//, SHELL),
  files: [...filesIn(SHELL, '.ts'), ...filesIn('ts/browser/', '.ts')],
  importsOf: typeScriptImports,
};

const ENGINE_ROOMS = readRooms(/^\| `(?!ts\/)/, ENGINE);
const ENGINE_PART: Part = {
  rooms: ENGINE_ROOMS,
  files: ENGINE_FILES,
  importsOf: rustImports,
  ground: ENGINE_ROOMS.at(-1)?.name,
};

const told = ({ from, to, files: [file, target] }: Arrow) => `${from} -> ${to}: ${file} imports ${target}`;

for (const [title, part] of [
  ['the shell and the pages', SHELL_PART],
  ['the engine', ENGINE_PART],
] as const) {
  const { rooms, files } = part;
  const arrows = arrowsOf(part);
  const used = new Set(arrows.map(({ from, to }) => `${from} -> ${to}`));
  const allowed = rooms.flatMap(({ name, mayUse }) => mayUse.map((other) => `${name} -> ${other}`));

  suite(`the rooms of ${title} in ARCHITECTURE.md`, () => {
    test('hold every file', () => {
      assert.ok(files.length > 60 && rooms.length > 10 && arrows.length > 60);
      const homeless = files.filter((file) => roomOf(part, file) === 'no room');
      assert.deepEqual(homeless, []);
    });

    test('may use every room that their files import', () => {
      const forbidden = arrows.filter(({ from, to }) => !allowed.includes(`${from} -> ${to}`));
      assert.deepEqual(forbidden.map(told), []);
    });

    test('may use no room that none of their files imports', () => {
      const unused = allowed.filter((arrow) => !used.has(arrow));
      assert.deepEqual(unused, []);
    });

    test('use only rooms that stand further down in the table', () => {
      const place = new Map(rooms.map(({ name }, index) => [name, index]));
      const upward = arrows.filter(({ from, to }) => (place.get(from) ?? 0) > (place.get(to) ?? 0));
      assert.deepEqual(upward.map(told), []);
    });

    test('never use each other', () => {
      const mutual = arrows.filter(({ from, to }) => used.has(`${to} -> ${from}`));
      assert.deepEqual(mutual.map(told), []);
    });
  });
}

test('few files stand at the root of the shell', () => {
  const atRoot = SHELL_PART.files.filter((file) => posix.dirname(file) + posix.sep === SHELL);
  assert.ok(atRoot.length <= MAX_ROOT_FILES, atRoot.join(', '));
});
