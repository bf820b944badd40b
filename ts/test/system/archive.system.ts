import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runPython } from './python.ts';

const { version } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));
const platform = process.arch === 'arm64' ? 'linux-arm64' : 'linux-amd64';

const folder = mkdtempSync(join(tmpdir(), 'svc-release-'));
const archives = join(folder, 'archives');
after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a script of the release in the folder of this test, and returns its output. */
function script(name: string, ...args: string[]): string {
  const env = { ...process.env, SVC_RELEASE_FOLDER: folder };
  const command = [join('scripts', 'release', `${name}.mjs`), ...args];
  return execFileSync(process.execPath, command, { cwd: REPOSITORY, env, encoding: 'utf8' });
}

// Node is fetched only once for all tests.
before(() => {
  const nodes = join(REPOSITORY, 'dist', 'release', 'node');
  mkdirSync(nodes, { recursive: true });
  symlinkSync(nodes, join(folder, 'node'));
  script('archive', '--local');
});

test('an archive holds one folder, no settings and no keys, and nothing that others may write', () => {
  const file = join(archives, `svc-${version}-${platform}.tar.gz`);
  const listed = execFileSync('tar', ['--list', '--verbose', '--gzip', '--file', file], { encoding: 'utf8' });
  const entries = listed
    .trim()
    .split('\n')
    .map((line) => line.split(/\s+/));
  assert.ok(entries.length > 20);
  const programs: string[] = [];
  for (const [mode = '', owner, , , , name = ''] of entries) {
    assert.match(mode, /^-rw[x-]r-[x-]r-[x-]$/, name);
    assert.equal(owner, '0/0');
    assert.ok(name.startsWith(`svc-${version}/`), name);
    assert.doesNotMatch(name, /svc\.json|api-key|password|\.\./);
    if (mode.includes('x')) programs.push(name.replace(`svc-${version}/`, ''));
  }
  assert.ok(programs.includes('bin/svc') && programs.includes('lib/node'), programs.join());
});

test('an archive has the sum that is listed, and the same bytes when it is made again', () => {
  const sums = readFileSync(join(archives, 'SHA256SUMS'), 'utf8');
  execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: archives });
  script('archive', '--local');
  assert.equal(readFileSync(join(archives, 'SHA256SUMS'), 'utf8'), sums);
});

test('an archive decides where it is unpacked, with nothing else on PATH than the system', () => {
  assert.match(script('try-archive'), /^try: svc-.*\.tar\.gz decides, p\(refund\) = 0\.\d+\n$/);
});

test('the archive for Windows is a zip with its own starter and Node', () => {
  const engine = join(folder, 'engine', 'win32-x64-msvc');
  mkdirSync(engine, { recursive: true });
  // This empty file stands for the addon, which is only packed here.
  writeFileSync(join(engine, 'svc_engine.node'), '');
  script('archive', 'win32-x64-msvc');
  const file = join(archives, `svc-${version}-windows-amd64.zip`);
  const names = execFileSync('python3', ['-m', 'zipfile', '--list', file], { encoding: 'utf8' });
  const modules = 'lib/node_modules/@svc/engine-win32-x64-msvc';
  const parts = ['svc_engine.node', 'onnxruntime.dll', 'DirectML.dll'].map((name) => `${modules}/${name}`);
  for (const name of ['bin/svc.cmd', 'lib/node.exe', 'licenses/node.txt', ...parts]) {
    assert.ok(names.includes(`svc-${version}/${name} `), name);
  }
  assert.match(readFileSync(join(archives, 'SHA256SUMS'), 'utf8'), /^[0-9a-f]{64} {2}svc-.*\.zip$/m);
});

const VALIDATE = `
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(str(error) if error else 0)
`;

test('the bill of materials is CycloneDX, and names what the archive is made of', async () => {
  const file = join(archives, `svc-${version}-${platform}.cdx.json`);
  const { code, stderr } = await runPython(['-c', VALIDATE, file]);
  assert.equal(code, 0, stderr);
  const { components } = JSON.parse(readFileSync(file, 'utf8')) as { components: { name: string; purl: string }[] };
  const purls = components.map(({ purl }) => purl.replace(/@[^@]*$/, ''));
  for (const purl of ['pkg:npm/koa', 'pkg:npm/uplot', 'pkg:npm/onnxruntime-node', 'pkg:cargo/ort', 'pkg:cargo/napi']) {
    assert.ok(purls.includes(purl), purl);
  }
  assert.ok(purls.some((purl) => purl.startsWith('pkg:npm/node-linux-')));
  // The packages that only build or test svc are not in the archive.
  for (const purl of ['pkg:npm/esbuild', 'pkg:npm/typescript', 'pkg:cargo/criterion', 'pkg:cargo/napi-derive']) {
    assert.ok(!purls.includes(purl), purl);
  }
});
