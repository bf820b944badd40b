/**
 * The container without a container engine: a root folder with the files of the Dockerfile's last stage, mounts,
 * processes and a network of its own, and the image's user. The system's libraries and Node are those of this machine.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import type { TestContext } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { ProcessOutput } from '../process-output.ts';

/** The command that becomes root, which mounts and users require. */
const AS_ROOT = process.geteuid?.() === 0 ? [] : ['sudo', '-n'];

const USER = '10001';

/** The instructions of the Dockerfile's last stage, one line each. */
export const INSTRUCTIONS = lastStage(readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8'));

function lastStage(dockerfile: string): string[] {
  const lines = dockerfile
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
    .split('\n');
  const start = lines.findLastIndex((line) => line.startsWith('FROM '));
  return lines.slice(start).filter((line) => line.trim() !== '');
}

/** Returns the arguments of an instruction that has them as a JSON list, such as `ENTRYPOINT`. */
export function execForm(instruction: string): string[] {
  const line = INSTRUCTIONS.find((text) => text.startsWith(`${instruction} `)) ?? '';
  return JSON.parse(line.slice(line.indexOf('['))) as string[];
}

/** Makes `/app` as the Dockerfile's COPY instructions do, and returns the root folder. */
export function makeRoot(): string {
  const root = mkdtempSync(join(tmpdir(), 'svc-container-'));
  for (const line of INSTRUCTIONS) {
    const match = /^COPY (?:--from=\w+ )?(.+) (\S+)$/.exec(line);
    if (match) copy(root, (match[1] ?? '').split(' '), match[2] ?? '');
  }
  for (const folder of ['data', 'dev', 'etc', 'node', 'proc', 'tmp', 'usr']) mkdirSync(join(root, folder));
  sudo('chown', '-R', '0:0', root);
  sudo('chmod', '0755', root);
  return root;
}

export function removeRoot(root: string): void {
  sudo('rm', '-rf', '--one-file-system', root);
}

function sudo(...command: string[]): void {
  const [program = '', ...args] = [...AS_ROOT, ...command];
  execFileSync(program, args);
}

function copy(root: string, sources: readonly string[], to: string): void {
  for (const source of sources) {
    const from = join(REPOSITORY, source.replace(/^\/src\//, ''));
    if (source === '/src/node_modules/') copyPackages(join(root, to));
    // Of a folder, the content is copied; a file is copied into the target folder.
    else cpSync(from, source.endsWith('/') ? join(root, to) : join(root, to, basename(source)), { recursive: true });
  }
}

/** Copies the packages that `npm ci --omit=dev` installs. */
function copyPackages(to: string): void {
  const args = ['ls', '--all', '--omit=dev', '--parseable'];
  const paths = execFileSync('npm', args, { cwd: REPOSITORY, encoding: 'utf8' }).trim().split('\n');
  const modules = join(REPOSITORY, 'node_modules');
  for (const path of paths.slice(1)) cpSync(path, join(to, relative(modules, path)), { recursive: true });
}

export interface ContainerOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The volume: a folder that is mounted as `/data`. */
  readonly data: string;
  /** Whether `/data` is mounted read-only. */
  readonly isDataReadOnly?: boolean;
  /** The arguments that follow the image's name in `docker run`; the image's CMD by default. */
  readonly command?: readonly string[];
}

/** Returns a volume with `files` that belongs to the image's user and is removed when the test ends. */
export function volume(test: TestContext, files: Readonly<Record<string, unknown>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-volume-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(content));
  sudo('chown', '-R', `${USER}:${USER}`, folder);
  sudo('chmod', '0750', folder);
  test.after(() => sudo('rm', '-rf', folder));
  return folder;
}

/** Returns the names of the files of a volume, into which only its user may look. */
export function filesOf(data: string): string[] {
  if (AS_ROOT.length === 0) return readdirSync(data).sort();
  return execFileSync('sudo', ['-n', 'ls', data], { encoding: 'utf8' }).split('\n').filter(Boolean).sort();
}

/** Mounts the root, read-only except for `/data`, and becomes the entrypoint as process 1. */
const MOUNT = `
  set -eu
  root=$1 data=$2 mode=$3 node=$4 user=$5; shift 5
  mount --make-rprivate /
  ip link set lo up
  mount --bind "$root" "$root"
  for dir in usr etc; do mount --rbind -o ro /$dir "$root/$dir"; done
  for dir in bin lib lib64 sbin; do [ ! -e /$dir ] || ln -sfn usr/$dir "$root/$dir"; done
  mount --bind -o ro "$node" "$root/node"
  mount --bind "$data" "$root/data"
  mount -o "remount,bind,$mode" "$root/data"
  mount --rbind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  mount -o remount,bind,ro "$root"
  exec chroot "$root" setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --bounding-set -all \\
    --inh-caps -all env -i "$@"`;

export class Container {
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  readonly #output: ProcessOutput;

  /** Starts the container in the way of `docker run`; it is killed when the test ends. */
  constructor(test: TestContext, root: string, options: ContainerOptions) {
    const { data, env = {}, isDataReadOnly = false, command = execForm('CMD') } = options;
    const mode = isDataReadOnly ? 'ro' : 'rw';
    const variables = Object.entries({ PATH: '/node:/usr/bin:/bin', HOME: '/data', ...env, ...imageEnvironment() });
    const isolate = [
      'unshare',
      '--mount',
      '--pid',
      '--net',
      '--ipc',
      '--fork',
      '--kill-child',
      'sh',
      '-c',
      MOUNT,
      'sh',
    ];
    const args = [root, data, mode, dirname(process.execPath), USER, ...variables.map((pair) => pair.join('='))];
    const [program = '', ...rest] = [...AS_ROOT, ...isolate, ...args, ...execForm('ENTRYPOINT'), ...command];
    const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    this.#output = new ProcessOutput(child);
    this.ended = this.#output.finished;
    test.after(async () => {
      if (child.exitCode === null && child.signalCode === null) this.signal('KILL');
      await this.ended;
    });
  }

  /** Resolves once the log of the container matches. */
  async logged(pattern: RegExp): Promise<void> {
    await this.#output.logged(pattern);
  }

  /** Sends a signal to process 1 of the container, in the way of `docker stop`. */
  signal(name: 'TERM' | 'INT' | 'KILL'): void {
    sudo('kill', `-${name}`, this.#init());
  }

  /** Runs a command in the container as its user, in the way of `docker exec`. */
  exec(...command: string[]): Promise<Ended> {
    return this.#enter(
      ['--mount', '--pid', '--net', '--root', '--wd', `--setuid=${USER}`, `--setgid=${USER}`],
      ['/usr/bin/env', 'PATH=/node:/usr/bin:/bin', ...command],
    );
  }

  /** Runs a command of this machine in the container's network. */
  inNetwork(...command: string[]): Promise<Ended> {
    return this.#enter(['--net'], command);
  }

  #enter(how: readonly string[], command: readonly string[]): Promise<Ended> {
    const [program = '', ...args] = [...AS_ROOT, 'nsenter', '--target', this.#init(), ...how, '--', ...command];
    return runCommand(program, { args });
  }

  /** Returns the id that the container's first process has outside the container. */
  #init(): string {
    let pid = String(this.#child.pid);
    // The process is a descendant of sudo, if that is used, and of unshare.
    for (let level = 0; level <= AS_ROOT.length / 2; level += 1) {
      pid = execFileSync('pgrep', ['-P', pid], { encoding: 'utf8' }).trim();
    }
    return pid;
  }
}

function imageEnvironment(): Record<string, string> {
  const pairs = INSTRUCTIONS.filter((line) => line.startsWith('ENV ')).map((line) => line.slice(4).split('='));
  return Object.fromEntries(pairs) as Record<string, string>;
}
