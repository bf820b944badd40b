/**
 * The pages' static files: built from `ts/browser` into folders of `dist`, read once, and named after their contents.
 */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AssetPaths } from '../dashboard/page.ts';
import { DIST } from '../dist.ts';
import { sha256Of } from '../files/sha256.ts';

/** One file of a page. */
interface AssetFile {
  readonly name: string;
  readonly ending: string;
  readonly type: string;
}

const FILES = {
  script: { name: 'main', ending: 'js', type: 'text/javascript; charset=utf-8' },
  style: { name: 'style', ending: 'css', type: 'text/css; charset=utf-8' },
  icon: { name: 'icon', ending: 'svg', type: 'image/svg+xml' },
} as const satisfies Record<keyof AssetPaths, AssetFile>;

const DOCS_FILES = { script: FILES.script, style: FILES.style } as const;

interface Asset {
  readonly type: string;
  readonly body: Buffer;
}

export interface Assets<Name extends string = keyof AssetPaths> {
  readonly paths: Readonly<Record<Name, string>>;
  /** Each file by its path. */
  readonly files: ReadonlyMap<string, Asset>;
}

/**
 * Returns the static files of the operator's pages.
 * @throws Error when they are not built
 */
export function readAssets(): Assets {
  return readFiles('assets', FILES);
}

/**
 * Returns the static files of the API's page.
 * @throws Error when they are not built
 */
export function readDocsAssets(): Assets<keyof typeof DOCS_FILES> {
  return readFiles('docs', DOCS_FILES);
}

function readFiles<Name extends string>(folder: string, wanted: Readonly<Record<Name, AssetFile>>): Assets<Name> {
  const files = new Map<string, Asset>();
  const add = ({ name, ending, type }: AssetFile) => {
    const body = readFileSync(fileURLToPath(new URL(`${folder}/${name}.${ending}`, DIST)));
    // New content gets a new address, so browsers may keep the old file forever.
    const digest = sha256Of(body).slice(0, 12);
    const path = `/${folder}/${name}.${digest}.${ending}`;
    files.set(path, { type, body });
    return path;
  };
  const paths = Object.entries<AssetFile>(wanted).map(([name, file]) => [name, add(file)]);
  return { paths: Object.fromEntries(paths), files };
}
