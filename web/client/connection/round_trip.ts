// How long the way there and back takes, smoothed as in RFC 6298, and how long to wait before believing in a loss.

import type { LossTimes } from "./acks.ts";

const FIRST_GUESS_MS = 200;
const SAMPLE_MS_MAX = 2000;
const LOSS_MS_MIN = 100;
export const ACK_DELAY_MS_MAX = 50;

export class RoundTrip {
  #smoothedMs = 0;
  #variationMs = 0;

  sample(measuredMs: number): void {
    const measured = Math.min(Math.max(measuredMs, 0.001), SAMPLE_MS_MAX);
    if (this.#smoothedMs === 0) {
      [this.#smoothedMs, this.#variationMs] = [measured, measured / 2];
      return;
    }
    this.#variationMs = (3 * this.#variationMs + Math.abs(measured - this.#smoothedMs)) / 4;
    this.#smoothedMs = (7 * this.#smoothedMs + measured) / 8;
  }

  /** The smoothed time, or a guess before the first sample. */
  get smoothedMs(): number {
    return this.#smoothedMs || FIRST_GUESS_MS;
  }

  lossTimes(keepAliveMs: number): LossTimes {
    const smoothed = this.smoothedMs;
    const withChunksMs = Math.max(LOSS_MS_MIN, 2 * smoothed, smoothed + 4 * this.#variationMs) + ACK_DELAY_MS_MAX;
    return { withChunksMs, withoutChunksMs: withChunksMs + 2 * keepAliveMs };
  }
}
