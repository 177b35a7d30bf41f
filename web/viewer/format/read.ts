// The reader: from bytes to the model, whatever the bytes are, with the checks of `throng_capture::format::read`.
//
// Lists grow while there are bytes for them, so that memory follows what was read and not what was claimed; all lists
// together have a maximum. Every section is checked before anything in it is believed, and every thread's place is known
// before one's events are read, so that several workers can share them.

import {
  TRIGGER_KINDS,
  type About,
  type Capture,
  type Core,
  type Events,
  type HostThread,
  type Site,
  type Thread,
  type ThreadClass,
} from "./capture.ts";
import { f64, u16, u32 } from "./column.ts";
import { Cursor } from "./cursor.ts";
import { done, EventReader, Tags, type Counts, type Room } from "./events.ts";
import * as maximum from "./maximum.ts";
import { bytesAfterEnd, outOfRange, tooMany, tooMuchMemory, unexpectedSection } from "./read_error.ts";
import { Kind, mayFollow, next, version } from "./section.ts";

const SWITCH_SOURCES = ["none", "schedstat", "perf-event", "cpu-wide"] as const;
const OWNERS: readonly HostThread["owner"][] = ["foreign", "own", "idle"];
const CLASSES: readonly ThreadClass[] = ["other", "frame", "short-task", "long-task"];

/** What an element takes in the Rust reader's memory, by its list (bytes). */
const SIZE = {
  site: 120,
  commonSite: 4,
  world: 32,
  lock: 24,
  counter: 24,
  thread: 56,
  frame: 56,
  framePart: 32,
  log: 88,
  moment: 8,
  memoryRow: 32,
  process: 32,
  hostThread: 64,
  core: 32,
  coreRun: 16,
  stall: 24,
};

/** The capture in `file`, a whole file; throws a [`ReadError`] that names the byte. */
export function read(file: Uint8Array, memoryBytesMax = maximum.MEMORY_BYTES): Capture {
  const { capture, events, ...context } = scan(file, memoryBytesMax);
  const threads = capture.threads.map((thread, index) => ({
    ...thread,
    events: readEvents(file, events[index] ?? [], context),
  }));
  return { ...capture, threads };
}

/** Where the events of one thread lie: begin and end of each section's events. */
export type Ranges = [begin: number, end: number][];

/** What events are read with. */
export interface Context {
  counts: Counts;
  commonSites: number[];
  timeMin: number;
  room: Room;
}

/** All of a capture but its events, which are most of it, and where those are: so that threads can be read apart. */
export interface Scanned extends Context {
  capture: Omit<Capture, "threads"> & { threads: Omit<Thread, "events">[] };
  /** By thread; none for threads without. */
  events: Ranges[];
}

/** Checks every section of a file, and reads all but events. */
export function scan(file: Uint8Array, memoryBytesMax = maximum.MEMORY_BYTES): Scanned {
  const cursor = new Cursor(file, 0, file.length);
  const reader = new Reader(version(cursor), memoryBytesMax);
  let last: number | undefined;
  for (;;) {
    const offset = cursor.offset;
    const { kind, payload } = next(cursor);
    if (!mayFollow(kind, last)) throw unexpectedSection(offset, kind);
    last = kind;
    reader.section(kind, payload);
    if (!payload.isAtEnd()) throw outOfRange(payload.offset, "what follows");
    if (kind === Kind.End) break;
  }
  if (!cursor.isAtEnd()) throw bytesAfterEnd(cursor.offset);
  return reader.done();
}

/** One thread's events. */
export function readEvents(file: Uint8Array, ranges: Ranges, { counts, commonSites, timeMin, room }: Context): Events {
  const reader = new EventReader(ranges.reduce((sum, [begin, end]) => sum + end - begin, 0));
  const tags = new Tags(commonSites);
  for (const [begin, end] of ranges) {
    const bytes = new Cursor(file, begin, end);
    bytes.timeMin = timeMin;
    reader.read(bytes, counts, tags, commonSites.length, room);
  }
  return reader.done();
}

/** Memory that lists may still take. */
export function roomOf(memoryBytesMax: number): Room {
  return {
    leftBytes: memoryBytesMax,
    take(offset, bytes) {
      this.leftBytes -= bytes;
      if (this.leftBytes < 0) throw tooMuchMemory(offset, memoryBytesMax);
    },
  };
}

class Reader {
  private about: About | undefined;
  private timeMin = 0;
  private readonly sites: Site[] = [];
  private readonly commonSites: number[] = [];
  private readonly worlds: Capture["worlds"] = [];
  private readonly locks: string[] = [];
  private readonly counters: string[] = [];
  private readonly threads: Omit<Thread, "events">[] = [];
  private readonly events: Ranges[] = [];
  private thread = 0;
  private readonly frames = { number: f64(), begin: f64(), end: f64(), budget: f64(), firstPart: u32() };
  private readonly parts = { thread: u16(), running: f64(), waiting: f64(), blocked: f64() };
  private readonly logs: Capture["logs"] = [];
  private readonly moments = f64();
  private readonly memoryRows: Capture["memory"]["bySite"] = [];
  private readonly processes: Capture["processes"] = [];
  private readonly hostThreads: HostThread[] = [];
  private readonly cores: { number: number; at: ReturnType<typeof f64>; thread: ReturnType<typeof f64> }[] = [];
  private core = 0;
  private readonly stalls: Capture["hostStalls"] = [];
  private readonly room: Room;

