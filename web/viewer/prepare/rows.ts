// Rows: a thread's scopes by depth. In a row no scope overlaps another, and both begins and ends rise.
//
// A thread's scopes come in the order of their ends, so that read backwards each comes after the one around it. The
// stack holds those that may still be around: a scope leaves it as soon as the next one ends before it begins. Scopes
// that do not nest (files may be hostile) land one row deeper, and still overlap nothing in their row.

import type { Events } from "../format/capture.ts";
import { f64, u32 } from "../format/column.ts";
import { done } from "../format/events.ts";
import { sortedBy } from "./search.ts";
import { summarise, type Level } from "./summary.ts";

/** Deeper scopes are not drawn; they are counted in the sums. */
export const ROWS_MAX = 64;

export interface Row {
  begin: Float64Array;
  end: Float64Array;
  site: Uint16Array;
  /** What a scope allocated itself: places in this row, rising, with the figures of each. */
  allocations: { place: Uint32Array; count: Uint32Array; frees: Uint32Array; bytes: Float64Array };
  levels: Level[];
}

export interface Rows {
  rows: Row[];
  /** Scopes deeper than [`ROWS_MAX`]. */
  leftOut: number;
  /** How many scopes were still open in the end: they stand as if they had ended then. */
  open: number;
}

/** Per site, over all threads, and where its longest run is. */
export interface SiteSums {
  count: Float64Array;
  total: Float64Array;
  /** Without the scopes inside. */
  self: Float64Array;
  longest: Float64Array;
  longestThread: Int32Array;
  longestBegin: Float64Array;
  over: Float64Array;
  allocations: Float64Array;
  frees: Float64Array;
  bytes: Float64Array;
}

export function siteSums(sites: number): SiteSums {
  const column = () => new Float64Array(sites);
  return {
    count: column(),
    total: column(),
    self: column(),
    longest: column(),
    longestThread: new Int32Array(sites).fill(-1),
    longestBegin: column(),
    over: column(),
    allocations: column(),
    frees: column(),
    bytes: column(),
  };
}

/** All of them together. */
export function sumOf(all: readonly SiteSums[], sites: number): SiteSums {
  if (all.length === 1) return all[0]!;
  const sum = siteSums(sites);
  for (const part of all) {
    for (let site = 0; site < sites; site++) {
      if (part.count[site]! > 0 && (sum.longestThread[site]! < 0 || part.longest[site]! > sum.longest[site]!)) {
        sum.longest[site] = part.longest[site]!;
        sum.longestThread[site] = part.longestThread[site]!;
        sum.longestBegin[site] = part.longestBegin[site]!;
      }
      for (const name of ["count", "total", "self", "over", "allocations", "frees", "bytes"] as const) {
        sum[name][site]! += part[name][site]!;
      }
    }
  }
  return sum;
}

