// How a body moves in a match: the arithmetic of games/duel/src/movement.rs, walls and crates included. What the two make of
// the same inputs is held together by tests/steps/duel.json, which Rust writes.
//
// Rust counts in 32 bits and this in 64: in a second they come to lie some micrometres apart.

import { SQUARE_M, letterAt } from "./map.ts";

export const RUN_M_PER_S = 5.4;
export const WALK_M_PER_S = 2.7;
const BODY_HALF_M = 0.35;
const BODY_HEIGHT_M = 1.8;
const JUMP_M_PER_S = 4.5;
const GRAVITY_M_PER_S2 = 10;
const ACCELERATION_PER_S = 11;
const AIR_ACCELERATION_PER_S = 1.5;
const FRICTION_PER_S = 7;
const STOP_M_PER_S = 1.5;
const TOUCH_M = 1e-3;
/** How high what stands on a square is (m). */
const HEIGHTS_M: Record<string, number> = { "#": 5, c: 0.9, C: 1.4 };
/** Walls go so far below the ground (m). */
const BOTTOM_M = -0.5;

/** Along x, y and z (m, or m/s). */
type Three = readonly [number, number, number];

/** Where a body is and how it moves. */
export interface Motion {
  /** The feet. */
  readonly at: Three;
  readonly velocity: Three;
  readonly isOnGround: boolean;
}

/** What a body wants in a tick. */
export interface Wish {
  /** Along x and z, never longer than 1. */
  readonly direction: readonly [number, number];
  readonly isWalking: boolean;
  readonly isJumping: boolean;
}

/** A box along the axes. */
export interface Box {
  readonly min: Three;
  readonly max: Three;
}

/** What each side may not leave while it buys: all of the map beyond these edges (m). */
export const BASES: { readonly attackers: Box; readonly defenders: Box } = {
  attackers: { min: [-44, 0, -32], max: [-30, 0, 32] },
  defenders: { min: [30, 0, -32], max: [44, 0, 32] },
};

export function standing(at: Three): Motion {
  return { at, velocity: [0, 0, 0], isOnGround: true };
}

/** A body after one tick of so many seconds. Within a `zone` it stays within. */
export function step({ at, velocity, isOnGround }: Motion, wish: Wish, zone: Box | null, seconds: number): Motion {
  let [x, z] = [velocity[0], velocity[2]];
  if (isOnGround) {
    const left = friction(Math.hypot(x, z), seconds);
    [x, z] = [x * left, z * left];
  }
  [x, z] = accelerate([x, z], wish, isOnGround, seconds);
  const speed = Math.hypot(x, z);
  if (speed > RUN_M_PER_S) [x, z] = [(x / speed) * RUN_M_PER_S, (z / speed) * RUN_M_PER_S];
  const up = isOnGround && wish.isJumping ? JUMP_M_PER_S : velocity[1] - GRAVITY_M_PER_S2 * seconds;
  return slideAll(at, [x, up, z], zone, seconds);
}

/** What is left of a speed after a tick on the ground, as a part of it. */
function friction(speed: number, seconds: number): number {
  return speed <= 0 ? 0 : Math.max(1 - (Math.max(speed, STOP_M_PER_S) * FRICTION_PER_S * seconds) / speed, 0);
}

/** Faster towards where the body wants to go, up to the speed that it wants. */
function accelerate([x, z]: readonly [number, number], { direction, isWalking }: Wish, isOnGround: boolean, seconds: number): [number, number] {
  const length = Math.hypot(...direction);
  if (length < 1e-3) return [x, z];
  const [alongX, alongZ] = [direction[0] / length, direction[1] / length];
  const speed = isWalking ? WALK_M_PER_S : RUN_M_PER_S;
  const lacking = Math.max(speed * Math.min(length, 1) - (x * alongX + z * alongZ), 0);
  const rate = isOnGround ? ACCELERATION_PER_S : AIR_ACCELERATION_PER_S;
  const more = Math.min(lacking, rate * speed * seconds);
  return [x + alongX * more, z + alongZ * more];
}

/** Goes along one axis after the other, as far as nothing is in the way. */
function slideAll(from: Three, wanted: Three, zone: Box | null, seconds: number): Motion {
  const near = solidsNear(from);
  const [at, velocity] = [[...from] as [number, number, number], [...wanted] as [number, number, number]];
  for (const axis of [0, 2] as const) {
    let isStopped = slide(at, axis, wanted[axis] * seconds, near);
    if (zone) {
      const inside = Math.min(Math.max(at[axis], zone.min[axis] + BODY_HALF_M), zone.max[axis] - BODY_HALF_M);
      isStopped ||= inside !== at[axis];
      at[axis] = inside;
    }
    if (isStopped) velocity[axis] = 0;
  }
  const rise = wanted[1] * seconds;
  let isStopped = slide(at, 1, rise, near);
  if (at[1] <= 0) {
    at[1] = 0;
    isStopped = true;
  }
  if (isStopped) velocity[1] = 0;
  return { at, velocity, isOnGround: isStopped && rise <= 0 };
}

/** Moves a body along an axis as far as no solid is in the way; whether one was. */
function slide(at: [number, number, number], axis: 0 | 1 | 2, way: number, near: readonly Box[]): boolean {
  const min: Three = [at[0] - BODY_HALF_M, at[1], at[2] - BODY_HALF_M];
  const max: Three = [at[0] + BODY_HALF_M, at[1] + BODY_HEIGHT_M, at[2] + BODY_HALF_M];
  let far = Math.abs(way);
  for (const solid of near) {
    const isBeside = ([0, 1, 2] as const).some((other) => other !== axis && (max[other] <= solid.min[other] + TOUCH_M || min[other] >= solid.max[other] - TOUCH_M));
    const ahead = way > 0 ? solid.min[axis] - max[axis] : min[axis] - solid.max[axis];
    // Whoever is within a solid, which nobody gets into, may leave it.
    if (!isBeside && ahead >= -TOUCH_M) far = Math.min(far, Math.max(ahead, 0));
  }
  const isStopped = far < Math.abs(way);
  at[axis] += way > 0 ? far : -far;
  return isStopped;
}

/** What stands on the square of a place and on those around it: more than a body there can touch in a tick. */
function solidsNear([x, , z]: Three): Box[] {
  const solids: Box[] = [];
  const [west, south] = [Math.floor(x / SQUARE_M) * SQUARE_M, Math.floor(z / SQUARE_M) * SQUARE_M];
  for (const minX of [west - SQUARE_M, west, west + SQUARE_M]) {
    for (const minZ of [south - SQUARE_M, south, south + SQUARE_M]) {
      const height = HEIGHTS_M[letterAt(minX + SQUARE_M / 2, minZ + SQUARE_M / 2)];
      if (height !== undefined) solids.push({ min: [minX, BOTTOM_M, minZ], max: [minX + SQUARE_M, height, minZ + SQUARE_M] });
    }
  }
  return solids;
}
