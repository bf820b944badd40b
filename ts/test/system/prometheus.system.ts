import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { THREE_TYPES } from '../addon/requests.ts';
import { freePort } from '../free-port.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';

/** The time between two queries, in milliseconds. */
const QUERY_MS = 200;

const GRAFANA = join(REPOSITORY, 'deploy', 'grafana');
const PASSWORD = 'Operator-password-1';

/** The complaints of promtool about metric names that are promised to users, and about those of prom-client. */
const KNOWN_COMPLAINTS = [
  'nodejs_active_handles_total non-counter metrics should not have "_total" suffix',
  'nodejs_active_requests_total non-counter metrics should not have "_total" suffix',
  'nodejs_active_resources_total non-counter metrics should not have "_total" suffix',
  'svc_latency_ms_avg metric names should not contain abbreviated units',
  'svc_latency_ms_max metric names should not contain abbreviated units',
  'svc_latency_ms_p50 metric names should not contain abbreviated units',
  'svc_latency_ms_p95 metric names should not contain abbreviated units',
  'svc_latency_ms_p99 metric names should not contain abbreviated units',
];

/** Returns a server that has answered three decisions and refused one. */
async function usedServer(t: TestContext): Promise<LiveServer> {
  const server = await LiveServer.start(t, { env: { SVC_PASSWORD: PASSWORD } });
  for (let i = 0; i < 3; i += 1) await server.answer(THREE_TYPES);
  assert.equal((await server.decide('{}')).status, 400);
  return server;
}

/** Starts Prometheus with our own configuration, which scrapes `server` every second; returns a function to ask it. */
async function startPrometheus(t: TestContext, server: LiveServer) {
  const folder = temporaryFolder(t);
  const example = readFileSync(join(GRAFANA, 'prometheus.yml'), 'utf8');
  const config = example.replace('15s', '1s').replace('127.0.0.1:21118', server.url.host);
  assert.ok(config.includes(server.url.host) && config.includes('1s'));
  writeFileSync(join(folder, 'prometheus.yml'), config);
  writeFileSync(join(folder, 'svc.password'), `${PASSWORD}\n`);
  copyFileSync(join(GRAFANA, 'alerts.yml'), join(folder, 'alerts.yml'));
  const address = `127.0.0.1:${await freePort()}`;
  const args = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${address}`];
  const prometheus = spawn('prometheus', args, { cwd: folder, stdio: 'ignore' });
  const ended = once(prometheus, 'exit');
  t.after(async () => {
    prometheus.kill();
    await ended;
  });
  return async (query: string): Promise<readonly { readonly value: [number, string] }[]> => {
    const url = `http://${address}/api/v1/query?query=${encodeURIComponent(query)}`;
    const response = await fetch(url).catch(() => undefined);
    if (!response) return [];
    const { status, data, error } = (await response.json()) as { status: string; data: never; error?: string };
    assert.equal(status, 'success', `${query}: ${error}`);
    return (data as { readonly result: never }).result;
  };
}

/** Returns every expression of the dashboard, with Grafana's variables filled in. */
function dashboardExpressions(): string[] {
  const { panels } = JSON.parse(readFileSync(join(GRAFANA, 'dashboard.json'), 'utf8'));
  const expressions = panels.flatMap(({ targets }: { targets: { expr: string }[] }) => targets.map(({ expr }) => expr));
  return expressions.map((expr: string) => expr.replaceAll('$__rate_interval', '30s').replaceAll('$instance', '.*'));
}

suite('Prometheus', () => {
  test('reads the server with the password, and every panel of the dashboard has something to show', async (t) => {
    const server = await usedServer(t);
    const query = await startPrometheus(t, server);
    const value = async (name: string) => Number((await query(name))[0]?.value[1]);
    await until(async () => (await value('count_over_time(svc_requests_total[1m])')) >= 3, QUERY_MS);
    for (const [name, expected] of [
      ['up', 1],
      ['svc_requests_total', 4],
      ['svc_request_errors_total', 1],
      ['svc_questions_total', 9],
      ['svc_request_duration_seconds_count{phase="run"}', 3],
      ['svc_responses_total{status="400"}', 1],
      ['svc_model_info{device="cpu"}', 1],
      ['scrape_samples_scraped > bool 60', 1],
    ] as const) {
      assert.equal(await value(name), expected, name);
    }
    for (const expression of dashboardExpressions()) {
      assert.ok((await query(expression)).length > 0, expression);
    }
  });

  test('cannot read it without', async (t) => {
    const server = await LiveServer.start(t, { env: { SVC_PASSWORD: 'another' } });
    const query = await startPrometheus(t, server);
    await until(async () => (await query('up'))[0]?.value[1] === '0', QUERY_MS);
    assert.deepEqual(await query('svc_requests_total'), []);
  });
});

suite('promtool', () => {
  test('finds nothing in the metrics but names that are promised', async (t) => {
    const server = await usedServer(t);
    const { text } = await server.get(`/metrics?password=${PASSWORD}`);
    const { stdout, stderr } = await runCommand('promtool', { args: ['check', 'metrics'], input: text });
    assert.equal(stdout, '');
    assert.deepEqual(stderr.trimEnd().split('\n').sort(), KNOWN_COMPLAINTS);
  });

  for (const args of [
    ['check', 'rules', '--lint-fatal', 'alerts.yml'],
    ['test', 'rules', 'alerts.test.yml'],
    ['check', 'config', '--syntax-only', 'prometheus.yml'],
  ]) {
    test(`${args.join(' ')} succeeds`, async () => {
      const { code, stdout, stderr } = await runCommand('promtool', { args, cwd: GRAFANA });
      assert.equal(code, 0, stdout + stderr);
    });
  }
});