/** Puts the scopes of a thread into rows, and adds them to `sums`. `budgets` by site; Infinity for none. */
export function rowsOf(
  events: Events,
  captureEnd: number,
  thread: number,
  budgets: Float64Array,
  sums: SiteSums,
): Rows {
  const ordered = inOrder(events, captureEnd);
  const { begin, end, site } = ordered;
  const count = begin.length;
  const rows: RowFromBehind[] = [];
  // Allocations refer to scopes; where those go is noted on the way, if there are any.
  const places = ordered.allocationScope.length > 0 ? new Places(count) : undefined;
  let leftOut = 0;
  // What is around the scope that is looked at: begins and sites, and what was in them so far.
  let stackBegin = new Float64Array(64);
  let stackSite = new Uint16Array(64);
  let height = 0;
  const perSite = new Float64Array(budgets.length * FIELDS);
  for (let scope = count - 1; scope >= 0; scope--) {
    const scopeBegin = begin[scope]!;
    const scopeEnd = end[scope]!;
    const its = site[scope]!;
    while (height > 0 && stackBegin[height - 1]! >= scopeEnd) height--;
    const ns = scopeEnd - scopeBegin;
    if (height > 0) perSite[stackSite[height - 1]! * FIELDS + INSIDE]! += ns;
    if (height < ROWS_MAX) {
      const row = rows[height] ?? (rows[height] = new RowFromBehind());
      let next = row.next;
      if (next === 0) next = row.grow();
      next--;
      row.begin[next] = scopeBegin;
      row.end[next] = scopeEnd;
      row.site[next] = its;
      row.next = next;
      if (places) places.note(scope, height, row.end.length - next);
    } else {
      leftOut++;
    }
    if (height === stackBegin.length) {
      stackBegin = doubled(stackBegin, Float64Array);
      stackSite = doubled(stackSite, Uint16Array);
    }
    stackBegin[height] = scopeBegin;
    stackSite[height] = its;
    height++;
    const field = its * FIELDS;
    perSite[field]! += 1;
    perSite[field + TOTAL]! += ns;
    if (ns > budgets[its]!) perSite[field + OVER]! += 1;
    if (ns >= perSite[field + LONGEST]!) {
      perSite[field + LONGEST] = ns;
      perSite[field + LONGEST_BEGIN] = scopeBegin;
    }
  }
  addSites(sums, perSite, thread);
  const done = rows.map((row) => row.done());
  const allocations = allocationsOf(events, ordered, places, done, sums);
  return {
    rows: done.map((row, depth) => ({
      ...row,
      allocations: allocations[depth]!,
      levels: summarise(row.begin, row.end, row.site, budgets),
    })),
    leftOut,
    open: events.openScopes.begin.length,
  };
}

// Sums of a site while a thread is gone through, one behind the other: count, then
const TOTAL = 1;
const INSIDE = 2;
const OVER = 3;
const LONGEST = 4;
const LONGEST_BEGIN = 5;
const FIELDS = 6;

function addSites(sums: SiteSums, perSite: Float64Array, thread: number): void {
  for (let site = 0; site < sums.count.length; site++) {
    const field = site * FIELDS;
    if (perSite[field] === 0) continue;
    sums.count[site]! += perSite[field]!;
    sums.total[site]! += perSite[field + TOTAL]!;
    sums.self[site]! += perSite[field + TOTAL]! - perSite[field + INSIDE]!;
    sums.over[site]! += perSite[field + OVER]!;
    if (sums.longestThread[site]! < 0 || perSite[field + LONGEST]! > sums.longest[site]!) {
      sums.longest[site] = perSite[field + LONGEST]!;
      sums.longestThread[site] = thread;
      sums.longestBegin[site] = perSite[field + LONGEST_BEGIN]!;
    }
  }
}

/** A row that is filled from its last scope to its first, and grows to the front. */
class RowFromBehind {
  begin = new Float64Array(64);
  end = new Float64Array(64);
  site = new Uint16Array(64);
  /** What is filled begins here. */
  next = 64;

  grow(): number {
    const length = this.begin.length;
    this.begin = twice(this.begin, Float64Array);
    this.end = twice(this.end, Float64Array);
    this.site = twice(this.site, Uint16Array);
    return length;
  }

  done(): { begin: Float64Array; end: Float64Array; site: Uint16Array } {
    const from = this.next;
    const [begin, end, site] = [this.begin.subarray(from), this.end.subarray(from), this.site.subarray(from)];
    // What is not filled was never touched, and takes no memory; but a little of it is not worth a large list.
    return begin.length > 4_096 ? { begin, end, site } : { begin: begin.slice(), end: end.slice(), site: site.slice() };
  }
}

function twice<T extends Float64Array | Uint16Array>(array: T, make: new (length: number) => T): T {
  const larger = new make(array.length * 2);
  larger.set(array, array.length);
  return larger;
}

/** Where each scope went: its row, and its place counted from the row's end. */
class Places {
  private readonly depth: Uint8Array;
  private readonly fromEnd: Uint32Array;

  constructor(count: number) {
    this.depth = new Uint8Array(count).fill(ROWS_MAX);
    this.fromEnd = new Uint32Array(count);
  }

