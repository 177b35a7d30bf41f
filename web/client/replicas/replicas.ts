// Replicas: a client's copies of the entities that are relevant to it.
//
// Messages may be lost, doubled and late, so everything carries the tick that it is true for, and older never overwrites
// newer: each component of each entity has its own label, and each slot the tick since which it is held or empty. An
// emptied slot is remembered for a while, so that a late spawn does not bring back what is gone. What may arrive is bounded.

import type { GameTypes, Schema } from "../schema.ts";
import { type EntityId, entityId, generationOf, slotOf } from "../wire/field.ts";
import { Malformed, Reader } from "../wire/reader.ts";
import { HeldSamples, type StateError, readAuditSample } from "./held_samples.ts";

export const SNAPSHOT = 2;
export const SLOWED_SNAPSHOT = 7;
const SLOTS_MAX = 2 ** 20;
/** Slots that a client tracks, held or lately emptied. */
const REPLICAS_MAX = 65_536;
/** A snapshot this much older than the newest is ignored, and an emptied slot is forgotten after as long (ticks). */
const LATE_TICKS_MAX = 1024;
const SWEEP_TICKS = 256;

export interface SnapshotHeader {
  readonly epoch: number;
  readonly tick: number;
  /** The client's last input that the tick took in. */
  readonly input: number;
  /** How fast the world's time runs (percent). */
  readonly timePercent: number;
}

/** One slot as the client knows it. */
export interface Replica {
  readonly slot: number;
  generation: number;
  isAlive: boolean;
  /** Held, or empty, at least since this tick. */
  since: number;
  /** Which components are held. */
  present: number;
  /** By component: the value, and the tick as of which it is held or is not. */
  readonly values: unknown[];
  readonly labels: number[];
}

export interface ReplicaCounts {
  /** Records that changed something. */
  updatesApplied: number;
  /** Records or messages that were older than what is held. */
  stale: number;
  /** Components that were checked against the server's exact state. */
  stateChecks: number;
  stateErrors: number;
  /** Checks that newer state overtook. */
  superseded: number;
}

/** A client's copies, by the names of its schema. */
export class Replicas<G extends GameTypes = GameTypes> {
  readonly schema: Schema<G>;
  readonly counts: ReplicaCounts = { updatesApplied: 0, stale: 0, stateChecks: 0, stateErrors: 0, superseded: 0 };
  readonly samples = new HeldSamples();
  readonly #rows = new Map<number, Replica>();
  #aliveCount = 0;
  #epoch: number | null = null;
  #newestTick = 0;
  #sweptTick = 0;

  constructor(schema: Schema<G>) {
    this.schema = schema;
  }

  /** The copy of a component, if the entity is held and has it. Not to be changed: it is the copy itself. */
  get<N extends keyof G["components"] & string>(id: EntityId, name: N): G["components"][N] | undefined {
    const row = this.held(id);
    return row?.values[this.schema.component(name)] as G["components"][N] | undefined;
  }

  /** The tick for which the copy of a component is true. */
  tickOf(id: EntityId, name: keyof G["components"] & string): number | undefined {
    const [row, kind] = [this.held(id), this.schema.component(name)];
    return row && (row.present >>> kind) & 1 ? row.labels[kind] : undefined;
  }

  /** All copies of a component. */
  *each<N extends keyof G["components"] & string>(name: N): Generator<[EntityId, G["components"][N]]> {
    const kind = this.schema.component(name);
    for (const row of this.#rows.values()) {
      const value = row.values[kind];
      if (row.isAlive && value !== undefined) yield [entityId(row.slot, row.generation), value as G["components"][N]];
    }
  }

