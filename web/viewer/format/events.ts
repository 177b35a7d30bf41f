// A thread's events from bytes. docs/spec/capture.md has the table of tags; times are told as steps from the end of
// the event before.
//
// Scopes are most of a capture, so they have a loop of their own that calls nothing.

import { BLOCKED, PREEMPTED, RUNNING, type Events } from "./capture.ts";
import { f32, f64, u16, u32, u8 } from "./column.ts";
import { Cursor, farTime } from "./cursor.ts";
import * as maximum from "./maximum.ts";
import { noSuch, outOfRange, tooMany } from "./read_error.ts";

const SHAPES = 3;
const CONTIGUOUS = 0;
const AFTER = 1;
const SCOPE_ANYWHERE = 3;
const OPEN_SCOPE = 4;
const NO_WORLD = 5;
const WORLD = 6;
const ALLOCATIONS = 7;
const LOCK_WAIT = 8;
const LOCK_WAIT_HOLDER = 9;
const RUNS = 10;
const LOST_CORE = 11;
const GAVE_CORE_UP = 12;
const PAGE_FAULT = 13;
const LARGE_ALLOCATION = 14;
const COUNT = 15;
const COMMON = 16;

/** What one event takes in the Rust reader's memory (bytes). */
const EVENT_BYTES = 48;
/** What one scope takes in a file, at least, where there are many (bytes). */
const SCOPE_BYTES = 4;

/** How many things there are to refer to. */
export interface Counts {
  sites: number;
  locks: number;
  counters: number;
  threads: number;
}

/** What lists may still take; one for all of a file. */
export interface Room {
  leftBytes: number;
  /** Throws where there is no room for as many bytes. */
  take(offset: number, bytes: number): void;
}

/** The longest scope in a file: a tag and three numbers of ten bytes. */
const SCOPE_BYTES_MAX = 31;
/** Events for which there is room made at once. */
const BATCH = 1 << 16;

/** What a tag says of a scope, so that it takes one look: its site (-1: none such) and its shape. */
export class Tags {
  readonly site = new Int32Array(256).fill(-1);
  readonly shape = new Uint8Array(256);

  constructor(commonSites: readonly number[]) {
    commonSites.forEach((site, rank) => this.site.fill(site, COMMON + SHAPES * rank, COMMON + SHAPES * (rank + 1)));
    for (let tag = COMMON; tag < 256; tag++) this.shape[tag] = (tag - COMMON) % SHAPES;
  }
}

/** Takes one thread's events in, section by section. */
export class EventReader {
  private count = 0;
  /** The end of the event before. */
  private before = 0;
  /** Whether no scope ends before the one before it. */
  private inOrder = true;
  private readonly scopes = { begin: f64(), end: f64(), site: u16() };
  private readonly openScopes = { begin: f64(), site: u16() };
  private readonly worlds = { at: f64(), world: f64(), tick: u32() };
  private readonly allocations = { scope: u32(), count: u32(), frees: u32(), bytes: f64() };
  private readonly waits = {
    lock: u16(),
    begin: f64(),
    end: f64(),
    holderThread: f64(),
    holderSite: f64(),
    holderWorld: f64(),
  };
  private readonly switches = { at: f64(), change: u8(), core: u32() };
  private readonly pageFaults = { at: f64() };
  private readonly largeAllocations = { at: f64(), bytes: f64() };
  private readonly counts = { at: f64(), counter: u16(), value: f32() };

  /** `bytes`: of events of this thread in the file. */
  constructor(bytes: number) {
    const scopes = Math.ceil(bytes / SCOPE_BYTES);
    Object.values(this.scopes).forEach((column) => column.reserve(scopes));
  }

  /** The events in `bytes`, a section. */
  read(bytes: Cursor, sizes: Counts, tags: Tags, commonSites: number, room: Room): void {
    while (bytes.offset < bytes.end) {
      const most = Math.min(BATCH, maximum.EVENTS - this.count, Math.floor(room.leftBytes / EVENT_BYTES));
      const read = most > 0 ? this.commonScopes(bytes, tags, most) : 0;
      this.count += read;
      room.take(bytes.offset, read * EVENT_BYTES);
      if (bytes.offset < bytes.end && read < most) this.any(bytes, sizes, tags, commonSites, room);
      else if (most <= 0) this.any(bytes, sizes, tags, commonSites, room);
    }
  }