  constructor(
    private readonly version: number,
    memoryBytesMax: number,
  ) {
    this.room = roomOf(memoryBytesMax);
  }

  /** Elements to the end of the section. */
  private list(
    bytes: Cursor,
    size: number,
    most: number,
    what: string,
    list: { readonly length: number },
    element: () => void,
  ): void {
    while (!bytes.isAtEnd()) {
      if (list.length >= most) throw tooMany(bytes.offset, what, most);
      this.room.take(bytes.offset, size);
      element();
    }
  }

  section(kind: number, bytes: Cursor): void {
    bytes.timeMin = this.timeMin;
    switch (kind) {
      case Kind.About:
        this.about = about(bytes, this.version);
        this.timeMin = Math.max(-this.about.beginNs, -maximum.TIME_NS);
        return;
      case Kind.Sites:
        return this.list(bytes, SIZE.site, maximum.SITES, "sites", this.sites, () => this.sites.push(site(bytes)));
      case Kind.CommonSites:
        return this.list(bytes, SIZE.commonSite, maximum.COMMON_SITES, "common sites", this.commonSites, () =>
          this.commonSites.push(bytes.index("site", this.sites.length)),
        );
      case Kind.Worlds:
        return this.list(bytes, SIZE.world, maximum.WORLDS, "worlds", this.worlds, () => {
          const [id, name] = [bytes.u32("a world"), bytes.text("a world's name")];
          const offset = bytes.offset;
          const tickHz = bytes.varint();
          if (tickHz > 0xffff) throw outOfRange(offset, "a tick rate");
          this.worlds.push({ id, name, tickHz });
        });
      case Kind.Locks:
        return this.list(bytes, SIZE.lock, maximum.LOCKS, "locks", this.locks, () =>
          this.locks.push(bytes.text("a lock's name")),
        );
      case Kind.Counters:
        return this.list(bytes, SIZE.counter, maximum.COUNTERS, "counters", this.counters, () =>
          this.counters.push(bytes.text("a counter's name")),
        );
      case Kind.Threads:
        return this.list(bytes, SIZE.thread, maximum.THREADS, "threads", this.threads, () =>
          this.threads.push({
            name: bytes.text("a thread's name"),
            tid: bytes.u32("a thread id"),
            class: bytes.choice(CLASSES, "the class of a thread"),
          }),
        );
      case Kind.Events:
        return this.eventSection(bytes);
      case Kind.Frames:
        return this.list(bytes, SIZE.frame, maximum.FRAMES, "frames", this.frames.number, () => this.frame(bytes));
      case Kind.Logs:
        return this.list(bytes, SIZE.log, maximum.LOGS, "log lines", this.logs, () =>
          this.logs.push({
            atNs: bytes.time(this.logs.at(-1)?.atNs ?? 0),
            thread: bytes.index("thread", this.threads.length),
            level: bytes.text("a log level"),
            target: bytes.text("a log target"),
            text: bytes.text("a log text"),
          }),
        );
      case Kind.MemoryMoments: {
        const { moments } = this;
        return this.list(bytes, SIZE.moment, maximum.MEMORY_MOMENTS, "moments of memory", moments, () =>
          moments.push(bytes.time(moments.length === 0 ? 0 : moments.values[moments.length - 1]!)),
        );
      }
      case Kind.MemoryRows:
        return this.list(bytes, SIZE.memoryRow, maximum.MEMORY_ROWS, "rows of live bytes", this.memoryRows, () =>
          this.memoryRow(bytes),
        );
      case Kind.Processes:
        return this.list(bytes, SIZE.process, maximum.PROCESSES, "processes", this.processes, () =>
          this.processes.push({
            pid: bytes.u32("a process id"),
            name: bytes.text("a process's name"),
            cores: bytes.float32(),
          }),
        );
      case Kind.HostThreads:
        return this.list(bytes, SIZE.hostThread, maximum.HOST_THREADS, "threads of the host", this.hostThreads, () =>
          this.hostThreads.push({
            pid: bytes.u32("a process id"),
            tid: bytes.u32("a thread id"),
            owner: bytes.choice(OWNERS, "the owner of a thread"),
            name: bytes.text("a thread's name"),
            process: bytes.text("a process's name"),
          }),
        );
      case Kind.Cores:
        return this.list(bytes, SIZE.core, maximum.CORES, "cores", this.cores, () =>
          this.cores.push({ number: bytes.u32("a core"), at: f64(), thread: f64() }),
        );
      case Kind.CoreRuns:
        return this.coreRuns(bytes);
      case Kind.HostStalls:
        return this.list(bytes, SIZE.stall, maximum.HOST_STALLS, "stalls", this.stalls, () => {
          const core = bytes.u32("a core");
          const beginNs = bytes.time(0);
          this.stalls.push({ core, beginNs, endNs: bytes.time(beginNs) });
        });
      default:
        return;
    }
  }

