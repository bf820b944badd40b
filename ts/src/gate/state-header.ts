/** The header by which a load balancer behind the gate knows requests about the same state. */
import type { IncomingMessage } from 'node:http';
import { HttpFailure } from '../errors.ts';
import { memberText } from '../json-member.ts';
import { BodyParts } from '../middleware/body-parts.ts';
import { STATE_HEADER, stateDigest } from '../state-header.ts';

/** A longer body is passed on as it comes: states of this length are few, and looking for theirs would hold up others. */
const MAX_BYTES = 2 ** 20;

/** What `stateDigest` makes. */
const DIGEST = /^[0-9a-f]{16}$/;

/** Where the paths that have one state have it. */
const STATE_NAMES: ReadonlyMap<string, string> = new Map([
  ['/v1/systemone', 'state'],
  ['/v1/decisions', 'input'],
]);

/** A request as far as the gate has read it. */
export interface ReadRequest {
  readonly headers: { readonly [STATE_HEADER]?: string };
  /** The first bytes of the body. */
  readonly start: Buffer;
  /** Whether they are all of it. */
  readonly isWhole: boolean;
}

const UNREAD = { start: Buffer.alloc(0), isWhole: false };

/**
 * Returns the header for the server behind the gate: the caller's own digest, else that of the state in the body, which is
 * read for it. There is none for many states, a body that is encoded or long, and what is no request.
 *
 * @throws HttpFailure when the body does not come.
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
    // It is no JSON: the server says so.
    return undefined;
  }
}

/** Reads a body to its end, or until it is longer than is looked at. */
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
    // The server ends a read with a failure of its own, for example when its time is up; else the caller has gone.
    const gone = (error?: Error) => {
      leave();
      reject(error instanceof HttpFailure ? error : new HttpFailure('cancelled', 'the caller has gone'));
    };
    req.on('data', onData).on('end', onEnd).on('error', gone).on('close', gone);
  });
}