  /**
   * Scopes of common sites with short numbers, which are most of a capture, until anything else comes; returns how
   * many. Everything in one loop over plain numbers: 10,000,000 of them take a fraction of a second.
   */
  private commonScopes(bytes: Cursor, tags: Tags, most: number): number {
    const { begin, end, site } = this.scopes;
    const first = begin.length;
    for (const column of [begin, end, site]) column.reserve(first + most);
    const [begins, ends, sites] = [begin.values, end.values, site.values];
    const { file, timeMin } = bytes;
    const { site: siteOf, shape: shapeOf } = tags;
    if (first > 0 && this.before < ends[first - 1]!) this.inOrder = false;
    const safeEnd = bytes.end - SCOPE_BYTES_MAX;
    let before = this.before;
    let at = bytes.offset;
    let place = first;
    for (const last = first + most; at < safeEnd && place < last; place++) {
      const tag = file[at]!;
      const itsSite = siteOf[tag]!;
      if (itsSite < 0) break;
      let next = at + 1;
      let one = file[next++]!;
      if (one > 0x7f) {
        const second = file[next++]!;
        one = (one & 0x7f) | ((second & 0x7f) << 7);
        if (second > 0x7f) {
          const third = file[next++]!;
          one |= (third & 0x7f) << 14;
          if (third > 0x7f) {
            const fourth = file[next++]!;
            if (fourth > 0x7f) break;
            one |= fourth << 21;
          }
        }
      }
      const shape = shapeOf[tag]!;
      let itsBegin = before;
      let itsEnd = before + one;
      if (shape !== CONTIGUOUS) {
        let other = file[next++]!;
        if (other > 0x7f) {
          const second = file[next++]!;
          other = (other & 0x7f) | ((second & 0x7f) << 7);
          if (second > 0x7f) {
            const third = file[next++]!;
            other |= (third & 0x7f) << 14;
            if (third > 0x7f) {
              const fourth = file[next++]!;
              if (fourth > 0x7f) break;
              other |= fourth << 21;
            }
          }
        }
        if (shape === AFTER) {
          itsBegin = itsEnd;
          itsEnd = itsBegin + other;
        } else {
          itsBegin = before - other;
        }
      }
      if (itsEnd > maximum.TIME_NS || itsBegin < timeMin) break;
      begins[place] = itsBegin;
      ends[place] = itsEnd;
      sites[place] = itsSite;
      before = itsEnd;
      at = next;
    }
    begin.length = end.length = site.length = place;
    this.before = before;
    bytes.offset = at;
    return place - first;
  }

  /** One event of any kind. */
  private any(bytes: Cursor, sizes: Counts, tags: Tags, commonSites: number, room: Room): void {
    const offset = bytes.offset;
    if (this.count >= maximum.EVENTS) throw tooMany(offset, "events of one thread", maximum.EVENTS);
    this.count++;
    room.take(offset, EVENT_BYTES);
    const tag = bytes.byte();
    if (tag >= SCOPE_ANYWHERE && tag < COMMON) {
      this.before = this.rare(tag, bytes, this.before, sizes);
      return;
    }
    const site = tag >= COMMON ? tags.site[tag]! : bytes.index("site", sizes.sites);
    if (site < 0) throw noSuch(offset, "common site", Math.floor((tag - COMMON) / SHAPES), commonSites);
    const shape = tag >= COMMON ? tags.shape[tag]! : tag;
    const first = bytes.varint();
    let begin = this.before;
    let end = begin + first;
    if (shape === AFTER) {
      begin = end;
      end = begin + bytes.varint();
    } else if (shape !== CONTIGUOUS) {
      begin -= bytes.varint();
    }
    if (end > maximum.TIME_NS) throw farTime(offset);
    if (begin < bytes.timeMin) throw outOfRange(offset, "the time of a scope");
    this.scope(site, begin, end);
    this.before = end;
  }

