import assert from 'node:assert/strict';
import { chmodSync, cpSync, existsSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { temporaryFolder } from '../temporary-folder.ts';
import { accepted, installed, Place, programFolder, programPath, TOOLS } from './place.ts';
import { Releases } from './releases.ts';

/** Programs in the place of the system's: the nth that is started kills the installer instead of doing its work. */
class Killer {
  readonly programs: string;
  readonly #folder: string;

  private constructor(programs: string, folder: string) {
    this.programs = programs;
    this.#folder = folder;
  }

  static async make(t: TestContext): Promise<Killer> {
    const folder = temporaryFolder(t);
    const [aim, pid, shot, started] = ['aim', 'pid', 'shot', 'started'].map((name) => join(folder, name));
    const scripts: Record<string, string> = {};
    for (const tool of [...TOOLS, 'curl', 'sha256sum', 'shasum']) {
      const path = await programPath(tool);
      // `sh` is not among the tools: it runs the installer itself, and its process is the one that is killed.
      if (path === '') continue;
      // Two programs of a pipeline may start at once, so each adds its line in one step.
      scripts[tool] = `[ ! -e '${shot}' ] || exit 1
echo >>'${started}'
read -r left <'${aim}'
while read -r line; do left=$((left - 1)); done <'${started}'
if [ "$left" -le 0 ]; then read -r installer <'${pid}'; : >'${shot}'; kill -9 "$installer"; exit 1; fi
exec '${path}' "$@"`;
    }
    const programs = await programFolder(t, scripts);
    writeFileSync(join(programs, 'sh'), `#!/bin/sh\necho $$ >'${pid}'\nexec /bin/sh "$@"\n`);
    chmodSync(join(programs, 'sh'), 0o755);
    return new Killer(programs, folder);
  }

  aim(nth: number): void {
    rmSync(join(this.#folder, 'shot'), { force: true });
    writeFileSync(join(this.#folder, 'started'), '');
    writeFileSync(join(this.#folder, 'aim'), `${nth}\n`);
  }

  get hasShot(): boolean {
    return existsSync(join(this.#folder, 'shot'));
  }
}

interface Scenario {
  readonly what: string;
  readonly args: readonly string[];
  /** The versions that may be installed after the kill; an empty name stands for none. */
  readonly between: readonly string[];
  /** The arguments of the run after the kill; `after` is the version that is then installed, or empty for none. */
  readonly next: readonly string[];
  readonly after: string;
}

const UPGRADE = ['--version', '0.3.0'];

const SCENARIOS: readonly Scenario[] = [
  { what: 'an upgrade', args: UPGRADE, between: ['0.2.0', '0.3.0'], next: UPGRADE, after: '0.3.0' },
  { what: 'a way back', args: ['--rollback'], between: ['0.1.0', '0.2.0'], next: UPGRADE, after: '0.3.0' },
  { what: 'a removal', args: ['--uninstall'], between: ['', '0.2.0'], next: ['--uninstall'], after: '' },
];

/** Returns the names of all installed files and the targets of links, without the parts that differ between runs. */
function shape({ prefix }: Place): string {
  if (!existsSync(prefix)) return '';
  const names = readdirSync(prefix, { recursive: true }) as string[];
  const links = ['current', 'previous'].map((name) => join('lib', 'svc', name)).filter((name) => names.includes(name));
  const targets = links.map((name) => `${name}: ${readlinkSync(join(prefix, name))}`);
  const plain = names.map((name) => name.replace(/\.new\.\w+/, '.new').replace(/\.run\.\d+\.[\w-]+/, '.run'));
  return [...plain.sort(), ...targets].join('\n');
}

/** Returns the output of `svc --version`, or an empty text if there is no such command. */
async function versionOf(place: Place): Promise<string> {
  return existsSync(join(place.prefix, 'bin', 'svc')) ? place.version() : '';
}

if (process.platform !== 'win32') {
  suite('install.sh that is killed at any of its steps', { concurrency: 2 }, () => {
    for (const { what, args, between, next, after } of SCENARIOS) {
      test(`${what} leaves a svc that works, and the next run ends it`, async (t) => {
        const { place, releases } = await installed(t);
        const own = ['--from', releases.folder, '--no-config'];
        accepted(await place.install(own));
        releases.add({ version: '0.3.0' });
        const before = join(temporaryFolder(t), 'before');
        cpSync(place.prefix, before, { recursive: true, verbatimSymlinks: true });
        const killer = await Killer.make(t);
        const [versions, shapes] = [new Set<string>(), new Set<string>()];
        let steps = 0;
        do {
          steps += 1;
          rmSync(place.prefix, { recursive: true, force: true });
          cpSync(before, place.prefix, { recursive: true, verbatimSymlinks: true });
          killer.aim(steps);
          const { signal } = await place.install([...own, ...args], { programs: killer.programs });
          assert.equal(signal, killer.hasShot ? 'SIGKILL' : null);
          const now = await versionOf(place);
          assert.ok(between.includes(now), `${now} after step ${steps}`);
          versions.add(now);
          // A state like this one has already been checked.
          if (shapes.size === shapes.add(shape(place)).size) continue;
          accepted(await place.install([...own, ...next]));
          assert.equal(await versionOf(place), after, `after step ${steps} and another run`);
          const kept = place.kept?.names;
          assert.deepEqual(kept, after === '' ? undefined : ['current', 'previous', 'versions'], `after step ${steps}`);
        } while (killer.hasShot);
        assert.deepEqual([...versions].sort(), between);
        t.diagnostic(`${steps - 1} steps, ${shapes.size} states`);
      });
    }

    test('a first installation leaves nothing or a svc that works, and the next run ends it', async (t) => {
      const releases = new Releases(t).add({ version: '0.1.0' });
      const killer = await Killer.make(t);
      const args = ['--from', releases.folder, '--no-config'];
      const shapes = new Set<string>();
      let steps = 0;
      do {
        steps += 1;
        const place = new Place(t);
        killer.aim(steps);
        await place.install(args, { programs: killer.programs });
        assert.ok(['', '0.1.0'].includes(await versionOf(place)));
        if (shapes.size === shapes.add(shape(place)).size) continue;
        accepted(await place.install(args));
        assert.equal(await versionOf(place), '0.1.0', `after step ${steps} and another run`);
        assert.deepEqual(place.kept, { names: ['current', 'versions'], versions: ['0.1.0'] });
      } while (killer.hasShot);
      assert.ok(steps > 20);
    });

    test('a signal at the moment of the switch leaves the version that is switched to', async (t) => {
      const { place, releases } = await installed(t);
      // The installer marks its run with a file whose name holds its own process id.
      const terminate = `for run in "$HOME"/../.run.*; do run=\${run##*/.run.}; kill -TERM "\${run%%.*}"; done`;
      releases.add({ version: '0.2.0', nodeThen: `case "$4" in */current) ${terminate} ;; esac` });
      const { code, stderr } = await place.install(['--from', releases.folder, '--no-config']);
      assert.deepEqual([code, stderr], [143, '']);
      assert.equal(await place.version(), '0.2.0');
      assert.deepEqual(place.kept, { names: ['current', 'previous', 'versions'], versions: ['0.1.0', '0.2.0'] });
    });
  });
}
