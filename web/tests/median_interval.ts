// The median of a few figures, and how far it may lie from that of all that there could be.

export interface MedianInterval {
  median: number;
  /** Two of the figures; the median of all that there could be lies between them, `confidence` of the time. */
  low: number;
  high: number;
  confidence: number;
}

/** What an interval is sure of at least; fewer than six figures are not enough for it, and the confidence says so. */
export const CONFIDENCE_MIN = 0.95;

/**
 * Asks of the figures no more than that they do not depend on each other: each is above the true median half of the time,
 * so how many are is a matter of tossed coins. One that was disturbed moves the interval by a place at most.
 */
export function medianInterval(figures: readonly number[]): MedianInterval {
  if (figures.length === 0) throw new Error("there is no median of nothing");
  const sorted = [...figures].sort((a, b) => a - b);
  const count = sorted.length;
  let [left, outside, ways] = [0, 0, 1];
  let confidence = 1 - 2 ** (1 - count);
  for (let place = 0; place < count / 2 - 1; place++) {
    // Of `count` coins, `place` or fewer are heads.
    outside += ways / 2 ** count;
    ways *= (count - place) / (place + 1);
    const inside = 1 - 2 * (outside + ways / 2 ** count);
    if (inside < CONFIDENCE_MIN) break;
    [left, confidence] = [place + 1, inside];
  }
  const middle = count >> 1;
  const median = count % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { median, low: sorted[left]!, high: sorted[count - 1 - left]!, confidence };
}
