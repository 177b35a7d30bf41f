// Promise: the interval of a median is that of the tables for the sign test, and few values are said to say little.

import assert from "node:assert/strict";
import { test } from "node:test";
import { median, medianInterval } from "./median.ts";

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => count - index);

test("a median is in the middle", () => {
  for (const [values, expect] of [[[3], 3], [[4, 1], 2.5], [[9, 1, 5], 5], [upTo(12), 6.5]] as const) assert.equal(median(values), expect);
});

test("an interval leaves out as many on either side as it may", () => {
  for (const [count, low, high, percent] of [[1, 1, 1, 0], [2, 1, 2, 50], [5, 1, 5, 93.8], [6, 1, 6, 96.9], [9, 2, 8, 96.1], [12, 3, 10, 96.1], [20, 6, 15, 95.9], [30, 10, 21, 95.7]] as const) {
    const { coverage, ...bounds } = medianInterval(upTo(count));
    assert.deepEqual([bounds.low, bounds.high, (100 * coverage).toFixed(1)], [low, high, percent.toFixed(1)], `of ${count}`);
  }
});
