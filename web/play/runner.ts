// A player who runs on the flat, predicted: each input moves it by a step. What the page does not know, walls and others,
// comes as a correction, which is shown as a slide of a tenth of a second.

import { type Place, type PredictionStats, Predictor } from "../client/index.ts";

export interface Run {
  readonly x: number;
  readonly z: number;
}

/** Places come in steps of 1 cm, and what is predicted begins with such a place (m). */
const ROUNDING_M = 0.02;

/** Steps of an input: metres to the east and to the north. */
export class Runner {
  readonly #predictor = new Predictor<Run, Run>({
    step: ({ x, z }, by) => ({ x: x + by.x, z: z + by.z }),
    place: ({ x, z }): Place => [x, 0, z],
    shifted: ({ x, z }, [byX, , byZ]) => ({ x: x + byX, z: z + byZ }),
    // What rounding makes is no correction, and what is predicted stays: so a small mistake adds up until it is one.
    heard: (told, predicted) => (Math.hypot(told.x - predicted.x, told.z - predicted.z) <= ROUNDING_M ? predicted : told),
  }, { rounding: ROUNDING_M });

  leftWorld(): void {
    this.#predictor.leftWorld();
  }

  /** The input of this number was sent; `null`: there was no world for it. */
  took(number: number | null, x: number, z: number): void {
    if (number !== null) this.#predictor.apply(number, { x, z });
  }

  /** The server's word, and what is to be shown. */
  shown(nowMs: number, told: { readonly state: Run; readonly input: number } | null): Run | null {
    if (told) this.#predictor.reconcile(nowMs, told.input, told.state);
    return this.#predictor.shown(nowMs);
  }

  get stats(): PredictionStats {
    return this.#predictor.stats;
  }
}
