import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { engineDecider } from '../../src/file-run/here.ts';
import { Refusal } from '../../src/refusal.ts';
import { loadConfig } from '../../src/settings/config.ts';
import { QUESTIONS } from './fake-server.ts';

const { config } = loadConfig({ env: {}, cwd: '/' });
const row = { stateJson: '"Where is my money?"', questionsJson: QUESTIONS };

suite('the engine of a run', () => {
  test('answers a row, and has a problem with one that it cannot take', async () => {
    const decider = await engineDecider(config, new AbortController().signal);
    const { body = '' } = (await decider.decide(row)) as { body?: string };
    const { type, probabilities } = JSON.parse(body).answers.q;
    assert.deepEqual([type, ...Object.keys(probabilities)], ['noul', 'false', 'true']);
    const { problem } = await decider.decide({ ...row, questionsJson: '{"q":{"type":"choice"}}' });
    assert.match(problem?.message ?? '', /criteria/);
    await decider.close();
  });

  test('that is closed ends the run, and no row is bad because of it', async () => {
    const decider = await engineDecider(config, new AbortController().signal);
    await decider.close();
    await assert.rejects(decider.decide(row), Refusal);
  });

  test('that is stopped ends the run with the reason', async () => {
    const stop = new AbortController();
    const decider = await engineDecider(config, stop.signal);
    stop.abort(new Error('stopped'));
    await assert.rejects(decider.decide(row), /^Error: stopped$/);
    await decider.close();
  });
});
