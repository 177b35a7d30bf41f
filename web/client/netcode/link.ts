// The sealed link: two keys, the counter of what was sent, and the replay window of what was received.
//
// No key and nonce seal twice: the nonce is the counter, and each link begins at a random number below 2^48, so that a
// token that is shown again does not lead to the same ones. The cipher is ChaCha20-Poly1305 of @noble/ciphers: browsers
// have no such cipher of their own.

import { chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { Kind, PAYLOAD_BYTES_MAX, type SealedHeader, TAG_BYTES, VERSION, readSealedHeader, sequenceBytesOf } from "./packet.ts";
import { ReplayWindow } from "./replay.ts";

/** Beyond it a double counts no longer by one. Two million packets a second would take a century to get there. */
const SEQUENCE_END = Number.MAX_SAFE_INTEGER;

/** What an authentic packet says; what is refused is `null`. */
export type Opened = { readonly kind: "payload"; readonly payload: Uint8Array } | { readonly kind: "keep-alive" | "disconnect" };

const KEEP_ALIVE: Opened = { kind: "keep-alive" };
const DISCONNECT: Opened = { kind: "disconnect" };

export class SealedLink {
  readonly #sealing: Uint8Array;
  readonly #opening: Uint8Array;
  readonly #additional = new Uint8Array(VERSION.length + 8 + 1);
  readonly #nonce = new Uint8Array(12);
  readonly #replay = new ReplayWindow();
  #sendSequence: number;
  lastSentMs: number;
  lastReceivedMs: number;
  /** How long the other side may be silent (ms). */
  readonly timeoutMs: number;

  constructor(keys: { sealing: Uint8Array; opening: Uint8Array; protocolId: Uint8Array }, firstSequence: number, timeoutS: number, nowMs: number) {
    this.#sealing = keys.sealing;
    this.#opening = keys.opening;
    this.#additional.set(VERSION);
    this.#additional.set(keys.protocolId, VERSION.length);
    this.#sendSequence = firstSequence;
    this.lastSentMs = nowMs;
    this.lastReceivedMs = nowMs;
    this.timeoutMs = timeoutS > 0 ? timeoutS * 1000 : Infinity;
  }

  /** Opens a packet of a connected server. A refused one changes nothing. */
  open(datagram: Uint8Array, nowMs: number): Opened | null {
    const header = readSealedHeader(datagram);
    if (!header || header.kind < Kind.keepAlive || header.kind > Kind.disconnect) return null;
    if (header.sequence > SEQUENCE_END || !this.#replay.isFresh(header.sequence)) return null;
    const body = this.openBody(header, datagram);
    if (!body) return null;
    this.#replay.take(header.sequence);
    this.lastReceivedMs = nowMs;
    if (header.kind === Kind.payload) return { kind: "payload", payload: body };
    return header.kind === Kind.disconnect ? DISCONNECT : KEEP_ALIVE;
  }

  /** Opens a packet of any sealed kind, without the replay window: the handshake takes each in one state only. */
  openBody(header: SealedHeader, datagram: Uint8Array): Uint8Array | null {
    this.#nonce.fill(0);
    this.#nonce.set(datagram.subarray(1, 1 + header.sequenceBytes), 4);
    this.#additional[this.#additional.length - 1] = datagram[0]!;
    try {
      return chacha20poly1305(this.#opening, this.#nonce, this.#additional).decrypt(datagram.subarray(1 + header.sequenceBytes));
    } catch {
      return null;
    }
  }

  /** Seals a body; `null` when the link has used up its sequences. */
  seal(kind: number, body: Uint8Array, nowMs: number): Uint8Array | null {
    if (kind === Kind.payload && (body.length < 1 || body.length > PAYLOAD_BYTES_MAX)) throw new RangeError("a payload has 1 to 1,200 bytes");
    const sequence = this.#sendSequence;
    if (sequence >= SEQUENCE_END) return null;
    this.#sendSequence++;
    this.lastSentMs = nowMs;
    const sequenceBytes = sequenceBytesOf(sequence);
    const datagram = new Uint8Array(1 + sequenceBytes + body.length + TAG_BYTES);
    datagram[0] = kind | (sequenceBytes << 4);
    this.#nonce.fill(0);
    for (let index = 0, rest = sequence; index < sequenceBytes; index++, rest = Math.floor(rest / 256)) {
      datagram[1 + index] = this.#nonce[4 + index] = rest % 256;
    }
    this.#additional[this.#additional.length - 1] = datagram[0];
    chacha20poly1305(this.#sealing, this.#nonce, this.#additional).encrypt(body, datagram.subarray(1 + sequenceBytes));
    return datagram;
  }

  /** The handshake ends here: timeouts begin anew. */
  begin(nowMs: number): void {
    this.lastSentMs = nowMs;
    this.lastReceivedMs = nowMs;
  }
}
