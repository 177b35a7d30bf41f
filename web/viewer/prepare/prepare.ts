// From what a file says to what is drawn: everything sorted, scopes in rows with their summaries, sums per site.
//
// Runs in the worker. The result holds typed arrays and plain data only, so that it is handed over and not copied.

import { PREEMPTED, type Capture, type Thread } from "../format/capture.ts";
import { rowsOf, siteSums, sumOf, type Rows, type SiteSums } from "./rows.ts";
import { sortedBy } from "./search.ts";

export interface PreparedThread extends Omit<Thread, "events">, Rows {
  /** Each mark holds to the next one. */
  worlds: Thread["events"]["worlds"];
  /** Each holds to the next one. */
  switches: Thread["events"]["switches"];
  /** The places in `switches` at which the core was taken away, and when. */
  preempted: { place: Uint32Array; at: Float64Array };
  waits: Thread["events"]["waits"];
  pageFaults: Float64Array;
  largeAllocations: Thread["events"]["largeAllocations"];
  /** Bytes that scopes had allocated until then, at the ends of those that did. */
  allocated: { at: Float64Array; bytes: Float64Array };
  scopesCount: number;
}

export interface CounterSeries {
  counter: number;
  at: Float64Array;
  value: Float32Array;
}

export interface Prepared extends Omit<Capture, "threads"> {
  threads: PreparedThread[];
  series: CounterSeries[];
  /** The times of `logs`, and the begins of `hostStalls`. */
  logsAt: Float64Array;
  stallsAt: Float64Array;
  sums: SiteSums;
  scopesCount: number;
}

/** All of a capture that is small enough for one worker. */
export function prepare(capture: Capture): Prepared {
  const threads = capture.threads.map(({ events, ...thread }, index) => ({ index, thread, events: () => events }));
  return together(capture, [prepareThreads(capture, threads)]);
}

/** What one worker made of its share of the threads. */
export interface Share {
  threads: { index: number; thread: PreparedThread }[];
  sums: SiteSums;
  counts: { counter: number; at: Float64Array; value: Float32Array }[];
}

/** What threads stand on. */
type Ground = Pick<Capture, "about" | "sites">;

/** Some threads; the events of each are asked for when it is its turn, and let go after it. */
export function prepareThreads(
  { about, sites }: Ground,
  threads: readonly { index: number; thread: Omit<Thread, "events">; events: () => Thread["events"] }[],
): Share {
  const budgets = Float64Array.from(sites, (site) => (site.budgetNs < 0 ? Infinity : site.budgetNs));
  const sums = siteSums(sites.length);
  const counters = new Map<number, { at: number[]; value: number[] }>();
  const prepared = threads.map(({ index, thread, events: read }) => {
    const events = read();
    const { counts } = events;
    for (let place = 0; place < counts.at.length; place++) {
      const counter = counts.counter[place]!;
      let series = counters.get(counter);
      if (!series) counters.set(counter, (series = { at: [], value: [] }));
      series.at.push(counts.at[place]!);
      series.value.push(counts.value[place]!);
    }
    return { index, thread: prepareThread(thread, events, index, about.endNs, budgets, sums) };
  });
  const counts = [...counters].map(([counter, { at, value }]) => ({
    counter,
    at: Float64Array.from(at),
    value: Float32Array.from(value),
  }));
  return { threads: prepared, sums, counts };
}

function prepareThread(
  thread: Omit<Thread, "events">,
  events: Thread["events"],
  index: number,
  captureEnd: number,
  budgets: Float64Array,
  sums: SiteSums,
): PreparedThread {
  const switches = sortedBy(events.switches, "at");
  const preempted: number[] = [];
  switches.change.forEach((change, place) => change === PREEMPTED && preempted.push(place));
  return {
    ...thread,
    allocated: allocated(events),
    scopesCount: events.scopes.begin.length + events.openScopes.begin.length,
    ...rowsOf(events, captureEnd, index, budgets, sums),
    worlds: sortedBy(events.worlds, "at"),
    switches,
    preempted: {
      place: Uint32Array.from(preempted),
      at: Float64Array.from(preempted, (place) => switches.at[place]!),
    },
    waits: sortedBy(events.waits, "begin"),
    pageFaults: events.pageFaults.at.sort(),
    largeAllocations: sortedBy(events.largeAllocations, "at"),
  };
}

