// The model of a capture as the viewer keeps it: what is many stands in columns, what is few in objects.
//
// Times are nanoseconds after the capture's begin. In columns -1 stands for none.

export interface Trigger {
  kind: string;
  name: string;
  measured: number;
  allowed: number;
  /** -1: in none. */
  world: number;
  atNs: number;
  note: string;
}

export interface About {
  build: string;
  game: string;
  cores: number;
  savedUnixS: number;
  /** Since the recorder started. */
  beginNs: number;
  /** How long the capture is. */
  endNs: number;
  frame: number;
  switches: "none" | "schedstat" | "perf-event" | "cpu-wide";
  switchesWhyNot: string;
  recordsLost: number;
  hasFreeText: boolean;
  trigger: Trigger;
}

export interface Site {
  name: string;
  subsystem: string;
  category: string;
  file: string;
  line: number;
  /** -1: nothing was said. */
  budgetNs: number;
}

export interface World {
  id: number;
  name: string;
  tickHz: number;
}

export type ThreadClass = "other" | "frame" | "short-task" | "long-task";

/** One thread's events, by kind, in the order in which they were recorded: that of their ends. */
export interface Events {
  /** `inOrder`: none ends before it begins, or before the one before it, as a recorder writes them. */
  scopes: { begin: Float64Array; end: Float64Array; site: Uint16Array; inOrder: boolean };
  openScopes: { begin: Float64Array; site: Uint16Array };
  worlds: { at: Float64Array; world: Float64Array; tick: Uint32Array };
  /** `scope`: which of `scopes` allocated. */
  allocations: { scope: Uint32Array; count: Uint32Array; frees: Uint32Array; bytes: Float64Array };
  waits: {
    lock: Uint16Array;
    begin: Float64Array;
    end: Float64Array;
    holderThread: Float64Array;
    holderSite: Float64Array;
    holderWorld: Float64Array;
  };
  /** `change` is one of [`RUNNING`], [`PREEMPTED`] and [`BLOCKED`]. */
  switches: { at: Float64Array; change: Uint8Array; core: Uint32Array };
  pageFaults: { at: Float64Array };
  largeAllocations: { at: Float64Array; bytes: Float64Array };
  counts: { at: Float64Array; counter: Uint16Array; value: Float32Array };
}

export const RUNNING = 0;
export const PREEMPTED = 1;
export const BLOCKED = 2;

export interface Thread {
  name: string;
  tid: number;
  class: ThreadClass;
  events: Events;
}

/** The parts of frame `f` are those from `firstPart[f]` to `firstPart[f + 1]`. */
export interface Frames {
  number: Float64Array;
  begin: Float64Array;
  end: Float64Array;
  budget: Float64Array;
  firstPart: Uint32Array;
  parts: { thread: Uint16Array; running: Float64Array; waiting: Float64Array; blocked: Float64Array };
}

export interface LogLine {
  atNs: number;
  thread: number;
  level: string;
  target: string;
  text: string;
}

export interface HostThread {
  pid: number;
  tid: number;
  owner: "foreign" | "own" | "idle";
  name: string;
  process: string;
}

export interface Core {
  number: number;
  /** Each goes on to the next one, the last to the end of the capture. */
  runs: { at: Float64Array; thread: Float64Array };
}

export interface Capture {
  about: About;
  sites: Site[];
  worlds: World[];
  locks: string[];
  counters: string[];
  threads: Thread[];
  frames: Frames;
  logs: LogLine[];
  memory: { at: Float64Array; bySite: { site: number; bytes: Float64Array }[] };
  processes: { pid: number; name: string; cores: number }[];
  hostThreads: HostThread[];
  cores: Core[];
  hostStalls: { core: number; beginNs: number; endNs: number }[];
}

/** Kinds of triggers by their number in a file, with what they measure in. */
export const TRIGGER_KINDS = [
  ["manual", ""],
  ["frame", "ns"],
  ["subsystem", "ns"],
  ["scope", "ns"],
  ["lock-wait", "ns"],
  ["run-queue", "ns"],
  ["memory-rate", "bytes/s"],
  ["large-allocation", "bytes"],
  ["leak", "bytes/s"],
  ["crash", ""],
  ["tick", "ns"],
  ["workers-busy", "%"],
  ["stuck-tick", "ns"],
] as const;
