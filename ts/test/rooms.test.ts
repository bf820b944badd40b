/** The rooms of ARCHITECTURE.md: its table and the imports of the code say the same. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SHELL = 'ts/src/';
const MAX_ROOT_FILES = 8;

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

/** Returns the rows of the table whose rooms are TypeScript, from the top down. */
function readRooms(): Room[] {
  const rows = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8').match(/^\| `ts\/.*\|$/gm) ?? [];
  return rows.map((row) => {
    const [, place, , mayUse] = row.split('|');
    const paths = namesIn(place).map((name) => (name.startsWith('ts/') ? name : SHELL + name));
    return { name: paths.at(-1)?.replace(SHELL, '') ?? '', paths, mayUse: namesIn(mayUse) };
  });
}

function filesIn(folder: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => folder + name.replaceAll('\\', '/'));
}

/** Returns the files that a file imports, its types and what it loads later among them. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const specifiers = text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g);
  return [...specifiers].map(([, specifier = '']) => posix.join(posix.dirname(file), specifier));
}

const ROOMS = readRooms();
const FILES = [...filesIn(SHELL), ...filesIn('ts/browser/')];

function roomOf(file: string): string {
  const holds = (path: string) => (path.endsWith('/') ? file.startsWith(path) : file === path);
  return ROOMS.find(({ paths }) => paths.some(holds))?.name ?? 'no room';
}

function readArrows(): Arrow[] {
  const imports = FILES.flatMap((file) => importsOf(file).map((target) => [file, target] as const));
  const arrows = imports.map((files) => ({ from: roomOf(files[0]), to: roomOf(files[1]), files }));
  return arrows.filter(({ from, to }) => from !== to);
}

const ARROWS = readArrows();
const told = ({ from, to, files: [file, target] }: Arrow) => `${from} -> ${to}: ${file} imports ${target}`;

suite('the rooms of ARCHITECTURE.md', () => {
  test('hold every file of the shell and of the pages', () => {
    assert.ok(FILES.length > 100 && ROOMS.length > 10 && ARROWS.length > 100);
    const homeless = FILES.filter((file) => roomOf(file) === 'no room');
    assert.deepEqual(homeless, []);
  });

  test('leave few files at the root of the shell', () => {
    const atRoot = FILES.filter((file) => posix.dirname(file) + posix.sep === SHELL);
    assert.ok(atRoot.length <= MAX_ROOT_FILES, atRoot.join(', '));
  });

  test('may use every room that their files import', () => {
    const mayUse = new Set(ROOMS.flatMap(({ name, mayUse }) => mayUse.map((used) => `${name} -> ${used}`)));
    const forbidden = ARROWS.filter(({ from, to }) => !mayUse.has(`${from} -> ${to}`));
    assert.deepEqual(forbidden.map(told), []);
  });

  test('may use no room that none of their files imports', () => {
    const used = new Set(ARROWS.map(({ from, to }) => `${from} -> ${to}`));
    const allowed = ROOMS.flatMap(({ name, mayUse }) => mayUse.map((other) => `${name} -> ${other}`));
    const unused = allowed.filter((arrow) => !used.has(arrow));
    assert.deepEqual(unused, []);
  });

  test('use only rooms that stand further down in the table', () => {
    const place = new Map(ROOMS.map(({ name }, index) => [name, index]));
    const upward = ARROWS.filter(({ from, to }) => (place.get(from) ?? 0) > (place.get(to) ?? 0));
    assert.deepEqual(upward.map(told), []);
  });

  test('never use each other', () => {
    const used = new Set(ARROWS.map(({ from, to }) => `${from} -> ${to}`));
    const mutual = ARROWS.filter(({ from, to }) => used.has(`${to} -> ${from}`));
    assert.deepEqual(mutual.map(told), []);
  });
});
