import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { createEngine, DecisionError, EngineError, type LocalEngineOptions } from '../../src/in-process/index.ts';
import { answersText, copyOfFixture, fixture, goldenLines } from '../addon/model-folders.ts';
import { differentRequest, manyQuestions, THREE_TYPES } from '../addon/requests.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const MODEL = fixture('shared-state-int8');
const { questions: QUESTIONS, state: STATE } = JSON.parse(THREE_TYPES);

async function start(t: TestContext, options: LocalEngineOptions = {}) {
  const engine = await createEngine({ device: 'cpu', ...options });
  t.after(() => engine.close());
  return engine;
}

/** Returns the reason with which a promise rejects, or undefined if it does not. */
function reason(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

suite('an engine in the process and a server on the same model', () => {
  test('give the same answers, to the last digit', async (t) => {
    const [server, engine] = await Promise.all([LiveServer.start(t, { model: MODEL }), start(t, { model: MODEL })]);
    const bodies = [
      ...goldenLines(MODEL).map(({ body }) => body),
      ...Array.from({ length: 50 }, (_, n) => differentRequest(n)),
    ];
    for (const body of bodies) {
      const [here, there] = [await engine.decideJson(body), await server.answer(body)];
      assert.equal(answersText(here), answersText(there), body);
    }
  });

  test('give the same answer to bytes that are a part of others', async (t) => {
    const engine = await start(t, { model: MODEL });
    const expected = answersText(await engine.decideJson(THREE_TYPES));
    const around = Buffer.from(`xxxxx${THREE_TYPES}yyy`);
    const part = around.subarray(5, around.length - 3);
    // Node allocates short buffers as parts of a large one.
    const [, pooled] = [Buffer.from('{}'), Buffer.from(THREE_TYPES)];
    assert.ok(pooled.byteOffset > 0 && pooled.buffer.byteLength > pooled.length);
    for (const body of [part, pooled, new Uint8Array(part.buffer, part.byteOffset, part.length)]) {
      assert.equal(answersText(await engine.decideJson(body)), expected);
    }
  });

  test('take the same states, and give the same numbers from values as from text', async (t) => {
    const [server, engine] = await Promise.all([LiveServer.start(t, { model: MODEL }), start(t, { model: MODEL })]);
    for (const state of [
      '',
      'ünïcode 日本 \ud83d\ude00 "quoted"\n',
      0,
      -1.5e-7,
      true,
      null,
      [],
      {},
      [1, { a: ['b'] }],
    ]) {
      const { answers } = await engine.decide({ state, questions: QUESTIONS });
      const there = await server.answer(JSON.stringify({ state, questions: QUESTIONS }));
      assert.deepEqual(answers, JSON.parse(there).answers, JSON.stringify(state));
    }
    // A number is read as it is spelled on the wire, so it has the same answers as a text with the same spelling.
    const [text, value] = ['"1.50"', '1.50'].map((state) =>
      engine.decideJson(`{"state":${state},"questions":{"q":{"type":"noul"}}}`),
    );
    assert.equal(answersText((await text) ?? ''), answersText((await value) ?? ''));
  });

  test('refuse with the same words, code and status', async (t) => {
    const settings = { max_questions: 2, max_tokens: 200, truncate: 'error' };
    const server = await LiveServer.start(t, { model: MODEL, settings });
    const engine = await start(t, { model: MODEL, maxQuestions: 2, maxTokens: 200, truncate: 'error' });
    const noul = { type: 'noul' };
    const bodies = [
      ...['', '{', '[]', '\ud800', '{"state":1,"state":2}', `{"state":${'['.repeat(70)}${']'.repeat(70)}}`],
      ...[
        { questions: { q: noul } },
        { state: 1 },
        { state: 1, questions: [] },
        { state: 1, questions: { q: { type: 'multi' } } },
        { state: 1, questions: { 'a\nb': { type: 'choice', criteria: { one: '' } } } },
        { state: 1, questions: { q: { type: 'score', criteria: {} } } },
        { state: 1, questions: { a: noul, b: noul, c: noul } },
        { state: 'many words '.repeat(500), questions: { a: noul } },
        { state: 1, questions: { a: { type: 'noul', instructions: 'many words '.repeat(80) } } },
      ].map((body) => JSON.stringify(body)),
    ];
    for (const body of bodies) {
      const { status, text } = await server.decide(body, { headers: { accept: 'application/json' } });
      const error = await reason(engine.decideJson(body));
      assert.ok(error instanceof DecisionError, `${body}: ${text}`);
      const { error_type: code, message } = JSON.parse(text).detail;
      assert.deepEqual([error.code, error.status, error.message], [code, status, message]);
      assert.equal(error.retryAfterSeconds, undefined);
    }
  });
});

/** Asks until the engine does not refuse the call at once. Returns the reason of the call that is taken in. */
async function takenIn(ask: () => Promise<unknown>): Promise<{ readonly outcome: Promise<unknown> }> {
  for (;;) {
    let isOver = false;
    const outcome = reason(ask()).finally(() => {
      isOver = true;
    });
    await sleep(20);
    // Between a timer and an immediate, the event loop takes in what the engine has answered.
    await setImmediate();
    if (!isOver) return { outcome };
    assert.equal(((await outcome) as DecisionError).code, 'queue_full');
  }
}

suite('an abort', () => {
  const long = JSON.parse(manyQuestions(1000));

  test('before the call keeps it from the engine', async (t) => {
    const engine = await start(t, { model: MODEL });
    const given = new Error('not wanted any more');
    const asked = engine.decide({ state: STATE, questions: QUESTIONS }, { signal: AbortSignal.abort(given) });
    assert.equal(await reason(asked), given);
    const unnamed = engine.decideJson(THREE_TYPES, { signal: AbortSignal.abort() });
    assert.equal(((await reason(unnamed)) as Error).name, 'AbortError');
  });

  test('in the queue and during a run ends the call with its reason, and the others are answered', async (t) => {
    const engine = await start(t, { threads: 1, maxQueue: 1 });
    const began = performance.now();
    await engine.decide(long);
    const undisturbedMs = performance.now() - began;

    const [running, waiting] = [new AbortController(), new AbortController()];
    const first = reason(engine.decide(long, { signal: running.signal }));
    // A call counts as waiting until it is on the model, and one may wait: the second is taken in when the first runs.
    const second = await takenIn(() => engine.decideJson(THREE_TYPES, { signal: waiting.signal }));
    const aborted = performance.now();
    waiting.abort(new Error('waiting'));
    assert.equal(((await second.outcome) as Error).message, 'waiting');
    const third = engine.decideJson(THREE_TYPES);
    running.abort(new Error('running'));
    assert.equal(((await first) as Error).message, 'running');
    assert.ok(answersText(await third));
    const tookMs = performance.now() - aborted;
    assert.ok(tookMs < undisturbedMs / 2, `${tookMs} ms, undisturbed ${undisturbedMs} ms`);
  });

  test('by a time-out has the name that Node gives it', async (t) => {
    const engine = await start(t, { threads: 1 });
    const error = await reason(engine.decide(long, { signal: AbortSignal.timeout(30) }));
    assert.equal((error as Error).name, 'TimeoutError');
  });

  test('after the answer changes nothing', async (t) => {
    const engine = await start(t, { model: MODEL });
    const controller = new AbortController();
    const before = answersText(await engine.decideJson(THREE_TYPES, { signal: controller.signal }));
    controller.abort();
    assert.equal(answersText(await engine.decideJson(THREE_TYPES)), before);
  });
});

suite('a full queue', () => {
  test('refuses with 503 and says when to come again', async (t) => {
    const engine = await start(t, { threads: 1, maxQueue: 1 });
    const end = new AbortController();
    const calls = [1, 2, 3, 4].map(() =>
      engine.decideJson(manyQuestions(1000), { signal: end.signal }).catch((error) => error),
    );
    const refused = await Promise.race(calls);
    end.abort();
    assert.ok(refused instanceof DecisionError);
    assert.deepEqual([refused.code, refused.status], ['queue_full', 503]);
    assert.ok((refused.retryAfterSeconds ?? 0) >= 1);
    await Promise.all(calls);
  });
});

suite('a DecisionError', () => {
  for (const [code, retryAfterSeconds, expected] of [
    ['queue_full', 2.1, 3],
    ['queue_full', 0, 1],
    ['queue_full', undefined, 1],
    ['panicked', undefined, undefined],
    ['model_failed', 5, undefined],
    ['text_too_long', undefined, undefined],
    ['a code of a later version', undefined, undefined],
  ] as const) {
    test(`of "${code}" with ${retryAfterSeconds} s says when to ask again: ${expected}`, () => {
      assert.equal(new DecisionError({ code, message: 'm', retryAfterSeconds }).retryAfterSeconds, expected);
    });
  }
});

test('a DecisionError is written as JSON with its message', () => {
  const error = new DecisionError({ code: 'queue_full', message: 'the queue is full', retryAfterSeconds: 2 });
  const fields = { name: 'DecisionError', code: 'queue_full', status: 503, message: 'the queue is full' };
  assert.deepEqual(JSON.parse(JSON.stringify(error)), { ...fields, retryAfterSeconds: 2 });
});

suite('close', () => {
  test('answers what was asked before, refuses what comes later, and may be called again', async (t) => {
    const engine = await start(t, { model: MODEL });
    const asked = [1, 2, 3].map(() => engine.decideJson(THREE_TYPES));
    await engine.close();
    assert.equal(new Set((await Promise.all(asked)).map(answersText)).size, 1);
    const error = await reason(engine.decide({ state: STATE, questions: QUESTIONS }));
    assert.ok(error instanceof DecisionError);
    assert.deepEqual(
      [error.code, error.status, error.message, error.retryAfterSeconds],
      ['closing', 503, 'the engine is closing', 1],
    );
    await engine.close();
  });

  test('is what `await using` calls', async () => {
    const engine = await createEngine({ model: MODEL, device: 'cpu' });
    await engine[Symbol.asyncDispose]();
    assert.ok((await reason(engine.decideJson(THREE_TYPES))) instanceof DecisionError);
  });
});

suite('several engines', () => {
  test('on several models, all at work, answer as each of them alone', async (t) => {
    const models = (['marker', 'shared-state', 'shared-state-int8'] as const).map(fixture);
    const bodies = Array.from({ length: 30 }, (_, n) => differentRequest(n));
    const alone: string[][] = [];
    for (const model of models) {
      const engine = await start(t, { model });
      alone.push((await Promise.all(bodies.map((body) => engine.decideJson(body)))).map(answersText));
      await engine.close();
    }
    const engines = await Promise.all(models.map((model) => start(t, { model })));
    const together = engines.map((engine) => Promise.all(bodies.map((body) => engine.decideJson(body))));
    assert.deepEqual(
      (await Promise.all(together)).map((texts) => texts.map(answersText)),
      alone,
    );
  });
});

suite('createEngine', () => {
  test('loads the embedded model when no folder is named, and tells what it is', async (t) => {
    const { model } = await start(t, { threads: 2 });
    assert.deepEqual([model.name, model.device, model.threads], ['svc-small', 'cpu', 2]);
  });

  test('takes a folder relative to the working folder', async (t) => {
    const folder = join(temporaryFolder(t), 'a model');
    mkdirSync(folder);
    for (const name of readdirSync(MODEL)) copyFileSync(join(MODEL, name), join(folder, name));
    const { model } = await start(t, { model: relative(process.cwd(), folder) });
    assert.equal(model.name, 'tiny-shared-state-int8');
  });

  test('says in one line why a model cannot be loaded', async (t) => {
    const model = join(temporaryFolder(t), 'nowhere');
    const error = await reason(createEngine({ model }));
    assert.ok(error instanceof EngineError);
    assert.deepEqual([error.code, error.message], ['bad_model', `${model}: no such model folder`]);
  });

  for (const [options, message] of [
    [{ threads: -1 }, 'threads: must be a whole number from 0 to 256'],
    [{ threads: '2' }, 'threads: must be a whole number from 0 to 256'],
    [{ device: 'tpu' }, 'device: must be one of auto, cpu, gpu, cuda, coreml, directml'],
    [{ model: 7 }, 'model: must be a string'],
    [{ thread: 2 }, 'thread: no such option; is threads meant?'],
    [{ max_queue: 2 }, 'max_queue: no such option; is maxQueue meant?'],
    [{ nothing: 2 }, 'nothing: no such option'],
    ['/models/mine', "options: must be an object, such as { model: 'folder', threads: 2 }"],
    [null, "options: must be an object, such as { model: 'folder', threads: 2 }"],
    [[], "options: must be an object, such as { model: 'folder', threads: 2 }"],
    [
      { model: 'https://models.example/mine.zip' },
      'model: must be a model folder; "https://models.example/mine.zip" is one that only svc serve can take',
    ],
    [{ model: 'hf:org/name' }, 'model: must be a model folder; "hf:org/name" is one that only svc serve can take'],
    [{ model: 'mine.tar.gz' }, 'model: must be a model folder; "mine.tar.gz" is one that only svc serve can take'],
  ] as const) {
    test(`refuses ${JSON.stringify(options)}`, async () => {
      await assert.rejects(createEngine(options as unknown as LocalEngineOptions), new TypeError(message));
    });
  }
});

suite('a call with an argument that is none', () => {
  // A program in JavaScript has no types that would keep it from these.
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  const request = 'request: must be an object with a state and questions';
  const body = 'body: must be a string or a Uint8Array, the JSON text of a request';
  const options = 'options: must be an object, such as { signal }';
  const signal = 'options.signal: must be an AbortSignal';
  for (const [method, args, message] of [
    ['decide', [], request],
    ['decide', [null], request],
    ['decide', ['text'], request],
    ['decide', [{ state: 1n, questions: QUESTIONS }], /^request: cannot be written as JSON: .*BigInt/],
    ['decide', [{ state: cyclic, questions: QUESTIONS }], /^request: cannot be written as JSON: .*circular/i],
    ['decide', [{ state: STATE, questions: QUESTIONS }, 'x'], options],
    ['decide', [{ state: STATE, questions: QUESTIONS }, null], options],
    ['decide', [{ state: STATE, questions: QUESTIONS }, { signal: {} }], signal],
    ['decide', [{ state: STATE, questions: QUESTIONS }, { signal: null }], signal],
    ['decideJson', [], body],
    ['decideJson', [{ state: 'x' }], body],
    ['decideJson', [[123]], body],
    ['decideJson', ['{}', 7], options],
    ['swap', [], 'model: must be a string, the path of a model folder'],
    [
      'swap',
      ['s3://bucket/mine'],
      'model: must be a model folder; "s3://bucket/mine" is one that only svc serve can take',
    ],
  ] as const) {
    test(`${method}(${inspect(args).slice(2, 60)} is a TypeError that names it`, async (t) => {
      const engine = await start(t, { model: MODEL });
      const untyped = engine as unknown as Record<string, (...args: readonly unknown[]) => Promise<unknown>>;
      const error = await reason(untyped[method]?.(...args) as Promise<unknown>);
      assert.ok(error instanceof TypeError, String(error));
      if (typeof message === 'string') assert.equal(error.message, message);
      else assert.match(error.message, message);
    });
  }

  test('takes the signal of another realm', async (t) => {
    const engine = await start(t, { model: MODEL });
    const { signal: own } = new AbortController();
    const foreign = {
      aborted: false,
      throwIfAborted: () => {},
      addEventListener: own.addEventListener.bind(own),
      removeEventListener: own.removeEventListener.bind(own),
    } as unknown as AbortSignal;
    assert.ok(answersText(await engine.decideJson(THREE_TYPES, { signal: foreign })));
  });
});

suite('a swap of the model', () => {
  test('is for the calls that come after it', async (t) => {
    const [engine, other] = await Promise.all([start(t, { model: MODEL }), start(t, { model: fixture('marker') })]);
    const [before, after] = await Promise.all([engine.decideJson(THREE_TYPES), other.decideJson(THREE_TYPES)]);
    const swapped = engine.swap(relative(process.cwd(), fixture('marker')));
    const during = engine.decideJson(THREE_TYPES);
    assert.deepEqual(await swapped, engine.model);
    assert.equal(engine.model.dir, fixture('marker'));
    assert.equal(answersText(await during), answersText(before));
    assert.equal(answersText(await engine.decideJson(THREE_TYPES)), answersText(after));
  });

  test('to a folder that is no model is an EngineError, and changes nothing', async (t) => {
    const engine = await start(t, { model: MODEL });
    const [model, before] = [engine.model, await engine.decideJson(THREE_TYPES)];
    const error = await reason(engine.swap(temporaryFolder(t)));
    assert.ok(error instanceof EngineError);
    assert.equal(error.code, 'bad_model');
    assert.deepEqual(engine.model, model);
    assert.equal(answersText(await engine.decideJson(THREE_TYPES)), answersText(before));
  });

  test('to a folder that gives other answers than its references changes nothing, as a reload of a server', async (t) => {
    const engine = await start(t, { model: MODEL });
    const before = await engine.decideJson(THREE_TYPES);
    const wrong = copyOfFixture(t, 'marker');
    const file = join(wrong, 'golden.jsonl');
    const [first = ''] = readFileSync(file, 'utf8').split('\n');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(first), input_tokens: 1 }));
    const error = await reason(engine.swap(wrong));
    assert.ok(error instanceof EngineError);
    assert.equal(error.code, 'load_failed');
    assert.match(error.message, /golden\.jsonl: line 1: \d+ tokens, the reference has 1$/);
    assert.equal(answersText(await engine.decideJson(THREE_TYPES)), answersText(before));
    // Without references nothing is asked of a folder but the trial decision.
    rmSync(file);
    assert.equal((await engine.swap(wrong)).dir, wrong);
  });

  test('is done after the swaps that were asked for before it', async (t) => {
    const engine = await start(t, { model: MODEL });
    const plain = copyOfFixture(t, 'shared-state');
    rmSync(join(plain, 'golden.jsonl'), { force: true });
    // The first has references to give, so it takes longer than the second.
    const swaps = [engine.swap(fixture('marker')), engine.swap(plain)];
    const dirs = (await Promise.all(swaps)).map(({ dir }) => dir);
    assert.deepEqual([dirs, engine.model.dir], [[fixture('marker'), plain], plain]);
  });
});
