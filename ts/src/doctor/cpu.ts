/** Check of the processor: its features that make a model fast. */
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { type Finding, ok, warning } from './finding.ts';

/** The flags of `/proc/cpuinfo` and their names, by architecture, in the order in which they are reported. */
const FEATURES: Partial<Record<NodeJS.Architecture, ReadonlyMap<string, string>>> = {
  x64: new Map([
    ['avx2', 'AVX2'],
    ['avx512_vnni', 'AVX-512 VNNI'],
    ['avx_vnni', 'AVX-VNNI'],
  ]),
  arm64: new Map([['asimddp', 'NEON dot product']]),
};

/** Instructions that add up products of 8-bit numbers. */
const DOT_PRODUCT = new Set(['AVX-512 VNNI', 'AVX-VNNI', 'NEON dot product']);

export function checkCpu(): Finding {
  const { arch, platform } = process;
  const model = cpus()[0]?.model.trim() || arch;
  // Every Mac with an Apple processor has this feature; on other systems than Linux, Node cannot tell.
  if (platform === 'darwin' && arch === 'arm64') return processorFinding(model, arch, new Set(['NEON dot product']));
  const features = platform === 'linux' ? linuxFeatures() : undefined;
  if (features === undefined) return ok('cpu', `${model}; what it can do for 8-bit models is not known here`);
  return processorFinding(model, arch, features);
}

function linuxFeatures(): ReadonlySet<string> | undefined {
  try {
    return cpuFeatures(readFileSync('/proc/cpuinfo', 'utf8'), process.arch);
  } catch {
    return undefined;
  }
}

/**
 * Returns the names of the features of the first processor in the text of a `/proc/cpuinfo`; undefined if the text has
 * no list of them or the architecture is not known.
 */
export function cpuFeatures(cpuinfo: string, arch: NodeJS.Architecture): ReadonlySet<string> | undefined {
  const known = FEATURES[arch];
  const list = /^(?:flags|Features)\s*:(.*)$/m.exec(cpuinfo)?.[1];
  if (known === undefined || list === undefined) return undefined;
  const flags = new Set(list.trim().split(/\s+/));
  return new Set([...known].filter(([flag]) => flags.has(flag)).map(([, name]) => name));
}

/** Returns the finding about the speed that these features allow. */
export function processorFinding(model: string, arch: string, features: ReadonlySet<string>): Finding {
  const names = [...features].join(', ');
  if ([...features].some((name) => DOT_PRODUCT.has(name))) {
    return ok('cpu', `${model}: ${names}; 8-bit models run at their full speed`);
  }
  if (features.has('AVX2')) {
    return ok('cpu', `${model}: ${names}, no VNNI; 8-bit models run, slower than with it`);
  }
  const missing =
    arch === 'arm64' ? 'no NEON dot product: 8-bit models run slowly' : 'no AVX2: every model runs slowly';
  const advice =
    arch === 'arm64' ? 'use a processor of ARMv8.2 or later' : 'use a processor, or a virtual machine, with AVX2';
  return warning('cpu', `${model}: ${missing}`, advice);
}
