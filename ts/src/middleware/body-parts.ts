/** The bytes of a body as they come, however small their parts are. */

/** A part of this length takes little beside its bytes, and is kept as it came. */
const LARGE_BYTES = 4 * 2 ** 10;

/** Small parts are copied into a block of this length. */
const BLOCK_BYTES = 16 * 2 ** 10;

/** So many parts of fewer than `TINY_BYTES` on average cost the one thread that serves everybody about a second. */
const MOST_TINY_PARTS = 2 ** 18;
const TINY_BYTES = 32;

/**
 * Collects a body. A part of one byte takes hundreds of bytes, and the sender chooses how many parts there are: small ones
 * are joined as they come, so that a body takes about as much memory as it has bytes.
 */
export class BodyParts {
  #parts: Buffer[] = [];
  #block = Buffer.alloc(0);
  #blockBytes = 0;
  #bytes = 0;
  #count = 0;

  /** Whether the body comes in so many parts of a few bytes that reading on would keep others waiting. */
  get areTiny(): boolean {
    return this.#count > MOST_TINY_PARTS && this.#bytes < this.#count * TINY_BYTES;
  }

  /** How many bytes have come. */
  get bytes(): number {
    return this.#bytes;
  }

  add(part: Buffer): void {
    // The usual body is one part: nothing is copied for it.
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

  /** Returns the body. Nothing of it stays here: Node keeps a connection's latest request, and with it who listens. */
  joined(): Buffer {
    this.#keepBlock();
    const [first] = this.#parts;
    const isOne = first !== undefined && this.#parts.length === 1;
    const body = isOne ? first : Buffer.concat(this.#parts, this.#bytes);
    this.clear();
    return body;
  }

  /** Throws away what came. */
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
