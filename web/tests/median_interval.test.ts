// The interval of a median, against figures from tables of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { medianInterval } from "./median_interval.ts";

function check(count: number, [median, low, high, percent]: [number, number, number, number]): void {
  // From 1 to `count`, in another order.
  const figures = Array.from({ length: count }, (_, at) => ((at * 7) % count) + 1);
  const { confidence, ...interval } = medianInterval(figures);
  assert.deepEqual({ ...interval, percent: Math.round(confidence * 1000) / 10 }, { median, low, high, percent });
}

test("the interval of a median is that of the sign test", () => {
  check(1, [1, 1, 1, 0]);
  check(2, [1.5, 1, 2, 50]);
  check(4, [2.5, 1, 4, 87.5]);
  check(5, [3, 1, 5, 93.8]);
  check(6, [3.5, 1, 6, 96.9]);
  check(8, [4.5, 1, 8, 99.2]);
  check(9, [5, 2, 8, 96.1]);
  check(12, [6.5, 3, 10, 96.1]);
  check(20, [10.5, 6, 15, 95.9]);
  check(30, [15.5, 10, 21, 95.7]);
});

test("one that was disturbed moves it by a place at most", () => {
  const calm = medianInterval([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  const disturbed = medianInterval([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1e9]);
  assert.deepEqual(disturbed, calm);
});
