/**
 * The places of the parts that are no JavaScript: the engine of this platform, and the embedded model. In a checkout
 * and in the container they are next to the program; in an installation each is a package of its own.
 */
import { existsSync, readFileSync } from 'node:fs';
import nodeModule from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DIST } from '../dist.ts';

/** The platform of a process. */
export interface Platform {
  readonly os: string;
  readonly cpu: string;
  /** The version of glibc; undefined where there is none, as on Alpine. */
  readonly glibc: string | undefined;
}

/**
 * The package of each platform that has one: `npm/platforms.json` is the list, and a test compares this table with it.
 */
export const ENGINES: Readonly<Record<string, string>> = {
  'linux x64': '@svc/engine-linux-x64-gnu',
  'linux arm64': '@svc/engine-linux-arm64-gnu',
  'darwin arm64': '@svc/engine-darwin-arm64',
  'win32 x64': '@svc/engine-win32-x64-msvc',
};

/** The oldest glibc that the engine runs on. */
export const MIN_GLIBC = '2.28';

const MAIN_PACKAGE = '@svc/server';
const MODEL_PACKAGE = '@svc/model-small';
/** The path of the model folder, relative to `dist`. */
const MODEL_FOLDER = '../models/svc-small';

/**
 * A `require` of Node. It comes from the whole module, since webpack replaces a `createRequire` that is imported by name.
 */
export const requireHere = nodeModule.createRequire(import.meta.url);

/** Returns the folder of the engine: the addon and ONNX Runtime. Undefined when it is not installed. */
export function engineFolder(): string | undefined {
  return beside('native/') ?? packageFolder(ENGINES[`${process.platform} ${process.arch}`]);
}

/** Returns the folder of the embedded model. Undefined when it is not installed. */
export function modelFolder(): string | undefined {
  return beside(MODEL_FOLDER) ?? packageFolder(MODEL_PACKAGE);
}

/**
 * Whether this file is in its package, so that the other packages are found from it. A bundler may have copied it into
 * the program of somebody else.
 */
function isInPackage(): boolean {
  try {
    const text = readFileSync(new URL('../package.json', DIST), 'utf8');
    return (JSON.parse(text) as { readonly name?: unknown }).name === MAIN_PACKAGE;
  } catch {
    return false;
  }
}

/** Returns what a program does about a bundle that has this package in it, as one line. */
function bundled(what: string): string {
  const place = fileURLToPath(new URL('.', DIST));
  const advice = `a bundler must leave ${MAIN_PACKAGE} out ("external"), and the package must be installed beside the bundle`;
  return `${what} is not found from ${place}, where ${MAIN_PACKAGE} is in a bundle: ${advice}`;
}

/** Returns the places where there is no embedded model, as one line. */
export function missingModel(isWhole = isInPackage()): string {
  if (!isWhole) return bundled('the embedded model');
  const folder = fileURLToPath(new URL(MODEL_FOLDER, DIST));
  return `the embedded model is not installed: there is no package ${MODEL_PACKAGE} and no folder ${folder}`;
}

/** Returns why there is no engine here, and what to do, as one line. */
export function missingEngine(platform: Platform = thisPlatform(), isWhole = isInPackage()): string {
  const name = ENGINES[`${platform.os} ${platform.cpu}`];
  const reason = unsupportedPlatform(platform);
  if (reason !== undefined) return reason;
  if (!isWhole) return bundled(`the package ${name}`);
  return `the package ${name} is not installed: run npm install again, without --omit=optional`;
}

/** Returns why the engine cannot run on a platform, as one line. Undefined when it can. */
export function unsupportedPlatform({ os, cpu, glibc }: Platform = thisPlatform()): string | undefined {
  if (os === 'darwin' && cpu === 'x64') {
    return 'there is no engine for Macs with an Intel processor: use the container image';
  }
  if (ENGINES[`${os} ${cpu}`] === undefined) return `there is no engine for ${os} ${cpu}: use the container image`;
  if (os !== 'linux') return undefined;
  if (glibc === undefined) {
    return `there is no engine for musl, as on Alpine: use a system with glibc ${MIN_GLIBC} or newer, or the container image`;
  }
  if (!isOlder(glibc, MIN_GLIBC)) return undefined;
  return `the engine needs glibc ${MIN_GLIBC} or newer, and this system has ${glibc}: use the container image`;
}

function beside(path: string): string | undefined {
  const folder = fileURLToPath(new URL(path, DIST));
  return existsSync(folder) ? folder : undefined;
}

function packageFolder(name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  try {
    return dirname(requireHere.resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

function thisPlatform(): Platform {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return { os: process.platform, cpu: process.arch, glibc: header.glibcVersionRuntime };
}

function isOlder(version: string, than: string): boolean {
  return version.localeCompare(than, 'en', { numeric: true }) < 0;
}
