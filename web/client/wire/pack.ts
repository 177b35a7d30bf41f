// Packed values: what inputs, requests and messages are made of. Drawn in docs/spec/pack.md. There is one way to write each
// value, and a reader refuses every other.

import type { NamedShape, Variant } from "./field.ts";
import { Malformed, Reader } from "./reader.ts";

/** What a packed value is made of. Integers of 64 bits are `bigint`s. */
export type PackShape =
  | { readonly is: "bool" }
  | { readonly is: "unsigned" | "signed"; readonly bits: 8 | 16 | 32 | 64; readonly isFixed?: true; readonly min?: number | bigint; readonly max?: number | bigint }
  | { readonly is: "float"; readonly bits: 32 | 64; readonly min?: number; readonly max?: number }
  | { readonly is: "text"; readonly bytesMax: number }
  | { readonly is: "option"; readonly of: PackShape }
  | { readonly is: "array"; readonly count: number; readonly of: PackShape }
  | { readonly is: "list"; readonly countMax: number; readonly of: PackShape }
  | { readonly is: "struct"; readonly fields: readonly NamedShape<PackShape>[] }
  /** An enum of which no variant has fields: its name. */
  | { readonly is: "choice"; readonly names: readonly string[] }
  | { readonly is: "variants"; readonly variants: readonly Variant<PackShape>[] };

export interface PackCodec {
  read(from: Reader): unknown;
  /** @throws RangeError or TypeError, with the place in the value, if it breaks its type's limits. */
  write(value: unknown, out: PackWriter, place: string): void;
}

