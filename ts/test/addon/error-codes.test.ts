import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineErrorCodes } from '../../src/engine/addon.ts';
import { ERROR_STATUS, STARTUP_CODES } from '../../src/errors.ts';

const SHELL = fileURLToPath(new URL('../../src/', import.meta.url));

/** Returns the source text of the compiled shell, without its list of errors. */
function shellSource(): string {
  const files = readdirSync(SHELL, { recursive: true, encoding: 'utf8' });
  const code = files.filter((file) => file.endsWith('.js') && file !== 'errors.js');
  return code.map((file) => readFileSync(join(SHELL, file), 'utf8')).join('\n');
}

test("every code of the engine is in the shell's list", () => {
  const missing = engineErrorCodes().filter((code) => !Object.hasOwn(ERROR_STATUS, code));
  assert.deepEqual(missing, []);
});

test('every code of the list is given by the engine or by the shell', () => {
  const [engine, shell] = [new Set(engineErrorCodes()), shellSource()];
  const nobodys = Object.keys(ERROR_STATUS).filter((code) => !engine.has(code) && !shell.includes(`'${code}'`));
  assert.deepEqual(nobodys, []);
});

test('every code that ends a start is one of the engine', () => {
  const engine = new Set(engineErrorCodes());
  assert.deepEqual(
    [...STARTUP_CODES].filter((code) => !engine.has(code)),
    [],
  );
});