  private eventSection(bytes: Cursor): void {
    const begin = bytes.offset;
    const thread = bytes.index("thread", this.threads.length);
    if (thread < this.thread) throw outOfRange(begin, "the order of threads");
    this.thread = thread;
    (this.events[thread] ??= []).push([bytes.offset, bytes.end]);
    bytes.offset = bytes.end;
  }

  private frame(bytes: Cursor): void {
    const { frames, parts } = this;
    const count = frames.number.length;
    frames.number.push(bytes.step(count === 0 ? 0 : frames.number.values[count - 1]!));
    frames.begin.push(bytes.time(count === 0 ? 0 : frames.end.values[count - 1]!));
    frames.end.push(bytes.time(frames.begin.values[count]!));
    frames.budget.push(bytes.varint());
    frames.firstPart.push(parts.thread.length);
    const offset = bytes.offset;
    const partsCount = bytes.varint();
    if (partsCount > maximum.FRAME_THREADS) throw tooMany(offset, "threads in a frame", maximum.FRAME_THREADS);
    for (let part = 0; part < partsCount; part++) {
      parts.thread.push(bytes.index("thread", this.threads.length));
      parts.running.push(bytes.varint());
      parts.waiting.push(bytes.varint());
      parts.blocked.push(bytes.varint());
    }
    this.room.take(bytes.offset, partsCount * SIZE.framePart);
  }

  private memoryRow(bytes: Cursor): void {
    const site = bytes.optionalIndex("site", this.sites.length);
    const values = f64();
    let before = 0;
    for (let moment = 0; moment < this.moments.length; moment++) {
      before = bytes.step(before);
      values.push(before);
    }
    this.room.take(bytes.offset, this.moments.length * SIZE.moment);
    this.memoryRows.push({ site, bytes: values.done() });
  }

  private coreRuns(bytes: Cursor): void {
    const offset = bytes.offset;
    const core = bytes.index("core", this.cores.length);
    if (core < this.core) throw outOfRange(offset, "the order of cores");
    this.core = core;
    const { at, thread } = this.cores[core]!;
    this.list(bytes, SIZE.coreRun, maximum.CORE_RUNS, "runs of one core", at, () => {
      at.push(bytes.time(at.length === 0 ? 0 : at.values[at.length - 1]!));
      thread.push(bytes.optionalIndex("thread of the host", this.hostThreads.length));
    });
  }

  done(): Scanned {
    this.frames.firstPart.push(this.parts.thread.length);
    return {
      capture: {
        about: this.about!,
        sites: this.sites,
        worlds: this.worlds,
        locks: this.locks,
        counters: this.counters,
        threads: this.threads,
        frames: { ...done(this.frames), parts: done(this.parts) },
        logs: this.logs,
        memory: { at: this.moments.done(), bySite: this.memoryRows },
        processes: this.processes,
        hostThreads: this.hostThreads,
        cores: this.cores.map(
          ({ number, at, thread }): Core => ({ number, runs: { at: at.done(), thread: thread.done() } }),
        ),
        hostStalls: this.stalls,
      },
      events: this.events,
      counts: {
        sites: this.sites.length,
        locks: this.locks.length,
        counters: this.counters.length,
        threads: this.threads.length,
      },
      commonSites: this.commonSites,
      timeMin: this.timeMin,
      room: this.room,
    };
  }
}

function about(bytes: Cursor, version: number): About {
  const build = bytes.text("the build's name");
  const game = bytes.text("the game's name");
  const cores = bytes.u32("a count of cores");
  const savedUnixS = bytes.varint();
  const beginNs = bytes.varint();
  bytes.timeMin = Math.max(-beginNs, -maximum.TIME_NS);
  const endNs = bytes.time(0);
  const frame = bytes.varint();
  const switches = bytes.choice(SWITCH_SOURCES, "the source of context switches");
  const recordsLost = bytes.varint();
  const hasFreeText = bytes.bool("whether there is free text");
  const [kind] = bytes.choice(TRIGGER_KINDS, "the kind of a trigger");
  const trigger = {
    kind,
    name: bytes.text("the trigger's name"),
    measured: bytes.varint(),
    allowed: bytes.varint(),
    world: bytes.optionalU32("a world"),
    atNs: bytes.time(0),
    note: bytes.text("the trigger's note"),
  };
  const switchesWhyNot = version > 1 ? bytes.text("why switches have no better source") : "";
  return {
    build,
    game,
    cores,
    savedUnixS,
    beginNs,
    endNs,
    frame,
    switches,
    switchesWhyNot,
    recordsLost,
    hasFreeText,
    trigger,
  };
}

function site(bytes: Cursor): Site {
  return {
    name: bytes.text("a site's name"),
    subsystem: bytes.text("a subsystem's name"),
    category: bytes.text("a category's name"),
    file: bytes.text("a source file's name"),
    line: bytes.u32("a line"),
    budgetNs: bytes.bool("whether there is a budget") ? bytes.varint() : -1,
  };
}
