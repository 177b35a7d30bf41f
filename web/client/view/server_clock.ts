// Server clock: which tick's snapshot comes now, as an even time.
//
// Snapshots come unevenly and two hosts' clocks do not run alike. So it is smoothed when each tick comes, over some 0.4 s,
// and how much faster the server's ticks are than our clock says, over some 5 s. What is read never goes back, and runs at
// most 2 % faster or slower than time; a quarter in a world whose time is slowed. Where it is half a second or more off,
// after a standstill, it jumps ahead or waits. All times are in milliseconds; those of the server since its tick 0.

const SMOOTHING_MS = 400;
const DRIFT_SMOOTHING_MS = 5000;
const DRIFT_MAX = 0.02;
const APART_MS_MAX = 500;
const CATCH_UP_MS = 1000;
const SPEED_PARTS = 50;
const SLOWED_SPEED_PARTS = 4;

/** What is believed of when ticks come. */
interface Line {
  /** When tick 0 would have come. */
  readonly offsetMs: number;
  /** By how much the offset grows, for each millisecond. */
  readonly drift: number;
  readonly heardAtMs: number;
  readonly heardCount: number;
  /** Mean distance of what came from what was expected. */
  readonly jitterMs: number;
}

/** The clock of one stay in a world. */
export class ServerClock {
  /** The world's time as percent of the clock's, and what it was when it became that. */
  #percent = 100;
  #slowedFromMs = 0;
  #slowedMs = 0;
  #line: Line | null = null;
  #newestTick = 0;
  #readAtMs = -Infinity;
  #readMs: number | null = null;
  /** It has begun anew, and what was read is not right yet. */
  #isApart = false;

  /** Another stay, with other ticks. */
  leftWorld(): void {
    this.#percent = 100;
    this.#slowedFromMs = this.#slowedMs = this.#newestTick = 0;
    this.#line = this.#readMs = null;
    this.#readAtMs = -Infinity;
    this.#isApart = false;
  }

  /** A snapshot of this tick has come, from which on time runs at `percent`. */
  heard(nowMs: number, tick: number, tickHz: number, percent: number): void {
    if (this.#line && tick <= this.#newestTick) return;
    const ticksMs = ((tick - this.#newestTick) * 1000) / tickHz;
    this.#newestTick = tick;
    const atMs = this.#slowed(nowMs);
    if (percent !== this.#percent) [this.#slowedMs, this.#slowedFromMs, this.#percent] = [atMs, nowMs, percent];
    const cameMs = atMs - (tick * 1000) / tickHz;
    const followed = this.#line && follow(this.#line, atMs, cameMs, ticksMs);
    if (this.#line && !followed) this.#isApart = true;
    this.#line = followed ?? { offsetMs: cameMs, drift: 0, heardAtMs: atMs, heardCount: 1, jitterMs: this.#line?.jitterMs ?? 0 };
  }

  /** The time of the server whose snapshot comes now; `null` before the first. */
  read(nowMs: number, tickHz: number): number | null {
    if (!this.#line) return null;
    const atMs = Math.max(this.#readAtMs, this.#slowed(nowMs));
    const rightMs = atMs - offsetAt(this.#line, atMs);
    const before = this.#readMs;
    let readMs = rightMs;
    if (before !== null) readMs = this.#isApart ? Math.max(before, rightMs) : this.#followed(before, atMs, rightMs, this.#line.drift);
    if (readMs <= rightMs) this.#isApart = false;
    this.#readAtMs = atMs;
    this.#readMs = Math.min(readMs, (this.#newestTick * 1000) / tickHz + APART_MS_MAX);
    return this.#readMs;
  }

  /** How fast the world's time runs (percent). */
  get timePercent(): number {
    return this.#percent;
  }

  get jitterMs(): number {
    return this.#line?.jitterMs ?? 0;
  }

  #slowed(clockMs: number): number {
    return this.#slowedMs + ((clockMs - this.#slowedFromMs) * this.#percent) / 100;
  }

  #followed(beforeMs: number, atMs: number, rightMs: number, drift: number): number {
    const elapsedMs = Math.max(atMs - this.#readAtMs, 0);
    const steadyMs = beforeMs + elapsedMs;
    const offMs = rightMs - steadyMs;
    if (offMs >= APART_MS_MAX) return rightMs;
    const fasterMs = (offMs * Math.min(elapsedMs, CATCH_UP_MS)) / CATCH_UP_MS - elapsedMs * drift;
    const fasterMsMax = elapsedMs / (this.#percent === 100 ? SPEED_PARTS : SLOWED_SPEED_PARTS);
    return steadyMs + Math.min(Math.max(fasterMs, -fasterMsMax), fasterMsMax);
  }
}

function offsetAt(line: Line, atMs: number): number {
  const sinceMs = Math.min(Math.max(atMs - line.heardAtMs, -APART_MS_MAX), APART_MS_MAX);
  return line.offsetMs + sinceMs * line.drift;
}

/** Takes in a snapshot that is `ticksMs` of ticks newer than the one before. `null`: it is too far off. */
function follow(line: Line, atMs: number, cameMs: number, ticksMs: number): Line | null {
  const expectedMs = offsetAt(line, atMs);
  const offMs = cameMs - expectedMs;
  if (Math.abs(offMs) >= APART_MS_MAX) return null;
  const heardCount = line.heardCount + 1;
  // The first ones are averaged, so that an odd first one is soon forgotten; and at most half of one is believed.
  const share = Math.min(Math.max(ticksMs, SMOOTHING_MS / heardCount), SMOOTHING_MS / 2) / SMOOTHING_MS;
  const drift = line.drift + (offMs * Math.min(ticksMs, SMOOTHING_MS)) / DRIFT_SMOOTHING_MS / DRIFT_SMOOTHING_MS;
  return {
    offsetMs: expectedMs + offMs * share,
    drift: Math.min(Math.max(drift, -DRIFT_MAX), DRIFT_MAX),
    heardAtMs: atMs,
    heardCount,
    jitterMs: line.jitterMs + (Math.abs(offMs) - line.jitterMs) * share,
  };
}
