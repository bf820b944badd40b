/**
 * Unpacks the archive of a platform into dist/release/try/ and makes a decision with it, on that platform, with nothing
 * else on PATH: `node scripts/release/try-archive.mjs [PLATFORM]`.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { ARCHIVES, archiveName } from './archive.mjs';
import { asProgram } from './command.mjs';
import { chosenPlatforms, RELEASE, VERSION } from './platforms.mjs';
import { output, run } from './run.mjs';

const TRY = join(RELEASE, 'try');
const QUESTION = ['ask', '--state', 'I was charged twice.', '--question', 'refund: Money back?', '--json'];

function unpack(platform) {
  rmSync(TRY, { recursive: true, force: true });
  mkdirSync(TRY, { recursive: true });
  // The tar of Windows also reads a zip, but another tar may come first on PATH.
  const tar = platform.os === 'win32' ? join(process.env.SystemRoot ?? '', 'System32', 'tar.exe') : 'tar';
  run(tar, ['-xf', resolve(join(ARCHIVES, archiveName(platform)))], { cwd: TRY });
}

/** Runs `svc` of the archive, and returns its output. */
function svc(os, args) {
  const program = resolve(join(TRY, `svc-${VERSION}`, 'bin', os === 'win32' ? 'svc.cmd' : 'svc'));
  const env = os === 'win32' ? process.env : { PATH: '/usr/bin:/bin' };
  const [command, given, shell] =
    os === 'win32' ? [`"${program}"`, args.map((arg) => `"${arg}"`), true] : [program, args, false];
  return output(command, given, { cwd: TRY, env, shell }).trim();
}

await asProgram(import.meta.url, (names) => {
  for (const platform of chosenPlatforms(names)) {
    unpack(platform);
    const version = svc(platform.os, ['--version']);
    if (version !== VERSION) throw new Error(`svc --version says ${version}, not ${VERSION}`);
    const { noul } = JSON.parse(svc(platform.os, QUESTION)).answers.refund;
    if (!(noul >= 0 && noul <= 1)) throw new Error(`the answer has no probability: ${noul}`);
    process.stdout.write(`try: ${archiveName(platform)} decides, p(refund) = ${noul}\n`);
  }
});
