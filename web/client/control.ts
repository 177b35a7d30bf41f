// Control: what a server says above the channels, before the game says anything. Drawn in runtime/net/src/control.rs.

import { type EntityId, entityId } from "./wire/field.ts";
import { Malformed, Reader } from "./wire/reader.ts";

export const CONTROL = 0;
export const INPUT = 1;
export const EVENT = 4;
export const REQUEST = 5;
export const MESSAGE = 6;

const ENTER_WORLD = 1;
const SCHEMA = 2;
const NAME_BYTES_MAX = 64;

/** The world that the server has put us in. */
export interface World {
  /** Its number on the server. */
  readonly id: number;
  /** Its kind, such as `hideout`. */
  readonly name: string;
  readonly tickHz: number;
  /** Its tick when the server wrote the message that let us in. */
  readonly enteredTick: number;
  /** Which stay of this connection it is, wrapping at 256. */
  readonly epoch: number;
  /** The world that we were sent to did not take us: this is the one that sent us. */
  readonly hasReturned: boolean;
  readonly isReactive: boolean;
}

export type Control = { readonly is: "schema"; readonly hash: string } | { readonly is: "world"; readonly world: World; readonly ownEntity: EntityId | null };

/** @throws Malformed */
export function readControl(message: Uint8Array): Control {
  const from = new Reader(message, 1);
  const operation = from.u8();
  if (operation === SCHEMA) {
    const hash = Array.from(from.bytes(8), (byte) => byte.toString(16).padStart(2, "0")).reverse().join("");
    from.end();
    return { is: "schema", hash };
  }
  if (operation !== ENTER_WORLD) throw new Malformed("unknown control operation");
  const [epoch, tickHz, enteredTick, id, flags] = [from.u8(), from.u8(), from.u32(), from.u32(), from.u8()];
  const [slot, generation, nameBytes] = [from.u32(), from.u8(), from.u8()];
  if (tickHz === 0 || flags > 7 || nameBytes > NAME_BYTES_MAX || slot >= 2 ** 20) throw new Malformed("a world that cannot be");
  const name = from.text(nameBytes);
  from.end();
  const world = { id, name, tickHz, enteredTick, epoch, hasReturned: (flags & 2) !== 0, isReactive: (flags & 4) !== 0 };
  return { is: "world", world, ownEntity: flags & 1 ? entityId(slot, generation) : null };
}

/** What a client says whose schema is another one. */
export function writeSchemaHash(hash: string): Uint8Array {
  const message = new Uint8Array(10);
  message.set([CONTROL, SCHEMA]);
  for (let index = 0; index < 8; index++) message[2 + index] = Number.parseInt(hash.slice(14 - 2 * index, 16 - 2 * index), 16);
  return message;
}
