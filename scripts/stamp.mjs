/** Remembers what a build step was made from, so that a step whose inputs are the same is not run again. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Every file under `path`, sorted; `path` itself when it is a file; nothing when it is not there. */
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

/** Contents count, times do not: a branch that is checked out and back again is not built again. */
function digest(paths) {
  const hash = createHash('sha256');
  for (const file of paths.flatMap(filesUnder)) {
    const content = readFileSync(file);
    hash.update(`${file.replaceAll('\\', '/')}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** Runs `work` unless its inputs are what they were and every output is there. */
export function whenChanged({ stamp, inputs, outputs, work }) {
  const now = digest(inputs);
  const before = existsSync(stamp) ? readFileSync(stamp, 'utf8') : '';
  if (before === now && outputs.every((output) => existsSync(output))) return;
  rmSync(stamp, { force: true });
  work();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, now);
}
