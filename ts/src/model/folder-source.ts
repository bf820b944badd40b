/** The source of a model folder on this machine; the embedded model is one of them. */
import { defaultModel } from '../engine/addon.ts';
import { sha256Of } from '../files/sha256.ts';
import { Refusal } from '../refusal.ts';
import { manifestText } from './manifest.ts';
import type { FoundModel, ModelSource, SourceStatus } from './source.ts';
import { reason } from './source-error.ts';

/** The source, in the health record, of the model that comes with the release. */
const EMBEDDED = 'embedded';

/**
 * Returns the model that comes with the release.
 *
 * @throws EngineError when it is not installed.
 */
export function embeddedModel(): FoundModel {
  return found({ folder: defaultModel(), source: EMBEDDED });
}

export class FolderSource implements ModelSource {
  readonly source: string;
  readonly #folder: string;
  readonly #pinned: string;

  /** @param pinned - The sha256 that the folder's manifest must have; empty takes any. */
  constructor({ folder, pinned }: { readonly folder: string; readonly pinned: string }) {
    this.source = folder || EMBEDDED;
    this.#folder = folder || defaultModel();
    this.#pinned = pinned;
  }

  async find(signal: AbortSignal): Promise<FoundModel> {
    await this.#check(signal);
    return found({ folder: this.#folder, source: this.source });
  }

  refresh(signal: AbortSignal): Promise<FoundModel> {
    return this.find(signal);
  }

  async accept(): Promise<void> {}

  async reject(): Promise<void> {}

  async instead(): Promise<undefined> {}

  async close(): Promise<void> {}

  report(): SourceStatus {
    return { offline: false };
  }

  async watch(): Promise<void> {}

  async #check(signal: AbortSignal): Promise<void> {
    if (this.#pinned === '') return;
    const sha256 = await manifestText(this.#folder, signal).then(sha256Of, (error: unknown) => {
      signal.throwIfAborted();
      throw new Refusal(`${this.source}: ${reason(error)}`);
    });
    if (sha256 === this.#pinned) return;
    throw new Refusal(`${this.source}: its manifest has the sha256 ${sha256}, not that of model_sha256`);
  }
}

function found(model: Pick<FoundModel, 'folder' | 'source'>): FoundModel {
  return { ...model, fallback: false, offline: false, notes: [] };
}
