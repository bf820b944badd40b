/** How much memory the process may take, and what of it a model leaves for kept states. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { Refusal } from '../refusal.ts';

const MIB = 2 ** 20;

/** A server under load with nothing kept, its graph not counted. With less the kernel ends it. */
const SERVER_BYTES = 190 * MIB;

/** What it reserves beside what it had before it loaded a model: for itself, and for the stack of each thread. */
const RESERVED_BYTES = 220 * MIB;
const STACK_BYTES = 8 * MIB;

/** What a token of a long state takes until it is answered, and as many as the embedded model reads of one. */
const TOKEN_BYTES = 27 * 1024;
const LONGEST_TOKENS = 16_384;

/** A limit that the system sets to the process. */
export interface MemoryLimit {
  readonly bytes: number;
  /** Who sets it, for the person who can change it. */
  readonly origin: string;
  /** What a server takes of it, besides its graph. */
  readonly serverBytes: number;
}

export interface Fit {
  /** How many bytes of states can be kept. */
  readonly stateCacheBytes: number;
  /** What does not fit; one line each. */
  readonly notes: readonly string[];
}

/** The settings that say how much memory a server takes. */
export interface MemorySettings {
  readonly stateCacheBytes: number;
  readonly maxTokens: number;
}

/**
 * Returns how the model in `folder` fits into the memory that the process may take. Where the states that are kept would
 * not, fewer are.
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

/** The limits of this process; none where the whole machine is its own. */
export function memoryLimits(): MemoryLimit[] {
  const { constrainedMemory } = process as { readonly constrainedMemory?: () => number | undefined };
  const group = constrainedMemory?.() ?? 0;
  const data = /^Max data size +(\d+)/m.exec(textOf('/proc/self/limits'))?.[1];
  const reserved = Number(/^VmData:\s+(\d+) kB/m.exec(textOf('/proc/self/status'))?.[1] ?? 0) * 1024;
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

/** What the system says in a file of Linux; nothing elsewhere. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/**
 * Returns the bytes of the smallest graph in a model folder, with the weights that lie beside it: a folder may hold one graph
 * in several precisions, of which one is loaded. A folder that cannot be read is reported by the load.
 */
function graphBytes(folder: string): number {
  try {
    const files = readdirSync(folder).map((name) => ({ name, bytes: statSync(join(folder, name)).size }));
    const graphs = files.filter(({ name }) => name.endsWith('.onnx'));
    const whole = graphs.map((graph) => {
      const parts = files.filter(({ name }) => name.startsWith(graph.name));
      return parts.reduce((sum, { bytes }) => sum + bytes, 0);
    });
    return whole.length === 0 ? 0 : Math.min(...whole);
  } catch {
    return 0;
  }
}

function mib(bytes: number): string {
  return `${Math.floor(bytes / MIB)} MiB`;
}
