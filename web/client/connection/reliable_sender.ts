// The sending half of the reliable channel: messages wait, ride, come back if their packet is lost, and leave when they are
// acknowledged. What may be on its way begins at 8 packets, grows with acks, and shrinks when packets are lost to silence.

import { FRAGMENT_BYTES_MAX, FRAGMENT_OVERHEAD_BYTES, type PacketWriter } from "./packet.ts";
import { Patience, STALL_MS_MAX } from "./patience.ts";

export const MESSAGE_BYTES_MAX = 64 * 1024;
export const WINDOW_FRAGMENTS = 256;
/** What waits at most: two messages of the largest size. */
const FRAGMENTS_MAX = 2 * Math.ceil(MESSAGE_BYTES_MAX / FRAGMENT_BYTES_MAX);
const FULL_PACKET_BYTES = 3 * (FRAGMENT_OVERHEAD_BYTES + FRAGMENT_BYTES_MAX);
const FLIGHT_BYTES_MIN = 8 * FULL_PACKET_BYTES;
const FLIGHT_BYTES_EARNED_MAX = 24 * FULL_PACKET_BYTES;

interface Fragment {
  readonly bytes: Uint8Array;
  readonly isLast: boolean;
  state: "waiting" | "in-flight" | "lost" | "acked";
  carrier: number;
}

const needOf = (fragment: Fragment): number => FRAGMENT_OVERHEAD_BYTES + fragment.bytes.length;

export class ReliableSender {
  readonly #fragments: Fragment[] = [];
  /** The id of the first of them, which is the first of its message. */
  #first = 0;
  #flightBytes = 0;
  #earnedBytes = 0;
  readonly #patience = new Patience();

  /** Queues a message, whole or not at all: `false` when the queue is full. */
  push(message: Uint8Array): boolean {
    if (message.length < 1 || message.length > MESSAGE_BYTES_MAX) throw new RangeError("a reliable message has 1 to 65,536 bytes");
    const count = Math.ceil(message.length / FRAGMENT_BYTES_MAX);
    if (this.#fragments.length + count > FRAGMENTS_MAX) return false;
    for (let index = 0; index < count; index++) {
      const begin = index * FRAGMENT_BYTES_MAX;
      const bytes = message.slice(begin, begin + FRAGMENT_BYTES_MAX);
      this.#fragments.push({ bytes, isLast: index === count - 1, state: "waiting", carrier: 0 });
    }
    return true;
  }

  get hasDue(): boolean {
    return this.#nextDue() !== null;
  }

  /** Puts due fragments, lost ones first, into the packet `carrier`, in `space` bytes at most. */
  write(packet: PacketWriter, space: number, carrier: number): void {
    let left = space;
    for (let due = this.#nextDue(); due !== null; due = this.#nextDue()) {
      const fragment = this.#fragments[due]!;
      const need = needOf(fragment);
      if (need > left) break;
      packet.fragment((this.#first + due) & 0xffff, fragment.isLast, fragment.bytes);
      fragment.state = "in-flight";
      fragment.carrier = carrier;
      this.#flightBytes += need;
      left -= need;
    }
  }

  packetAcked(carrier: number): void {
    for (const fragment of this.#ridingOn(carrier)) {
      fragment.state = "acked";
      this.#flightBytes -= needOf(fragment);
      this.#earnedBytes = Math.min(this.#earnedBytes + needOf(fragment), FLIGHT_BYTES_EARNED_MAX);
      this.#patience.renew();
    }
    this.#dropAcked();
  }

  packetLost(carrier: number, isSilence: boolean): void {
    let any = false;
    for (const fragment of this.#ridingOn(carrier)) {
      any = true;
      fragment.state = "lost";
      this.#flightBytes -= needOf(fragment);
    }
    if (any && isSilence) this.#earnedBytes = Math.floor(this.#earnedBytes / 2);
  }

  /** Whether nothing was acknowledged for 12 s, though there is something to acknowledge. */
  isStalled(nowMs: number, isHeard: boolean): boolean {
    const isWaiting = this.#flightBytes > 0 || this.#fragments.some((fragment) => fragment.state === "lost");
    return this.#patience.look(nowMs, isWaiting, isHeard) > STALL_MS_MAX;
  }

  #nextDue(): number | null {
    if (this.#flightBytes >= FLIGHT_BYTES_MIN + this.#earnedBytes) return null;
    const window = Math.min(this.#fragments.length, WINDOW_FRAGMENTS);
    let waiting: number | null = null;
    for (let index = 0; index < window; index++) {
      const { state } = this.#fragments[index]!;
      if (state === "lost") return index;
      if (state === "waiting") waiting ??= index;
    }
    return waiting;
  }

  #ridingOn(carrier: number): Fragment[] {
    return this.#fragments.filter((fragment) => fragment.state === "in-flight" && fragment.carrier === carrier);
  }

  /** Lets go of the messages at the front that were acknowledged whole, so that the window moves on. */
  #dropAcked(): void {
    for (;;) {
      const open = this.#fragments.findIndex((fragment) => fragment.state !== "acked");
      const last = this.#fragments.findIndex((fragment) => fragment.isLast);
      if (last < 0 || (open >= 0 && open <= last)) return;
      this.#fragments.splice(0, last + 1);
      this.#first = (this.#first + last + 1) & 0xffff;
    }
  }
}
