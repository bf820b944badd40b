import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { loadEngine } from '../../src/engine/addon.ts';
import { engineOptions, fixture, startEngine, textOf } from './model-folders.ts';
import { THREE_TYPES } from './requests.ts';

const model = fixture('marker');

/** The refusal of a string that the addon's types do not have. */
const UNKNOWN = { code: 'InvalidArg', message: /does not match any variant of enum/ };

suite('a string that the addon does not know', () => {
  for (const [option, value] of [
    ['truncate', 'cut'],
    ['truncate', ''],
    ['stateCachePrecision', 'fp8'],
    ['stateCachePrecision', 'FP16'],
  ] as const) {
    test(`is refused as an option and not taken for a default: ${option} "${value}"`, async () => {
      await assert.rejects(loadEngine({ ...engineOptions({ model }), [option]: value }), UNKNOWN);
    });
  }

  test('is refused as the format of a request, and the engine goes on', async (t) => {
    const engine = await startEngine(t, { model });
    const body = Buffer.from(THREE_TYPES);
    await assert.rejects(engine.decide(body, { format: 'chat' as never }), UNKNOWN);
    assert.ok(textOf(await engine.decide(body, { format: 'systemone' })));
  });
});