  note(scope: number, depth: number, fromEnd: number): void {
    this.depth[scope] = depth;
    this.fromEnd[scope] = fromEnd;
  }

  /** Undefined for scopes that are not drawn. */
  of(scope: number, rows: readonly { begin: Float64Array }[]): { depth: number; place: number } | undefined {
    const depth = this.depth[scope]!;
    return depth === ROWS_MAX ? undefined : { depth, place: rows[depth]!.begin.length - this.fromEnd[scope]! };
  }
}

interface Ordered {
  begin: Float64Array;
  end: Float64Array;
  site: Uint16Array;
  allocationScope: Uint32Array;
}

/** Scopes and open scopes together, none ending before it begins, by their ends. */
function inOrder(events: Events, captureEnd: number): Ordered {
  const { scopes, openScopes, allocations } = events;
  let { begin, end, site } = scopes;
  if (openScopes.begin.length > 0) {
    // The outermost were recorded first or last; the longest one goes around the others.
    const open = Array.from(openScopes.begin, (at, index) => ({ at, site: openScopes.site[index]! }));
    open.sort((a, b) => b.at - a.at);
    begin = joined(begin, open.map((it) => it.at), Float64Array);
    end = joined(end, open.map((it) => Math.max(it.at, captureEnd)), Float64Array);
    site = joined(site, open.map((it) => it.site), Uint16Array);
  }
  const known = scopes.end.length;
  let rises = scopes.inOrder;
  for (let scope = rises ? known : 0; scope < begin.length; scope++) {
    if (end[scope]! < begin[scope]!) end[scope] = begin[scope]!;
    if (scope > 0 && end[scope]! < end[scope - 1]!) rises = false;
  }
  if (!scopes.inOrder) rises = end.every((at, scope) => scope === 0 || end[scope - 1]! <= at);
  if (rises) return { begin, end, site, allocationScope: allocations.scope };
  const order = new Uint32Array(begin.length);
  for (let scope = 0; scope < order.length; scope++) order[scope] = scope;
  order.sort((a, b) => end[a]! - end[b]! || begin[b]! - begin[a]! || a - b);
  const placeOf = new Uint32Array(order.length);
  const sorted = { begin: begin.slice(), end: end.slice(), site: site.slice() };
  order.forEach((scope, place) => {
    placeOf[scope] = place;
    sorted.begin[place] = begin[scope]!;
    sorted.end[place] = end[scope]!;
    sorted.site[place] = site[scope]!;
  });
  return { ...sorted, allocationScope: allocations.scope.map((scope) => placeOf[scope]!) };
}

/** By row, what its scopes allocated themselves. */
function allocationsOf(
  { allocations }: Events,
  { site, allocationScope }: Ordered,
  places: Places | undefined,
  rows: readonly { begin: Float64Array }[],
  sums: SiteSums,
): Row["allocations"][] {
  const perRow = rows.map(() => ({ place: u32(), count: u32(), frees: u32(), bytes: f64() }));
  for (let index = 0; index < allocationScope.length; index++) {
    const scope = allocationScope[index]!;
    const [count, frees, bytes] = [allocations.count[index]!, allocations.frees[index]!, allocations.bytes[index]!];
    sums.allocations[site[scope]!]! += count;
    sums.frees[site[scope]!]! += frees;
    sums.bytes[site[scope]!]! += bytes;
    const at = places?.of(scope, rows);
    if (!at) continue;
    const row = perRow[at.depth]!;
    row.place.push(at.place);
    row.count.push(count);
    row.frees.push(frees);
    row.bytes.push(bytes);
  }
  return perRow.map((row) => sortedBy(done(row), "place"));
}

function doubled<T extends Float64Array | Uint16Array>(array: T, make: new (length: number) => T): T {
  const larger = new make(array.length * 2);
  larger.set(array);
  return larger;
}

function joined<T extends Float64Array | Uint16Array>(
  array: T,
  more: number[],
  make: new (length: number) => T,
): T {
  const all = new make(array.length + more.length);
  all.set(array);
  all.set(more, array.length);
  return all;
}
