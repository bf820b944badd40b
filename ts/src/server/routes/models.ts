/** `GET /v1/models`: the one model that answers, in the format of this API and in that of OpenAI. */
import type { Middleware } from 'koa';
import type { EngineSlot, LoadedModel } from '../../model/slot.ts';
import { MODEL_NAME, type Models } from '../../schemas/wire.ts';
import type { RequestState } from '../middleware/request.ts';

export function listModels(slot: EngineSlot): Middleware<RequestState> {
  return (ctx) => {
    ctx.body = models(slot.require());
  };
}

function models({ info, loadedAt }: LoadedModel): Models {
  const description = `${info.name} ${info.version}`;
  const created = Math.floor(loadedAt.getTime() / 1000);
  return {
    models: [{ name: MODEL_NAME, description, release_date: loadedAt.toISOString().slice(0, 10) }],
    object: 'list',
    data: [{ id: MODEL_NAME, object: 'model', created, owned_by: MODEL_NAME }],
  };
}
