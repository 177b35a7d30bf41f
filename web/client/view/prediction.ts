// Prediction: what a player steers is shown at once, as the server will have it.
//
// A client sends an input and takes the same step itself. Later the server says how things stood when it had taken that
// input. If that is what was predicted nothing happens; if not, the server's state counts, all inputs since are taken once
// more, and what is shown moves from the old place to the new one within a bounded time.

import { isAtOrAfter } from "../connection/sequence.ts";

/** Inputs that are not confirmed, at most: 2 s at 128 Hz. */
const UNCONFIRMED_MAX = 256;

export type Place = readonly [number, number, number];

/** How a game moves what a player steers: the same on both ends. */
export interface Model<State, Input> {
  /** The state after one input: no clock, no chance. */
  step(state: State, input: Input): State;
  /** Where it is (m). */
  place(state: State): Place;
  /** The same state, shown so far from its place. */
  shifted(state: State, by: Place): State;
  /** What counts from now on, of the server's state and what was predicted for the same input: for games that do not tell
   * all of a state, and for places that come rounded. Left out: the server's state. */
  heard?(told: State, predicted: State): State;
}

export interface PredictionSettings {
  /** How long what is shown takes from the wrong place to the right one (ms). */
  readonly smoothingMs: number;
  /** What is off by more is shown in its right place at once (m). */
  readonly smoothedMax: number;
  /** Places that are no farther apart agree (m): a whole step of the place as it is declared, and what the game's step
   * differs in here from the server's. */
  readonly rounding: number;
}

const DEFAULTS: PredictionSettings = { smoothingMs: 100, smoothedMax: 3, rounding: 0.02 };

/** What a predictor counts. */
export interface PredictionStats {
  /** States of the server that were held against what was predicted. */
  checks: number;
  /** Of these, how many moved what was predicted by more than rounding does. */
  corrections: number;
  /** How far they moved it, together and at most (m). */
  corrected: number;
  correctedMax: number;
  /** All corrections together, as one way (m): near nothing where inputs came too late, far where steps are too long. */
  drift: Place;
}

interface Step<State, Input> {
  readonly number: number;
  readonly input: Input;
  after: State | null;
}

export class Predictor<State, Input> {
  readonly #model: Model<State, Input>;
  readonly #settings: PredictionSettings;
  #confirmed: State | null = null;
  #confirmedInput = 0;
  #steps: Step<State, Input>[] = [];
  #shift: Place = [0, 0, 0];
  #shiftSinceMs = 0;
  readonly stats: PredictionStats = { checks: 0, corrections: 0, corrected: 0, correctedMax: 0, drift: [0, 0, 0] };

  constructor(model: Model<State, Input>, settings: Partial<PredictionSettings> = {}) {
    this.#model = model;
    this.#settings = { ...DEFAULTS, ...settings };
  }

  /** The player steers something else now. */
  reset(): void {
    this.#confirmed = null;
    for (const step of this.#steps) step.after = null;
    this.#shift = [0, 0, 0];
  }

  /** The player is in another world: no input of the one before is taken there. */
  leftWorld(): void {
    this.reset();
    this.#steps = [];
  }

  /** The input of this number was sent: its step is taken. */
  apply(number: number, input: Input): void {
    if (this.#steps.length === UNCONFIRMED_MAX) {
      if (this.#confirmed !== null) return;
      this.#steps.shift();
    }
    const before = this.predicted;
    this.#steps.push({ number, input, after: before === null ? null : this.#model.step(before, input) });
  }

  /** The server's state, which has input `number` in it and none after that. */
  reconcile(nowMs: number, number: number, told: State): void {
    if (this.#confirmed !== null && !isAtOrAfter(number, this.#confirmedInput)) return;
    while (this.#steps.length > 0 && isAtOrAfter(number, this.#steps[0]!.number)) this.#confirmed = this.#steps.shift()!.after;
    this.#confirmedInput = number;
    const predicted = this.#confirmed;
    if (predicted === null) {
      this.#stepFrom(told);
      return;
    }
    this.stats.checks++;
    const before = this.#model.place(this.predicted!);
    const isRight = length(minus(this.#model.place(told), this.#model.place(predicted))) <= this.#settings.rounding;
    // What is right is taken over as well: what else came (speed, stance) counts, and is shown without a shift.
    const heard = this.#model.heard?.(told, predicted) ?? told;
    if (heard === predicted) return;
    this.#stepFrom(heard);
    const off = minus(before, this.#model.place(this.predicted!));
    const left = this.#shiftAt(nowMs);
    const by: Place = [left[0] + off[0], left[1] + off[1], left[2] + off[2]];
    this.#shift = length(by) <= this.#settings.smoothedMax ? by : [0, 0, 0];
    this.#shiftSinceMs = nowMs;
    if (isRight) return;
    this.stats.corrections++;
    this.stats.corrected += length(off);
    this.stats.drift = minus(this.stats.drift, off);
    this.stats.correctedMax = Math.max(this.stats.correctedMax, length(off));
  }

  /** The state that is predicted for now; `null` before the server has told one. */
  get predicted(): State | null {
    return this.#steps.at(-1)?.after ?? this.#confirmed;
  }

  /** The same, as it is to be shown. */
  shown(nowMs: number): State | null {
    const predicted = this.predicted;
    if (predicted === null) return null;
    const by = this.#shiftAt(nowMs);
    return length(by) === 0 ? predicted : this.#model.shifted(predicted, by);
  }

  #stepFrom(told: State): void {
    this.#confirmed = told;
    let state = told;
    for (const step of this.#steps) state = step.after = this.#model.step(state, step.input);
  }

  #shiftAt(nowMs: number): Place {
    const share = Math.max(1 - (nowMs - this.#shiftSinceMs) / this.#settings.smoothingMs, 0);
    return [this.#shift[0] * share, this.#shift[1] * share, this.#shift[2] * share];
  }
}

const minus = (one: Place, other: Place): Place => [one[0] - other[0], one[1] - other[1], one[2] - other[2]];
const length = ([x, y, z]: Place): number => Math.hypot(x, y, z);
