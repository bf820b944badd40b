/** Remembers the inputs of a build step, so that a step whose inputs are the same is not run again. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Returns every file under `path`, sorted; only `path` if it is a file; an empty list if it does not exist. */
export function filesUnder(path) {
  if (!existsSync(path)) return [];
  try {
    const entries = readdirSync(path, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    return files.map((entry) => join(entry.parentPath ?? entry.path, entry.name)).sort();
  } catch (error) {
    if (error.code === 'ENOTDIR') return [path];
    throw error;
  }
}

/**
 * Returns a digest of the files' contents. Times do not count, so a branch that is checked out and back is not built
 * again.
 */
function digest(paths) {
  const hash = createHash('sha256');
  for (const file of paths.flatMap(filesUnder)) {
    const content = readFileSync(file);
    hash.update(`${file.replaceAll('\\', '/')}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** Runs `work` unless its inputs are unchanged and every output exists. */
export function whenChanged({ stamp, inputs, outputs, work }) {
  const now = digest(inputs);
  const before = existsSync(stamp) ? readFileSync(stamp, 'utf8') : '';
  if (before === now && outputs.every((output) => existsSync(output))) return;
  rmSync(stamp, { force: true });
  work();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, now);
}
