// View clock: which moment of its world a player is shown. The world is drawn a little behind its newest snapshot, two ticks
// if nobody says otherwise, so that it goes on evenly between snapshots that have come. Never back, never beyond the newest.

import type { ServerClock } from "./server_clock.ts";

const DELAY_TICKS = 2;
const PARTS_PER_TICK = 256;

/** A moment of a world: a tick, and how much of the next one has gone by [0 to 1). */
export interface Moment {
  readonly tick: number;
  readonly part: number;
}

/** What a client says that its player was shown. */
export interface Seen {
  readonly newestTick: number;
  /** How far before that tick, in 256ths of one. */
  readonly behindParts: number;
}

export const momentOf = ({ newestTick, behindParts }: Seen): Moment => {
  const parts = newestTick * PARTS_PER_TICK - behindParts;
  return { tick: Math.floor(parts / PARTS_PER_TICK), part: (parts % PARTS_PER_TICK) / PARTS_PER_TICK };
};

export class ViewClock {
  /** `null`: two ticks. */
  delayMs: number | null = null;
  #shownParts = 0;

  leftWorld(): void {
    this.#shownParts = 0;
  }

  seen(nowMs: number, clock: ServerClock, newestTick: number, tickHz: number): Seen {
    const newestParts = newestTick * PARTS_PER_TICK;
    const serverMs = clock.read(nowMs, tickHz);
    const delayMs = this.delayMs ?? (DELAY_TICKS * 1000) / tickHz;
    const dueParts = serverMs === null ? newestParts : Math.floor(((serverMs - delayMs) * tickHz * PARTS_PER_TICK) / 1000);
    const boundedParts = Math.min(Math.max(dueParts, 0), newestParts);
    const behindParts = Math.min(newestParts - Math.max(boundedParts, Math.min(this.#shownParts, newestParts)), 65_535);
    this.#shownParts = newestParts - behindParts;
    return { newestTick, behindParts };
  }
}
