/**
 * The settings of OpenTelemetry, by the names of its specification (`OTEL_*`). Other programs of the machine share these
 * variables, so one that cannot be used is a warning, never a reason not to start.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { errorCode } from '../files/system-error.ts';
import type { Environment } from './config.ts';

/** The place that spans or metrics are sent to. */
export interface Destination {
  readonly url: string;
  /** Headers of the requests to it. They may hold secrets. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly isGzipped: boolean;
  readonly tls: { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer };
}

/** The choice of the traces that are kept. */
export interface SamplerSettings {
  /** Whether a caller's choice counts. */
  readonly isParentBased: boolean;
  /** The share of the other traces, from 0 to 1. */
  readonly ratio: number;
}

export interface TracesSettings extends Destination {
  readonly sampler: SamplerSettings;
  /** The most spans that wait to be sent; further ones are lost. */
  readonly queueSpans: number;
  /** The most spans in one request. */
  readonly batchSpans: number;
  readonly delayMs: number;
  readonly exportTimeoutMs: number;
}

export interface MetricsSettings extends Destination {
  readonly intervalMs: number;
  readonly exportTimeoutMs: number;
}

export interface TelemetrySettings {
  readonly serviceName: string;
  readonly resourceAttributes: Readonly<Record<string, string>>;
  readonly traces: TracesSettings | undefined;
  readonly metrics: MetricsSettings | undefined;
}

export interface ReadTelemetry {
  /** Undefined when nothing is to be sent. */
  readonly settings: TelemetrySettings | undefined;
  /** The warnings, one line each. */
  readonly warnings: readonly string[];
}

/** A kind of data, as it stands in the names of variables. */
type Signal = 'TRACES' | 'METRICS';

const SERVICE = 'svc';
const PROTOCOL = 'http/protobuf';
const DEFAULT_ENDPOINT = 'http://localhost:4318';
const MAX_MS = 2 ** 31 - 1;

/** The shortest time between two exports of metrics: to collect them takes time from the answers. */
const MIN_INTERVAL_MS = 100;

/** Each sampler of the specification: whether it follows the caller, and the share that it keeps without an argument. */
const SAMPLERS: ReadonlyMap<string, SamplerSettings & { readonly takesRatio?: true }> = new Map([
  ['always_on', { isParentBased: false, ratio: 1 }],
  ['always_off', { isParentBased: false, ratio: 0 }],
  ['traceidratio', { isParentBased: false, ratio: 1, takesRatio: true }],
  ['parentbased_always_on', { isParentBased: true, ratio: 1 }],
  ['parentbased_always_off', { isParentBased: true, ratio: 0 }],
  ['parentbased_traceidratio', { isParentBased: true, ratio: 1, takesRatio: true }],
]);

/**
 * Returns the settings. Spans are sent when an endpoint for them is set, or `OTEL_TRACES_EXPORTER` is `otlp`, and
 * metrics alike.
 */
export function telemetrySettings(env: Environment, cwd = process.cwd()): ReadTelemetry {
  const variables = new Variables(env);
  const isDisabled = variables.text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  const traces = !isDisabled && isOn(variables, 'TRACES') ? tracesSettings(variables, cwd) : undefined;
  const metrics = !isDisabled && isOn(variables, 'METRICS') ? metricsSettings(variables, cwd) : undefined;
  const { warnings } = variables;
  if (traces === undefined && metrics === undefined) return { settings: undefined, warnings };
  const resourceAttributes = variables.pairs('OTEL_RESOURCE_ATTRIBUTES');
  const serviceName = variables.text('OTEL_SERVICE_NAME') ?? resourceAttributes['service.name'] ?? SERVICE;
  return { settings: { serviceName, resourceAttributes, traces, metrics }, warnings };
}

function isOn(variables: Variables, signal: Signal): boolean {
  const name = `OTEL_${signal}_EXPORTER`;
  const exporters = variables
    .word(name)
    ?.split(',')
    .map((exporter) => exporter.trim());
  if (exporters === undefined) {
    return ['OTEL_EXPORTER_OTLP_ENDPOINT', `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`].some(
      (endpoint) => variables.text(endpoint) !== undefined,
    );
  }
  const unknown = exporters.filter((exporter) => exporter !== 'otlp' && exporter !== 'none');
  if (unknown.length > 0) variables.warn(`${name}: there is no exporter ${unknown.join(', ')}; there is otlp`);
  return exporters.includes('otlp');
}

function tracesSettings(variables: Variables, cwd: string): TracesSettings | undefined {
  const destination = destinationOf(variables, 'TRACES', cwd);
  if (destination === undefined) return undefined;
  const queueSpans = variables.number('OTEL_BSP_MAX_QUEUE_SIZE', 2048);
  return {
    ...destination,
    sampler: samplerOf(variables),
    queueSpans,
    batchSpans: Math.min(queueSpans, variables.number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512)),
    delayMs: variables.number('OTEL_BSP_SCHEDULE_DELAY', 5000),
    exportTimeoutMs: variables.number('OTEL_BSP_EXPORT_TIMEOUT', 30_000),
  };
}

function metricsSettings(variables: Variables, cwd: string): MetricsSettings | undefined {
  const destination = destinationOf(variables, 'METRICS', cwd);
  return (
    destination && {
      ...destination,
      intervalMs: variables.number('OTEL_METRIC_EXPORT_INTERVAL', 60_000, { least: MIN_INTERVAL_MS }),
      exportTimeoutMs: variables.number('OTEL_METRIC_EXPORT_TIMEOUT', 30_000),
    }
  );
}

