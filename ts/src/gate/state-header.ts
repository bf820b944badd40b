/** The header by which a load balancer behind the gate recognizes requests about the same state. */
import type { IncomingMessage } from 'node:http';
import { callerGone, HttpFailure } from '../errors.ts';
import { memberText } from '../files/json-member.ts';
import { STATE_HEADER, stateDigest } from '../network/state-header.ts';
import { BodyParts } from '../server/middleware/body-parts.ts';

/**
 * The longest body, in bytes, that the gate reads for its state. A longer one is streamed: states of this length are
 * rare, and looking for them would delay other requests.
 */
const MAX_BYTES = 2 ** 20;

/** The form of a digest that `stateDigest` makes. */
const DIGEST = /^[0-9a-f]{16}$/;

/** The name of the state's member in the bodies of the paths with one state. */
const STATE_NAMES: ReadonlyMap<string, string> = new Map([
  ['/v1/systemone', 'state'],
  ['/v1/decisions', 'input'],
]);

/** A request, as far as the gate has read it. */
export interface ReadRequest {
  readonly headers: { readonly [STATE_HEADER]?: string };
  /** The first bytes of the body. */
  readonly start: Buffer;
  /** Whether `start` is the whole body. */
  readonly isWhole: boolean;
}

const UNREAD = { start: Buffer.alloc(0), isWhole: false };

/**
 * Returns the header for the server behind the gate: the caller's own digest, or else the digest of the state in the
 * body, which is read for it. There is no header for a batch of states, for an encoded or long body, and for a body
 * that is no request.
 *
 * @throws HttpFailure when the body does not arrive.
 */
export async function readState(req: IncomingMessage): Promise<ReadRequest> {
  const { [STATE_HEADER]: given, 'content-encoding': encoding = 'identity', 'content-length': length } = req.headers;
  if (typeof given === 'string' && DIGEST.test(given)) return { ...UNREAD, headers: { [STATE_HEADER]: given } };
  const name = STATE_NAMES.get(req.url?.split('?', 1)[0] ?? '');
  const isReadable = req.method === 'POST' && encoding === 'identity' && Number(length ?? 0) <= MAX_BYTES;
  if (name === undefined || !isReadable) return { ...UNREAD, headers: {} };
  const read = await readStart(req);
  const digest = read.isWhole ? digestIn(read.start.toString('utf8'), name) : undefined;
  return { ...read, headers: digest === undefined ? {} : { [STATE_HEADER]: digest } };
}

function digestIn(body: string, name: string): string | undefined {
  try {
    const text = memberText(body, name);
    return text === undefined ? undefined : stateDigest(text);
  } catch {
    // The body is not JSON, which the server will report.
    return undefined;
  }
}

/** Reads a body to its end, or until it is longer than `MAX_BYTES`. */
function readStart(req: IncomingMessage): Promise<Pick<ReadRequest, 'start' | 'isWhole'>> {
  return new Promise((resolve, reject) => {
    const parts = new BodyParts();
    const leave = () => req.off('data', onData).off('end', onEnd).off('error', gone).off('close', gone).pause();
    const done = (isWhole: boolean) => {
      leave();
      resolve({ start: parts.joined(), isWhole });
    };
    const onEnd = () => done(true);
    const onData = (part: Buffer) => {
      parts.add(part);
      if (parts.bytes > MAX_BYTES) done(false);
    };
    // The HTTP server may end a read with a failure of its own, for example its timeout; otherwise the caller has gone.
    const gone = (error?: Error) => {
      leave();
      reject(error instanceof HttpFailure ? error : callerGone());
    };
    req.on('data', onData).on('end', onEnd).on('error', gone).on('close', gone);
  });
}
