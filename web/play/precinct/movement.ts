// How far a player goes in a tick where nothing is in the way (`walk.ts` knows what is), as games/precinct/src/movement.rs has
// it. tests/steps/precinct.json, which Rust writes, holds the two together.

import { directionOf } from "../direction.ts";
import type { Run } from "../runner.ts";

const WALK_M_PER_S = 5;
const SPRINT_M_PER_S = 7.5;

/** Metres to the east and to the north that an input with this direction takes. */
export function stepOf(move: readonly [number, number], isSprinting: boolean, tickHz: number): Run {
  const [x, z] = directionOf(move);
  const metres = (isSprinting ? SPRINT_M_PER_S : WALK_M_PER_S) / tickHz;
  return { x: x * metres, z: z * metres };
}
