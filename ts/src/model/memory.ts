/** The memory that the process may take, and the part of it that a model leaves for the KV cache. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { Refusal } from '../refusal.ts';
import { secondGraphs } from './two-graphs.ts';

const MIB = 2 ** 20;

/** Memory of a server under load without a KV cache and without its graph. With less the kernel ends it. */
const SERVER_BYTES = 190 * MIB;

/** Memory that a server reserves in addition when it loads a model: for itself, and for the stack of each thread. */
const RESERVED_BYTES = 220 * MIB;
const STACK_BYTES = 8 * MIB;

/** Memory that a token of a long state takes until its answer, and how many of its tokens the embedded model reads. */
const TOKEN_BYTES = 27 * 1024;
const LONGEST_TOKENS = 16_384;

/** A limit that the system sets for the process. */
export interface MemoryLimit {
  readonly bytes: number;
  /** The place where the limit is set, for the person who can change it. */
  readonly origin: string;
  /** The bytes of it that a server takes, besides its graph. */
  readonly serverBytes: number;
}

interface Fit {
  /** The most bytes that the KV cache can take. */
  readonly stateCacheBytes: number;
  /** The settings that do not fit, one line each. */
  readonly notes: readonly string[];
}

/** The settings that decide how much memory a server takes. */
interface MemorySettings {
  readonly stateCacheBytes: number;
  readonly maxTokens: number;
}

/**
 * Returns how the model in `folder` fits into the memory that the process may take. A KV cache that would not fit gets
 * a lower limit.
 *
 * @throws Refusal when the model itself does not fit: the process would be killed by its first requests.
 */
export function fitMemory(folder: string, settings: MemorySettings, limits = memoryLimits()): Fit {
  const modelBytes = graphBytes(folder);
  let { stateCacheBytes } = settings;
  const notes: string[] = [];
  for (const { bytes, origin, serverBytes } of limits) {
    const needed = serverBytes + modelBytes;
    const allowed = `the ${mib(bytes)} of memory that the process may take (${origin})`;
    if (bytes < needed) throw new Refusal(`${folder}: needs ${mib(needed)}, more than ${allowed}: raise that limit`);
    const left = bytes - needed;
    if (left < stateCacheBytes) {
      notes.push(`state_cache_bytes: ${mib(stateCacheBytes)} do not fit into ${allowed}: ${mib(left)} are kept`);
      stateCacheBytes = left;
    }
    const longest = Math.min(settings.maxTokens, LONGEST_TOKENS) * TOKEN_BYTES;
    if (left - stateCacheBytes < longest) {
      notes.push(
        `max_tokens: one request can take ${mib(longest)} more, which are not left of ${allowed}: it would end the ` +
          'server; raise that limit, or lower max_tokens or state_cache_bytes',
      );
    }
  }
  return { stateCacheBytes, notes };
}

/** Returns the limits of this process; an empty list where it may use the whole machine. */
function memoryLimits(): MemoryLimit[] {
  const { constrainedMemory } = process as { readonly constrainedMemory?: () => number | undefined };
  const group = constrainedMemory?.() ?? 0;
  const data = /^Max data size +(\d+)/m.exec(fileText('/proc/self/limits'))?.[1];
  const reserved = Number(/^VmData:\s+(\d+) kB/m.exec(fileText('/proc/self/status'))?.[1] ?? 0) * 1024;
  const limits: MemoryLimit[] = [
    { bytes: group, origin: 'memory of its control group', serverBytes: SERVER_BYTES },
    {
      bytes: Number(data ?? 0),
      origin: 'ulimit -d',
      serverBytes: reserved + RESERVED_BYTES + availableParallelism() * STACK_BYTES,
    },
  ];
  return limits.filter(({ bytes }) => bytes > 0 && bytes < totalmem());
}

/** Returns the text of a file in which Linux describes the process; empty on other systems. */
function fileText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/**
 * Returns the bytes of the smallest graph in a model folder, with the weights that lie beside it: a folder may hold one
 * graph in several precisions, of which one is loaded; an encoder comes with its second graph. Where the folder has none,
 * those in its folder `onnx` count, or in the folder of a precision there. A folder that cannot be read is reported by
 * the load.
 */
function graphBytes(folder: string): number {
  const folders = ['', 'onnx', 'onnx/fp32', 'onnx/int8'].map((name) => join(folder, name));
  for (const name of folders) {
    const bytes = smallestGraph(name);
    if (bytes !== undefined) return bytes;
  }
  return 0;
}

function smallestGraph(folder: string): number | undefined {
  try {
    const files = readdirSync(folder).map((name) => ({ name, bytes: statSync(join(folder, name)).size }));
    const seconds = new Set(files.flatMap(({ name }) => secondGraphs(name)));
    const graphs = files.filter(({ name }) => name.endsWith('.onnx') && !seconds.has(name));
    const whole = graphs.map((graph) => {
      const both = [graph.name, ...secondGraphs(graph.name)];
      const parts = files.filter(({ name }) => both.some((one) => name.startsWith(one)));
      return parts.reduce((sum, { bytes }) => sum + bytes, 0);
    });
    return whole.length === 0 ? undefined : Math.min(...whole);
  } catch {
    return undefined;
  }
}

function mib(bytes: number): string {
  return `${Math.floor(bytes / MIB)} MiB`;
}
