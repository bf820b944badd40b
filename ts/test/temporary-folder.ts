/** Folders that live as long as one test. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** What ends some time, and is told then: a test, as a rule. */
export type Ending = Pick<TestContext, 'after'>;

/** An empty folder, gone when the test ends. */
export function temporaryFolder(test: Ending): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
  // Passable for the user that `withoutPrivilege` becomes.
  chmodSync(folder, 0o755);
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder with an `svc.json` that holds `settings`: a value, or the text of the file. */
export function folderWithConfig(test: Ending, settings: unknown): string {
  const folder = temporaryFolder(test);
  writeFileSync(join(folder, 'svc.json'), typeof settings === 'string' ? settings : JSON.stringify(settings));
  return folder;
}

/** Lets nobody make a file in `folder`, but for root: see `withoutPrivilege`. */
export function makeUnwritable(folder: string): void {
  // Windows has no such mode; S-1-1-0 is everyone, WD and AD are making files and folders.
  if (process.platform === 'win32') execFileSync('icacls', [folder, '/deny', '*S-1-1-0:(WD,AD)']);
  else chmodSync(folder, 0o555);
}

/** What `work` returns, run as a user whom file modes hold back: root may write everywhere. */
export function withoutPrivilege<Result>(work: () => Result): Result {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  try {
    return work();
  } finally {
    process.seteuid?.(0);
  }
}
