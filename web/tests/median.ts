// What many turns say together: their median, and within which interval that of all possible turns is.

/** Wanted of an interval. */
const COVERAGE_MIN = 0.95;

export interface Interval {
  readonly low: number;
  readonly high: number;
  /** How likely the median is in it: below what is wanted where there are fewer than six values. */
  readonly coverage: number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** From one of the values to another, so that it needs no belief in how they are spread: each of n lies below the median by the
 * toss of a coin, so that fewer than k do, or fewer than k lie above, with twice the chance of fewer than k heads of n. */
export function medianInterval(values: readonly number[]): Interval {
  const sorted = [...values].sort((a, b) => a - b);
  const count = sorted.length;
  // Chance of exactly `heads`, and of as many at most.
  let exactly = 0.5 ** count;
  let outside = exactly;
  let cut = 0;
  for (let heads = 1; heads < count / 2; heads++) {
    exactly *= (count - heads + 1) / heads;
    if (1 - 2 * (outside + exactly) < COVERAGE_MIN) break;
    outside += exactly;
    cut = heads;
  }
  return { low: sorted[cut]!, high: sorted[count - 1 - cut]!, coverage: Math.max(0, 1 - 2 * outside) };
}
