// How far a player goes in a tick, and where the land ends, as games/frontier/src/players.rs and landscape.rs have it.
// tests/steps/frontier.json and frontier_edge.json, which Rust writes, hold the two together. What else keeps somebody back
// comes as a correction: walls that players have built, stuns and snares.

import { directionOf } from "../direction.ts";
import type { Run } from "../runner.ts";

const WALK_M_PER_S = 5;
const RUN_M_PER_S = 7.5;
/** From the middle of the land to each of its sides (m). */
const EDGE_M = 4000;

/** Metres to the east and to the north that an input with this direction takes. */
export function stepOf(move: readonly [number, number], isRunning: boolean, tickHz: number): Run {
  const [x, z] = directionOf(move);
  const metres = (isRunning ? RUN_M_PER_S : WALK_M_PER_S) / tickHz;
  return { x: x * metres, z: z * metres };
}

/** Where somebody comes to who takes a step: not over the land's edge. */
export function walk(from: Run, by: Run): Run {
  const within = (metres: number): number => Math.min(Math.max(metres, -EDGE_M), EDGE_M);
  return { x: within(from.x + by.x), z: within(from.z + by.z) };
}
