// The reader of all that a server writes: bits, lowest first, and whole bytes. It trusts nothing: what is not there, or not
// allowed, is a `Malformed`, which whoever takes the message catches.

/** Bytes from the network that mean nothing. Counted and dropped where a message is taken. */
export class Malformed extends Error {
  constructor(what: string) {
    super(what);
    this.name = "Malformed";
  }
}

const f32 = new DataView(new ArrayBuffer(4));
const utf8 = new TextDecoder("utf-8", { fatal: true });

export class Reader {
  readonly #bytes: Uint8Array;
  #at: number;
  #pending = 0;
  #pendingBits = 0;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.#at = at;
  }

  /** Where the next whole byte is read. */
  get at(): number {
    return this.#at;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** The next `count` bits, as a number without sign. [0 to 32] */
  bits(count: number): number {
    let value = 0;
    let taken = 0;
    // A double holds 53 bits, so that sums are exact where shifts would lose the 32nd.
    while (taken < count) {
      if (this.#pendingBits === 0) {
        this.#pending = this.#byte();
        this.#pendingBits = 8;
      }
      const now = Math.min(count - taken, this.#pendingBits);
      value += (this.#pending & ((1 << now) - 1)) * 2 ** taken;
      this.#pending >>= now;
      this.#pendingBits -= now;
      taken += now;
    }
    return value;
  }

  u8(): number {
    return this.#pendingBits === 0 ? this.#byte() : this.bits(8);
  }

  u16(): number {
    return this.bits(16);
  }

  u32(): number {
    return this.bits(32);
  }

  /** A finite number of 32 bits. */
  f32(): number {
    f32.setUint32(0, this.bits(32));
    const value = f32.getFloat32(0);
    if (!Number.isFinite(value)) throw new Malformed("a number is NaN or infinite");
    return value;
  }

  /** A finite number of 64 bits, on whole bytes. */
  f64(): number {
    const bytes = this.bytes(8);
    const value = new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
    if (!Number.isFinite(value)) throw new Malformed("a number is NaN or infinite");
    return value;
  }

  /** Goes to the next whole byte; the bits up to there must be zero. */
  align(): void {
    if (this.#pending !== 0) throw new Malformed("bits that must be zero are not");
    this.#pendingBits = 0;
  }

  /** A number in 7-bit groups, lowest first: at most 5 bytes, and not more of them than it needs to hold 32 bits. */
  varint(): number {
    let value = 0;
    for (let shift = 0; shift <= 28; shift += 7) {
      const byte = this.u8();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (value > 0xffff_ffff) throw new Malformed("a number is above 32 bits");
        return value;
      }
    }
    throw new Malformed("a number has no end");
  }

  /** The next bytes, not copied. */
  bytes(count: number): Uint8Array {
    const end = this.#at + count;
    if (end > this.#bytes.length) throw new Malformed("the message ends too early");
    const bytes = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  /** A text of so many bytes, which need not begin on a whole one. */
  text(count: number): string {
    const bytes = this.#pendingBits === 0 ? this.bytes(count) : Uint8Array.from({ length: count }, () => this.bits(8));
    try {
      return utf8.decode(bytes);
    } catch {
      throw new Malformed("a text is no UTF-8");
    }
  }

  /** Nothing may follow. */
  end(): void {
    if (!this.isAtEnd) throw new Malformed("bytes after the end of the message");
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new Malformed("the message ends too early");
    this.#at++;
    return byte;
  }
}
