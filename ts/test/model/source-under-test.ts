/** Sources of models from a server that sends what a test tells it to, and a listener to what a source says. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { defaultModel } from '../../src/engine/addon.ts';
import { sha256Of } from '../../src/files/sha256.ts';
import { ModelCache } from '../../src/model/cache.ts';
import { fetchModel } from '../../src/model/fetch-model.ts';
import { FetchedSource, type FetchedSourceOptions } from '../../src/model/fetched-source.ts';
import { embeddedModel } from '../../src/model/folder-source.ts';
import type { FoundModel, SourceStatus } from '../../src/model/source.ts';
import type { Store } from '../../src/model/store.ts';
import { WebStore } from '../../src/model/web-store.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';
import { tarOf, zipOf } from './archives.ts';
import { HostileServer } from './hostile-server.ts';

export const LIMITS = { maxBytes: 64 * 2 ** 20, totalMs: 60_000, spanMs: 30_000, minBytesPerSpan: 1024 };
export const never: AbortSignal = new AbortController().signal;

/** Returns the files of a model that no engine loads here. */
export const filesOf = (version: string) => ({
  'config.json': JSON.stringify({ name: 'm', version }),
  'model.onnx': `graph ${version} `.repeat(1000),
});

export type Changes = Partial<FetchedSourceOptions> & { readonly folder?: string; readonly store?: Store };

/** Returns a source of an archive at `url`. */
export function sourceOf(
  t: TestContext,
  url: string,
  { folder = temporaryFolder(t), store, ...changes }: Changes = {},
): FetchedSource {
  const isManifest = url.endsWith('.json');
  const format = url.endsWith('.zip') ? 'zip' : 'tar';
  const request = {
    store: store ?? new WebStore({ url: new URL(url), allowHttp: false, answerMs: 20_000 }),
    packaging: isManifest ? ({ kind: 'manifest' } as const) : ({ kind: 'archive', format } as const),
  };
  return new FetchedSource({
    fetch: (order) => fetchModel({ ...order, ...request }),
    source: url,
    identity: url,
    name: 'model',
    pinned: '',
    isLocal: false,
    limits: LIMITS,
    cache: new ModelCache({ folder, maxBytes: 2 ** 30 }),
    refreshMs: 0,
    retryMs: 1,
    prove: async () => {},
    embedded: embeddedModel,
    ...changes,
  });
}

export const configOf = ({ folder }: FoundModel) => JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
export const temporaries = (cache: string) => readdirSync(cache).filter((name) => name.startsWith('.'));
export const isEmbedded = ({ folder, source, fallback }: FoundModel) =>
  folder === defaultModel() && source === 'embedded' && fallback;

/** Returns a server with a model as an archive, a zip file and a manifest. */
export async function serverWith(t: TestContext, version = '1'): Promise<HostileServer> {
  const server = await HostileServer.start(t);
  publish(server, filesOf(version));
  return server;
}

export function publish(server: HostileServer, files: Readonly<Record<string, string>>): { manifest: string } {
  server.serve(
    '/m.tar.gz',
    tarOf(Object.fromEntries(Object.entries(files).map(([name, text]) => [`m/${name}`, text]))),
  );
  server.serve('/m.zip', zipOf(Object.entries(files).map(([name, content]) => ({ name, content }))));
  for (const [name, text] of Object.entries(files)) server.serve(`/${name}`, text);
  const manifest = manifestOf(files);
  server.serve('/manifest.json', manifest);
  return { manifest };
}

export function manifestOf(files: Readonly<Record<string, string>>, changes: object = {}): string {
  const digests = Object.entries(files).map(([name, text]) => [name, { bytes: text.length, sha256: sha256Of(text) }]);
  const { name, version } = JSON.parse(files['config.json'] ?? '{}');
  return JSON.stringify({ name, version, files: { ...Object.fromEntries(digests), ...changes } });
}

/** Returns the signal of a watch that goes on until the test ends. */
export function watching(t: TestContext): AbortSignal {
  const stop = new AbortController();
  // The source's own timers do not keep a process alive, so this one does.
  const alive = setInterval(() => {}, 1000);
  t.after(() => {
    clearInterval(alive);
    stop.abort();
  });
  return stop.signal;
}

/** A listener that records what a source tells it, and can wait until something has been told. */
export class Listener {
  readonly models: FoundModel[] = [];
  readonly statuses: SourceStatus[] = [];
  readonly notes: string[] = [];
  take: (model: FoundModel, isWanted: () => boolean) => Promise<void> = async () => {};

  async found(model: FoundModel, isWanted: () => boolean): Promise<boolean> {
    this.models.push(model);
    await this.take(model, isWanted);
    return isWanted();
  }

  status(status: SourceStatus): void {
    this.statuses.push(status);
  }

  note(line: string): void {
    this.notes.push(line);
  }

  until(isThere: (listener: Listener) => boolean): Promise<void> {
    return until(() => isThere(this));
  }

  /** Watches `source` until the test ends. */
  watch(t: TestContext, source: FetchedSource): this {
    source.watch(this, watching(t));
    return this;
  }
}
