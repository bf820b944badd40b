import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { telemetrySettings } from '../../src/settings/telemetry.ts';
import { temporaryFolder } from '../temporary-folder.ts';

type Env = Readonly<Record<string, string>>;

const ON = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

/** Returns the settings that `env` makes, without warnings. */
function settingsOf(env: Env) {
  const { settings, warnings } = telemetrySettings(env);
  assert.deepEqual(warnings, []);
  return settings;
}

suite('OpenTelemetry', () => {
  for (const env of [
    {},
    { OTEL_SERVICE_NAME: 'decisions', OTEL_RESOURCE_ATTRIBUTES: 'a=b', OTEL_TRACES_SAMPLER: 'always_on' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' },
    { ...ON, OTEL_SDK_DISABLED: 'true' },
    { ...ON, OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' },
  ]) {
    test(`is off with ${JSON.stringify(env)}`, () => assert.equal(settingsOf(env as Env), undefined));
  }

  test('is on with an endpoint, with the defaults of the specification', () => {
    const destination = { headers: {}, timeoutMs: 10_000, isGzipped: false, tls: {} };
    assert.deepEqual(settingsOf(ON), {
      serviceName: 'svc',
      resourceAttributes: {},
      traces: {
        ...destination,
        url: 'http://collector:4318/v1/traces',
        sampler: { isParentBased: true, ratio: 1 },
        queueSpans: 2048,
        batchSpans: 512,
        delayMs: 5000,
        exportTimeoutMs: 30_000,
      },
      metrics: { ...destination, url: 'http://collector:4318/v1/metrics', intervalMs: 60_000, exportTimeoutMs: 30_000 },
    });
  });

  test('sends only what has an exporter or an endpoint', () => {
    const traces = settingsOf({ OTEL_TRACES_EXPORTER: 'otlp' });
    assert.deepEqual([traces?.traces?.url, traces?.metrics], ['http://localhost:4318/v1/traces', undefined]);
    const metrics = settingsOf({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://a/b?c=d' });
    assert.deepEqual([metrics?.traces, metrics?.metrics?.url], [undefined, 'https://a/b?c=d']);
    assert.equal(settingsOf({ ...ON, OTEL_METRICS_EXPORTER: 'none' })?.metrics, undefined);
  });

  test('takes the options of a signal before the common ones', (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'ca.pem'), 'the certificate');
    const { settings, warnings } = telemetrySettings(
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/base/',
        OTEL_EXPORTER_OTLP_HEADERS: 'api-key=secret%20value,common=1',
        OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'common=2',
        OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
        OTEL_EXPORTER_OTLP_METRICS_COMPRESSION: 'none',
        OTEL_EXPORTER_OTLP_TIMEOUT: '500',
        OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '700',
        OTEL_EXPORTER_OTLP_CERTIFICATE: 'ca.pem',
        OTEL_METRIC_EXPORT_INTERVAL: '1000',
        OTEL_BSP_SCHEDULE_DELAY: '10',
        OTEL_BSP_MAX_QUEUE_SIZE: '100',
      },
      folder,
    );
    assert.deepEqual(warnings, []);
    const { traces, metrics } = settings ?? {};
    assert.deepEqual(
      [traces?.url, metrics?.url],
      ['http://collector:4318/base/v1/traces', 'http://collector:4318/base/v1/metrics'],
    );
    assert.deepEqual(traces?.headers, { 'api-key': 'secret value', common: '2' });
    assert.deepEqual(metrics?.headers, { 'api-key': 'secret value', common: '1' });
    assert.deepEqual([traces?.isGzipped, metrics?.isGzipped], [true, false]);
    assert.deepEqual([traces?.timeoutMs, metrics?.timeoutMs, metrics?.intervalMs], [700, 500, 1000]);
    assert.deepEqual([traces?.delayMs, traces?.queueSpans, traces?.batchSpans], [10, 100, 100]);
    assert.equal(String(traces?.tls.ca), 'the certificate');
  });

  test('takes names in any case of letters', () => {
    const names = { OTEL_TRACES_EXPORTER: 'OTLP', OTEL_METRICS_EXPORTER: 'None', OTEL_TRACES_SAMPLER: 'Always_Off' };
    const options = { OTEL_EXPORTER_OTLP_PROTOCOL: 'HTTP/Protobuf', OTEL_EXPORTER_OTLP_COMPRESSION: 'GZIP' };
    const { traces, metrics } = settingsOf({ ...ON, ...names, ...options }) ?? {};
    assert.deepEqual([traces?.isGzipped, traces?.sampler.ratio, metrics], [true, 0, undefined]);
  });

  test('appends the path of a signal to the path of the common address, and keeps its query', () => {
    const { traces } = settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector/base/?token=a' }) ?? {};
    assert.equal(traces?.url, 'https://collector/base/v1/traces?token=a');
  });

  test('names the service and its resource', () => {
    const { serviceName, resourceAttributes } =
      settingsOf({ ...ON, OTEL_RESOURCE_ATTRIBUTES: 'service.name=a,deployment.environment.name=t%C3%A9st' }) ?? {};
    assert.deepEqual([serviceName, resourceAttributes?.['deployment.environment.name']], ['a', 'tést']);
    const named = settingsOf({ ...ON, OTEL_RESOURCE_ATTRIBUTES: 'service.name=a', OTEL_SERVICE_NAME: 'b' });
    assert.equal(named?.serviceName, 'b');
  });

  for (const [name, argument, isParentBased, ratio] of [
    ['always_on', '0.5', false, 1],
    ['always_off', undefined, false, 0],
    ['traceidratio', '0.25', false, 0.25],
    ['parentbased_always_off', undefined, true, 0],
    ['parentbased_traceidratio', '0.1', true, 0.1],
    ['parentbased_traceidratio', undefined, true, 1],
  ] as const) {
    test(`keeps of the traces what ${name} ${argument ?? 'alone'} says`, () => {
      const env = { ...ON, OTEL_TRACES_SAMPLER: name, ...(argument && { OTEL_TRACES_SAMPLER_ARG: argument }) };
      assert.deepEqual(settingsOf(env)?.traces?.sampler, { isParentBased, ratio });
    });
  }

  for (const [env, warning] of [
    [{ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: grpc is not spoken here'],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, 'OTEL_EXPORTER_OTLP_PROTOCOL: http/json is not spoken here'],
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER: there is no exporter zipkin'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'collector:4318' }, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: must be an HTTP'],
  ] as const) {
    test(`sends no traces with ${JSON.stringify(env)}, and says why`, () => {
      const { settings, warnings } = telemetrySettings({ ...ON, ...(env as Env) });
      assert.equal(settings?.traces, undefined);
      assert.ok(warnings[0]?.startsWith(warning), warnings.join('\n'));
    });
  }

  for (const [env, warning] of [
    [{ OTEL_TRACES_SAMPLER: 'sometimes' }, 'OTEL_TRACES_SAMPLER: there is no sampler sometimes; all traces are kept'],
    [
      { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' },
      'OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1; it is 1 now',
    ],
    [{ OTEL_BSP_SCHEDULE_DELAY: '-1' }, 'OTEL_BSP_SCHEDULE_DELAY: must be a whole number from 1 to'],
    [{ OTEL_METRIC_EXPORT_INTERVAL: '60' }, 'OTEL_METRIC_EXPORT_INTERVAL: must be a whole number from 100 to'],
    [{ OTEL_EXPORTER_OTLP_COMPRESSION: 'br' }, 'OTEL_EXPORTER_OTLP_COMPRESSION: must be gzip or none'],
    [{ OTEL_EXPORTER_OTLP_CERTIFICATE: '/nowhere.pem' }, 'OTEL_EXPORTER_OTLP_CERTIFICATE: /nowhere.pem cannot be read'],
  ] as const) {
    test(`goes on with ${JSON.stringify(env)}, with a warning`, () => {
      const { settings, warnings } = telemetrySettings({ ...ON, ...(env as Env) });
      assert.ok(settings?.traces !== undefined && settings.metrics !== undefined);
      assert.ok(warnings[0]?.startsWith(warning), warnings.join('\n'));
    });
  }

  test('repeats no header in a warning, since it may be a secret', () => {
    const { settings, warnings } = telemetrySettings({ ...ON, OTEL_EXPORTER_OTLP_HEADERS: 'a=%ZZsecret,b=2,secret' });
    assert.deepEqual(settings?.traces?.headers, { b: '2' });
    assert.equal(warnings.length, 1);
    assert.doesNotMatch(warnings.join(), /secret/);
  });
});
