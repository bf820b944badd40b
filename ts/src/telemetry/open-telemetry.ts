/** OpenTelemetry, by its official packages: spans and metrics are sent by OTLP over HTTP. It is loaded when it is on. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { CompressionAlgorithm, type OTLPExporterNodeConfigBase } from '@opentelemetry/otlp-exporter-base';
import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type {
  Destination,
  MetricsSettings,
  SamplerSettings,
  TelemetrySettings,
  TracesSettings,
} from '../settings/telemetry.ts';
import type { Metrics } from '../stats/metrics.ts';
import { packageVersion } from '../version.ts';
import { prometheusProducer } from './prometheus-producer.ts';
import type { RequestTracer } from './request-tracer.ts';
import { requestTracer } from './spans.ts';

export interface TelemetryParts {
  readonly metrics: Pick<Metrics, 'known'>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** The connection to a collector. */
export interface Telemetry {
  /** Undefined when no spans are sent. */
  readonly tracer: RequestTracer | undefined;
  /** Sends what is not sent yet, for a short time. */
  stop(): Promise<void>;
}

const SCOPE = { name: '@svc/server', version: packageVersion() };

/** How long the end of the process waits for a collector. */
const MAX_STOP_MS = 3000;

/** The shortest time between two lines of the log about a collector that does not take what it is sent. */
const TELL_EVERY_MS = 60_000;

/** Begins to send what the settings name. */
export function startTelemetry(settings: TelemetrySettings, { metrics, log }: TelemetryParts): Telemetry {
  tellFailures(log);
  const { traces, metrics: numbers } = settings;
  const resource = resourceOf(settings);
  const tracers = traces && tracerProvider(traces, resource);
  const meters = numbers && meterProvider(numbers, { resource, metrics });
  const places = [
    ...(traces ? [`spans to ${shownUrl(traces.url)}`] : []),
    ...(numbers ? [`metrics to ${shownUrl(numbers.url)}`] : []),
  ];
  log.info(`OpenTelemetry: ${places.join(', ')}`);
  return {
    tracer: tracers && requestTracer(tracers.getTracer(SCOPE.name, SCOPE.version)),
    async stop() {
      const sent = Promise.allSettled([tracers?.shutdown(), meters?.shutdown()]).then(() => true);
      const isSent = await Promise.race([sent, sleep(MAX_STOP_MS, false, { ref: false })]);
      if (!isSent) log.warn(`OpenTelemetry: a collector has not taken the last of it in ${MAX_STOP_MS} ms; it is lost`);
    },
  };
}

/** Returns an address without the parts that may hold a secret. */
function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

function resourceOf({ serviceName, resourceAttributes }: TelemetrySettings): Resource {
  return defaultResource().merge(
    resourceFromAttributes({
      'service.version': SCOPE.version,
      'service.instance.id': randomUUID(),
      ...resourceAttributes,
      'service.name': serviceName,
    }),
  );
}

function tracerProvider(traces: TracesSettings, resource: Resource): TracerProvider {
  const { queueSpans: maxQueueSize, batchSpans: maxExportBatchSize, delayMs: scheduledDelayMillis } = traces;
  const exporter = new OTLPTraceExporter(exporterOptions(traces));
  const exportTimeoutMillis = traces.exportTimeoutMs;
  const batches = { exporter, maxQueueSize, maxExportBatchSize, scheduledDelayMillis, exportTimeoutMillis };
  return new TracerProvider({
    resource,
    sampler: samplerOf(traces.sampler),
    spanProcessors: [new BatchSpanProcessor(batches)],
  });
}

function samplerOf({ isParentBased, ratio }: SamplerSettings): Sampler {
  const root =
    ratio === 1 ? new AlwaysOnSampler() : ratio === 0 ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(ratio);
  return isParentBased ? new ParentBasedSampler({ root }) : root;
}

interface MeterParts extends Pick<TelemetryParts, 'metrics'> {
  readonly resource: Resource;
}

function meterProvider(settings: MetricsSettings, { resource, metrics }: MeterParts): MeterProvider {
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter(exporterOptions(settings)),
    exportIntervalMillis: settings.intervalMs,
    exportTimeoutMillis: Math.min(settings.exportTimeoutMs, settings.intervalMs),
    metricProducers: [prometheusProducer({ metrics: () => metrics.known(), scope: SCOPE })],
  });
  return new MeterProvider({ resource, readers: [reader] });
}

function exporterOptions({ url, headers, timeoutMs, isGzipped, tls }: Destination): OTLPExporterNodeConfigBase {
  return {
    url,
    headers: { ...headers },
    timeoutMillis: timeoutMs,
    compression: isGzipped ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE,
    httpAgentOptions: { keepAlive: true, ...tls },
  };
}

/** Lets the log say, now and then, that a collector does not take what it is sent; nothing else depends on it. */
function tellFailures(log: TelemetryParts['log']): void {
  let toldMs = Number.NEGATIVE_INFINITY;
  setGlobalErrorHandler((error) => {
    if (performance.now() - toldMs < TELL_EVERY_MS) return;
    toldMs = performance.now();
    log.warn({ cause: causeOf(error) }, 'OpenTelemetry: a collector does not take what it is sent');
  });
}

/** Returns the words of an error, after the status of the collector's answer if it has one. */
function causeOf(error: Parameters<Parameters<typeof setGlobalErrorHandler>[0]>[0]): string {
  if (typeof error === 'string') return error;
  const words = error.message ?? String(error);
  return typeof error.code === 'number' ? `${error.code} ${words}` : words;
}
