/** The pages' static files: built from `ts/browser` into `dist/assets`, read once, named after what is in them. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DIST } from '../dist.ts';
import type { AssetPaths } from './page.ts';

const FOLDER = new URL('assets/', DIST);

const FILES = {
  script: { name: 'main', ending: 'js', type: 'text/javascript; charset=utf-8' },
  style: { name: 'style', ending: 'css', type: 'text/css; charset=utf-8' },
  icon: { name: 'icon', ending: 'svg', type: 'image/svg+xml' },
} as const satisfies Record<keyof AssetPaths, object>;

export interface Asset {
  readonly type: string;
  readonly body: Buffer;
}

export interface Assets {
  readonly paths: AssetPaths;
  /** Each file by its path. */
  readonly files: ReadonlyMap<string, Asset>;
}

/**
 * Returns the static files.
 * @throws Error when they are not built
 */
export function readAssets(): Assets {
  const files = new Map<string, Asset>();
  const add = ({ name, ending, type }: (typeof FILES)[keyof typeof FILES]) => {
    const body = readFileSync(fileURLToPath(new URL(`${name}.${ending}`, FOLDER)));
    // A new content is a new address, so that browsers may keep the old one for ever.
    const digest = createHash('sha256').update(body).digest('hex').slice(0, 12);
    const path = `/assets/${name}.${digest}.${ending}`;
    files.set(path, { type, body });
    return path;
  };
  const paths = { script: add(FILES.script), style: add(FILES.style), icon: add(FILES.icon) };
  return { paths, files };
}
