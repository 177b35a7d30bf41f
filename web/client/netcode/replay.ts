// The replay window: which sequences of a link have been taken already. The newest 256 are told apart; whatever is older
// counts as taken.

const WINDOW_PACKETS = 256;

export class ReplayWindow {
  #newest = -1;
  /** What was taken last in each place; -1: nothing. */
  readonly #taken = new Float64Array(WINDOW_PACKETS).fill(-1);

  /** Whether it may still be taken. Ask before the cipher runs: it is cheap. */
  isFresh(sequence: number): boolean {
    if (sequence > this.#newest) return true;
    return this.#newest - sequence < WINDOW_PACKETS && this.#taken[sequence % WINDOW_PACKETS] !== sequence;
  }

  /** Only for what authenticated, or forgers would move the window. */
  take(sequence: number): void {
    this.#newest = Math.max(this.#newest, sequence);
    this.#taken[sequence % WINDOW_PACKETS] = sequence;
  }
}
