// Schema: what a game's server tells and takes. Written by `cargo xtask schema` or a game's command `schema` as a TypeScript
// file, with a type for each component, event, input, request and message, so that a client that does not fit is told by
// its compiler.

import { type FieldCodec, type FieldShape, wholeCodec } from "./wire/field.ts";
import { type PackCodec, type PackShape, packCodec } from "./wire/pack.ts";

/** Which types stand behind the names of a schema. */
export interface GameTypes {
  readonly components: object;
  readonly events: object;
  readonly inputs: object;
  readonly requests: object;
  readonly messages: object;
}

export interface EventKind {
  readonly name: string;
  readonly isReliable: boolean;
  readonly shape: FieldShape;
}

export interface InputKind {
  readonly name: string;
  /** Whether each says which moment of the world its player was shown. */
  readonly saysSeen: boolean;
  /** In how many further packets each is said again. */
  readonly repeats: number;
  readonly shape: PackShape;
}

export interface RequestKind {
  readonly name: string;
  /** Whether it counts in whichever world it arrives. */
  readonly isForAnyWorld: boolean;
  readonly shape: PackShape;
}

/** A schema as it is exported. The places in its lists are the numbers on the wire. */
export interface SchemaData {
  /** Equal on server and client, or they do not understand each other: 16 hexadecimal digits. */
  readonly hash: string;
  readonly components: readonly { readonly name: string; readonly shape: FieldShape }[];
  readonly events: readonly EventKind[];
  readonly inputs: readonly InputKind[];
  readonly requests: readonly RequestKind[];
  readonly messages: readonly { readonly name: string; readonly shape: PackShape }[];
}

/** A schema that is ready to be read by. */
export class Schema<G extends GameTypes = GameTypes> {
  readonly data: SchemaData;
  /** Only for the compiler: which game it is of. */
  declare readonly game: G;
  readonly components: readonly FieldCodec[];
  readonly events: readonly FieldCodec[];
  readonly inputs: readonly PackCodec[];
  readonly requests: readonly PackCodec[];
  readonly messages: readonly PackCodec[];
  /** Bytes of a mask of components on the wire. */
  readonly maskBytes: 1 | 2;
  readonly everyComponent: number;
  readonly #components: ReadonlyMap<string, number>;
  readonly #inputs: ReadonlyMap<string, number>;
  readonly #requests: ReadonlyMap<string, number>;

  constructor(data: SchemaData) {
    this.data = data;
    this.components = data.components.map(({ shape }) => wholeCodec(shape));
    this.events = data.events.map(({ shape }) => wholeCodec(shape));
    this.inputs = data.inputs.map(({ shape }) => packCodec(shape));
    this.requests = data.requests.map(({ shape }) => packCodec(shape));
    this.messages = data.messages.map(({ shape }) => packCodec(shape));
    this.maskBytes = data.components.length <= 8 ? 1 : 2;
    this.everyComponent = 2 ** data.components.length - 1;
    const places = (kinds: readonly { name: string }[]) => new Map(kinds.map(({ name }, index) => [name, index]));
    this.#components = places(data.components);
    this.#inputs = places(data.inputs);
    this.#requests = places(data.requests);
  }

  component(name: string): number {
    return found(this.#components, name, "component");
  }

  input(name: string): number {
    return found(this.#inputs, name, "input");
  }

  request(name: string): number {
    return found(this.#requests, name, "request");
  }
}

function found(places: ReadonlyMap<string, number>, name: string, sort: string): number {
  const place = places.get(name);
  if (place === undefined) throw new RangeError(`the schema has no ${sort} \`${name}\`; export it anew if the game has`);
  return place;
}
