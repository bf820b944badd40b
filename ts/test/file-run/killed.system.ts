import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../temporary-folder.ts';
import { killedRun } from './killed-run.ts';
import { outputFiles } from './run-files.ts';

for (const name of ['rows.jsonl', 'rows.csv', 'rows.parquet']) {
  test(`svc batch that is killed and resumed has the same output as when it is left alone: ${name}`, async (t) => {
    const options = { name, rows: 1200 };
    const alone = temporaryFolder(t);
    const one = await killedRun({ ...options, folder: alone, kills: 0 });
    let [killed, other] = [alone, one];
    // A run may be done before its first kill, if this process had to wait for the processor.
    for (let tries = 0; other.kills === 0 && tries < 10; tries += 1) {
      killed = temporaryFolder(t);
      other = await killedRun({ ...options, folder: killed, kills: 2, runMs: one.runMs });
    }
    assert.match(one.end, /^0 [\s\S]*rows answered/);
    assert.match(other.end, /^0 [\s\S]*rows answered/);
    assert.ok(other.kills > 0);
    assert.deepEqual(outputFiles(killed), outputFiles(alone));
  });
}
