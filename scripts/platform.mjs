/** The names and paths of the parts that differ between platforms. */
import { join } from 'node:path';
import process from 'node:process';

/**
 * The platforms' names of the addon's library and of ONNX Runtime's files, of which the library itself is the first.
 */
const PLATFORMS = {
  linux: { library: 'libsvc_engine.so', runtime: ['libonnxruntime.so.1'] },
  darwin: { library: 'libsvc_engine.dylib', runtime: ['libonnxruntime.1.29.0.dylib'] },
  win32: { library: 'svc_engine.dll', runtime: ['onnxruntime.dll', 'DirectML.dll'] },
};

/** The names on this platform; undefined if ONNX Runtime is not built for it. */
export const PLATFORM = PLATFORMS[process.platform];

const NATIVE = join('dist', 'native');

/** The name of the file from which Node loads the addon. */
export const ADDON_NAME = 'svc_engine.node';

/** The path of the addon for this platform. */
export const ADDON = join(NATIVE, ADDON_NAME);

/** Returns the files of ONNX Runtime for a platform where npm puts them; the library itself is the first. */
export function runtimeFiles(os, cpu) {
  const folder = join('node_modules', 'onnxruntime-node', 'bin', 'napi-v6', os, cpu);
  return (PLATFORMS[os]?.runtime ?? []).map((name) => ({ name, path: join(folder, name) }));
}

/**
 * Every file of ONNX Runtime for this platform: the path where npm puts it, and the one where the addon looks for it.
 */
export const RUNTIME_FILES = runtimeFiles(process.platform, process.arch).map(({ name, path }) => ({
  from: path,
  to: join(NATIVE, name),
}));

/** The path of ONNX Runtime's library. */
export const ONNX_RUNTIME = RUNTIME_FILES[0]?.to ?? '';

/**
 * Returns the path where cargo puts the addon of a platform; `target` is cargo's name of a platform other than this.
 */
export function builtLibrary(os, target = '') {
  return join(process.env.CARGO_TARGET_DIR || 'target', target, 'release', PLATFORMS[os]?.library ?? '');
}
