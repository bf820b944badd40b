/** The server's metrics for OpenTelemetry: the very numbers of `/metrics`, in another form. */
import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import { emptyResource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricDescriptor,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import type { KnownMetric, KnownValue } from '../stats/metrics.ts';
import { timeOf } from './spans.ts';

/** The units of metrics, by the ends of their names. */
const UNITS: ReadonlyMap<RegExp, string> = new Map([
  [/_seconds(_total)?$/, 's'],
  [/_bytes$/, 'By'],
  [/_ms_[a-z\d]+$/, 'ms'],
]);

export interface ProducerParts {
  /** Returns the current metrics. */
  readonly metrics: () => Promise<readonly KnownMetric[]>;
  readonly scope: InstrumentationScope;
}

/** Returns a producer that gives the metrics cumulatively, since the start of the process. */
export function prometheusProducer({ metrics, scope }: ProducerParts): MetricProducer {
  const startTime = timeOf(0);
  return {
    async collect() {
      const span = { startTime, endTime: timeOf(performance.now()) };
      const data = (await metrics()).flatMap((metric) => asOpenTelemetry(metric, span));
      return { resourceMetrics: { resource: emptyResource(), scopeMetrics: [{ scope, metrics: data }] }, errors: [] };
    },
  };
}

interface TimeSpan {
  readonly startTime: HrTime;
  readonly endTime: HrTime;
}

function asOpenTelemetry(metric: KnownMetric, span: TimeSpan): MetricData[] {
  const shared = { descriptor: descriptor(metric), aggregationTemporality: AggregationTemporality.CUMULATIVE };
  const points = metric.values.map(({ value, labels }) => ({ ...span, attributes: attributes(labels), value }));
  if (metric.type === 'counter') {
    return [{ ...shared, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: points }];
  }
  if (metric.type === 'gauge') return [{ ...shared, dataPointType: DataPointType.GAUGE, dataPoints: points }];
  if (metric.type !== 'histogram') return [];
  return [{ ...shared, dataPointType: DataPointType.HISTOGRAM, dataPoints: histograms(metric.values, span) }];
}

function descriptor({ name, help }: KnownMetric): MetricDescriptor {
  const [, unit = ''] = [...UNITS].find(([end]) => end.test(name)) ?? [];
  return { name, description: help, unit, valueType: ValueType.DOUBLE };
}

function attributes(labels: KnownValue['labels']): Attributes {
  return Object.fromEntries(
    Object.entries(labels).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Returns a data point for each set of labels. In Prometheus each bucket also counts all those below it. */
function histograms(values: readonly KnownValue[], span: TimeSpan): DataPoint<Histogram>[] {
  const sets = new Map<string, KnownValue[]>();
  for (const value of values) {
    const { le: _, ...own } = value.labels;
    const key = JSON.stringify(own);
    sets.set(key, [...(sets.get(key) ?? []), value]);
  }
  return [...sets].map(([key, own]) => ({ ...span, attributes: JSON.parse(key), value: histogram(own) }));
}

function histogram(values: readonly KnownValue[]): Histogram {
  const part = (end: string) => values.find(({ metricName }) => metricName?.endsWith(end))?.value ?? 0;
  // The bucket without a bound counts all values, as `_count` does.
  const buckets = values.filter(({ labels: { le } }) => typeof le === 'number');
  const count = part('_count');
  const cumulative = [...buckets.map(({ value }) => value), count];
  return {
    buckets: {
      boundaries: buckets.map(({ labels: { le } }) => Number(le)),
      counts: cumulative.map((value, index) => value - (cumulative[index - 1] ?? 0)),
    },
    count,
    sum: part('_sum'),
  };
}
