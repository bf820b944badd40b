/** Marks that say which folders of the cache a process uses, for other processes with the same cache. */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const PREFIX = '.in-use-';
/** How often a mark is renewed, and after how long without renewal its process counts as gone. */
const RENEW_MS = 60_000;
const STALE_MS = 10 * RENEW_MS;

/** The marks of this process: a process that ends in order leaves no mark behind. */
const held = new Set<string>();
let removesAtExit = false;

function removeAll(): void {
  for (const path of held) rmSync(path, { force: true });
}

/** A claim on a folder, which stays in the cache for as long as the claim is held. */
export class Lease {
  readonly #path: string;
  readonly #timer: NodeJS.Timeout;

  private constructor(path: string) {
    this.#path = path;
    this.#timer = setInterval(() => {
      const now = new Date();
      utimes(path, now, now).catch(() => {});
    }, RENEW_MS);
    this.#timer.unref();
    if (!removesAtExit) process.once('exit', removeAll);
    removesAtExit = true;
    held.add(path);
  }

  /** Returns a lease on `folder`, or undefined where no mark can be written: nothing can be removed there either. */
  static async take(folder: string): Promise<Lease | undefined> {
    const path = join(folder, `${PREFIX}${randomBytes(8).toString('hex')}`);
    try {
      await writeFile(path, '', { flag: 'wx' });
      return new Lease(path);
    } catch {
      return undefined;
    }
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    held.delete(this.#path);
    await rm(this.#path, { force: true }).catch(() => {});
  }
}

/** Whether a running process has a lease on `folder`. */
export async function isInUse(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => []);
  const marks = names.filter((name) => name.startsWith(PREFIX));
  const ages = await Promise.all(marks.map((name) => stat(join(folder, name)).then(ageMs, () => STALE_MS)));
  return ages.some((age) => age < STALE_MS);
}

function ageMs({ mtimeMs }: { readonly mtimeMs: number }): number {
  return Date.now() - mtimeMs;
}