function samplerOf(variables: Variables): SamplerSettings {
  const name = variables.word('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on';
  const known = SAMPLERS.get(name);
  if (known === undefined) variables.warn(`OTEL_TRACES_SAMPLER: there is no sampler ${name}; all traces are kept`);
  const { isParentBased, ratio, takesRatio } = known ?? { isParentBased: true, ratio: 1 };
  return { isParentBased, ratio: takesRatio ? variables.share('OTEL_TRACES_SAMPLER_ARG', ratio) : ratio };
}

function destinationOf(variables: Variables, signal: Signal, cwd: string): Destination | undefined {
  const [name, protocol = PROTOCOL] = variables.ofSignal(signal, 'PROTOCOL');
  if (protocol.toLowerCase() !== PROTOCOL) {
    variables.warn(`${name}: ${protocol} is not spoken here, only ${PROTOCOL}: no ${signal.toLowerCase()} are sent`);
    return undefined;
  }
  const url = urlOf(variables, signal);
  if (url === undefined) return undefined;
  const [compression, named = 'none'] = variables.ofSignal(signal, 'COMPRESSION');
  const algorithm = named.toLowerCase();
  if (algorithm !== 'none' && algorithm !== 'gzip') variables.warn(`${compression}: must be gzip or none`);
  const file = (option: string) => fileOf(variables, variables.ofSignal(signal, option), cwd);
  const [ca, cert, key] = [file('CERTIFICATE'), file('CLIENT_CERTIFICATE'), file('CLIENT_KEY')];
  return {
    url,
    headers: {
      ...variables.pairs('OTEL_EXPORTER_OTLP_HEADERS'),
      ...variables.pairs(`OTEL_EXPORTER_OTLP_${signal}_HEADERS`),
    },
    timeoutMs: variables.number(variables.ofSignal(signal, 'TIMEOUT')[0], 10_000),
    isGzipped: algorithm === 'gzip',
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
  };
}

/** Returns the address for a signal: its own one as it is, or the common one with the path of the signal. */
function urlOf(variables: Variables, signal: Signal): string | undefined {
  const ownName = `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`;
  const own = variables.text(ownName);
  const name = own === undefined ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : ownName;
  const text = own ?? variables.text('OTEL_EXPORTER_OTLP_ENDPOINT') ?? DEFAULT_ENDPOINT;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol)) {
    if (own === undefined) url.pathname = `${url.pathname.replace(/\/*$/, '')}/v1/${signal.toLowerCase()}`;
    return url.href;
  }
  variables.warn(`${name}: must be an HTTP address, such as ${DEFAULT_ENDPOINT}: no ${signal.toLowerCase()} are sent`);
  return undefined;
}

function fileOf(variables: Variables, [name, path]: readonly [string, string?], cwd: string): Buffer | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(resolve(cwd, path));
  } catch (error) {
    variables.warn(`${name}: ${path} cannot be read (${errorCode(error)})`);
    return undefined;
  }
}

/** The variables of the environment, and the warnings about those that cannot be used. */
class Variables {
  readonly warnings: string[] = [];
  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
  }

  warn(line: string): void {
    if (!this.warnings.includes(line)) this.warnings.push(line);
  }

  /** Returns the value of a variable; undefined when it is not set, or empty. */
  text(name: string): string | undefined {
    return this.#env[name]?.trim() || undefined;
  }

  /** Returns the value of a variable that names one of several things: in any case of letters, in lower case. */
  word(name: string): string | undefined {
    return this.text(name)?.toLowerCase();
  }

  /** Returns the variable that decides about an option of a signal, and its value. */
  ofSignal(signal: Signal, option: string): [name: string, value?: string] {
    const own = `OTEL_EXPORTER_OTLP_${signal}_${option}`;
    const name = this.text(own) === undefined ? `OTEL_EXPORTER_OTLP_${option}` : own;
    const value = this.text(name);
    return value === undefined ? [name] : [name, value];
  }

  /** Returns a number of milliseconds or of things, at least `least`. */
  number(name: string, otherwise: number, { least = 1 } = {}): number {
    const text = this.text(name);
    if (text === undefined) return otherwise;
    const value = /^\d{1,10}$/.test(text) ? Number(text) : 0;
    if (value >= least && value <= MAX_MS) return value;
    this.warn(`${name}: must be a whole number from ${least} to ${MAX_MS}; it is ${otherwise} now`);
    return otherwise;
  }

  /** Returns a number from 0 to 1. */
  share(name: string, otherwise: number): number {
    const text = this.text(name);
    if (text === undefined) return otherwise;
    const value = Number(text);
    if (value >= 0 && value <= 1) return value;
    this.warn(`${name}: must be a number from 0 to 1; it is ${otherwise} now`);
    return otherwise;
  }

  /** Returns the pairs in `name=value,name=value`, whose values are percent-encoded. */
  pairs(name: string): Record<string, string> {
    const items = (this.text(name) ?? '').split(',').filter((item) => item.trim() !== '');
    const pairs = items.flatMap((item) => {
      const [, key = '', value = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(item) ?? [];
      if (key !== '' && isEncoded(value)) return [[key, decodeURIComponent(value)] as const];
      // The value may be a secret, so it is not repeated.
      this.warn(`${name}: must be NAME=VALUE pairs with commas between them; one that is not is left out`);
      return [];
    });
    return Object.fromEntries(pairs);
  }
}

function isEncoded(value: string): boolean {
  try {
    decodeURIComponent(value);
    return true;
  } catch {
    return false;
  }
}
