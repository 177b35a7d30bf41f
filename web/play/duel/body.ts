// The own body in a match, predicted: each input moves it by a step of the match's own (`movement.ts`). A match tells the
// place alone, so velocity, and whether it stands on the ground, stay those of the own steps; games/duel/src/prediction.rs
// does the same for bots.

import { type Place, type PredictionStats, Predictor } from "../../client/index.ts";
import { BASES, type Box, type Motion, type Wish, standing, step } from "./movement.ts";
import type { Phase, Pose } from "./schema.ts";

/** Ticks a second of a match. */
const TICK_HZ = 128;
/** Places come in steps of 1 cm, and this is more than the diagonal of one (m). */
const ROUNDING_M = 0.02;

/** What makes a step. */
interface Stride {
  readonly wish: Wish;
  readonly zone: Box | null;
}

export class Body {
  readonly #predictor = new Predictor<Motion, Stride>({
    step: (motion, { wish, zone }) => step(motion, wish, zone, 1 / TICK_HZ),
    place: ({ at }): Place => at,
    shifted: (motion, by) => ({ ...motion, at: [motion.at[0] + by[0], motion.at[1] + by[1], motion.at[2] + by[2]] }),
    // A rounded place could be a little within a wall, and who is within may leave on the other side.
    heard: (told, predicted) => {
      const apart = Math.hypot(told.at[0] - predicted.at[0], told.at[1] - predicted.at[1], told.at[2] - predicted.at[2]);
      return apart <= ROUNDING_M ? predicted : { ...predicted, at: told.at };
    },
  }, { rounding: ROUNDING_M });
  #life = -1;

  leftWorld(): void {
    this.#predictor.leftWorld();
    this.#life = -1;
  }

  /** It lies where it died: inputs that are on their way will move the one who stands up. */
  die(): void {
    this.#predictor.reset();
  }

  /** The input of this number was sent, in this phase; `null`: there was no world for it. */
  took(number: number | null, wish: Wish, phase: Phase, isAttacker: boolean): void {
    const base = isAttacker ? BASES.attackers : BASES.defenders;
    const zone = phase === "WarmUp" || phase === "Buy" ? base : null;
    if (number !== null) this.#predictor.apply(number, { wish, zone });
  }

  /** The match's word, and where it is to be shown. */
  shown(nowMs: number, told: { readonly state: Pose; readonly input: number } | null): { readonly x: number; readonly z: number } | null {
    if (told) {
      const { x, y, z, life } = told.state;
      // The match has put it there: it did not walk.
      if (life !== this.#life) this.#predictor.reset();
      this.#life = life;
      this.#predictor.reconcile(nowMs, told.input, standing([x, y, z]));
    }
    const motion = this.#predictor.shown(nowMs);
    return motion && { x: motion.at[0], z: motion.at[2] };
  }

  get stats(): PredictionStats {
    return this.#predictor.stats;
  }
}
