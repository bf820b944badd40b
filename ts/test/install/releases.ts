/** Releases in the form that the installer reads: a folder with archives of a small svc and their checksums. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const CPUS: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** The name of this platform in the name of an archive. */
export const PLATFORM = `${process.platform}-${CPUS[process.arch] ?? process.arch}`;

export function archiveName(version: string): string {
  return `svc-${version}-${PLATFORM}.tar.gz`;
}

export interface ArchiveOptions {
  readonly version: string;
  /** The version that the program prints, if it is not `version`. */
  readonly says?: string;
  /** The line with which every decision fails. */
  readonly decidesNot?: string;
  /** Files in addition to those of an archive, such as the `svc.json` that old releases had. */
  readonly files?: Readonly<Record<string, string>>;
  /** A line of shell script that the archive's Node runs after its work. */
  readonly nodeThen?: string;
  /** The program that the archive lacks. */
  readonly without?: 'bin/svc' | 'lib/node';
}

/** A folder of archives, which is empty at first. */
export class Releases {
  readonly folder: string;

  constructor(test: TestContext) {
    this.folder = temporaryFolder(test);
  }

  /** Adds an archive of this platform, and its line to the checksums. */
  add(options: ArchiveOptions): this {
    const stage = join(this.folder, 'stage');
    const top = join(stage, `svc-${options.version}`);
    for (const folder of ['bin', 'lib']) mkdirSync(join(top, folder), { recursive: true });
    if (options.without !== 'bin/svc') writeProgram(join(top, 'bin', 'svc'), program(options));
    if (options.nodeThen !== undefined) {
      writeProgram(join(top, 'lib', 'node'), `'${process.execPath}' "$@"\n${options.nodeThen}\n`);
    } else if (options.without !== 'lib/node') {
      symlinkSync(process.execPath, join(top, 'lib', 'node'));
    }
    for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(top, name), text);
    const archive = join(this.folder, archiveName(options.version));
    execFileSync('tar', ['-czf', archive, '-C', stage, `svc-${options.version}`]);
    rmSync(stage, { recursive: true });
    return this.writeSums();
  }

  /** Writes the checksums of all present archives, together with lines of other platforms. */
  writeSums(edit: (text: string) => string = (text) => text): this {
    const names = readdirSync(this.folder).filter((name) => name.endsWith('.tar.gz'));
    const lines = names.map((name) => `${sha256(join(this.folder, name))}  ${name}\n`);
    const others = names.map((name) => `${'0'.repeat(64)}  ${name.replace(PLATFORM, 'plan9-mips')}\n`);
    writeFileSync(join(this.folder, 'SHA256SUMS'), edit([...others, ...lines].join('')));
    return this;
  }

  /** Changes the bytes of an archive but leaves its checksum as it is. */
  damage(version: string, change: (bytes: Buffer) => Buffer): this {
    const path = join(this.folder, archiveName(version));
    writeFileSync(path, change(readFileSync(path)));
    return this;
  }
}

function writeProgram(path: string, script: string): void {
  writeFileSync(path, `#!/bin/sh\n${script}`);
  chmodSync(path, 0o755);
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** Returns a program that does what the installer asks of svc; it leaves `config` to the real svc. */
function program({ version, says = version, decidesNot }: ArchiveOptions): string {
  const real = `exec '${process.execPath}' '${join(REPOSITORY, 'bin', 'svc.js')}' "$@"`;
  const decision = decidesNot === undefined ? `echo '{"answers":{}}'` : `echo '${decidesNot}' >&2; exit 1`;
  return `case "$1" in
  --version) echo ${says} ;;
  ask) ${decision} ;;
  config) ${real} ;;
  *) echo "${version} was given: $*" ;;
esac
`;
}
