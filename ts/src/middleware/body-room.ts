/** The bytes of bodies that are still arriving, bounded for all of them together. */
import { HttpFailure } from '../errors.ts';

/** What is not counted of each body: its connection's headers may take as much. Large bodies so keep no small one out. */
export const FREE_BYTES = 16 * 2 ** 10;

/**
 * Room for bodies from their first byte until the engine has them. What a body says of its length reserves nothing, since
 * that costs its sender nothing: the bytes count as they come, and those that they are decompressed to. When they become too many,
 * the latest body gives way, so that the earliest is always read, however large it is, and nobody who comes later can end it.
 */
export class BodyRoom {
  readonly #maxBytes: number;
  /** In the order of their arrival. */
  readonly #arriving = new Set<ArrivingBody>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** How many bytes are counted now. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Returns the place of a body that says it has `declaredBytes`; 0 when it does not say.
   * @throws HttpFailure `queue_full` when it would not fit beside those that are there
   */
  enter(declaredBytes: number): ArrivingBody {
    const wanted = Math.max(0, declaredBytes - FREE_BYTES);
    if (wanted > 0 && this.#bytes > 0 && this.#bytes + wanted > this.#maxBytes) throw full();
    const body: ArrivingBody = new ArrivingBody((grownBytes) => this.#grow(body, grownBytes));
    this.#arriving.add(body);
    return body;
  }

  leave(body: ArrivingBody): void {
    if (this.#arriving.delete(body)) this.#bytes -= body.bytes;
  }

  #grow(body: ArrivingBody, bytes: number): void {
    if (!this.#arriving.has(body)) return;
    this.#bytes += bytes;
    const holders = this.#bytes > this.#maxBytes ? [...this.#arriving].filter((each) => each.bytes > 0) : [];
    while (this.#bytes > this.#maxBytes && holders.length > 1) {
      const latest = holders.pop() as ArrivingBody;
      this.leave(latest);
      latest.giveWay(full());
    }
  }
}

/** A body that is arriving. */
export class ArrivingBody {
  /** What is done when it has to give way to an earlier one. */
  giveWay: (failure: HttpFailure) => void = () => {};
  readonly #grow: (bytes: number) => void;
  #received = 0;

  constructor(grow: (bytes: number) => void) {
    this.#grow = grow;
  }

  /** How many of its bytes are counted. */
  get bytes(): number {
    return Math.max(0, this.#received - FREE_BYTES);
  }

  /** Counts bytes that came, or that came out of the decompressor. */
  add(bytes: number): void {
    const before = this.bytes;
    this.#received += bytes;
    if (this.bytes > before) this.#grow(this.bytes - before);
  }
}

function full(): HttpFailure {
  const message = 'too many bytes of requests are arriving (max_queue_bytes)';
  return new HttpFailure('queue_full', message, { Connection: 'close' });
}
