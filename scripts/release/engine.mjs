/**
 * Builds the addon for a release: `node scripts/release/engine.mjs [PLATFORM...]` writes dist/release/engine/PLATFORM/.
 * For Linux, zig links it against the oldest supported glibc, whatever this machine has, and the symbols that it and
 * ONNX Runtime require are checked afterwards. The compiler needs the standard library of each platform; for Linux,
 * `pip install -r scripts/release/requirements.txt` installs the linker.
 */
import { copyFileSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { ADDON_NAME, builtLibrary, runtimeFiles } from '../platform.mjs';
import { asProgram } from './command.mjs';
import { requireOldGlibc } from './glibc.mjs';
import { chosenPlatforms, engineFolder, GLIBC } from './platforms.mjs';
import { run } from './run.mjs';

const BUILD = ['--release', '--locked', '-p', 'svc-engine', '--lib', '--target'];

/**
 * Returns an environment that keeps this machine's paths out of the addon: otherwise the text of every panic has them.
 */
function environment() {
  const cargoHome = process.env.CARGO_HOME ?? join(homedir(), '.cargo');
  const flags = [`--remap-path-prefix=${cargoHome}=cargo`, `--remap-path-prefix=${process.cwd()}=svc`];
  return { ...process.env, CARGO_ENCODED_RUSTFLAGS: flags.join('\x1f'), CARGO_PROFILE_RELEASE_STRIP: 'symbols' };
}

function compile({ os, target }) {
  const [command, args] =
    os === 'linux'
      ? ['cargo-zigbuild', ['zigbuild', ...BUILD, `${target}.${GLIBC}`]]
      : ['cargo', ['build', ...BUILD, target]];
  process.stdout.write(`engine: ${command} ${args.join(' ')}\n`);
  run(command, args, { env: environment() });
}

function buildEngine(platform) {
  const { os, cpu, target } = platform;
  compile(platform);
  const folder = engineFolder(platform);
  mkdirSync(folder, { recursive: true });
  const addon = join(folder, ADDON_NAME);
  copyFileSync(builtLibrary(os, target), addon);
  if (os === 'linux')
    for (const file of [addon, ...runtimeFiles(os, cpu).map(({ path }) => path)]) requireOldGlibc(file);
  process.stdout.write(`engine: ${addon}\n`);
}

await asProgram(import.meta.url, (names) => chosenPlatforms(names).forEach(buildEngine));
