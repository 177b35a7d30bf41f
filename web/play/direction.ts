// Directions as inputs say them: two integers, 127 is full speed along an axis. Servers read them the same way in all games
// (`Input::direction`), so what is predicted goes by the integers, not by the keys.

const FULL = 127;

/** Integers of a direction that is no longer than 1. */
export function toMove([east, north]: readonly [number, number]): [moveX: number, moveZ: number] {
  return [Math.round(east * FULL), Math.round(north * FULL)];
}

/** What a server makes of them: never longer than 1. */
export function directionOf([moveX, moveZ]: readonly [number, number]): [x: number, z: number] {
  const longer = Math.max(Math.hypot(moveX, moveZ) / FULL, 1);
  return [moveX / FULL / longer, moveZ / FULL / longer];
}