  /** All entities held. */
  *ids(): Generator<EntityId> {
    for (const row of this.#rows.values()) if (row.isAlive) yield entityId(row.slot, row.generation);
  }

  has(id: EntityId): boolean {
    return this.held(id) !== undefined;
  }

  /** Entities held. */
  get size(): number {
    return this.#aliveCount;
  }

  get epoch(): number | null {
    return this.#epoch;
  }

  get newestTick(): number {
    return this.#newestTick;
  }

  /** The oldest state error that was not taken; the last few are kept. */
  takeStateError(): StateError | undefined {
    return this.samples.errors.shift();
  }

  /** Begins an epoch: copies of an older one are dropped. `false`, and nothing, if it is itself older. */
  enterEpoch(epoch: number): boolean {
    if (this.#epoch === epoch) return true;
    if (this.#epoch !== null && ((epoch - this.#epoch) & 255) >= 128) return false;
    this.#rows.clear();
    this.#aliveCount = this.#newestTick = this.#sweptTick = 0;
    this.samples.clear();
    this.#epoch = epoch;
    return true;
  }

  /**
   * Applies a snapshot. Of a malformed one the records before the mistake stay applied.
   *
   * @throws Malformed
   */
  apply(message: Uint8Array): SnapshotHeader {
    const from = new Reader(message);
    const kind = from.u8();
    if (kind !== SNAPSHOT && kind !== SLOWED_SNAPSHOT) throw new Malformed("the message is of another kind");
    const [epoch, tick, input] = [from.u8(), from.u32(), from.u16()];
    const timePercent = kind === SLOWED_SNAPSHOT ? from.u8() : 100;
    if (timePercent < 10 || timePercent > 100) throw new Malformed("a world's time is slowed to 10 to 100 percent");
    const header = { epoch, tick, input, timePercent };
    if (!this.enterEpoch(epoch) || tick + LATE_TICKS_MAX < this.#newestTick) {
      this.counts.stale++;
      return header;
    }
    this.#hear(tick);
    try {
      this.#applyRecords(tick, from);
    } finally {
      this.samples.check(this);
    }
    return header;
  }

  /**
   * Keeps an audit sample until it can be checked. `nowTick` is the server's as far as is known.
   *
   * @throws Malformed
   */
  holdAuditSample(message: Uint8Array, nowTick: number): void {
    const sample = readAuditSample(message, this.schema);
    if (sample.epoch !== this.#epoch) return;
    this.#hear(Math.min(nowTick, sample.tick));
    this.samples.push(sample);
  }

  /** Checks what can be checked. What could not be by its deadline is an error. */
  checkAuditSamples(): void {
    this.samples.check(this);
    this.samples.expire(this, this.#newestTick);
  }

  /** The row of a slot, held or lately emptied. */
  row(slot: number): Replica | undefined {
    return this.#rows.get(slot);
  }

  held(id: EntityId): Replica | undefined {
    const row = this.#rows.get(slotOf(id));
    return row?.isAlive && row.generation === generationOf(id) ? row : undefined;
  }

  #applyRecords(tick: number, from: Reader): void {
    let slot = 0;
    let mask = 1;
    for (let isFirst = true; !from.isAtEnd; isFirst = false) {
      const head = from.varint();
      const shift = (head & 3) === 3 ? 3 : (head & 3) === 1 ? 2 : 1;
      const delta = Math.floor(head / 2 ** shift);
      if (delta === 0 && !isFirst) throw new Malformed("the same slot twice");
      slot += delta;
      if (slot >= SLOTS_MAX) throw new Malformed("a slot number above the limit");
      if ((head & 7) === 7) this.#empty(slot, tick);
      else if ((head & 7) === 3) {
        const generation = from.u8();
        this.#spawn(slot, generation, this.#readMask(from), tick, from);
      } else {
        if ((head & 3) === 1) mask = this.#readMask(from);
        this.#update(slot, mask, tick, from);
      }
    }
  }

  #update(slot: number, mask: number, tick: number, from: Reader): void {
    if (mask & ~this.schema.everyComponent) throw new Malformed("a component that is not in the schema");
    const row = this.#rows.get(slot);
    if (row?.isAlive && row.since <= tick) this.#readValues(row, mask, tick, from);
    else this.#skipValues(mask, from);
  }

  /** A spawn is all there is of the entity: components that are not in it are not there. */
  #spawn(slot: number, generation: number, mask: number, tick: number, from: Reader): void {
    let row = this.#rows.get(slot);
    if (row?.isAlive && row.generation === generation && tick >= row.since) row.since = tick;
    else if (!row || tick > row.since) {
      row ??= this.#add(slot);
      if (!row.isAlive) this.#aliveCount++;
      Object.assign(row, { generation, isAlive: true, since: tick, present: 0 });
      row.labels.fill(tick);
      row.values.fill(undefined);
    } else {
      this.#skipValues(mask, from);
      return;
    }
    for (let kind = 0; kind < row.labels.length; kind++) {
      if ((mask >>> kind) & 1 || row.labels[kind]! >= tick) continue;
      row.labels[kind] = tick;
      row.present &= ~(1 << kind);
      row.values[kind] = undefined;
    }
    this.#readValues(row, mask, tick, from);
  }

  /** A slot is empty as of `tick`, also when nothing was held there: its spawn may be late. */
  #empty(slot: number, tick: number): void {
    const row = this.#rows.get(slot) ?? this.#add(slot);
    if (tick < row.since) {
      this.counts.stale++;
      return;
    }
    row.since = tick;
    if (!row.isAlive) return;
    row.isAlive = false;
    row.present = 0;
    row.values.fill(undefined);
    this.#aliveCount--;
    this.counts.updatesApplied++;
  }

  #readValues(row: Replica, mask: number, tick: number, from: Reader): void {
    let isApplied = false;
    for (let kind = 0; mask >>> kind; kind++) {
      if (((mask >>> kind) & 1) === 0) continue;
      const value = this.schema.components[kind]!.read(from);
      if (tick < row.labels[kind]!) continue;
      row.values[kind] = value;
      row.labels[kind] = tick;
      row.present |= 1 << kind;
      isApplied = true;
    }
    if (isApplied) this.counts.updatesApplied++;
    else this.counts.stale++;
  }

  #skipValues(mask: number, from: Reader): void {
    this.counts.stale++;
    for (let kind = 0; mask >>> kind; kind++) if ((mask >>> kind) & 1) this.schema.components[kind]!.read(from);
  }

  #readMask(from: Reader): number {
    const mask = this.schema.maskBytes === 1 ? from.u8() : from.u16();
    if (mask & ~this.schema.everyComponent) throw new Malformed("a component that is not in the schema");
    return mask;
  }

  #add(slot: number): Replica {
    if (this.#rows.size >= REPLICAS_MAX) this.#sweep();
    if (this.#rows.size >= REPLICAS_MAX) throw new Malformed("more entities than this client accepts");
    const count = this.schema.components.length;
    const row: Replica = { slot, generation: 0, isAlive: false, since: 0, present: 0, values: new Array(count).fill(undefined), labels: new Array(count).fill(0) };
    this.#rows.set(slot, row);
    return row;
  }

  #hear(tick: number): void {
    if (tick <= this.#newestTick) return;
    this.samples.excuseSilence(tick - this.#newestTick);
    this.#newestTick = tick;
    if (tick - this.#sweptTick >= SWEEP_TICKS) this.#sweep();
  }

  /** Forgets slots that have been empty for long. */
  #sweep(): void {
    this.#sweptTick = this.#newestTick;
    for (const [slot, row] of this.#rows) if (!row.isAlive && row.since + LATE_TICKS_MAX < this.#newestTick) this.#rows.delete(slot);
  }
}
