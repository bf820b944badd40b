/** The packages of this build, published in a registry of their own. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REPOSITORY } from '../addon/model-folders.ts';
import { IsolatedRegistry } from './isolated-registry.ts';

/** The name of this machine's platform in the names of packages. */
export const platform = process.arch === 'arm64' ? 'linux-arm64-gnu' : 'linux-x64-gnu';

/** The packages that an installation has here, by their names without `@svc/`. */
export const published = ['model-small', `engine-${platform}`, 'server'];

/**
 * Makes the packages and publishes them. `commands` are programs that commands in the registry's network find, in
 * addition to its own.
 */
export async function publishPackages(commands: readonly string[] = []): Promise<IsolatedRegistry> {
  const release = mkdtempSync(join(tmpdir(), 'svc-release-'));
  try {
    const env = { ...process.env, SVC_RELEASE_FOLDER: release };
    execFileSync(process.execPath, [join('scripts', 'release', 'packages.mjs'), '--local'], { cwd: REPOSITORY, env });
    const registry = await IsolatedRegistry.start(commands);
    for (const name of published) {
      const cwd = join(release, 'node_modules', '@svc', name);
      const { code, stderr } = await registry.run(['npm', 'publish'], { cwd });
      if (code !== 0) throw new Error(stderr);
    }
    return registry;
  } finally {
    rmSync(release, { recursive: true, force: true });
  }
}
