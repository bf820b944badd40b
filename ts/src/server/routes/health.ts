/** `GET /health`, `/livez` and `/readyz`: open to everyone. */
import type Router from '@koa/router';
import { HttpFailure } from '../../errors.ts';
import type { EngineSlot } from '../../model/slot.ts';
import { healthRecord } from '../health-record.ts';
import type { Lifecycle } from '../lifecycle.ts';
import type { RequestState } from '../middleware/request.ts';

export function healthRoutes(router: Router<RequestState>, slot: EngineSlot, lifecycle: Lifecycle): void {
  router.get('/health', (ctx) => {
    const health = healthRecord(slot, lifecycle.phase);
    ctx.status = health.status === 'ok' ? 200 : 503;
    if (ctx.status === 503) ctx.set('Retry-After', '1');
    ctx.body = health;
  });

  router.get('/livez', (ctx) => {
    ctx.body = 'ok';
  });

  router.get('/readyz', (ctx) => {
    if (lifecycle.phase !== 'serving') throw new HttpFailure('draining', 'the server is shutting down');
    slot.require();
    ctx.body = 'ok';
  });
}
