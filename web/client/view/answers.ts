// Answers: which input each tick took in last, so that a value of a tick can be held against what was predicted.
//
// A value that came with tick 7 is also that of tick 9 if the snapshots of 8 and 9 came and had nothing of it. What a lost
// packet had to say is said again within a second, so a value that was not told again holds a second ago in any case. Of a
// tick that is told in several packets the one with what is new of the own entity says the input; the others say 0.

import { distance, isAtOrAfter } from "../connection/sequence.ts";

const TICKS_MAX = 256;
const TOLD_AGAIN_S = 1;
/** Inputs that can be on their way. A number further back is none that this stay's world has taken. */
const ON_THEIR_WAY_MAX = 4096;

export interface Answer {
  readonly tick: number;
  input: number;
}

export class Answers {
  /** By tick, oldest first. */
  #told: Answer[] = [];
  #inputBeforeStay = 0;
  #inputNewest: number | null = null;

  /** Another stay. Inputs up to `lastNumber` were for the one before. */
  leftWorld(lastNumber: number): void {
    this.#told = [];
    this.#inputBeforeStay = lastNumber;
    this.#inputNewest = null;
  }

  heard(tick: number, input: number, lastNumber: number): void {
    // Another packet of the tick says it.
    if (input === 0 && this.#inputNewest !== null) return;
    const taken = this.#ofThisStay(input, lastNumber);
    const after = this.#told.findLastIndex((answer) => answer.tick < tick) + 1;
    const told = this.#told[after];
    if (told?.tick === tick) {
      if (told.input === this.#inputBeforeStay) told.input = taken;
      return;
    }
    if (this.#told.length === TICKS_MAX && after === 0) return;
    this.#told.splice(after, 0, { tick, input: taken });
    if (this.#told.length > TICKS_MAX) this.#told.shift();
  }

  /** The newest tick of which a value is surely true that was told for `toldTick`, and the input that it includes. */
  holdsUntil(toldTick: number, tickHz: number): Answer | null {
    const newest = this.#told.at(-1);
    if (!newest) return null;
    const first = this.#told.findLastIndex((answer) => answer.tick < toldTick) + 1;
    let end = first;
    while (this.#told[end]?.tick === toldTick + end - first) end++;
    const inAnyCase = newest.tick - TOLD_AGAIN_S * tickHz;
    const oldCount = this.#told.findLastIndex((answer) => answer.tick <= inAnyCase) + 1;
    const last = this.#told[Math.max(end, oldCount) - 1];
    return last && last.tick >= toldTick ? last : null;
  }

  #ofThisStay(input: number, lastNumber: number): number {
    const before = this.#inputBeforeStay;
    if (input === 0) return this.#inputNewest ?? before;
    const isAfter = this.#inputNewest !== null || (input !== before && isAtOrAfter(input, before));
    if (isAfter && distance(lastNumber, input) < ON_THEIR_WAY_MAX) this.#inputNewest = input;
    return this.#inputNewest ?? before;
  }
}
