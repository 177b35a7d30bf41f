// Input to update: how long a player waits until the world shows that an input was applied. It contains all that a player
// feels: the way out, the wait for the tick, the tick itself, the way back, and every lost packet between.

import { isAtOrAfter } from "../connection/sequence.ts";

const WAITING_MAX = 256;
/** The mean is over some so many answers. */
const SMOOTHING = 16;

export class InputLatency {
  /** Of the last input. None is 0, not after 65,535 either, so that 0 can mean "none yet". */
  lastNumber = 0;
  /** Smoothed (ms); `null` before the first answer. */
  meanMs: number | null = null;
  #waiting: { readonly number: number; readonly atMs: number }[] = [];

  /** An input leaves now: its number. */
  sent(nowMs: number): number {
    this.lastNumber = this.lastNumber === 65_535 ? 1 : this.lastNumber + 1;
    if (this.#waiting.length === WAITING_MAX) this.#waiting.shift();
    this.#waiting.push({ number: this.lastNumber, atMs: nowMs });
    return this.lastNumber;
  }

  /** A snapshot says that `number` was the newest input taken; 0: none. */
  answered(nowMs: number, number: number): void {
    if (number === 0 || !isAtOrAfter(this.lastNumber, number)) return;
    while (this.#waiting.length > 0 && isAtOrAfter(number, this.#waiting[0]!.number)) {
      const tookMs = nowMs - this.#waiting.shift()!.atMs;
      this.meanMs = this.meanMs === null ? tookMs : this.meanMs + (tookMs - this.meanMs) / SMOOTHING;
    }
  }

  leftWorld(): void {
    this.#waiting = [];
  }
}
