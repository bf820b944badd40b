import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { fixture, REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { outputFiles, QUESTIONS, writeRows } from '../file-run/run-files.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** The command that becomes root, which mounts require. */
const AS_ROOT = process.geteuid?.() === 0 ? [] : ['sudo', '-n'];

/**
 * Runs `svc batch` on a full disk, resumes it while the disk is still full, and resumes it again when there is room.
 * Prints the messages and the exit code of each run, and leaves a copy of the files on the disk.
 */
const SCRIPT = `set -u
  disk=$1 size=$2 room=$3 copy=$4; shift 4
  mount -t tmpfs -o size="$size" none "$disk" || exit 99
  "$@" 2>&1; echo "exit $?"
  "$@" --resume 2>&1; echo "exit $?"
  mount -o remount,size="$room" "$disk" || exit 99
  "$@" --resume 2>&1; echo "exit $?"
  cp "$disk"/* "$copy"`;

interface Disk {
  readonly name: string;
  readonly size: string;
}

/** Writes the rows and the questions into a folder, and returns the command that runs over them. */
function batchIn(folder: string, name: string): string[] {
  writeRows(join(folder, name), 3000);
  writeFileSync(join(folder, 'q.json'), QUESTIONS);
  const flags = ['--state', 'text', '--part-rows', '1000', '--model', fixture('shared-state-int8'), '--device', 'cpu'];
  return ['batch', join(folder, name), '--questions', join(folder, 'q.json'), ...flags];
}

/** Returns the files of a run that has room for all of them. */
async function withRoom(t: TestContext, name: string): Promise<Record<string, string>> {
  const folder = temporaryFolder(t);
  const { code, stderr } = await runSvc(t, batchIn(folder, name), { cwd: folder });
  assert.equal(code, 0, stderr);
  return outputFiles(folder);
}

async function onFullDisk(t: TestContext, { name, size }: Disk) {
  const folder = temporaryFolder(t);
  const [disk, copy] = [join(folder, 'disk'), join(folder, 'copy')];
  for (const each of [disk, copy]) mkdirSync(each);
  const svc = [process.execPath, join(REPOSITORY, 'bin', 'svc.js'), ...batchIn(folder, name)];
  const output = name.replace('.', '.answers.');
  const script = [...AS_ROOT, 'unshare', '--mount', 'sh', '-c', SCRIPT, 'sh', disk, size, '64m', copy, ...svc];
  const [program = '', ...args] = [...script, '--output', join(disk, output)];
  const { stdout } = await runCommand(program, { args, timeoutMs: 240_000 });
  // A run on a busy machine takes long enough to tell how far it is.
  const said = stdout.replaceAll(disk, 'DISK').replaceAll(/^\d+ %, .*\n/gm, '');
  return { said, files: outputFiles(copy) };
}

suite('a run on a full disk says so in one line, also when it goes on, and ends as one that was left alone', () => {
  for (const [name, sizes] of [
    ['rows.jsonl', ['8k', '400k', '1000k']],
    ['rows.csv', ['64k', '300k']],
    ['rows.parquet', ['8k', '240k', '600k']],
  ] as const) {
    let expected: Record<string, string> | undefined;
    for (const size of sizes) {
      test(`${name}, ${size}`, async (t) => {
        const { said, files } = await onFullDisk(t, { name, size });
        expected ??= await withRoom(t, name);
        const full = 'DISK\\S+, DISK\\S+: cannot be written \\(ENOSPC\\)(; --resume goes on)?\\nexit 1\\n';
        assert.match(said, new RegExp(`^${full}${full}DISK\\S+: [\\d,]+ rows answered.*\\nexit 0\\n$`));
        assert.deepEqual(files, expected);
      });
    }
  }
});
