// Interpolation: what others do, shown evenly between the values that came. The last values of each entity are kept by tick;
// the moment that is drawn is looked up among them. Who stood still for long moves off in the last tick, not over all of
// them; after its newest value an entity is held there.

import type { Moment } from "./view_clock.ts";

const VALUES_MAX = 32;

/** The value so far from `value` to a later one: 0 is this one, 1 the later. */
export type Between<T> = (value: T, later: T, share: number) => T;

/** The last values of one component of one entity. */
export class Track<T> {
  /** Oldest first. */
  #values: { readonly tick: number; readonly value: T }[] = [];

  /** Takes a value that is true for this tick, if it is newer than those before it. */
  push(tick: number, value: T): void {
    if (this.newestTick !== undefined && tick <= this.newestTick) return;
    if (this.#values.length === VALUES_MAX) this.#values.shift();
    this.#values.push({ tick, value });
  }

  get newestTick(): number | undefined {
    return this.#values.at(-1)?.tick;
  }

  clear(): void {
    this.#values = [];
  }

  /** The value at a moment of a world that ticks so often a second. `undefined` before the first value. */
  sample(at: Moment, tickHz: number, between: Between<T>, gapMsMax = 200): T | undefined {
    const place = this.#values.findLastIndex(({ tick }) => tick <= at.tick);
    const [older, newer] = [this.#values[place], this.#values[place + 1]];
    if (!older || !newer) return (older ?? newer)?.value;
    const apart = newer.tick - older.tick;
    const isStandingStill = apart > Math.ceil((gapMsMax * tickHz) / 1000);
    const begin = isStandingStill ? newer.tick - 1 : older.tick;
    const share = (at.tick - begin + at.part) / (isStandingStill ? 1 : apart);
    return share <= 0 ? older.value : between(older.value, newer.value, Math.min(share, 1));
  }
}

/** Between two numbers. */
export const mix = (value: number, later: number, share: number): number => value + (later - value) * share;

/** Between two angles (radians), the shorter way round. */
export const mixAngle = (value: number, later: number, share: number): number => {
  const turn = 2 * Math.PI;
  const apart = ((((later - value) % turn) + turn + Math.PI) % turn) - Math.PI;
  return value + apart * share;
};
