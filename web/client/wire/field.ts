// Fields of components and events: how each is read, and whether what came agrees with an exact value. The bits are those of
// docs/spec/replication.md, "Fields".
//
// A schema says shapes; `fieldCodec` makes a reader of each, once, so that a message is read without looking at names.

import { Malformed, Reader } from "./reader.ts";

/** An entity as all clients call it: its slot and its generation in one number, so that it can be a key of a map. */
export type EntityId = number & { readonly __entity: unique symbol };

export const entityId = (slot: number, generation: number): EntityId => (slot * 256 + generation) as EntityId;
export const slotOf = (id: EntityId): number => id >>> 8;
export const generationOf = (id: EntityId): number => id & 255;

/** What a field is made of, as the schema says. */
export type FieldShape =
  | { readonly is: "range"; readonly min: number; readonly max: number; readonly step: number }
  | { readonly is: "angle"; readonly bits: number }
  | { readonly is: "exact" }
  /** An integer without sign, a bool or the place of an enum's variant; `bits` of it are sent, and all of `full` if exact. */
  | { readonly is: "bool"; readonly bits: number }
  | { readonly is: "unsigned" | "signed"; readonly bits: number; readonly full: number }
  | { readonly is: "integer"; readonly min: number; readonly max: number; readonly isSigned: boolean; readonly full: number }
  | { readonly is: "choice"; readonly bits: number; readonly names: readonly string[] }
  | { readonly is: "id" }
  | { readonly is: "link" }
  | { readonly is: "text"; readonly bytesMax: number }
  | { readonly is: "option"; readonly of: FieldShape }
  | { readonly is: "list"; readonly countMax: number; readonly of: FieldShape }
  | { readonly is: "numbers"; readonly count: number; readonly of: FieldShape }
  | { readonly is: "struct"; readonly fields: readonly NamedShape<FieldShape>[] }
  | { readonly is: "variants"; readonly variants: readonly Variant<FieldShape>[] };

/** A field with its name; `null` in a tuple. */
export type NamedShape<Shape> = readonly [name: string | null, shape: Shape];
export type Variant<Shape> = readonly [name: string, fields: readonly NamedShape<Shape>[]];

export interface FieldCodec {
  read(from: Reader): unknown;
  /** Reads what an audit sample carries: all bits of everything. */
  readExact(from: Reader): unknown;
  /** Whether `copy`, which was read, is what `exact` rounds to. */
  agrees(copy: unknown, exact: unknown): boolean;
}

const F32_EPSILON = 2 ** -23;
const TURN = 2 * Math.PI;
const ID_BITS = 28;

