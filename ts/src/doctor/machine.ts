/** Checks of the machine: Node and memory. */
import { freemem } from 'node:os';
import { type Finding, ok, problem, warning } from './finding.ts';

const MIN_NODE_MAJOR = 20;

/**
 * A server with the embedded model and its default limits needs less memory than this, even while it reads the longest
 * state.
 */
const ENOUGH_BYTES = 768 * 2 ** 20;

export function checkNode(version = process.version): Finding {
  const major = Number(/^v(\d+)/.exec(version)?.[1]);
  if (major >= MIN_NODE_MAJOR) return ok('node', version);
  return problem('node', `${version} is too old`, `install Node ${MIN_NODE_MAJOR} or newer`);
}

export function checkMemory(freeBytes = availableBytes()): Finding {
  const message = `${Math.floor(freeBytes / 2 ** 20)} MiB free`;
  if (freeBytes >= ENOUGH_BYTES) return ok('memory', message);
  return warning(
    'memory',
    message,
    `leave ${ENOUGH_BYTES / 2 ** 20} MiB to the server, or raise the container's limit`,
  );
}

/** Returns the number of available bytes. Older releases of Node do not know the limit of the container. */
function availableBytes(): number {
  const { availableMemory } = process as { readonly availableMemory?: () => number };
  return availableMemory?.() ?? freemem();
}
