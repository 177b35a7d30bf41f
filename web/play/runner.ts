// A player who runs on the flat, predicted: each input moves it by a step. What the page does not know, walls and others,
// comes as a correction, which is shown as a slide of a tenth of a second.

import { type Place, Predictor } from "../client/index.ts";

export interface Run {
  readonly x: number;
  readonly z: number;
}

/** Steps of an input: metres to the east and to the north. */
export class Runner {
  readonly #predictor = new Predictor<Run, Run>({
    step: ({ x, z }, by) => ({ x: x + by.x, z: z + by.z }),
    place: ({ x, z }): Place => [x, 0, z],
    shifted: ({ x, z }, [byX, , byZ]) => ({ x: x + byX, z: z + byZ }),
  }, { rounding: 0.03 });

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

  get stats(): Predictor<Run, Run>["stats"] {
    return this.#predictor.stats;
  }
}