/** Bytes that grow. */
export class PackWriter {
  #bytes = new Uint8Array(64);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  clear(): void {
    this.#length = 0;
  }

  u8(value: number): void {
    this.#room(1);
    this.#bytes[this.#length++] = value;
  }

  u16(value: number): void {
    this.#room(2);
    this.#view.setUint16(this.#length, value, true);
    this.#length += 2;
  }

  put(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  float(value: number, bits: number): void {
    this.#room(8);
    if (bits === 32) this.#view.setFloat32(this.#length, value, true);
    else this.#view.setFloat64(this.#length, value, true);
    this.#length += bits / 8;
  }

  fixed(value: bigint, bytes: number): void {
    for (let index = 0, rest = BigInt.asUintN(bytes * 8, value); index < bytes; index++, rest >>= 8n) this.u8(Number(rest & 255n));
  }

  varint(value: bigint): void {
    let rest = value;
    for (; rest >= 0x80n; rest >>= 7n) this.u8(Number(rest & 0x7fn) | 0x80);
    this.u8(Number(rest));
  }

  /** A copy of what was written. */
  take(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  #room(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + count));
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}

const utf8 = new TextEncoder();

export function packCodec(shape: PackShape): PackCodec {
  switch (shape.is) {
    case "bool":
      return {
        read: (from) => readPlace(from, 2) === 1,
        write: (value, out, place) => out.u8(Number(expect(typeof value === "boolean", value as boolean, place, "a boolean"))),
      };
    case "unsigned":
    case "signed":
      return integerCodec(shape);
    case "float": {
      const { bits, min = -Infinity, max = Infinity } = shape;
      const isGood = (value: number): boolean => Number.isFinite(value) && value >= min && value <= max;
      return {
        read: (from) => {
          const value = bits === 32 ? from.f32() : from.f64();
          if (!isGood(value)) throw new Malformed("a number is outside its range");
          return value;
        },
        write: (value, out, place) => {
          const number = bits === 32 ? Math.fround(value as number) : (value as number);
          out.float(expect(isGood(number), number, place, `a number from ${min} to ${max}`), bits);
        },
      };
    }
    case "text":
      return {
        read: (from) => {
          const length = from.u8();
          if (length > shape.bytesMax) throw new Malformed("a text is too long");
          return from.text(length);
        },
        write: (value, out, place) => {
          const bytes = utf8.encode(expect(typeof value === "string", value as string, place, "a text"));
          expect(bytes.length <= shape.bytesMax, value, place, `a text of at most ${shape.bytesMax} bytes`);
          out.u8(bytes.length);
          out.put(bytes);
        },
      };
    case "option": {
      const of = packCodec(shape.of);
      return {
        read: (from) => (readPlace(from, 2) === 1 ? of.read(from) : null),
        write: (value, out, place) => {
          const isThere = value !== null && value !== undefined;
          out.u8(Number(isThere));
          if (isThere) of.write(value, out, place);
        },
      };
    }
    case "array":
    case "list": {
      const of = packCodec(shape.of);
      const most = shape.is === "array" ? shape.count : shape.countMax;
      return {
        read: (from) => {
          const count = shape.is === "array" ? most : Number(readVarint(from, 32));
          if (count > most) throw new Malformed("a list is too long");
          return Array.from({ length: count }, () => of.read(from));
        },
        write: (value, out, place) => {
          const values = expect(Array.isArray(value), value as unknown[], place, "a list");
          const isGood = shape.is === "array" ? values.length === most : values.length <= most;
          expect(isGood, values.length, place, `a list of ${shape.is === "array" ? "" : "at most "}${most}`);
          if (shape.is === "list") out.varint(BigInt(values.length));
          values.forEach((each, index) => of.write(each, out, `${place}[${index}]`));
        },
      };
    }
    case "struct":
      return structCodec(shape.fields);
    case "choice":
      return {
        read: (from) => shape.names[readPlace(from, shape.names.length)],
        write: (value, out, place) => {
          const code = shape.names.indexOf(value as string);
          expect(code >= 0, value, place, `one of ${shape.names.join(", ")}`);
          out.u8(code);
        },
      };
    case "variants": {
      const names = shape.variants.map(([name]) => name);
      const codecs = shape.variants.map(([, fields]) => ({ of: structCodec(fields), isTuple: fields.length > 0 && fields[0]![0] === null }));
      return {
        read: (from) => {
          const code = readPlace(from, names.length);
          const { of, isTuple } = codecs[code]!;
          const value = of.read(from);
          return isTuple ? { is: names[code], value } : { is: names[code], ...(value as object) };
        },
        write: (value, out, place) => {
          const said = value as { is?: string; value?: unknown } | null;
          const code = names.indexOf(said?.is ?? "");
          expect(code >= 0, said?.is, `${place}.is`, `one of ${names.join(", ")}`);
          out.u8(code);
          const { of, isTuple } = codecs[code]!;
          of.write(isTuple ? said!.value : said, out, isTuple ? `${place}.value` : place);
        },
      };
    }
  }
}

/** A whole value; bytes after its end are refused. */
export function unpack(codec: PackCodec, bytes: Uint8Array): unknown {
  const from = new Reader(bytes);
  const value = codec.read(from);
  from.end();
  return value;
}

function integerCodec(shape: Extract<PackShape, { is: "unsigned" | "signed" }>): PackCodec {
  const { bits, isFixed } = shape;
  const isSigned = shape.is === "signed";
  const least = BigInt(shape.min ?? (isSigned ? -(2n ** BigInt(bits - 1)) : 0n));
  const most = BigInt(shape.max ?? 2n ** BigInt(isSigned ? bits - 1 : bits) - 1n);
  const given = (value: bigint): number | bigint => (bits === 64 ? value : Number(value));
  return {
    read: (from) => {
      const code = bits === 8 || isFixed ? readFixed(from, bits / 8) : readVarint(from, bits);
      const value = !isSigned ? code : bits === 8 || isFixed ? BigInt.asIntN(bits, code) : code & 1n ? -((code + 1n) >> 1n) : code >> 1n;
      if (value < least || value > most) throw new Malformed("a number is outside its range");
      return given(value);
    },
    write: (value, out, place) => {
      const isWhole = typeof value === "bigint" || Number.isInteger(value);
      const whole = isWhole ? BigInt(value as number | bigint) : 0n;
      expect(isWhole && whole >= least && whole <= most, value, place, `a whole number from ${least} to ${most}`);
      if (bits === 8 || isFixed) out.fixed(whole, bits / 8);
      else out.varint(!isSigned ? whole : whole < 0n ? -2n * whole - 1n : 2n * whole);
    },
  };
}

function structCodec(fields: readonly NamedShape<PackShape>[]): PackCodec {
  const codecs = fields.map(([, shape]) => packCodec(shape));
  const keys = fields.map(([name], index) => name ?? String(index));
  const isTuple = fields.length > 0 && fields[0]![0] === null;
  if (isTuple && fields.length === 1) return codecs[0]!;
  return {
    read: (from) => {
      const value: Record<string, unknown> | unknown[] = isTuple ? [] : {};
      codecs.forEach((codec, index) => ((value as Record<string, unknown>)[keys[index]!] = codec.read(from)));
      return value;
    },
    write: (value, out, place) => {
      expect(keys.length === 0 || (typeof value === "object" && value !== null), value, place, isTuple ? "a tuple" : "an object");
      codecs.forEach((codec, index) => codec.write((value as Record<string, unknown>)[keys[index]!], out, `${place}.${keys[index]!}`));
    },
  };
}

/** The number of a variant, below `count`. */
function readPlace(from: Reader, count: number): number {
  const place = from.u8();
  if (place >= count) throw new Malformed("a variant that does not exist");
  return place;
}

function readFixed(from: Reader, bytes: number): bigint {
  let value = 0n;
  for (let index = 0; index < bytes; index++) value |= BigInt(from.u8()) << BigInt(8 * index);
  return value;
}

/** No more bytes than it needs, and no more bits than its type has. */
function readVarint(from: Reader, bits: number): bigint {
  let value = 0n;
  for (let shift = 0; ; shift += 7) {
    const byte = from.u8();
    value |= BigInt(byte & 0x7f) << BigInt(shift);
    if (value >= 1n << BigInt(bits) || shift > 63) throw new Malformed("a number is too large");
    if (byte < 0x80) {
      if (byte === 0 && shift > 0) throw new Malformed("a number has more bytes than it needs");
      return value;
    }
  }
}

function expect<T>(isGood: boolean, value: T, place: string, wanted: string): T {
  if (!isGood) throw new RangeError(`${place} is ${String(value)}, and has to be ${wanted}`);
  return value;
}
