// How long something has stood still, counted only while somebody was watching: a page in the background has not seen its
// server stall, so each look counts for 250 ms at most.

const LOOK_MS_MAX = 250;

/** Two seconds more than a blackout that a player survives. */
export const STALL_MS_MAX = 12_000;

export class Patience {
  #waitedMs = 0;
  #lookedAtMs: number | null = null;

  renew(): void {
    this.#waitedMs = 0;
  }

  /** For how long nothing has moved. */
  look(nowMs: number, isWaiting: boolean): number {
    const sinceMs = this.#lookedAtMs === null ? 0 : Math.max(nowMs - this.#lookedAtMs, 0);
    this.#lookedAtMs = nowMs;
    this.#waitedMs = isWaiting ? this.#waitedMs + Math.min(sinceMs, LOOK_MS_MAX) : 0;
    return this.#waitedMs;
  }
}
