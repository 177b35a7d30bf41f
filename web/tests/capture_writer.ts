// Writes captures to test with, as `throng_capture::format::write` does: sections of 64 KiB with their checksums.
//
// A few of everything for small ones, and 10,000,000 scopes in the shape that a busy server's have.

import { crc32 } from "../viewer/format/crc32.ts";
import { Kind, MAGIC } from "../viewer/format/section.ts";

const FULL_BYTES = 64 * 1024;

/** Bytes that grow. */
export class Bytes {
  private bytes = new Uint8Array(1024);
  length = 0;

  byte(value: number): this {
    if (this.length === this.bytes.length) this.grow(1);
    this.bytes[this.length++] = value;
    return this;
  }

  all(values: Uint8Array): this {
    this.grow(values.length);
    this.bytes.set(values, this.length);
    this.length += values.length;
    return this;
  }

  varint(value: number): this {
    while (value >= 0x80) {
      this.byte((value % 128) | 0x80);
      value = Math.floor(value / 128);
    }
    return this.byte(value);
  }

  step(from: number, to: number): this {
    const d = to - from;
    return this.varint(d >= 0 ? 2 * d : -2 * d - 1);
  }

  optional(value: number | undefined): this {
    return this.varint(value === undefined ? 0 : value + 1);
  }

  text(text: string): this {
    const bytes = new TextEncoder().encode(text);
    return this.varint(bytes.length).all(bytes);
  }

  float(value: number): this {
    return this.all(new Uint8Array(new Float32Array([value]).buffer));
  }

  private grow(by: number): void {
    if (this.length + by <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(this.bytes.length * 2, this.length + by));
    larger.set(this.bytes.subarray(0, this.length));
    this.bytes = larger;
  }

  done(): Uint8Array<ArrayBuffer> {
    return this.bytes.slice(0, this.length);
  }

  clear(): void {
    this.length = 0;
  }
}

export interface Header {
  beginNs: number;
  endNs: number;
  frame: number;
  trigger: { kind: number; name: string; measured: number; allowed: number; world?: number; atNs: number; note: string };
  build?: string;
  game?: string;
  version?: number;
}

/** A capture file, section by section; all times are absolute. */
export class CaptureWriter {
  readonly file = new Bytes();
  private readonly payload = new Bytes();
  private before = 0;
  private thread = 0;

  constructor(private readonly header: Header) {
    const version = header.version ?? 2;
    this.file.all(MAGIC).byte(version).byte(0);
    const { beginNs, endNs, trigger } = header;
    const about = new Bytes().text(header.build ?? "throng 0.1.0 (test)").text(header.game ?? "made up");
    about.varint(4).varint(1_800_000_000).varint(beginNs).step(beginNs, endNs).varint(header.frame);
    about.byte(2).varint(0).byte(1).byte(trigger.kind).text(trigger.name);
    about.varint(trigger.measured).varint(trigger.allowed).optional(trigger.world);
    about.step(beginNs, trigger.atNs).text(trigger.note);
    if (version > 1) about.text("");
    this.section(Kind.About, about.done());
  }

  section(kind: number, payload: Uint8Array): this {
    const header = new Uint8Array(9);
    const view = new DataView(header.buffer);
    header[0] = kind;
    view.setUint32(1, payload.length, true);
    view.setUint32(5, crc32(payload, 0, payload.length, crc32(header, 0, 5)), true);
    this.file.all(header).all(payload);
    return this;
  }

  list<T>(kind: number, elements: readonly T[], put: (bytes: Bytes, element: T) => void): this {
    if (elements.length === 0) return this;
    const bytes = new Bytes();
    elements.forEach((element) => put(bytes, element));
    return this.section(kind, bytes.done());
  }

  sites(sites: readonly { name: string; category: string; budgetNs?: number }[]): this {
    this.list(Kind.Sites, sites, (bytes, { name, category, budgetNs }) => {
      const dot = name.lastIndexOf(".");
      bytes.text(name).text(dot < 0 ? name : name.slice(0, dot)).text(category).text("made_up.rs").varint(1);
      if (budgetNs === undefined) bytes.byte(0);
      else bytes.byte(1).varint(budgetNs);
    });
    return this.list(Kind.CommonSites, sites.slice(0, 80), (bytes, site) => bytes.varint(sites.indexOf(site)));
  }

  worlds(worlds: readonly { id: number; name: string; tickHz: number }[]): this {
    return this.list(Kind.Worlds, worlds, (bytes, { id, name, tickHz }) => bytes.varint(id).text(name).varint(tickHz));
  }

  locks(names: readonly string[]): this {
    return this.list(Kind.Locks, names, (bytes, name) => bytes.text(name));
  }

  counters(names: readonly string[]): this {
    return this.list(Kind.Counters, names, (bytes, name) => bytes.text(name));
  }

  threads(threads: readonly { name: string; tid: number; class: number }[]): this {
    return this.list(Kind.Threads, threads, (bytes, it) => bytes.text(it.name).varint(it.tid).byte(it.class));
  }

  /** What follows until `endThread` are events of this thread. */
  beginThread(thread: number): this {
    this.thread = thread;
    this.before = this.header.beginNs;
    this.payload.clear();
    this.payload.varint(thread);
    return this;
  }

  endThread(): this {
    return this.section(Kind.Events, this.payload.done());
  }

