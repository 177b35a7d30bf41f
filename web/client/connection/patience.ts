// How long something has stood still, counted only while somebody was watching and the server was heard: a page in the background
// has not seen its server stall, so each look counts for 250 ms at most; and who says nothing at all is the link's timeout's.

const LOOK_MS_MAX = 250;

/** Two seconds more than a blackout that a player survives. */
export const STALL_MS_MAX = 12_000;

/** A server of which something came counts as heard for so long. */
export const HEARD_FOR_MS = 3_000;

export class Patience {
  #waitedMs = 0;
  #lookedAtMs: number | null = null;

  renew(): void {
    this.#waitedMs = 0;
  }

  /** For how long nothing has moved while the server was heard. */
  look(nowMs: number, isWaiting: boolean, isHeard: boolean): number {
    const sinceMs = this.#lookedAtMs === null ? 0 : Math.max(nowMs - this.#lookedAtMs, 0);
    this.#lookedAtMs = nowMs;
    if (!isWaiting) this.#waitedMs = 0;
    else if (isHeard) this.#waitedMs += Math.min(sinceMs, LOOK_MS_MAX);
    return this.#waitedMs;
  }
}