/** The capture of all shares. */
export function together(capture: Omit<Capture, "threads">, shares: readonly Share[]): Prepared {
  const threads: PreparedThread[] = [];
  const counts = new Map<number, { at: number[]; value: number[] }>();
  for (const share of shares) {
    share.threads.forEach(({ index, thread }) => (threads[index] = thread));
    for (const { counter, at, value } of share.counts) {
      const series = counts.get(counter) ?? { at: [], value: [] };
      at.forEach((at) => series.at.push(at));
      value.forEach((value) => series.value.push(value));
      counts.set(counter, series);
    }
  }
  const logs = capture.logs.sort((a, b) => a.atNs - b.atNs);
  // A file has them by core.
  const hostStalls = capture.hostStalls.sort((a, b) => a.beginNs - b.beginNs);
  return {
    ...capture,
    frames: framesInOrder(capture.frames),
    logs,
    logsAt: Float64Array.from(logs, ({ atNs }) => atNs),
    hostStalls,
    stallsAt: Float64Array.from(hostStalls, ({ beginNs }) => beginNs),
    cores: capture.cores.map((core) => ({ ...core, runs: sortedBy(core.runs, "at") })),
    threads,
    series: [...counts].sort(([a], [b]) => a - b).map(([counter, { at, value }]) => {
      const sorted = sortedBy({ at: Float64Array.from(at), value: Float32Array.from(value) }, "at");
      return { counter, ...sorted };
    }),
    sums: sumOf(shares.map(({ sums }) => sums), capture.sites.length),
    scopesCount: threads.reduce((sum, thread) => sum + thread.scopesCount, 0),
  };
}

function allocated({ scopes, allocations }: Thread["events"]): PreparedThread["allocated"] {
  const at = new Float64Array(allocations.scope.length);
  const bytes = new Float64Array(allocations.scope.length);
  for (let index = 0; index < at.length; index++) at[index] = scopes.end[allocations.scope[index]!]!;
  const sorted = sortedBy({ at, amount: allocations.bytes }, "at");
  let sum = 0;
  for (let index = 0; index < at.length; index++) bytes[index] = sum += sorted.amount[index]!;
  return { at: sorted.at, bytes };
}

/** By their begins; the parts stay where they are, so a frame keeps its own place of the first and count. */
function framesInOrder(frames: Capture["frames"]): Capture["frames"] {
  const { begin, firstPart } = frames;
  if (begin.every((at, place) => place === 0 || begin[place - 1]! <= at)) return frames;
  const order = Array.from(begin, (_, place) => place).sort((a, b) => begin[a]! - begin[b]! || a - b);
  const picked = (column: Float64Array) => Float64Array.from(order, (place) => column[place]!);
  const parts: number[] = [];
  const first = [0];
  for (const place of order) {
    for (let part = firstPart[place]!; part < firstPart[place + 1]!; part++) parts.push(part);
    first.push(parts.length);
  }
  const part = (column: Float64Array) => Float64Array.from(parts, (place) => column[place]!);
  return {
    number: picked(frames.number),
    begin: picked(frames.begin),
    end: picked(frames.end),
    budget: picked(frames.budget),
    firstPart: Uint32Array.from(first),
    parts: {
      thread: Uint16Array.from(parts, (place) => frames.parts.thread[place]!),
      running: part(frames.parts.running),
      waiting: part(frames.parts.waiting),
      blocked: part(frames.parts.blocked),
    },
  };
}

/** The memory behind all typed arrays in `value`, each once: what is handed over to another thread. */
export function buffersOf(value: unknown): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  const visit = (value: unknown): void => {
    if (ArrayBuffer.isView(value)) {
      if (value.byteLength > 0) buffers.add(value.buffer as ArrayBuffer);
    } else if (Array.isArray(value)) {
      if (typeof value[0] === "object") value.forEach(visit);
    } else if (typeof value === "object" && value !== null) {
      Object.values(value).forEach(visit);
    }
  };
  visit(value);
  return [...buffers];
}
