/** `GET /metrics`: the numbers for Prometheus. Only for the operator. */
import type { Middleware } from 'koa';
import type { Metrics } from '../../stats/metrics.ts';
import type { RequestState } from '../middleware/request.ts';

export function showMetrics(metrics: Metrics): Middleware<RequestState> {
  return async (ctx) => {
    ctx.set('Content-Type', metrics.contentType);
    ctx.body = await metrics.text();
  };
}
