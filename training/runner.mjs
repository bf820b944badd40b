/**
 * Runs a graph with onnxruntime-node on this processor: `node runner.mjs GRAPH INPUTS OUTPUTS`, as a `--runner` of
 * `python -m training settle`. INPUTS and OUTPUTS hold the tensors of each run in the format of `write_tensors` in
 * processors.py. `onnxruntime-node` is taken from the folder RUNTIME_ROOT, or else from this one.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';

const ort = createRequire(process.env.RUNTIME_ROOT ? join(process.env.RUNTIME_ROOT, '_') : import.meta.url)(
  'onnxruntime-node',
);

const ARRAYS = { float32: Float32Array, int64: BigInt64Array, uint8: Uint8Array };

function* readRuns(path) {
  const bytes = readFileSync(path);
  let at = bytes.indexOf(10) + 1;
  for (const shapes of JSON.parse(bytes.subarray(0, at).toString('utf8'))) {
    const run = {};
    for (const [name, { type, dims }] of Object.entries(shapes)) {
      const end = at + dims.reduce((product, size) => product * size, ARRAYS[type].BYTES_PER_ELEMENT);
      // The bytes are copied, because views of numbers have to begin at a multiple of their size.
      run[name] = new ort.Tensor(type, new ARRAYS[type](Uint8Array.from(bytes.subarray(at, end)).buffer), dims);
      at = end;
    }
    yield run;
  }
}

const [graph, inputs, outputs] = process.argv.slice(2);
const session = await ort.InferenceSession.create(graph, {
  intraOpNumThreads: 1,
  enableMemPattern: false,
  logSeverityLevel: 3,
});
const heads = [];
const parts = [];
for (const run of readRuns(inputs)) {
  const found = Object.entries(await session.run(run));
  heads.push(Object.fromEntries(found.map(([name, { type, dims }]) => [name, { type, dims }])));
  parts.push(...found.map(([, { data }]) => Buffer.from(data.buffer, data.byteOffset, data.byteLength)));
}
writeFileSync(outputs, Buffer.concat([Buffer.from(`${JSON.stringify(heads)}\n`), ...parts]));
