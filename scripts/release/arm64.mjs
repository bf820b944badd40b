/**
 * Builds the addon for Linux on arm64 on a Debian machine with another processor, installs the packages under
 * emulation, and makes one decision: `node scripts/release/arm64.mjs`, after `npm run build`. The compiler, its
 * standard library,
 * the system's libraries and the emulator are Debian's packages, unpacked below dist/release/arm64/ and not installed.
 * The release itself is built on arm64, by .github/workflows/release.yml. With `--addon` it ends when the addon is built,
 * and its last line is, as JSON, the command that runs Node for arm64 here.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, delimiter, join, resolve } from 'node:path';
import process from 'node:process';
import { asProgram } from './command.mjs';
import { nodeFolder } from './node.mjs';
import { makePackages } from './packages.mjs';
import { chosenPlatforms, RELEASE } from './platforms.mjs';
import { output, run } from './run.mjs';

const FOLDER = resolve(join(RELEASE, 'arm64'));
const HOST = join(FOLDER, 'host');
const GUEST = join(FOLDER, 'guest');

/** The files in which Debian names its package sources. */
const SOURCES = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'];

/** Debian's compiler has the same version as its standard library for arm64, which no other compiler can use. */
const TOOLS = ['rustc-web', 'libstd-rust-web-dev'];
const GUEST_PACKAGES = ['libstd-rust-web-dev:arm64', 'libc6:arm64', 'libgcc-s1:arm64', 'libstdc++6:arm64'];

/**
 * The package of the emulator. That of Debian 12 crashes when it loads ONNX Runtime; that of Debian 13 is linked
 * statically.
 */
const EMULATOR = ['qemu-user'];
const [RELEASE_NAME, NEWER_RELEASE_NAME] = ['bookworm', 'trixie'];

/**
 * Returns the environment of an apt with the machine's sources but a state of its own, so that the machine's state is
 * left alone.
 */
function aptOf(suite) {
  const state = join(FOLDER, 'apt', suite);
  for (const folder of ['state/lists/partial', 'cache/archives/partial', 'sources']) {
    mkdirSync(join(state, folder), { recursive: true });
  }
  const file = SOURCES.find((path) => existsSync(path)) ?? SOURCES[0];
  const sources = readFileSync(file, 'utf8').replaceAll(RELEASE_NAME, suite);
  writeFileSync(join(state, 'sources', basename(file)), sources);
  writeFileSync(join(state, 'status'), '');
  writeFileSync(
    join(state, 'apt.conf'),
    `Dir::State "${state}/state";
Dir::State::status "${state}/status";
Dir::Cache "${state}/cache";
Dir::Etc::sourcelist "-";
Dir::Etc::sourceparts "${state}/sources";
APT::Architectures {"amd64";"arm64";};
`,
  );
  const env = { ...process.env, APT_CONFIG: join(state, 'apt.conf') };
  run('apt-get', ['update', '-q'], { env });
  return env;
}

/** Returns a package and the packages of Rust's standard library and LLVM that it needs. */
function withRustPackages(name, env) {
  const args = ['depends', '--recurse', '--no-recommends', '--no-suggests', '--no-conflicts', '--no-breaks'];
  const text = output('apt-cache', [...args, '--no-replaces', '--no-enhances', name], { env });
  const suffix = name.endsWith(':arm64') ? ':arm64' : '';
  const names = text.split('\n').filter((line) => /^(libstd-rust-web|libllvm)\S*$/.test(line));
  return [name, ...names.map((one) => (one.includes(':') ? one : `${one}${suffix}`))];
}

function unpack(names, folder, env) {
  const packed = join(FOLDER, 'packed');
  rmSync(packed, { recursive: true, force: true });
  mkdirSync(packed, { recursive: true });
  const all = new Set(names.flatMap((name) => withRustPackages(name, env)));
  run('apt-get', ['download', '-q', ...all], { cwd: packed, env });
  for (const file of readdirSync(packed)) run('dpkg-deb', ['-x', join(packed, file), folder]);
  rmSync(packed, { recursive: true });
}

function fetchTools() {
  if (existsSync(GUEST)) return;
  rmSync(HOST, { recursive: true, force: true });
  const env = aptOf(RELEASE_NAME);
  unpack(TOOLS, HOST, env);
  unpack(EMULATOR, HOST, aptOf(NEWER_RELEASE_NAME));
  const guest = `${GUEST}.partial`;
  rmSync(guest, { recursive: true, force: true });
  unpack(GUEST_PACKAGES, guest, env);
  // The compiler looks for every standard library next to its own.
  const rustlib = join('usr', 'lib', 'rustlib');
  run('cp', ['-r', join(guest, rustlib, 'aarch64-unknown-linux-gnu'), join(HOST, rustlib)]);
  renameSync(guest, GUEST);
}

function build(platform) {
  const library = join(HOST, 'usr', 'lib', 'x86_64-linux-gnu');
  const path = [library, process.env.LD_LIBRARY_PATH].filter(Boolean).join(delimiter);
  const env = { ...process.env, RUSTC: join(HOST, 'usr', 'bin', 'rustc'), LD_LIBRARY_PATH: path };
  run(process.execPath, [join('scripts', 'release', 'engine.mjs'), platform.name], { env });
}

await asProgram(import.meta.url, ([option]) => {
  const [platform] = chosenPlatforms(['linux-arm64-gnu']);
  fetchTools();
  build(platform);
  const emulator = join(HOST, 'usr', 'bin', 'qemu-aarch64');
  const node = resolve(join(nodeFolder(platform), 'bin', 'node'));
  const command = JSON.stringify([emulator, '-L', GUEST, node]);
  if (option === '--addon') {
    process.stdout.write(`${command}\n`);
    return;
  }
  makePackages([platform]);
  const env = { ...process.env, ARM64_NODE: command };
  run(process.execPath, ['--test', '--test-reporter=spec', join('dist', 'test', 'system', 'install.arm64.js')], {
    env,
  });
});
