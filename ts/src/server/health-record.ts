/** The health record, which `GET /health` gives of the server and of its model. */
import type { EngineSlot, LoadedModel, LoadFailure } from '../model/slot.ts';
import type { FailedReload, Health, PreviousModel } from '../schemas/health.ts';
import type { LifecyclePhase } from './lifecycle.ts';

const NOT_LOADED = {
  device: null,
  model: null,
  version: null,
  sha256: null,
  source: null,
  fallback: null,
  loaded_at: null,
  dir: null,
} as const satisfies Omit<Health, 'status'>;

/** Returns the health record; the server is well only when its `status` is `ok`. */
export function healthRecord(slot: Pick<EngineSlot, 'model' | 'failure' | 'reload'>, phase: LifecyclePhase): Health {
  const { model, failure, reload } = slot;
  const known = model ? modelHealth(model, failure) : NOT_LOADED;
  return { status: statusOf(slot, phase), ...known, ...(reload && { reload }) };
}

function statusOf({ model, failure }: Pick<EngineSlot, 'model' | 'failure'>, phase: LifecyclePhase): Health['status'] {
  if (phase !== 'serving') return 'draining';
  if (model) return 'ok';
  return failure === undefined ? 'loading' : 'error';
}

function modelHealth(model: LoadedModel, failure: LoadFailure | undefined): Omit<Health, 'status'> {
  const { info, remoteVersion, offline, previous, lostDevice } = model;
  return {
    device: info.device,
    model: info.name,
    version: info.version,
    sha256: info.sha256,
    source: model.source,
    fallback: model.fallback,
    loaded_at: model.loadedAt.toISOString(),
    dir: info.dir,
    ...(remoteVersion !== undefined && { remote_version: remoteVersion }),
    ...(offline && { offline }),
    ...(previous && { previous: previousModel(previous) }),
    ...(lostDevice !== undefined && { lost_device: lostDevice }),
    ...(failure && { failed_reload: failedReload(failure) }),
  };
}

function failedReload({ code, at }: LoadFailure): FailedReload {
  return { code, failed_at: at.toISOString() };
}

function previousModel({ info, loadedAt }: Pick<LoadedModel, 'info' | 'loadedAt'>): PreviousModel {
  return { model: info.name, version: info.version, sha256: info.sha256, loaded_at: loadedAt.toISOString() };
}
