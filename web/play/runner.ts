// A player who runs, predicted: each input moves it by a step, on the flat or where its game says that a step leads. What the
// page does not know comes as a correction, which is shown as a slide of a tenth of a second.

import { type Place, type PredictionStats, Predictor } from "../client/index.ts";

export interface Run {
  readonly x: number;
  readonly z: number;
}

/** Where somebody comes to who takes this step from there (m). */
export type Walk = (from: Run, by: Run) => Run;

/** Places come in steps of 1 cm, and what is predicted begins with such a place (m). */
const ROUNDING_M = 0.02;

const onTheFlat: Walk = (from, by) => ({ x: from.x + by.x, z: from.z + by.z });

/** Steps of an input: metres to the east and to the north. */
export class Runner {
  readonly #predictor: Predictor<Run, Run>;

  constructor(walk: Walk = onTheFlat) {
    this.#predictor = new Predictor<Run, Run>({
      step: walk,
      place: ({ x, z }): Place => [x, 0, z],
      shifted: ({ x, z }, [byX, , byZ]) => ({ x: x + byX, z: z + byZ }),
      // What rounding makes is no correction, and what is predicted stays: so a small mistake adds up until it is one.
      heard: (told, predicted) => (Math.hypot(told.x - predicted.x, told.z - predicted.z) <= ROUNDING_M ? predicted : told),
    }, { rounding: ROUNDING_M });
  }

  leftWorld(): void {
    this.#predictor.leftWorld();
  }

  /** It lies where it died, and stands up elsewhere: inputs that are on their way then will move the one who stands up. */
  die(): void {
    this.#predictor.reset();
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
