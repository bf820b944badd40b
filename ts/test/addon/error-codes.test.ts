import assert from 'node:assert/strict';
import { test } from 'node:test';
import { engineErrorCodes } from '../../src/engine.ts';
import { ERROR_STATUS, STARTUP_CODES } from '../../src/errors.ts';

/** The codes that the shell gives of its own accord; `cancelled` is both its and the engine's. */
const SHELL_CODES = [
  'bad_request',
  'bad_body',
  'unauthorized',
  'bad_host',
  'cross_site',
  'not_found',
  'method_not_allowed',
  'headers_timeout',
  'body_timeout',
  'body_too_large',
  'unsupported_encoding',
  'headers_too_large',
  'loading',
  'load_failed',
  'draining',
  'internal',
];

test("every code of the engine is in the shell's list, and all others are the shell's own", () => {
  const shells = new Set(SHELL_CODES);
  const engines = Object.keys(ERROR_STATUS).filter((code) => !shells.has(code));
  assert.deepEqual(engineErrorCodes().toSorted(), engines.toSorted());
});

test('every code that ends a start is one of the engine', () => {
  assert.deepEqual(
    [...STARTUP_CODES].filter((code) => !engineErrorCodes().includes(code)),
    [],
  );
});
