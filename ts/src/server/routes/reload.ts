/** `POST /reload`: loads the model that the settings name now. Only for the operator. */
import type { Middleware } from 'koa';
import { HttpFailure } from '../../errors.ts';
import { type AskedReload, codeOf } from '../../model/reload.ts';
import type { EngineSlot } from '../../model/slot.ts';
import { healthRecord } from '../health-record.ts';
import type { Lifecycle } from '../lifecycle.ts';
import type { RequestState } from '../middleware/request.ts';

export interface ReloadParts {
  readonly slot: EngineSlot;
  readonly lifecycle: Lifecycle;
  readonly reload: () => AskedReload;
}

/**
 * Returns the handler that reloads the model and answers with the health record once the new model answers. If another
 * reload is under way, which may take long, it answers 202 at once.
 */
export function reloadModel({ slot, lifecycle, reload }: ReloadParts): Middleware<RequestState> {
  return async (ctx) => {
    slot.require();
    const { isQueued, done } = reload();
    try {
      if (isQueued) ctx.status = 202;
      else await done;
    } catch (error) {
      const message = `the model was not replaced (${codeOf(error)}); the log has the reason`;
      throw new HttpFailure('reload_failed', message, {}, error instanceof Error ? { cause: error } : {});
    }
    ctx.body = healthRecord(slot, lifecycle.phase);
  };
}
