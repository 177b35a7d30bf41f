// How far a player goes in a tick, and what keeps it: walls, the land's edge, a snare, a stun and death, as
// games/frontier/src/players.rs and landscape.rs have it. Files in tests/steps/, which Rust writes, hold the two together in all
// but stuns and death, of which there is nothing to compute.

import { directionOf } from "../direction.ts";
import type { Run } from "../runner.ts";
import { cellAt } from "./cells.ts";
import type { Land } from "./land.ts";

const WALK_M_PER_S = 5;
const RUN_M_PER_S = 7.5;
/** Of a step, while snared. */
const SNARED_SHARE = 0.5;
/** Half of the step in which places are told: so far may one that is predicted be from the server's (m). */
const PLACE_DOUBT_M = 0.005;
/** From the middle of the land to each of its sides (m). */
const EDGE_M = 4000;

/** What may keep a player, as far as it was told. What begins or ends while an input is on its way is a correction, and the end of
 * a stun or a snare is told up to 200 ms late (games/frontier/src/wear.rs). */
export interface Hindrance {
  readonly land: Land;
  /** Stunned or dead. */
  readonly isHeld: boolean;
  readonly isSnared: boolean;
}

/** Metres to the east and to the north that an input with this direction takes. */
export function stepOf(move: readonly [number, number], isRunning: boolean, tickHz: number): Run {
  const [x, z] = directionOf(move);
  const metres = (isRunning ? RUN_M_PER_S : WALK_M_PER_S) / tickHz;
  return { x: x * metres, z: z * metres };
}

/** Where somebody comes to who takes a step: not into a wall, but out of one that was built around it, and not over the edge. */
export function walk(from: Run, by: Run, { land, isHeld, isSnared }: Hindrance): Run {
  if (isHeld) return from;
  const share = isSnared ? SNARED_SHARE : 1;
  const to = { x: from.x + by.x * share, z: from.z + by.z * share };
  // On the edge of a wall it is before it, and stays there: who steps on while the server stands would do so again with each place
  // that is told.
  const [asideX, asideZ] = [Math.sign(by.x) * PLACE_DOUBT_M, Math.sign(by.z) * PLACE_DOUBT_M];
  const own = cellAt(from.x - asideX, from.z - asideZ);
  const isWall = (cell: number): boolean => cell !== own && land.at(cell).piece === "Wall";
  if (isWall(cellAt(to.x, to.z)) || isWall(cellAt(to.x + asideX, to.z + asideZ))) return from;
  const within = (metres: number): number => Math.min(Math.max(metres, -EDGE_M), EDGE_M);
  return { x: within(to.x), z: within(to.z) };
}
