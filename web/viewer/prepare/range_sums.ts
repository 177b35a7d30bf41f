// Sums per site within stretches of time, and of one world if one is asked for: what a table says of what is on screen.

import type { Prepared, PreparedThread } from "./prepare.ts";
import type { Row } from "./rows.ts";
import { lowerBound, upperBound } from "./search.ts";

export interface RangeSum {
  site: number;
  /** Scopes that end in the range. */
  count: number;
  /** Time within the range (ns). */
  total: number;
  self: number;
  longest: number;
  longestThread: number;
  longestBegin: number;
}

/** A stretch of time: begin and end. */
export type Range = readonly [number, number];

/** By falling time without the scopes inside. `world`: of one alone; undefined: of all, and of none. */
export function rangeSums(prepared: Prepared, range: Range, world?: number): RangeSum[] {
  const { about, sites, threads } = prepared;
  if (world === undefined && range[0] <= 0 && range[1] >= about.endNs) return wholeSums(prepared);
  const sums: (RangeSum | undefined)[] = new Array(sites.length);
  threads.forEach((thread, index) => {
    const stretches = world === undefined ? [range] : worldStretches(thread, world, range, about.endNs);
    for (const stretch of stretches) {
      for (let depth = 0; depth < thread.rows.length; depth++) {
        addRow(sums, thread.rows[depth]!, thread.rows[depth + 1], stretch, index);
      }
    }
  });
  return sums.filter((sum) => sum !== undefined).sort((a, b) => b.self - a.self);
}

/** Those of the whole capture, which are known. */
export function wholeSums({ sums, sites }: Prepared): RangeSum[] {
  const all = sites.map((_, site) => ({
    site,
    count: sums.count[site]!,
    total: sums.total[site]!,
    self: sums.self[site]!,
    longest: sums.longest[site]!,
    longestThread: sums.longestThread[site]!,
    longestBegin: sums.longestBegin[site]!,
  }));
  return all.filter((sum) => sum.count > 0).sort((a, b) => b.self - a.self);
}

function addRow(
  sums: (RangeSum | undefined)[],
  row: Row,
  inner: Row | undefined,
  [from, to]: Range,
  thread: number,
): void {
  let scope = upperBound(row.end, from);
  let child = inner ? upperBound(inner.end, from) : 0;
  for (; scope < row.begin.length && row.begin[scope]! < to; scope++) {
    const [begin, end, site] = [row.begin[scope]!, row.end[scope]!, row.site[scope]!];
    const ns = Math.min(end, to) - Math.max(begin, from);
    let inside = 0;
    if (inner) {
      for (; child < inner.begin.length && inner.begin[child]! < Math.min(end, to); child++) {
        inside += Math.max(0, Math.min(inner.end[child]!, end, to) - Math.max(inner.begin[child]!, begin, from));
        // It may be cut by the next scope only if they do not nest.
        if (inner.end[child]! > end) break;
      }
    }
    const sum = (sums[site] ??= {
      site,
      count: 0,
      total: 0,
      self: 0,
      longest: -1,
      longestThread: thread,
      longestBegin: begin,
    });
    if (end <= to) sum.count++;
    sum.total += ns;
    sum.self += ns - inside;
    if (end - begin > sum.longest) {
      sum.longest = end - begin;
      sum.longestThread = thread;
      sum.longestBegin = begin;
    }
  }
}

/** When the thread worked for `world`, within `range`. */
export function worldStretches(
  { worlds }: PreparedThread,
  world: number,
  [from, to]: Range,
  captureEnd: number,
): [number, number][] {
  const stretches: [number, number][] = [];
  for (let mark = Math.max(0, upperBound(worlds.at, from) - 1); mark < worlds.at.length; mark++) {
    if (worlds.at[mark]! >= to) break;
    if (worlds.world[mark] !== world) continue;
    const begin = Math.max(from, worlds.at[mark]!);
    const end = Math.min(to, worlds.at[mark + 1] ?? captureEnd);
    if (begin < end) stretches.push([begin, end]);
  }
  return stretches;
}

/** How long each world had threads in the range, by falling time. */
export function worldSums(prepared: Prepared, [from, to]: Range): { world: number; total: number; thread: number }[] {
  const sums = new Map<number, { world: number; total: number; thread: number }>();
  prepared.threads.forEach(({ worlds }, thread) => {
    for (let mark = Math.max(0, upperBound(worlds.at, from) - 1); mark < worlds.at.length; mark++) {
      if (worlds.at[mark]! >= to) break;
      const world = worlds.world[mark]!;
      if (world < 0) continue;
      const ns = Math.min(to, worlds.at[mark + 1] ?? prepared.about.endNs) - Math.max(from, worlds.at[mark]!);
      if (ns <= 0) continue;
      const sum = sums.get(world);
      if (sum) sum.total += ns;
      else sums.set(world, { world, total: ns, thread });
    }
  });
  return [...sums.values()].sort((a, b) => b.total - a.total);
}

/** The world that a thread worked for at a moment; -1 for none. */
export function worldAt({ worlds }: PreparedThread, at: number): { world: number; tick: number } {
  const mark = upperBound(worlds.at, at) - 1;
  return mark < 0 ? { world: -1, tick: 0 } : { world: worlds.world[mark]!, tick: worlds.tick[mark]! };
}

/** The scope of a row at a moment, or the nearest one within `within`; -1 for none. */
export function scopeAt(row: Row, at: number, within: number): number {
  const next = lowerBound(row.end, at);
  if (next < row.begin.length && row.begin[next]! <= at + within) return next;
  return next > 0 && row.end[next - 1]! >= at - within ? next - 1 : -1;
}
