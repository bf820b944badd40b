/**
 * `GET /v1/models`: the one model that answers, in the format of this API and in that of OpenAI; `GET /v1/models/{id}`,
 * in that of OpenAI.
 */
import type { Middleware } from 'koa';
import { HttpFailure } from '../../errors.ts';
import type { EngineSlot, LoadedModel } from '../../model/slot.ts';
import { MODEL_NAME, type Model, type Models } from '../../schemas/wire.ts';
import type { RequestState } from '../middleware/request.ts';

export function listModels(slot: EngineSlot): Middleware<RequestState> {
  return (ctx) => {
    ctx.body = models(slot.require());
  };
}

export function showModel(slot: EngineSlot): Middleware<RequestState> {
  return (ctx) => {
    if (ctx.path !== `/v1/models/${MODEL_NAME}`) {
      throw new HttpFailure('not_found', `no such model; there is only ${MODEL_NAME}`);
    }
    ctx.body = asOpenAi(slot.require());
  };
}

function models(model: LoadedModel): Models {
  const { info, loadedAt } = model;
  const description = `${info.name} ${info.version}`;
  return {
    models: [{ name: MODEL_NAME, description, release_date: loadedAt.toISOString().slice(0, 10) }],
    object: 'list',
    data: [asOpenAi(model)],
  };
}

function asOpenAi({ loadedAt }: LoadedModel): Model {
  return {
    id: MODEL_NAME,
    object: 'model',
    created: Math.floor(loadedAt.getTime() / 1000),
    owned_by: MODEL_NAME,
  };
}
