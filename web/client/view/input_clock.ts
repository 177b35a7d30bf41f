// Input clock: when a client's inputs are due. A game that predicts sends one for each of its server's ticks, so inputs keep
// pace with the server and not with the client's own clock.

/** Inputs that are due at once are those of so long. Whoever did not look for longer has missed the others. */
const DUE_MS_MAX = 250;

export class InputClock {
  /** The newest tick whose inputs were due. */
  #dueTick: number | null = null;

  leftWorld(): void {
    this.#dueTick = null;
  }

  /** One for each tick that has begun since this was last asked, and one the first time. */
  due(serverMs: number, tickHz: number): number {
    const tick = Math.floor((Math.max(serverMs, 0) * tickHz) / 1000);
    const due = this.#dueTick === null ? 1 : Math.max(tick - this.#dueTick, 0);
    this.#dueTick = Math.max(this.#dueTick ?? tick, tick);
    return Math.min(due, Math.max(Math.floor((tickHz * DUE_MS_MAX) / 1000), 1));
  }
}
