// Which packets arrived: what we say about the other side's, and what the other side says about ours.
//
// A packet is lost when one that was sent 3 or more later is acknowledged, when its time is up, or when 256 newer ones are
// on their way. Each is told to be acknowledged or lost once. Being wrong about a loss costs a repetition, no more.

import type { Acks } from "./packet.ts";
import { HALF, distance, isNewer } from "./sequence.ts";

const LOSS_PACKETS = 3;
const IN_FLIGHT_MAX = 256;
const ACKED_PACKETS = 32;

export class ReceivedPackets {
  #newest = 0;
  #bits = 0;

  /** A packet that is so late that it could not be acknowledged was given up by its sender. */
  arrival(sequence: number): "fresh" | "duplicate" | "late" {
    if (this.#bits === 0 || isNewer(sequence, this.#newest)) return "fresh";
    const back = distance(this.#newest, sequence);
    if (back >= ACKED_PACKETS) return "late";
    return (this.#bits >>> back) & 1 ? "duplicate" : "fresh";
  }

  /** Notes a fresh one. */
  mark(sequence: number): void {
    if (this.#bits === 0) {
      [this.#newest, this.#bits] = [sequence, 1];
    } else if (isNewer(sequence, this.#newest)) {
      const ahead = distance(sequence, this.#newest);
      this.#newest = sequence;
      this.#bits = ahead < ACKED_PACKETS ? ((this.#bits << ahead) | 1) >>> 0 : 1;
    } else {
      this.#bits = (this.#bits | (1 << distance(this.#newest, sequence))) >>> 0;
    }
  }

  get acks(): Acks {
    return { newest: this.#newest, bits: this.#bits };
  }
}

/** What became of a packet of ours. */
export interface Fate {
  readonly sequence: number;
  readonly hasArrived: boolean;
  /** Whether it is lost because nothing newer was acknowledged either. */
  readonly isSilence: boolean;
}

export interface LossTimes {
  readonly withChunksMs: number;
  readonly withoutChunksMs: number;
}

interface SentPacket {
  readonly atMs: number;
  readonly awaitsAck: boolean;
  isDecided: boolean;
}

/** Our packets whose fate is open, oldest first. */
export class SentPackets {
  #open: SentPacket[] = [];
  #next = 0;
  #sentCount = 0;

  get next(): number {
    return this.#next;
  }

  sent(nowMs: number, awaitsAck: boolean): void {
    this.#open.push({ atMs: nowMs, awaitsAck, isDecided: false });
    this.#next = (this.#next + 1) & 0xffff;
    this.#sentCount++;
  }

  /** Whether these acks name only what was sent. */
  allows(acks: Acks): boolean {
    if (acks.bits === 0) return true;
    const age = distance(this.#next, (acks.newest + 1) & 0xffff);
    return age < HALF && age + 31 - Math.clz32(acks.bits) < this.#sentCount;
  }

  /** Takes acks that were allowed. Gives the round trip that they show (ms), or `null`. */
  acknowledge(acks: Acks, nowMs: number, each: (fate: Fate) => void): number | null {
    let roundTripMs: number | null = null;
    for (let back = 0; back < ACKED_PACKETS; back++) {
      if (((acks.bits >>> back) & 1) === 0) continue;
      const sequence = (acks.newest - back) & 0xffff;
      const packet = this.#open[this.#open.length - distance(this.#next, sequence)];
      if (!packet || packet.isDecided) continue;
      // The newest alone was acknowledged without delay, and only if it asked for that.
      if (back === 0 && packet.awaitsAck) roundTripMs = nowMs - packet.atMs;
      packet.isDecided = true;
      each({ sequence, hasArrived: true, isSilence: false });
    }
    if (acks.bits !== 0) this.#loseOvertaken(acks.newest, each);
    this.#forgetDecided();
    return roundTripMs;
  }

  /** Gives up packets whose time is up, and the oldest if there are too many. */
  expire(nowMs: number, times: LossTimes, each: (fate: Fate) => void): void {
    const tooMany = this.#open.length - IN_FLIGHT_MAX;
    for (const [index, packet] of this.#open.entries()) {
      const ageMs = nowMs - packet.atMs;
      if (ageMs < times.withChunksMs && index >= tooMany) break;
      const timeMs = packet.awaitsAck ? times.withChunksMs : times.withoutChunksMs;
      if (packet.isDecided || (ageMs < timeMs && index >= tooMany)) continue;
      packet.isDecided = true;
      each({ sequence: this.#sequenceAt(index), hasArrived: false, isSilence: true });
    }
    this.#forgetDecided();
  }

  #loseOvertaken(newestAcked: number, each: (fate: Fate) => void): void {
    for (const [index, packet] of this.#open.entries()) {
      const sequence = this.#sequenceAt(index);
      const overtakenBy = distance(newestAcked, sequence);
      if (overtakenBy < LOSS_PACKETS || overtakenBy >= HALF) break;
      if (packet.isDecided) continue;
      packet.isDecided = true;
      each({ sequence, hasArrived: false, isSilence: false });
    }
  }

  #forgetDecided(): void {
    const open = this.#open.findIndex((packet) => !packet.isDecided);
    this.#open.splice(0, open < 0 ? this.#open.length : open);
  }

  #sequenceAt(index: number): number {
    return (this.#next - (this.#open.length - index)) & 0xffff;
  }
}
