/** A home folder to install into, and the installer as a process of its own. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { ProcessOutput } from '../process-output.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { Releases } from './releases.ts';

const { PATH: searchPath = '' } = process.env;

/** The installer of Linux and macOS. */
export const INSTALLER = join(REPOSITORY, 'deploy', 'install.sh');

/** Every program that the installer starts by its name, except those that download a file or compute its checksum. */
export const TOOLS: readonly string[] = [
  ...['awk', 'cp', 'dirname', 'env', 'getconf', 'gzip', 'head', 'ln', 'mkdir', 'mktemp', 'mv', 'ps', 'readlink'],
  ...['rm', 'rmdir', 'sleep', 'sort', 'tar', 'uname'],
];

export interface InstallOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** A folder of programs that are found before those of the system. */
  readonly programs?: string;
  /** The command that runs the script; `sh` by default. */
  readonly shell?: readonly string[];
  /** Whether to run as a user that is bound by file modes, even if the tests run as root. */
  readonly isUnprivileged?: boolean;
}

/** A running installer. */
export interface Run {
  readonly finished: Promise<Ended>;
  readonly interrupt: () => void;
}

/** The home folder of a user, which is empty at first. */
export class Place {
  readonly home: string;
  readonly prefix: string;
  readonly settings: string;
  readonly #test: TestContext;

  constructor(test: TestContext) {
    this.#test = test;
    this.home = temporaryFolder(test);
    this.prefix = join(this.home, '.local');
    this.settings = join(this.home, '.config', 'svc', 'svc.json');
  }

  /** Runs the installer to its end. */
  install(args: readonly string[], options: InstallOptions = {}): Promise<Ended> {
    return this.start(args, options).finished;
  }

  /** Starts the installer; `interrupt` is Ctrl-C in its terminal. */
  start(
    args: readonly string[],
    { env = {}, programs, shell = ['sh'], isUnprivileged = false }: InstallOptions = {},
  ): Run {
    const path = [...(programs === undefined ? [] : [programs]), searchPath].join(delimiter);
    const [program = '', ...flags] = shell;
    const child = spawn(program, [...flags, INSTALLER, ...args], {
      cwd: this.home,
      env: { PATH: path, HOME: this.home, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      ...(isUnprivileged && process.geteuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}),
    });
    this.#test.after(() => child.kill('SIGKILL'));
    const interrupt = () => void process.kill(-(child.pid ?? 0), 'SIGINT');
    return { finished: new ProcessOutput(child).finished, interrupt };
  }

  /** Returns the version that the installed svc prints. */
  async version(): Promise<string> {
    const { stdout } = await runCommand(join(this.prefix, 'bin', 'svc'), { args: ['--version'] });
    return stdout.trim();
  }

  /** The names in the installer's folder; undefined if there is no such folder. */
  get kept(): { readonly names: string[]; readonly versions: string[] } | undefined {
    const folder = join(this.prefix, 'lib', 'svc');
    if (!existsSync(folder)) return undefined;
    return { names: readdirSync(folder).sort(), versions: readdirSync(join(folder, 'versions')).sort() };
  }

  /** Returns the target of one of the installer's links. */
  link(name: 'current' | 'previous'): string {
    return readlinkSync(join(this.prefix, 'lib', 'svc', name));
  }

  writeSettings(text: string): void {
    mkdirSync(join(this.settings, '..'), { recursive: true });
    writeFileSync(this.settings, text);
  }
}

/**
 * Returns a folder of programs: those of `scripts`, and links to the programs of this machine that `real` names.
 */
export async function programFolder(
  test: TestContext,
  scripts: Readonly<Record<string, string>>,
  real: readonly string[] = [],
): Promise<string> {
  const folder = temporaryFolder(test);
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  for (const name of real) {
    const path = await programPath(name);
    if (path !== '') symlinkSync(path, join(folder, name));
  }
  return folder;
}

/** Returns the path of a program of the system, or an empty text if there is none. */
export async function programPath(name: string): Promise<string> {
  return (await runCommand('sh', { args: ['-c', `command -v ${name}`] })).stdout.trim();
}

/** Returns the one line with which the installer refuses. */
export function refusal({ code, stdout, stderr }: Ended): string {
  assert.equal(code, 1, stdout + stderr);
  assert.equal(stdout, '');
  const [, line] = /^install: (.*)\n$/.exec(stderr) ?? [];
  assert.ok(line, stderr);
  return line;
}

/** Returns the output of a run of the installer that succeeded; fails if it did not. */
export function accepted({ code, stdout, stderr }: Ended): string {
  assert.deepEqual([code, stderr], [0, '']);
  return stdout;
}

/** Returns a home with version 0.1.0, and the folder of releases that it came from, which also holds 0.2.0. */
export async function installed(t: TestContext): Promise<{ readonly place: Place; readonly releases: Releases }> {
  const releases = new Releases(t).add({ version: '0.1.0' });
  const place = new Place(t);
  accepted(await place.install(['--from', releases.folder, '--no-config']));
  releases.add({ version: '0.2.0' });
  return { place, releases };
}

/** Fails unless the installer refuses with one line and leaves version 0.1.0 and the settings as they were. */
export async function refused(
  place: Place,
  args: readonly string[],
  line: RegExp,
  options: InstallOptions = {},
): Promise<void> {
  const before = existsSync(place.settings) ? readFileSync(place.settings, 'utf8') : undefined;
  assert.match(refusal(await place.install(args, options)), line);
  assert.equal(await place.version(), '0.1.0');
  assert.deepEqual(place.kept, { names: ['current', 'versions'], versions: ['0.1.0'] });
  assert.equal(existsSync(place.settings) ? readFileSync(place.settings, 'utf8') : undefined, before);
}