export function fieldCodec(shape: FieldShape): FieldCodec {
  switch (shape.is) {
    case "range":
      return rangeCodec(shape.min, shape.max, shape.step);
    case "angle": {
      const codes = 2 ** shape.bits;
      return numberCodec((from) => Math.fround((from.bits(shape.bits) * TURN) / codes), (copy, exact) => {
        const turns = (copy - exact) / TURN;
        const margin = F32_EPSILON * (1 + Math.abs(exact) / TURN);
        return Math.abs(turns - Math.round(turns)) <= 0.5 / codes + margin;
      });
    }
    case "exact":
      return numberCodec((from) => from.f32(), (copy, exact) => copy === exact);
    case "bool": {
      const read = (from: Reader, bits: number): boolean => {
        const code = from.bits(bits);
        if (code > 1) throw new Malformed("a bool is neither 0 nor 1");
        return code === 1;
      };
      return { read: (from) => read(from, shape.bits), readExact: (from) => read(from, 1), agrees: Object.is };
    }
    case "unsigned": {
      const most = 2 ** shape.bits - 1;
      const codes: Codes = { read: (from) => from.bits(shape.bits), readExact: (from) => from.bits(shape.full) };
      return { ...codes, agrees: (copy, exact) => copy === Math.min(exact as number, most) };
    }
    case "signed": {
      const end = 2 ** (shape.bits - 1);
      const codes: Codes = { read: (from) => zigzag(from.bits(shape.bits)), readExact: (from) => zigzag(from.bits(shape.full)) };
      return { ...codes, agrees: (copy, exact) => copy === clamp(exact as number, -end, end - 1) };
    }
    case "integer": {
      const { min, max, full, isSigned } = shape;
      const bits = bitsOf(max - min);
      return {
        read: (from) => {
          const value = min + from.bits(bits);
          if (value > max) throw new Malformed("a number is outside its declared range");
          return value;
        },
        readExact: (from) => (isSigned ? zigzag(from.bits(full)) : from.bits(full)),
        agrees: (copy, exact) => copy === clamp(exact as number, min, max),
      };
    }
    case "choice": {
      const { names, bits } = shape;
      const full = Math.max(bitsOf(names.length - 1), 1);
      const read = (from: Reader, count: number): string => {
        const name = names[from.bits(count)];
        if (name === undefined) throw new Malformed("a variant that does not exist");
        return name;
      };
      const most = 2 ** bits - 1;
      return {
        read: (from) => read(from, bits),
        readExact: (from) => read(from, full),
        agrees: (copy, exact) => copy === names[Math.min(names.indexOf(exact as string), most)],
      };
    }
    case "id":
      return sameCodec((from) => from.bits(ID_BITS) as EntityId);
    case "link":
      return sameCodec((from) => (from.bits(1) === 1 ? readLinkedId(from) : null));
    case "text":
      return sameCodec((from) => {
        const length = from.bits(8);
        if (length > shape.bytesMax) throw new Malformed("a text is too long");
        return from.text(length);
      });
    case "option": {
      const of = fieldCodec(shape.of);
      return {
        read: (from) => (from.bits(1) === 1 ? of.read(from) : null),
        readExact: (from) => (from.bits(1) === 1 ? of.readExact(from) : null),
        agrees: (copy, exact) => (copy === null || exact === null ? copy === exact : of.agrees(copy, exact)),
      };
    }
    case "list": {
      const countBits = bitsOf(shape.countMax);
      return listCodec(fieldCodec(shape.of), (from) => {
        const count = from.bits(countBits);
        if (count > shape.countMax) throw new Malformed("a list is too long");
        return count;
      });
    }
    case "numbers":
      return listCodec(fieldCodec(shape.of), () => shape.count);
    case "struct":
      return structCodec(shape.fields);
    case "variants": {
      const bits = Math.max(bitsOf(shape.variants.length - 1), 1);
      const codecs = shape.variants.map(([name, fields]) => ({ name, codec: variantCodec(name, fields) }));
      const take = (from: Reader): FieldCodec => {
        const variant = codecs[from.bits(bits)];
        if (!variant) throw new Malformed("a variant that does not exist");
        return variant.codec;
      };
      return {
        read: (from) => take(from).read(from),
        readExact: (from) => take(from).readExact(from),
        agrees: (copy, exact) => {
          const is = (copy as { is: string }).is;
          return is === (exact as { is: string }).is && codecs.find(({ name }) => name === is)!.codec.agrees(copy, exact);
        },
      };
    }
  }
}

/** A component or an event as a whole: its bits, filled up to whole bytes. */
export function wholeCodec(shape: FieldShape): FieldCodec {
  const field = fieldCodec(shape);
  const aligned = (value: unknown, from: Reader): unknown => {
    from.align();
    return value;
  };
  return {
    read: (from) => aligned(field.read(from), from),
    readExact: (from) => aligned(field.readExact(from), from),
    agrees: field.agrees,
  };
}

interface Codes {
  read(from: Reader): number;
  readExact(from: Reader): number;
}

