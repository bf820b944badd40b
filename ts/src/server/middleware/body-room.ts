/** A common bound on the bytes of all bodies that are still arriving. */
import { HttpFailure } from '../../errors.ts';

/**
 * The number of bytes of each body that are not counted, about as many as the headers of its connection may take. Large
 * bodies therefore keep no small body out.
 */
export const FREE_BYTES = 16 * 2 ** 10;

/**
 * The room for bodies from their first byte until the engine has them. A body's declared length reserves nothing, since
 * a declaration costs the sender nothing: bytes count as they arrive, and decompressed bytes count as well. When there
 * are too many, the latest body gives way. The earliest body is therefore always read, however large it is, and no
 * later sender can end it.
 */
export class BodyRoom {
  readonly #maxBytes: number;
  /** The arriving bodies, in the order of their arrival. */
  readonly #arriving = new Set<ArrivingBody>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The number of bytes counted now. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Returns the place of a body that declares a length of `declaredBytes`, 0 if it declares none.
   *
   * @throws HttpFailure `queue_full` when the body would not fit next to the bodies that are arriving
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

/** An arriving body. */
export class ArrivingBody {
  /** Ends the reading of this body with `failure`; called when the body has to give way to an earlier one. */
  giveWay: (failure: HttpFailure) => void = () => {};
  readonly #grow: (bytes: number) => void;
  #received = 0;

  constructor(grow: (bytes: number) => void) {
    this.#grow = grow;
  }

  /** The number of its counted bytes. */
  get bytes(): number {
    return Math.max(0, this.#received - FREE_BYTES);
  }

  /** Counts bytes that were received or decompressed. */
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
