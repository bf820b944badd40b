/** The answer of `GET /health`. */
import Type, { type Static, type TSchema } from 'typebox';

const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** The model that was replaced by a newer one. */
const PreviousModelSchema = Type.Object({
  model: Type.String(),
  version: Type.String(),
  sha256: Type.String(),
  loaded_at: Type.String({ format: 'date-time' }),
});

/** The latest load of a model, if it failed and another model still answers. */
const FailedReloadSchema = Type.Object({
  code: Type.String({ description: 'a stable code; the log has the reason' }),
  failed_at: Type.String({ format: 'date-time' }),
});

/**
 * The health record. Except `status`, its fields are `null` while no model is loaded; the last six are present only
 * when they apply.
 */
export const HealthSchema = Type.Object({
  status: Type.Enum(['ok', 'loading', 'draining', 'error']),
  device: orNull(Type.String({ description: 'cpu, cuda, coreml or directml' })),
  model: orNull(Type.String({ description: "the name in the model's config" })),
  version: orNull(Type.String()),
  sha256: orNull(Type.String({ description: "hex digest of the model's graph" })),
  source: orNull(Type.String({ description: 'where the model came from, without user, password or query' })),
  fallback: orNull(Type.Boolean({ description: 'whether another model than the wanted one is loaded' })),
  loaded_at: orNull(Type.String({ format: 'date-time' })),
  dir: orNull(Type.String({ description: "the model's folder" })),
  remote_version: Type.Optional(Type.String()),
  offline: Type.Optional(Type.Literal(true)),
  previous: Type.Optional(PreviousModelSchema),
  lost_device: Type.Optional(
    Type.String({ description: 'the accelerator that a model before ran on, while this one runs on the processor' }),
  ),
  failed_reload: Type.Optional(FailedReloadSchema),
  reload: Type.Optional(
    Type.Enum(['running', 'queued'], { description: 'a reload is under way; queued: one waits for its turn' }),
  ),
});

export type Health = Static<typeof HealthSchema>;
export type FailedReload = Static<typeof FailedReloadSchema>;
export type PreviousModel = Static<typeof PreviousModelSchema>;
