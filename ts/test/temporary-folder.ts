/** Folders that live as long as one test. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** Something that ends at some time and then calls functions; usually a test. */
export type Ending = Pick<TestContext, 'after'>;

/** Returns an empty folder, gone when the test ends. */
export function temporaryFolder(test: Ending): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
  // The user of `withoutPrivilege` must be able to enter the folder.
  chmodSync(folder, 0o755);
  // Work that the test has left behind may put a file into a folder whose files have just been removed.
  test.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 20 }));
  return folder;
}

/** Returns a folder with an `svc.json` that holds `settings`: a value, or the text of the file. */
export function folderWithConfig(test: Ending, settings: unknown): string {
  const folder = temporaryFolder(test);
  writeFileSync(join(folder, 'svc.json'), typeof settings === 'string' ? settings : JSON.stringify(settings));
  return folder;
}

/** Forbids every user except root to make files in `folder`; see `withoutPrivilege`. */
export function makeUnwritable(folder: string): void {
  // Windows has no such mode. S-1-1-0 stands for everyone, WD and AD for making files and folders.
  if (process.platform === 'win32') execFileSync('icacls', [folder, '/deny', '*S-1-1-0:(WD,AD)']);
  else chmodSync(folder, 0o555);
}

/** Runs `work` as a user that is bound by file modes, unlike root, and returns its result. */
export function withoutPrivilege<Result>(work: () => Result): Result {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  try {
    return work();
  } finally {
    process.seteuid?.(0);
  }
}
