// When something happened, and in which track it is drawn; and the other way round, what is at a place of the picture.

import { scopeAt } from "../prepare/range_sums.ts";
import type { Prepared } from "../prepare/prepare.ts";
import { lowerBound, upperBound } from "../prepare/search.ts";
import type { Selection } from "../selection.ts";
import type { Track } from "./tracks.ts";

export interface Bounds {
  begin: number;
  end: number;
  isTrack: (track: Track) => boolean;
}

/** Nothing if the capture has no such thing, as an address may claim. */
export function boundsOf(prepared: Prepared, selection: Selection): Bounds | undefined {
  const end = prepared.about.endNs;
  const of = (kind: Track["kind"], thread?: number) => (track: Track) =>
    track.kind === kind && (thread === undefined || ("thread" in track && track.thread === thread));
  const stretch = (begin: number | undefined, end: number | undefined, isTrack: (track: Track) => boolean) =>
    begin === undefined || end === undefined ? undefined : { begin, end, isTrack };
  switch (selection.kind) {
    case "range":
      return stretch(selection.begin, selection.end, () => false);
    case "scope": {
      const { thread, depth, place } = selection;
      const row = prepared.threads[thread]?.rows[depth];
      return stretch(row?.begin[place], row?.end[place], (track) => of("scopes", thread)(track) && "depth" in track && track.depth === depth);
    }
    case "wait": {
      const waits = prepared.threads[selection.thread]?.waits;
      return stretch(waits?.begin[selection.place], waits?.end[selection.place], of("waits", selection.thread));
    }
    case "switch": {
      const at = prepared.threads[selection.thread]?.switches.at;
      return stretch(at?.[selection.place], at?.[selection.place + 1] ?? end, of("state", selection.thread));
    }
    case "world": {
      const at = prepared.threads[selection.thread]?.worlds.at;
      return stretch(at?.[selection.place], at?.[selection.place + 1] ?? end, of("worlds", selection.thread));
    }
    case "largeAllocation": {
      const at = prepared.threads[selection.thread]?.largeAllocations.at[selection.place];
      return stretch(at, at, of("marks", selection.thread));
    }
    case "pageFault": {
      const at = prepared.threads[selection.thread]?.pageFaults[selection.place];
      return stretch(at, at, of("marks", selection.thread));
    }
    case "frame": {
      const { frames } = prepared;
      return stretch(frames.begin[selection.place], frames.end[selection.place], of("frames"));
    }
    case "log": {
      const at = prepared.logs[selection.place]?.atNs;
      return stretch(at, at, of("logs"));
    }
    case "stall": {
      const stall = prepared.hostStalls[selection.place];
      return stretch(stall?.beginNs, stall?.endNs, of("stalls"));
    }
    case "run": {
      const at = prepared.cores[selection.core]?.runs.at;
      return stretch(at?.[selection.place], at?.[selection.place + 1] ?? end, (track) => track.kind === "core" && track.core === selection.core);
    }
    case "series": {
      const at = prepared.series[selection.series]?.at;
      return stretch(at?.[selection.place], at?.[selection.place + 1] ?? end, (track) => track.kind === "series" && track.series === selection.series);
    }
  }
}

/** What is drawn in a track at a moment, or next to it within `within` (ns). */
export function thingAt(prepared: Prepared, track: Track, at: number, within: number): Selection | undefined {
  const holding = (list: Float64Array) => upperBound(list, at) - 1;
  const nearest = (list: ArrayLike<number>) => {
    const next = lowerBound(list, at - within);
    return next < list.length && list[next]! <= at + within ? next : -1;
  };
  const found = <T extends Selection>(place: number, selection: T) => (place < 0 ? undefined : selection);
  switch (track.kind) {
    case "scopes": {
      const { thread, depth } = track;
      const place = scopeAt(prepared.threads[thread]!.rows[depth]!, at, within);
      return found(place, { kind: "scope", thread, depth, place });
    }
    case "frames": {
      const { begin, end } = prepared.frames;
      const place = holding(begin);
      return found(place >= 0 && end[place]! + within >= at ? place : -1, { kind: "frame", place });
    }
    case "waits": {
      const { begin, end } = prepared.threads[track.thread]!.waits;
      const place = upperBound(begin, at + within) - 1;
      return found(place >= 0 && end[place]! + within >= at ? place : -1, { kind: "wait", thread: track.thread, place });
    }
    case "state": {
      const { switches, preempted } = prepared.threads[track.thread]!;
      // The core that was taken away is seen from afar, and found from there.
      const near = nearest(preempted.at);
      const place = near >= 0 ? preempted.place[near]! : holding(switches.at);
      return found(place, { kind: "switch", thread: track.thread, place });
    }
    case "worlds": {
      const place = holding(prepared.threads[track.thread]!.worlds.at);
      return found(place, { kind: "world", thread: track.thread, place });
    }
    case "marks": {
      const { largeAllocations, pageFaults } = prepared.threads[track.thread]!;
      const large = nearest(largeAllocations.at);
      if (large >= 0) return { kind: "largeAllocation", thread: track.thread, place: large };
      const place = nearest(pageFaults);
      return found(place, { kind: "pageFault", thread: track.thread, place });
    }
    case "logs": {
      const place = nearest(prepared.logsAt);
      return found(place, { kind: "log", place });
    }
    case "stalls": {
      const place = prepared.hostStalls.findIndex(({ beginNs, endNs }) => beginNs - within <= at && at <= endNs + within);
      return found(place, { kind: "stall", place });
    }
    case "core": {
      const place = holding(prepared.cores[track.core]!.runs.at);
      return found(place, { kind: "run", core: track.core, place });
    }
    case "series": {
      const place = holding(prepared.series[track.series]!.at);
      return found(place, { kind: "series", series: track.series, place });
    }
    default:
      return undefined;
  }
}