  private scope(site: number, begin: number, end: number): void {
    const { scopes } = this;
    const count = scopes.end.length;
    if (end < begin || (count > 0 && end < scopes.end.values[count - 1]!)) this.inOrder = false;
    scopes.begin.push(begin);
    scopes.end.push(end);
    scopes.site.push(site);
  }

  /** Everything else; the end of the event comes back. */
  private rare(tag: number, bytes: Cursor, before: number, sizes: Counts): number {
    switch (tag) {
      case SCOPE_ANYWHERE: {
        const site = bytes.index("site", sizes.sites);
        const begin = bytes.time(before);
        const end = bytes.time(begin);
        this.scope(site, begin, end);
        return end;
      }
      case OPEN_SCOPE:
        this.openScopes.site.push(bytes.index("site", sizes.sites));
        this.openScopes.begin.push(bytes.time(before));
        return before;
      case NO_WORLD:
      case WORLD: {
        const at = bytes.time(before);
        this.worlds.at.push(at);
        this.worlds.world.push(tag === WORLD ? bytes.u32("a world") : -1);
        this.worlds.tick.push(bytes.u32("a tick"));
        return at;
      }
      case ALLOCATIONS: {
        const [count, frees] = [bytes.u32("a count of allocations"), bytes.u32("a count of frees")];
        const amount = bytes.varint();
        // Before the first scope it belongs to none.
        if (this.scopes.begin.length === 0) return before;
        this.allocations.scope.push(this.scopes.begin.length - 1);
        this.allocations.count.push(count);
        this.allocations.frees.push(frees);
        this.allocations.bytes.push(amount);
        return before;
      }
      case LOCK_WAIT:
      case LOCK_WAIT_HOLDER: {
        const { waits } = this;
        waits.lock.push(bytes.index("lock", sizes.locks));
        const begin = bytes.time(before);
        const end = bytes.time(begin);
        waits.begin.push(begin);
        waits.end.push(end);
        const isHeld = tag === LOCK_WAIT_HOLDER;
        waits.holderThread.push(isHeld ? bytes.index("thread", sizes.threads) : -1);
        waits.holderSite.push(isHeld ? bytes.optionalIndex("site", sizes.sites) : -1);
        waits.holderWorld.push(isHeld ? bytes.optionalU32("a world") : -1);
        return end;
      }
      case RUNS:
      case LOST_CORE:
      case GAVE_CORE_UP: {
        const at = bytes.time(before);
        this.switches.at.push(at);
        this.switches.change.push(tag === RUNS ? RUNNING : tag === LOST_CORE ? PREEMPTED : BLOCKED);
        this.switches.core.push(tag === RUNS ? bytes.u32("a core") : 0);
        return at;
      }
      case PAGE_FAULT: {
        const at = bytes.time(before);
        this.pageFaults.at.push(at);
        return at;
      }
      case LARGE_ALLOCATION: {
        const at = bytes.time(before);
        this.largeAllocations.at.push(at);
        this.largeAllocations.bytes.push(bytes.varint());
        return at;
      }
      case COUNT: {
        const at = bytes.time(before);
        this.counts.at.push(at);
        this.counts.counter.push(bytes.index("counter", sizes.counters));
        this.counts.value.push(bytes.float32());
        return at;
      }
      default:
        throw new Error(`tag ${tag} has no reader`);
    }
  }

  done(): Events {
    return {
      scopes: { ...done(this.scopes), inOrder: this.inOrder },
      openScopes: done(this.openScopes),
      worlds: done(this.worlds),
      allocations: done(this.allocations),
      waits: done(this.waits),
      switches: done(this.switches),
      pageFaults: done(this.pageFaults),
      largeAllocations: done(this.largeAllocations),
      counts: done(this.counts),
    };
  }
}

type Done<T> = { [Field in keyof T]: T[Field] extends { done(): infer Values } ? Values : never };

/** Columns as arrays. */
export function done<T extends Record<string, { done(): unknown }>>(columns: T): Done<T> {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column.done()])) as Done<T>;
}
