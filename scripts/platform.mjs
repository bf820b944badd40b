/** Where the parts of this platform lie, and what it calls them. */
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

/** The addon, as Node loads it. */
export const ADDON = join(NATIVE, 'svc_engine.node');

/** Every file of ONNX Runtime: where npm puts it, and where the addon looks for it. */
export const RUNTIME_FILES = (PLATFORM?.runtime ?? []).map((file) => ({
  from: join('node_modules', 'onnxruntime-node', 'bin', 'napi-v6', process.platform, process.arch, file),
  to: join(NATIVE, file),
}));

/** The library of ONNX Runtime. */
export const ONNX_RUNTIME = RUNTIME_FILES[0]?.to ?? '';

/** Where cargo puts the addon. */
export const BUILT_LIBRARY = join(process.env.CARGO_TARGET_DIR || 'target', 'release', PLATFORM?.library ?? '');
