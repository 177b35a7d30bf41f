// Numbers and texts from bytes: a payload that is being read, and knows where in the file it stands.
//
// Numbers of 64 bits become doubles, exact up to 2^53. Times are relative to the capture's begin and checked to stay
// exact; of anything larger (bytes, sums) only the first 53 bits are kept, which no picture shows.

import * as maximum from "./maximum.ts";
import { badText, cutShort, noSuch, outOfRange } from "./read_error.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class Cursor {
  offset: number;
  /** The lowest time that there is: the moment at which the recorder started, or as far as a double is exact. */
  timeMin = -maximum.TIME_NS;
  private readonly view: DataView;

  /** From `offset` to `end` in `file`. */
  constructor(
    readonly file: Uint8Array,
    offset: number,
    readonly end: number,
  ) {
    this.offset = offset;
    this.view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  }

  isAtEnd(): boolean {
    return this.offset >= this.end;
  }

  /** Passes over `count` bytes and says where they begin. */
  take(count: number): number {
    const begin = this.offset;
    if (count > this.end - begin) throw cutShort(this.end);
    this.offset = begin + count;
    return begin;
  }

  byte(): number {
    if (this.offset >= this.end) throw cutShort(this.end);
    return this.file[this.offset++]!;
  }

  uint16(): number {
    return this.view.getUint16(this.take(2), true);
  }

  uint32(): number {
    return this.view.getUint32(this.take(4), true);
  }

  float32(): number {
    return this.view.getFloat32(this.take(4), true);
  }

  varint(): number {
    const { file, end } = this;
    let at = this.offset;
    if (at >= end) throw cutShort(end);
    let byte = file[at++]!;
    if (byte < 0x80) {
      this.offset = at;
      return byte;
    }
    let value = byte & 0x7f;
    // Four bytes fit into the integers that bit operations know.
    for (let shift = 7; shift < 28; shift += 7) {
      if (at >= end) throw cutShort(end);
      byte = file[at++]!;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        this.offset = at;
        return value;
      }
    }
    return this.longVarint(at, value);
  }

  private longVarint(at: number, value: number): number {
    const begin = this.offset;
    let factor = 2 ** 28;
    for (let place = 4; place < 10; place++) {
      if (at >= this.end) throw cutShort(this.end);
      const byte = this.file[at++]!;
      const bits = byte & 0x7f;
      // The tenth byte has room for one bit.
      if (place === 9 && bits > 1) break;
      value += bits * factor;
      factor *= 128;
      if (byte < 0x80) {
        this.offset = at;
        return value;
      }
    }
    throw outOfRange(begin, "a number of more than 64 bits");
  }

  /** From `from`, whichever way, as a number of 64 bits that may wrap: for what is no time. */
  step(from: number): number {
    const step = this.varint();
    const to = from + (step % 2 === 0 ? step / 2 : -(step + 1) / 2);
    return to < 0 ? to + 2 ** 64 : to >= 2 ** 64 ? to - 2 ** 64 : to;
  }

  /** From the time `from`, whichever way. */
  time(from: number): number {
    const offset = this.offset;
    const step = this.varint();
    const to = from + (step % 2 === 0 ? step / 2 : -(step + 1) / 2);
    if (to < this.timeMin || to > maximum.TIME_NS) throw farTime(offset);
    return to;
  }

  u32(what: string): number {
    const offset = this.offset;
    const value = this.varint();
    if (value > 0xffff_ffff) throw outOfRange(offset, what);
    return value;
  }

  /** -1 for none. */
  optionalU32(what: string): number {
    const offset = this.offset;
    const value = this.varint();
    if (value > 2 ** 32) throw outOfRange(offset, what);
    return value - 1;
  }

  /** An index into a list of `count`. */
  index(what: string, count: number): number {
    const offset = this.offset;
    const index = this.u32(what);
    if (index >= count) throw noSuch(offset, what, index, count);
    return index;
  }

  /** -1 for none. */
  optionalIndex(what: string, count: number): number {
    const offset = this.offset;
    const index = this.optionalU32(what);
    if (index >= count) throw noSuch(offset, what, index, count);
    return index;
  }

  text(what: string): string {
    const offset = this.offset;
    const length = this.varint();
    if (length > maximum.TEXT_BYTES) throw outOfRange(offset, what);
    const begin = this.take(length);
    try {
      return utf8.decode(this.file.subarray(begin, begin + length));
    } catch {
      throw badText(offset, what);
    }
  }

  bool(what: string): boolean {
    return this.choice([false, true], what);
  }

  choice<T>(choices: readonly T[], what: string): T {
    const offset = this.offset;
    const byte = this.byte();
    if (byte >= choices.length) throw outOfRange(offset, what);
    return choices[byte]!;
  }
}

/** The Rust reader takes such a time if it is one of 64 bits. */
export const farTime = (offset: number) =>
  outOfRange(offset, "a time before the recorder's start or 104 days away");