  private event(): Bytes {
    if (this.payload.length >= FULL_BYTES) {
      this.section(Kind.Events, this.payload.done());
      this.payload.clear();
      this.payload.varint(this.thread);
    }
    return this.payload;
  }

  /** `site` is one of the first 80. */
  scope(site: number, begin: number, end: number): this {
    const bytes = this.event();
    const tag = 16 + 3 * site;
    if (end < begin || end < this.before) {
      bytes.byte(3).varint(site).step(this.before, begin).step(begin, end);
    } else if (begin === this.before) bytes.byte(tag).varint(end - begin);
    else if (begin > this.before) bytes.byte(tag + 1).varint(begin - this.before).varint(end - begin);
    else bytes.byte(tag + 2).varint(end - this.before).varint(this.before - begin);
    this.before = end;
    return this;
  }

  openScope(site: number, begin: number): this {
    this.event().byte(4).varint(site).step(this.before, begin);
    return this;
  }

  private moment(tag: number, at: number): Bytes {
    const bytes = this.event().byte(tag).step(this.before, at);
    this.before = at;
    return bytes;
  }

  world(at: number, world: number | undefined, tick: number): this {
    if (world === undefined) this.moment(5, at).varint(tick);
    else this.moment(6, at).varint(world).varint(tick);
    return this;
  }

  allocations(count: number, frees: number, bytes: number): this {
    this.event().byte(7).varint(count).varint(frees).varint(bytes);
    return this;
  }

  wait(lock: number, begin: number, end: number, holder?: { thread: number; site?: number; world?: number }): this {
    const bytes = this.event().byte(holder ? 9 : 8).varint(lock).step(this.before, begin).step(begin, end);
    if (holder) bytes.varint(holder.thread).optional(holder.site).optional(holder.world);
    this.before = end;
    return this;
  }

  runs(at: number, core: number): this {
    this.moment(10, at).varint(core);
    return this;
  }

  preempted(at: number): this {
    this.moment(11, at);
    return this;
  }

  blocked(at: number): this {
    this.moment(12, at);
    return this;
  }

  pageFault(at: number): this {
    this.moment(13, at);
    return this;
  }

  largeAllocation(at: number, bytes: number): this {
    this.moment(14, at).varint(bytes);
    return this;
  }

  count(at: number, counter: number, value: number): this {
    this.moment(15, at).varint(counter).float(value);
    return this;
  }

  frames(
    frames: readonly {
      number: number;
      begin: number;
      end: number;
      budget: number;
      parts?: { thread: number; running: number; waiting: number; blocked: number }[];
    }[],
  ): this {
    let before = { number: 0, end: this.header.beginNs };
    return this.list(Kind.Frames, frames, (bytes, frame) => {
      bytes.step(before.number, frame.number).step(before.end, frame.begin).step(frame.begin, frame.end);
      bytes.varint(frame.budget).varint(frame.parts?.length ?? 0);
      for (const part of frame.parts ?? []) {
        bytes.varint(part.thread).varint(part.running).varint(part.waiting).varint(part.blocked);
      }
      before = frame;
    });
  }

  logs(lines: readonly { at: number; thread: number; level: string; target: string; text: string }[]): this {
    let before = this.header.beginNs;
    return this.list(Kind.Logs, lines, (bytes, { at, thread, level, target, text }) => {
      bytes.step(before, at).varint(thread).text(level).text(target).text(text);
      before = at;
    });
  }

  memory(moments: readonly number[], rows: readonly { site?: number; bytes: number[] }[]): this {
    let before = this.header.beginNs;
    this.list(Kind.MemoryMoments, moments, (bytes, at) => {
      bytes.step(before, at);
      before = at;
    });
    return this.list(Kind.MemoryRows, rows, (bytes, row) => {
      bytes.optional(row.site);
      row.bytes.reduce((before, value) => (bytes.step(before, value), value), 0);
    });
  }

  processes(processes: readonly { pid: number; name: string; cores: number }[]): this {
    return this.list(Kind.Processes, processes, (bytes, it) => bytes.varint(it.pid).text(it.name).float(it.cores));
  }

  hostThreads(threads: readonly { pid: number; tid: number; owner: number; name: string; process: string }[]): this {
    return this.list(Kind.HostThreads, threads, (bytes, it) =>
      bytes.varint(it.pid).varint(it.tid).byte(it.owner).text(it.name).text(it.process),
    );
  }

  cores(cores: readonly { number: number; runs: { at: number; thread?: number }[] }[]): this {
    this.list(Kind.Cores, cores, (bytes, core) => bytes.varint(core.number));
    cores.forEach(({ runs }, core) => {
      const bytes = new Bytes().varint(core);
      let before = this.header.beginNs;
      for (const run of runs) {
        bytes.step(before, run.at).optional(run.thread);
        before = run.at;
      }
      this.section(Kind.CoreRuns, bytes.done());
    });
    return this;
  }

  stalls(stalls: readonly { core: number; begin: number; end: number }[]): this {
    return this.list(Kind.HostStalls, stalls, (bytes, { core, begin, end }) =>
      bytes.varint(core).step(this.header.beginNs, begin).step(begin, end),
    );
  }

  done(): Uint8Array<ArrayBuffer> {
    this.section(Kind.End, new Uint8Array());
    return this.file.done();
  }
}
