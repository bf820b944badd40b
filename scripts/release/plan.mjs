/**
 * Prints the values that the jobs of .github/workflows/release.yml need, as lines of its outputs: the version and the
 * platforms. With the name of a tag, it fails unless the name is `v` followed by the version.
 */
import process from 'node:process';
import { asProgram } from './command.mjs';
import { PLATFORMS, RUST_VERSION, VERSION } from './platforms.mjs';

await asProgram(import.meta.url, ([tag]) => {
  if (tag !== undefined && tag !== `v${VERSION}`) throw new Error(`the tag is ${tag}, the version is ${VERSION}`);
  const platforms = PLATFORMS.map(({ name, runner, os }) => ({ name, runner, os }));
  const linux = PLATFORMS.filter(({ os }) => os === 'linux').map(({ runner, archive }) => ({ runner, archive }));
  const outputs = { version: VERSION, rust: RUST_VERSION, platforms: JSON.stringify(platforms) };
  const lines = Object.entries({ ...outputs, images: JSON.stringify(linux) }).map(
    ([key, value]) => `${key}=${value}\n`,
  );
  process.stdout.write(lines.join(''));
});
