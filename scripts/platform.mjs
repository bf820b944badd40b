/** Where the parts of a platform lie, and what it calls them. */
import { join } from 'node:path';
import process from 'node:process';

/** What the platform calls the addon's library, and the files of ONNX Runtime, the library itself first. */
const PLATFORMS = {
  linux: { library: 'libsvc_engine.so', runtime: ['libonnxruntime.so.1'] },
  darwin: { library: 'libsvc_engine.dylib', runtime: ['libonnxruntime.1.29.0.dylib'] },
  win32: { library: 'svc_engine.dll', runtime: ['onnxruntime.dll', 'DirectML.dll'] },
};

/** Undefined on a platform that ONNX Runtime is not built for. */
export const PLATFORM = PLATFORMS[process.platform];

const NATIVE = join('dist', 'native');

/** What the addon is called, as Node loads it. */
export const ADDON_NAME = 'svc_engine.node';

/** The addon of this platform. */
export const ADDON = join(NATIVE, ADDON_NAME);

/** The files of ONNX Runtime for a platform, as npm puts them: the library itself first. */
export function runtimeFiles(os, cpu) {
  const folder = join('node_modules', 'onnxruntime-node', 'bin', 'napi-v6', os, cpu);
  return (PLATFORMS[os]?.runtime ?? []).map((name) => ({ name, path: join(folder, name) }));
}

/** Every file of ONNX Runtime: where npm puts it, and where the addon looks for it. */
export const RUNTIME_FILES = runtimeFiles(process.platform, process.arch).map(({ name, path }) => ({
  from: path,
  to: join(NATIVE, name),
}));

/** The library of ONNX Runtime. */
export const ONNX_RUNTIME = RUNTIME_FILES[0]?.to ?? '';

/** Where cargo puts the addon of a platform; `target` is its name of it, where it was built for another. */
export function builtLibrary(os, target = '') {
  return join(process.env.CARGO_TARGET_DIR || 'target', target, 'release', PLATFORMS[os]?.library ?? '');
}
