/** The collected bytes of a body, in about the memory of their number however small its parts are. */

/** A part of at least this length takes little memory besides its bytes, and is kept as it is. */
const LARGE_BYTES = 4 * 2 ** 10;

/** The length of a block, into which small parts are copied. */
const BLOCK_BYTES = 16 * 2 ** 10;

/**
 * The parts of a body that averages fewer than `TINY_BYTES` each may be this many: they cost the one thread that serves
 * all requests about a second.
 */
const MOST_TINY_PARTS = 2 ** 18;
const TINY_BYTES = 32;

/**
 * A collector of a body's parts. A part of one byte takes hundreds of bytes of memory, and the sender chooses the
 * number of parts, so small parts are joined as they arrive: a body takes about as much memory as it has bytes.
 */
export class BodyParts {
  #parts: Buffer[] = [];
  #block = Buffer.alloc(0);
  #blockBytes = 0;
  #bytes = 0;
  #count = 0;

  /** Whether the body arrives in so many parts of a few bytes that reading on would delay other requests. */
  get areTiny(): boolean {
    return this.#count > MOST_TINY_PARTS && this.#bytes < this.#count * TINY_BYTES;
  }

  /** The number of bytes received so far. */
  get bytes(): number {
    return this.#bytes;
  }

  add(part: Buffer): void {
    // The usual body is one part, which is not copied.
    const isKept = part.length >= LARGE_BYTES || this.#bytes === 0;
    this.#bytes += part.length;
    this.#count += 1;
    if (isKept || this.#blockBytes + part.length > BLOCK_BYTES) this.#keepBlock();
    if (isKept) this.#parts.push(part);
    else {
      if (this.#block.length === 0) this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#blockBytes += part.copy(this.#block, this.#blockBytes);
    }
  }

  /**
   * Returns the body and keeps nothing of it: Node keeps a connection's latest request, and with it the request's
   * listeners.
   */
  joined(): Buffer {
    this.#keepBlock();
    const [first] = this.#parts;
    const isOne = first !== undefined && this.#parts.length === 1;
    const body = isOne ? first : Buffer.concat(this.#parts, this.#bytes);
    this.clear();
    return body;
  }

  /** Discards the received bytes. */
  clear(): void {
    this.#parts = [];
    this.#block = Buffer.alloc(0);
    this.#blockBytes = 0;
  }

  #keepBlock(): void {
    if (this.#blockBytes === 0) return;
    this.#parts.push(Buffer.from(this.#block.subarray(0, this.#blockBytes)));
    this.#blockBytes = 0;
  }
}
