/** The results as Markdown tables, ratios first. */

/** Rounds of the bare graph that differ by more than this say that something else used the machine. */
const QUIET = 1.1;

/** Returns the tables of a run. */
export function report({ machine, options, latency, throughput }) {
  return [
    describe(machine, options),
    noise(latency, machine),
    latencyTable(latency),
    'States in tokens, times in milliseconds; p50 where nothing else is said. The last four columns are of the request: what',
    'the server does beside the model, its `encode`, its `run`, and what is outside of its `total`.',
    '',
    throughputTable(throughput),
  ].join('\n');
}

function describe(machine, { rounds, block, seconds, threads }) {
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}, Node ${machine.node},`,
    `ONNX Runtime ${machine.onnxRuntime}, ${machine.model}, ${threads} intra-op threads; ${rounds} rounds of at most ${block} runs`,
    `and as many requests, ${seconds} s for each throughput.`,
    '',
  ].join('\n');
}

function latencyTable(latency) {
  const rows = latency.map(({ input, isKept, ratio, rawMs, requestMs, serverMs, outsideMs }) => [
    state(input, isKept),
    input.questions,
    `**${ratio.median.toFixed(2)}** (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)})`,
    (requestMs.p50 / serverMs.run).toFixed(2),
    three(rawMs),
    three(requestMs),
    ms(serverMs.overhead),
    ms(serverMs.encode),
    ms(serverMs.run),
    ms(outsideMs),
  ]);
  const head = ['state', 'questions', 'request / raw', 'request / run', 'raw p50, p95, p99', 'request p50, p95, p99'];
  return table([...head, 'overhead', 'encode', 'run', 'outside'], rows);
}

function throughputTable(throughput) {
  const rows = throughput.map(({ input, isKept, connections, share, requestsPerSecond, p50Ms, p99Ms }) => [
    state(input, isKept),
    input.questions,
    connections,
    `**${share.toFixed(2)}**`,
    requestsPerSecond.toFixed(0),
    `${p50Ms}, ${p99Ms}`,
  ]);
  const head = ['state', 'questions', 'connections', 'of the bare graph', 'requests/s', 'p50, p99 ms'];
  return table(head, rows);
}

function noise(latency, machine) {
  const worst = Math.max(...latency.map(({ rawMs }) => rawMs.rounds.max / rawMs.rounds.min));
  const load = `Load average (1 min) ${machine.load.before.toFixed(2)} before and ${machine.load.after.toFixed(2)} after.`;
  const spread = `The slowest round of the bare graph took up to ${worst.toFixed(2)} times the fastest of the same input`;
  return `${load} ${spread}:\n${worst <= QUIET ? 'the machine was quiet' : '**the machine was noisy, take every number with care**'}.\n`;
}

const state = ({ stateTokens }, isKept) => `${stateTokens}${isKept ? ', kept' : ''}`;

const ms = (value) => value.toFixed(2);

const three = ({ p50, p95, p99 }) => [p50, p95, p99].map(ms).join(', ');

function table(head, rows) {
  const lines = [head, head.map(() => '---'), ...rows];
  return `${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}
