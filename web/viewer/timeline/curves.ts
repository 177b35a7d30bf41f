// Curves as one value for each pixel. The largest of a pixel is kept: a spike survives every zoom step.

import { upperBound } from "../prepare/search.ts";
import type { Line } from "./scope_lines.ts";

/** The largest value in each pixel; between two values the earlier one holds. */
export function maximaOf(at: Float64Array, value: ArrayLike<number>, { begin, scale, width }: Line): Float64Array {
  const columns = new Float64Array(width);
  if (at.length === 0) return columns;
  let place = upperBound(at, begin) - 1;
  for (let x = 0; x < width; x++) {
    const until = begin + (x + 1) / scale;
    let most = place >= 0 ? value[place]! : 0;
    const next = upperBound(at, until, place + 1);
    // With thousands in a pixel not each is looked at: 64, evenly, and the last.
    const stride = Math.max(1, Math.floor((next - place - 1) / 64));
    for (let at = place + 1; at < next; at += stride) most = Math.max(most, value[at]!);
    columns[x] = most;
    place = next - 1;
  }
  return columns;
}

/** By how much a sum that only grows grew in each pixel. */
export function stepsOf(at: Float64Array, sum: Float64Array, { begin, scale, width }: Line): Float64Array {
  const columns = new Float64Array(width);
  const value = (place: number) => (place >= 0 ? sum[place]! : 0);
  let place = upperBound(at, begin) - 1;
  for (let x = 0; x < width; x++) {
    const next = upperBound(at, begin + (x + 1) / scale, place + 1) - 1;
    columns[x] = value(next) - value(place);
    place = next;
  }
  return columns;
}
