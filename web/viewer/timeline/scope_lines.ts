// A row of scopes as one line of pixels, whatever the zoom: blocks that are narrower than a pixel are not taken apart.
//
// Where several meet in a pixel the longest is seen. Cost: a few steps for each pixel, however many scopes there are.

import type { Pixel } from "../../elements/pixels.ts";
import type { Row } from "../prepare/rows.ts";
import { lowerBound, upperBound } from "../prepare/search.ts";
import { FAN } from "../prepare/summary.ts";

/** A stretch of time on a line: pixel `x` is the time `begin + x / scale`. */
export interface Line {
  begin: number;
  /** Pixels per nanosecond. */
  scale: number;
  width: number;
  pixels: Uint32Array;
  /** 1: something there is over its budget. */
  over: Uint8Array;
}

/** A scope that is wide enough to be named. */
export interface Label {
  place: number;
  left: number;
  right: number;
}

export function drawRow(
  line: Line,
  row: Row,
  colors: Uint32Array,
  border: Pixel,
  budgets: Float64Array,
  labelWidth: number,
  labels: Label[],
): void {
  const { begin, end, site, levels } = row;
  const { pixels, over, width, scale, begin: from } = line;
  const first = upperBound(end, from);
  const stop = lowerBound(begin, from + width / scale, first);
  let lastX = -1;
  let lastNs = 0;
  for (let place = first; place < stop; ) {
    // The largest block that begins here and is narrower than a pixel.
    let size = 1;
    let level = -1;
    while (level + 1 < levels.length && place % (size * FAN) === 0) {
      const last = Math.min(place + size * FAN, begin.length) - 1;
      if ((end[last]! - begin[place]!) * scale >= 1) break;
      size *= FAN;
      level++;
    }
    if (level >= 0) {
      const block = place / size;
      const longest = levels[level]!.longest[block]!;
      const x = Math.max(0, ((begin[place]! - from) * scale) | 0);
      const ns = end[longest]! - begin[longest]!;
      if (x < width) {
        if (x !== lastX || ns > lastNs) {
          pixels[x] = colors[site[longest]!]!;
          lastX = x;
          lastNs = ns;
        }
        over[x]! |= levels[level]!.over[block]!;
      }
      place += size;
      continue;
    }
    const left = (begin[place]! - from) * scale;
    const right = (end[place]! - from) * scale;
    const ns = end[place]! - begin[place]!;
    const x0 = left <= 0 ? 0 : left | 0;
    let x1 = right >= width ? width : right | 0;
    if (x1 <= x0) {
      if (x0 < width && (x0 !== lastX || ns > lastNs)) {
        pixels[x0] = colors[site[place]!]!;
        lastX = x0;
        lastNs = ns;
      }
      x1 = Math.min(x0 + 1, width);
    } else {
      // What is left of it in its first pixel does not hide a longer one that ended there.
      const x = x0 === lastX && x1 - x0 > 1 && lastNs > ns ? x0 + 1 : x0;
      pixels.fill(colors[site[place]!]!, x, x1);
      if (x1 - x0 > 3 && right < width) pixels[x1 - 1] = border;
      lastX = x1 - 1;
      lastNs = ns;
      if (x1 - x0 >= labelWidth) labels.push({ place, left: x0, right: x1 });
    }
    if (ns > budgets[site[place]!]!) over.fill(1, x0, x1);
    place++;
  }
}

/** Those of a row that a search found, over what is there. `places` rise. */
export function drawPlaces(line: Line, row: Row, places: Uint32Array, colors: Uint32Array, border: Pixel): void {
  const { begin, end, site } = row;
  const { pixels, width, scale, begin: from } = line;
  const until = from + width / scale;
  const firstPlace = upperBound(end, from);
  for (let found = lowerBound(places, firstPlace); found < places.length; ) {
    const place = places[found]!;
    if (begin[place]! >= until) break;
    const x0 = Math.max(0, ((begin[place]! - from) * scale) | 0);
    const x1 = Math.min(width, Math.max(x0 + 1, ((end[place]! - from) * scale) | 0));
    pixels.fill(colors[site[place]!]!, x0, x1);
    if (x1 - x0 > 3) pixels[x1 - 1] = border;
    found++;
    if (x1 - x0 <= 1 && found < places.length && begin[places[found]!]! < from + (x0 + 1) / scale) {
      // The rest of this pixel has nothing to add.
      const next = lowerBound(begin, from + (x0 + 1) / scale, places[found]!);
      found = lowerBound(places, next, found);
    }
  }
}

/** Stretches, each holding to the next one, as a line: `color` of a place, or -1 for nothing. */
export function drawHolding(
  line: Line,
  at: Float64Array,
  end: number,
  color: (place: number) => number,
  labels?: (place: number, left: number, right: number) => void,
): void {
  const { pixels, width, scale, begin: from } = line;
  const until = from + width / scale;
  for (let place = Math.max(0, upperBound(at, from) - 1); place < at.length; ) {
    if (at[place]! >= until) break;
    const itsEnd = place + 1 < at.length ? at[place + 1]! : end;
    const x0 = Math.max(0, ((at[place]! - from) * scale) | 0);
    const x1 = Math.min(width, Math.max(x0 + 1, ((itsEnd - from) * scale) | 0));
    const its = color(place);
    if (its >= 0) {
      pixels.fill(its, x0, x1);
      labels?.(place, x0, x1);
    }
    place++;
    if (x1 - x0 <= 1 && place < at.length && at[place]! < from + (x0 + 1) / scale) {
      place = Math.max(place, upperBound(at, from + (x0 + 1) / scale, place) - 1);
    }
  }
}

/** Stretches with gaps between them, by rising begins. */
export function drawStretches(
  line: Line,
  begin: ArrayLike<number>,
  end: (place: number) => number,
  color: (place: number) => number,
  labels?: (place: number, left: number, right: number) => void,
): void {
  const { pixels, width, scale, begin: from } = line;
  const until = from + width / scale;
  let lastX = -1;
  for (let place = Math.max(0, lowerBound(begin, from) - 1); place < begin.length; ) {
    if (begin[place]! >= until) break;
    const itsEnd = end(place);
    if (itsEnd < from) {
      place++;
      continue;
    }
    const x0 = Math.max(0, ((begin[place]! - from) * scale) | 0);
    const x1 = Math.min(width, Math.max(x0 + 1, ((itsEnd - from) * scale) | 0));
    pixels.fill(color(place), x0, x1);
    labels?.(place, x0, x1);
    place++;
    if (x1 - x0 <= 1 && x0 === lastX) place = Math.max(place, lowerBound(begin, from + (x0 + 1) / scale, place));
    lastX = x0;
  }
}
