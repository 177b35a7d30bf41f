// The receiving half: fragments wait behind a gap until their message is whole and its turn has come. No length is declared
// beforehand, so nothing is kept for a promise.

import { FRAGMENT_BYTES_MAX } from "./packet.ts";
import { Patience, STALL_MS_MAX } from "./patience.ts";
import { MESSAGE_BYTES_MAX, WINDOW_FRAGMENTS } from "./reliable_sender.ts";
import { HALF, distance } from "./sequence.ts";

interface Held {
  readonly bytes: Uint8Array;
  readonly isLast: boolean;
}

export class ReliableReceiver {
  /** Fragments by id. */
  readonly #held = new Map<number, Held>();
  /** The first fragment of the message that is next in line, and the first that is missing. */
  #next = 0;
  #missing = 0;
  readonly #patience = new Patience();

  /** Takes a fragment and hands over the messages that it makes whole. `false`: it breaks the channel's rules. */
  receive(id: number, isLast: boolean, bytes: Uint8Array, each: (message: Uint8Array) => void): boolean {
    const ahead = distance(id, this.#next);
    if (ahead >= HALF || this.#held.has(id)) return true;
    if (ahead >= WINDOW_FRAGMENTS) return false;
    // It lies in the packet's memory, which is not ours to keep.
    this.#held.set(id, { bytes: bytes.slice(), isLast });
    for (let held = this.#held.get(this.#missing); held; held = this.#held.get(this.#missing)) {
      const before = distance(this.#missing, this.#next);
      if (before * FRAGMENT_BYTES_MAX + held.bytes.length > MESSAGE_BYTES_MAX) return false;
      this.#missing = (this.#missing + 1) & 0xffff;
      this.#patience.renew();
      if (held.isLast) each(this.#takeMessage(before * FRAGMENT_BYTES_MAX + held.bytes.length));
    }
    return true;
  }

  /** Whether a message has been unfinished for 12 s. */
  isStalled(nowMs: number, isHeard: boolean): boolean {
    return this.#patience.look(nowMs, this.#held.size > 0, isHeard) > STALL_MS_MAX;
  }

  #takeMessage(length: number): Uint8Array {
    const message = new Uint8Array(length);
    for (let at = 0; this.#next !== this.#missing; this.#next = (this.#next + 1) & 0xffff) {
      const { bytes } = this.#held.get(this.#next)!;
      this.#held.delete(this.#next);
      message.set(bytes, at);
      at += bytes.length;
    }
    return message;
  }
}
