// Tracks: what stands below what in the picture, and where. Heights are in CSS pixels.
//
// A thread is a heading and below it who had it: its state on the core, its worlds, its scopes by depth, its waits for
// locks, its memory. A heading that was clicked hides what is below it.

import type { Prepared } from "../prepare/prepare.ts";

export type Track = { y: number; height: number; label: string } & (
  | { kind: "frames" }
  | { kind: "logs" }
  | { kind: "stalls" }
  | { kind: "heading"; key: string; text: string; detail: string; thread?: number }
  | { kind: "series"; series: number }
  | { kind: "memory" }
  | { kind: "state"; thread: number }
  | { kind: "worlds"; thread: number }
  | { kind: "scopes"; thread: number; depth: number }
  | { kind: "waits"; thread: number }
  | { kind: "allocated"; thread: number }
  | { kind: "marks"; thread: number }
  | { kind: "core"; core: number }
);

export const ROW = 17;
/** Of a ruler above all tracks, which never scrolls. */
export const RULER = 24;
const ORDER = { frame: 0, "short-task": 1, "long-task": 2, other: 3 };
/** With more threads than this, those without a part in frames are closed at first. */
const OPEN_THREADS = 10;
/** With more series than this they are closed at first. */
const OPEN_SERIES = 3;

/** Threads with something to show, those of the frame first. */
export function threadOrder({ threads }: Prepared): number[] {
  const all = threads.map((_, thread) => thread).filter((thread) => !isEmpty(threads[thread]!));
  return all.sort((a, b) => ORDER[threads[a]!.class] - ORDER[threads[b]!.class] || a - b);
}

function isEmpty(thread: Prepared["threads"][number]): boolean {
  return thread.rows.length === 0 && thread.waits.begin.length === 0 && thread.switches.at.length === 0;
}

/** The headings that are closed at first. */
export function closedAtFirst(prepared: Prepared): Set<string> {
  const closed = new Set<string>();
  const order = threadOrder(prepared);
  order.forEach((thread, place) => {
    const isOfFrame = ORDER[prepared.threads[thread]!.class] < 2;
    const hasScopes = prepared.threads[thread]!.rows.length > 0;
    if (!hasScopes || (place >= OPEN_THREADS && !isOfFrame)) closed.add(`thread ${thread}`);
  });
  if (prepared.series.length > OPEN_SERIES) closed.add("series");
  return closed;
}

export function layout(prepared: Prepared, closed: ReadonlySet<string>): { tracks: Track[]; height: number } {
  const tracks: Track[] = [];
  let y = 0;
  const add = (track: Track extends infer Each ? (Each extends Track ? Omit<Each, "y"> : never) : never, gap = 1) => {
    tracks.push({ ...track, y } as Track);
    y += track.height + gap;
  };
  const { frames, logs, hostStalls, series, memory, threads, cores } = prepared;
  if (frames.begin.length > 0) add({ kind: "frames", height: 18, label: "frames" });
  if (logs.length > 0) add({ kind: "logs", height: 12, label: "log" });
  if (hostStalls.length > 0) add({ kind: "stalls", height: 10, label: "host stalls" });
  for (const thread of threadOrder(prepared)) {
    const it = threads[thread]!;
    const key = `thread ${thread}`;
    const detail = `${it.class === "other" ? "" : `${it.class.replace("-", " ")}, `}id ${it.tid}`;
    y += 5;
    add({ kind: "heading", key, text: it.name || "?", detail, thread, height: 18, label: "" });
    if (closed.has(key)) continue;
    if (it.switches.at.length > 0) add({ kind: "state", thread, height: 6, label: "" });
    if (it.worlds.at.length > 0) add({ kind: "worlds", thread, height: 13, label: "worlds" });
    it.rows.forEach((_, depth) => add({ kind: "scopes", thread, depth, height: ROW, label: depth === 0 ? "scopes" : "" }));
    if (it.waits.begin.length > 0) add({ kind: "waits", thread, height: 13, label: "lock waits" });
    if (it.allocated.at.length > 0) add({ kind: "allocated", thread, height: 22, label: "allocated" });
    if (it.pageFaults.length + it.largeAllocations.at.length > 0) {
      add({ kind: "marks", thread, height: 10, label: "page faults" });
    }
  }
  if (cores.length > 0) {
    y += 5;
    add({ kind: "heading", key: "cores", text: "Cores", detail: "who had them", height: 18, label: "" });
    if (!closed.has("cores")) {
      cores.forEach((core, index) => add({ kind: "core", core: index, height: 14, label: `core ${core.number}` }));
    }
  }
  if (series.length > 0 || memory.at.length > 1) {
    y += 5;
    add({ kind: "heading", key: "series", text: "Counters", detail: `${series.length + (memory.at.length > 1 ? 1 : 0)}`, height: 18, label: "" });
    if (!closed.has("series")) {
      if (memory.at.length > 1) add({ kind: "memory", height: 34, label: "live memory" }, 3);
      series.forEach((it, index) =>
        add({ kind: "series", series: index, height: 34, label: prepared.counters[it.counter] ?? "?" }, 3),
      );
    }
  }
  return { tracks, height: y + 8 };
}

/** The track at a height, if any. */
export function trackAt(tracks: readonly Track[], y: number): Track | undefined {
  return tracks.find((track) => y >= track.y && y < track.y + track.height);
}
