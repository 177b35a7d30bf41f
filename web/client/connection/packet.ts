// The packet: what one sealed payload says, byte by byte. Drawn in docs/spec/channels.md.

import { PAYLOAD_BYTES_MAX } from "../netcode/packet.ts";

export const HEADER_BYTES = 8;
export const UNRELIABLE_OVERHEAD_BYTES = 2;
export const FRAGMENT_OVERHEAD_BYTES = 4;
/** A reliable message is cut into fragments of this size; only its last may be shorter. */
export const FRAGMENT_BYTES_MAX = 378;

const UNRELIABLE = 0;
const FRAGMENT = 1;
const LAST_FRAGMENT = 2;

/** Which packets of the other side have arrived: bit `i` says that `newest - i` has; no bits: none. */
export interface Acks {
  readonly newest: number;
  readonly bits: number;
}

export type Chunk =
  | { readonly is: "unreliable"; readonly bytes: Uint8Array }
  | { readonly is: "fragment"; readonly id: number; readonly isLast: boolean; readonly bytes: Uint8Array };

export interface Packet {
  readonly sequence: number;
  readonly acks: Acks;
  readonly chunks: readonly Chunk[];
}

/** Reads a packet; `null` if any of it is malformed, so a packet takes effect completely or not at all. */
export function readPacket(payload: Uint8Array): Packet | null {
  if (payload.length < HEADER_BYTES) return null;
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  const acks = { newest: view.getUint16(2, true), bits: view.getUint32(4, true) };
  if ((acks.newest !== 0 || acks.bits !== 0) && (acks.bits & 1) === 0) return null;
  const chunks: Chunk[] = [];
  for (let at = HEADER_BYTES; at < payload.length; ) {
    if (at + 2 > payload.length) return null;
    const tag = view.getUint16(at, true);
    const [kind, length] = [tag >> 14, tag & 0x3fff];
    const isFragment = kind === FRAGMENT || kind === LAST_FRAGMENT;
    const begin = at + (isFragment ? FRAGMENT_OVERHEAD_BYTES : UNRELIABLE_OVERHEAD_BYTES);
    at = begin + length;
    if (length === 0 || kind > LAST_FRAGMENT || at > payload.length) return null;
    const bytes = payload.subarray(begin, at);
    if (!isFragment) {
      chunks.push({ is: "unreliable", bytes });
      continue;
    }
    const isLast = kind === LAST_FRAGMENT;
    if (length > FRAGMENT_BYTES_MAX || (!isLast && length < FRAGMENT_BYTES_MAX)) return null;
    chunks.push({ is: "fragment", id: view.getUint16(begin - 2, true), isLast, bytes });
  }
  return { sequence: view.getUint16(0, true), acks, chunks };
}

/** Writes a packet into memory of its own, which is used again by the next one. */
export class PacketWriter {
  readonly #bytes = new Uint8Array(PAYLOAD_BYTES_MAX);
  readonly #view = new DataView(this.#bytes.buffer);
  #length = 0;

  begin(sequence: number, acks: Acks): void {
    this.#view.setUint16(0, sequence, true);
    this.#view.setUint16(2, acks.newest, true);
    this.#view.setUint32(4, acks.bits, true);
    this.#length = HEADER_BYTES;
  }

  /** Bytes left, the overhead of a further chunk included. */
  get space(): number {
    return PAYLOAD_BYTES_MAX - this.#length;
  }

  get hasChunks(): boolean {
    return this.#length > HEADER_BYTES;
  }

  /** It must fit. */
  unreliable(bytes: Uint8Array): void {
    this.#tag(UNRELIABLE, bytes.length);
    this.#put(bytes);
  }

  fragment(id: number, isLast: boolean, bytes: Uint8Array): void {
    this.#tag(isLast ? LAST_FRAGMENT : FRAGMENT, bytes.length);
    this.#view.setUint16(this.#length, id, true);
    this.#length += 2;
    this.#put(bytes);
  }

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #tag(kind: number, length: number): void {
    this.#view.setUint16(this.#length, (kind << 14) | length, true);
    this.#length += 2;
  }

  #put(bytes: Uint8Array): void {
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }
}