function rangeCodec(min: number, max: number, step: number): FieldCodec {
  const steps = (max - min) / step;
  const whole = Math.floor(steps);
  const codeMax = steps - whole > 1e-6 ? whole + 1 : whole;
  const bits = bitsOf(codeMax);
  const margin = Math.max(Math.abs(min), Math.abs(max)) * F32_EPSILON;
  const read = (from: Reader): number => {
    const code = from.bits(bits);
    if (code > codeMax) throw new Malformed("a number is outside its declared range");
    return Math.fround(Math.min(min + code * step, max));
  };
  return numberCodec(read, (copy, exact) => Math.abs(copy - clamp(exact, min, max)) <= step * 0.5 + margin);
}

function numberCodec(read: (from: Reader) => number, agrees: (copy: number, exact: number) => boolean): FieldCodec {
  return { read, readExact: (from) => from.f32(), agrees: (copy, exact) => agrees(copy as number, exact as number) };
}

/** What is the same in both encodings. */
function sameCodec(read: (from: Reader) => unknown): FieldCodec {
  return { read, readExact: read, agrees: Object.is };
}

/** As the drawing has it: generation 8, slot 20. */
function readLinkedId(from: Reader): EntityId {
  return from.bits(ID_BITS) as EntityId;
}

function listCodec(of: FieldCodec, count: (from: Reader) => number): FieldCodec {
  const read = (from: Reader, each: (from: Reader) => unknown): unknown[] => {
    const values: unknown[] = [];
    for (let left = count(from); left > 0; left--) values.push(each(from));
    return values;
  };
  return {
    read: (from) => read(from, of.read),
    readExact: (from) => read(from, of.readExact),
    agrees: (copy, exact) => {
      const [copies, exacts] = [copy as unknown[], exact as unknown[]];
      return copies.length === exacts.length && copies.every((each, index) => of.agrees(each, exacts[index]));
    },
  };
}

/** An object with the fields' names; of a tuple an array, and of one with a single field that field. */
function structCodec(fields: readonly NamedShape<FieldShape>[]): FieldCodec {
  const codecs = fields.map(([, shape]) => fieldCodec(shape));
  const keys = fields.map(([name], index) => name ?? String(index));
  const isTuple = fields.length > 0 && fields[0]![0] === null;
  if (isTuple && fields.length === 1) return codecs[0]!;
  const read = (from: Reader, isExact: boolean): unknown => {
    const value: Record<string, unknown> | unknown[] = isTuple ? [] : {};
    codecs.forEach((codec, index) => ((value as Record<string, unknown>)[keys[index]!] = isExact ? codec.readExact(from) : codec.read(from)));
    return value;
  };
  return {
    read: (from) => read(from, false),
    readExact: (from) => read(from, true),
    agrees: (copy, exact) => {
      const [copied, wanted] = [copy as Record<string, unknown>, exact as Record<string, unknown>];
      return codecs.every((codec, index) => codec.agrees(copied[keys[index]!], wanted[keys[index]!]));
    },
  };
}

/** `{ is: name, ..fields }`; the fields of a tuple are `value`, an array if there are several. */
function variantCodec(name: string, fields: readonly NamedShape<FieldShape>[]): FieldCodec {
  const of = structCodec(fields);
  const isTuple = fields.length > 0 && fields[0]![0] === null;
  const wrap = (value: unknown): unknown => (isTuple ? { is: name, value } : { is: name, ...(value as object) });
  const unwrap = (value: unknown): unknown => (isTuple ? (value as { value: unknown }).value : value);
  return {
    read: (from) => wrap(of.read(from)),
    readExact: (from) => wrap(of.readExact(from)),
    agrees: (copy, exact) => of.agrees(unwrap(copy), unwrap(exact)),
  };
}

/** Bits that hold a number of at most 32. */
export const bitsOf = (number: number): number => (number === 0 ? 0 : 32 - Math.clz32(number));

/** 0, 1, 2, 3, .. is 0, -1, 1, -2, .. */
export const zigzag = (code: number): number => (code % 2 === 0 ? code / 2 : -(code + 1) / 2);

const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(value, min), max);
