import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { suite, type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';

interface Zip {
  readonly outputStream: NodeJS.ReadableStream;
  addBuffer(content: Buffer, path: string): void;
  addFile(file: string, path: string, options: { readonly compress: boolean }): void;
  end(): void;
}

/** Returns a program that does what the installer asks of svc; it leaves the settings to the real svc. */
function program(version: string): string {
  const real = pathToFileURL(join(REPOSITORY, 'bin', 'svc.js')).href;
  return `const [command] = process.argv.slice(2);
if (command === '--version') console.log('${version}');
else if (command === 'ask') console.log('{"answers":{}}');
else await import('${real}');
`;
}

/** Adds the archive of a version to a folder, and its line to the checksums there. */
async function addRelease(folder: string, version: string): Promise<void> {
  const { ZipFile } = createRequire(import.meta.url)('yazl') as { readonly ZipFile: new () => Zip };
  const zip = new ZipFile();
  const launcher = join(REPOSITORY, 'scripts', 'release', 'launcher', 'svc.cmd');
  const packageFolder = `svc-${version}/lib/node_modules/@svc/server`;
  zip.addBuffer(readFileSync(launcher), `svc-${version}/bin/svc.cmd`);
  zip.addBuffer(Buffer.from('{"type": "module"}'), `${packageFolder}/package.json`);
  zip.addBuffer(Buffer.from(program(version)), `${packageFolder}/bin/svc.js`);
  zip.addFile(process.execPath, `svc-${version}/lib/node.exe`, { compress: false });
  zip.end();
  const bytes = await buffer(zip.outputStream);
  const name = `svc-${version}-windows-amd64.zip`;
  writeFileSync(join(folder, name), bytes);
  const sum = createHash('sha256').update(bytes).digest('hex');
  writeFileSync(join(folder, 'SHA256SUMS'), `${sum}  ${name}\n`, { flag: 'a' });
}

/** The folders of a user, which are empty at first. */
class Place {
  readonly #folder: string;
  readonly prefix: string;
  readonly settings: string;

  constructor(test: TestContext) {
    this.#folder = temporaryFolder(test);
    this.prefix = join(this.#folder, 'local', 'Programs', 'svc');
    this.settings = join(this.#folder, 'roaming', 'svc', 'svc.json');
  }

  /** The place of the releases for a run that names no folder. */
  releases = '';

  install(...args: string[]): Promise<Ended> {
    const script = join(REPOSITORY, 'deploy', 'install.ps1');
    const env = { LOCALAPPDATA: join(this.#folder, 'local'), APPDATA: join(this.#folder, 'roaming') };
    return runCommand('powershell', {
      args: ['-NoProfile', '-NonInteractive', '-ExecutionPolicy', 'Bypass', '-File', script, ...args],
      env: { ...env, SVC_CONFIG: '', SVC_DATA: '', SVC_RELEASES: this.releases },
    });
  }

  async version(): Promise<string> {
    const args = ['/d', '/c', join(this.prefix, 'bin', 'svc.cmd'), '--version'];
    return (await runCommand('cmd', { args })).stdout.trim();
  }

  get versions(): string[] {
    return readdirSync(join(this.prefix, 'versions')).sort();
  }
}

async function accepted(ended: Promise<Ended>): Promise<string> {
  const { code, stdout, stderr } = await ended;
  assert.deepEqual([code, stderr], [0, '']);
  return stdout;
}

async function refusal(ended: Promise<Ended>): Promise<string> {
  const { code, stdout, stderr } = await ended;
  assert.deepEqual([code, stdout], [1, '']);
  return stderr.trim();
}

if (process.platform === 'win32') {
  suite('install.ps1', () => {
    test("installs, upgrades beside the user's settings, goes back, and is removed", async (t) => {
      const place = new Place(t);
      const releases = temporaryFolder(t);
      await addRelease(releases, '0.9.0');
      assert.match(await accepted(place.install('-From', releases)), /^svc 0\.9\.0 is installed in /);
      assert.equal(await place.version(), '0.9.0');
      const made = { generated: true, listen: '127.0.0.1:21118', device: 'auto' };
      assert.deepEqual(JSON.parse(readFileSync(place.settings, 'utf8')), made);
      writeFileSync(place.settings, '{ "device": "cpu" }');
      await addRelease(releases, '0.10.0');
      assert.match(
        await accepted(place.install('-From', releases)),
        /^svc 0\.10\.0 is installed .* in place of 0\.9\.0\./,
      );
      assert.equal(await place.version(), '0.10.0');
      assert.equal(readFileSync(place.settings, 'utf8'), '{ "device": "cpu", "listen": "127.0.0.1:21118" }');
      assert.match(await accepted(place.install('-From', releases)), /^svc 0\.10\.0 is installed already/);
      rmSync(join(place.prefix, 'bin', 'svc.cmd'));
      assert.match(await accepted(place.install('-Rollback')), /^svc 0\.9\.0 is back, in place of 0\.10\.0\./);
      assert.equal(await place.version(), '0.9.0');
      assert.deepEqual(place.versions, ['0.10.0', '0.9.0']);
      // These are the remains of a run that was ended in the middle.
      mkdirSync(join(place.prefix, '.new.1', 'unpacked'), { recursive: true });
      assert.match(await accepted(place.install('-Uninstall')), /The settings stay: /);
      assert.ok(!existsSync(place.prefix) && existsSync(place.settings));
      await accepted(place.install('-Uninstall', '-Purge'));
      assert.ok(!existsSync(place.settings));
    });

    test('ends a removal that was ended in the middle', async (t) => {
      const place = new Place(t);
      const releases = temporaryFolder(t);
      await addRelease(releases, '0.9.0');
      await accepted(place.install('-From', pathToFileURL(releases).href, '-NoConfig'));
      mkdirSync(join(place.prefix, '.new.1'));
      renameSync(join(place.prefix, 'versions'), join(place.prefix, '.new.1', 'versions'));
      assert.match(await accepted(place.install('-Uninstall')), /^svc is removed from /);
      assert.ok(!existsSync(place.prefix));
    });

    test('loads a release from a host, also from one that leads elsewhere', async (t) => {
      const place = new Place(t);
      const releases = temporaryFolder(t);
      await addRelease(releases, '0.9.0');
      const server = createServer((request, response) => {
        const [, folder = '', name = ''] = /^(.*)\/([^/]+)$/.exec(request.url ?? '') ?? [];
        if (/download/.test(folder)) response.writeHead(302, { location: `/files/${name}` }).end();
        else if (existsSync(join(releases, name))) response.end(readFileSync(join(releases, name)));
        else response.writeHead(404).end();
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      t.after(() => {
        server.closeAllConnections();
        server.close();
      });
      place.releases = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      await accepted(place.install('-NoConfig'));
      assert.equal(await place.version(), '0.9.0');
      const nowhere = place.install('-From', `${place.releases}/nowhere/x`);
      assert.match(await refusal(nowhere), /^install: .*\/nowhere\/x\/SHA256SUMS cannot be had: .*404/);
    });

    test('changes nothing and says why in one line for what is damaged, missing, older or unknown', async (t) => {
      const place = new Place(t);
      const [releases, older, damaged] = [temporaryFolder(t), temporaryFolder(t), temporaryFolder(t)];
      await addRelease(releases, '0.9.0');
      await addRelease(older, '0.9.0-rc.1');
      await addRelease(damaged, '0.10.0');
      writeFileSync(join(damaged, 'svc-0.10.0-windows-amd64.zip'), 'x', { flag: 'a' });
      await accepted(place.install('-From', releases));
      for (const [args, line] of [
        [['-From', damaged], /^install: svc-0\.10\.0-windows-amd64\.zip is damaged or not what was released: /],
        [['-From', releases, '-Version', '0.8.0'], /^install: SHA256SUMS of .* has no line for svc-0\.8\.0-/],
        [['-From', older], /^install: svc 0\.9\.0 is installed, which is newer; .* -Version 0\.9\.0-rc\.1$/],
        [['-From', place.prefix], /^install: .* has no SHA256SUMS$/],
        [['-Version', 'latest'], /^install: -Version must be a version, such as 1\.2\.3$/],
        [['-Rollback'], /^install: no version before this one is kept in /],
      ] as const) {
        assert.match(await refusal(place.install(...args)), line);
        assert.equal(await place.version(), '0.9.0');
        assert.deepEqual(place.versions, ['0.9.0']);
      }
    });

    test('runs beside itself without harm', async (t) => {
      const place = new Place(t);
      const releases = temporaryFolder(t);
      mkdirSync(join(place.prefix, '.new.1'), { recursive: true });
      await addRelease(releases, '0.9.0');
      await addRelease(releases, '0.10.0');
      const runs = ['0.9.0', '0.10.0'].map((version) => place.install('-From', releases, '-Version', version));
      for (const run of runs) await accepted(run);
      assert.match(await place.version(), /^0\.(9|10)\.0$/);
      assert.deepEqual(place.versions, ['0.10.0', '0.9.0']);
      assert.deepEqual(readdirSync(place.prefix).sort(), ['bin', 'current', 'previous', 'versions']);
    });
  });
}
