// Held samples: exact values from the server, held against the copies, so that a client finds out when they are wrong.
//
// A sample of tick T says of each component its exact value and since which tick C it has been so; every update labelled C
// to T must agree with it. Samples and snapshots overtake one another, so a check waits for such an update:
//
//   within the grace                                    result
//   the copy is labelled C to T and agrees              checked
//   the copy is labelled C to T and does not            checked, error
//   the copy is labelled after T                        superseded: what came between was not seen
//   none of it                                          checked, error: the update never came
//   held, but the server says that it should not be     as long as nothing newer comes: checked, error
//
// Ticks in which the server could not send all that it owed are not of the grace: each sample says how many there were, so a
// grace ends only with one that is as new.

import type { Schema } from "../schema.ts";
import { type EntityId, entityId, generationOf, slotOf } from "../wire/field.ts";
import { Malformed, Reader } from "../wire/reader.ts";
import type { Replica, ReplicaCounts } from "./replicas.ts";

export const AUDIT_SAMPLE = 3;
/** Samples that wait to be checked; of more the oldest is dropped unchecked. */
const HELD_MAX = 64;
const ERRORS_KEPT_MAX = 8;
const SLOTS_MAX = 2 ** 20;
/** Until a world says how fast it ticks: 2 s at 20 Hz. */
const GRACE_TICKS = 40;

/** A copy that is not what the server says. */
export interface StateError {
  readonly id: EntityId;
  /** `null`: the entity itself is missing, or is there and should not be. */
  readonly component: string | null;
  readonly tick: number;
  readonly wrong: "value" | "missing" | "remains";
}

interface Wanted {
  readonly kind: number;
  readonly changedAt: number;
  readonly exact: unknown;
}

export interface HeldSample {
  readonly epoch: number;
  readonly tick: number;
  readonly id: EntityId;
  readonly isPresent: boolean;
  /** Components that are not checked yet: those that must be there, and those that must not. */
  wanted: Wanted[];
  unwanted: number[];
  /** Short ticks of the stay when it was written. */
  shortTicks: number;
  deadline: number;
}

/** What samples are held against. */
export interface Copies {
  readonly schema: Schema;
  readonly counts: ReplicaCounts;
  row(slot: number): Replica | undefined;
  held(id: EntityId): Replica | undefined;
}

/** @throws Malformed */
export function readAuditSample(message: Uint8Array, schema: Schema): HeldSample {
  const from = new Reader(message);
  if (from.u8() !== AUDIT_SAMPLE) throw new Malformed("the message is of another kind");
  const [epoch, tick, sort, slot] = [from.u8(), from.u32(), from.u8(), from.varint()];
  if (sort > 2 || slot >= SLOTS_MAX) throw new Malformed("an audit sample is out of range");
  const id = entityId(slot, from.u8());
  const sample: HeldSample = { epoch, tick, id, isPresent: sort !== 0, wanted: [], unwanted: [], shortTicks: 0, deadline: 0 };
  if (sample.isPresent) {
    const readMask = (): number => (schema.maskBytes === 1 ? from.u8() : from.u16());
    const has = readMask();
    const told = sort === 2 ? readMask() : has;
    if (has & ~schema.everyComponent || told & ~has) throw new Malformed("a component that is not in the schema");
    for (const [kind, codec] of schema.components.entries()) {
      if (((has >>> kind) & 1) === 0) sample.unwanted.push(kind);
      if (((told >>> kind) & 1) === 0) continue;
      const age = from.varint();
      if (age > tick) throw new Malformed("a value is older than its world");
      sample.wanted.push({ kind, changedAt: tick - age, exact: codec.readExact(from) });
    }
  }
  sample.shortTicks = from.varint();
  from.end();
  return sample;
}

export class HeldSamples {
  readonly errors: StateError[] = [];
  /** How long after its tick a sample must have come true (ticks). */
  graceTicks = GRACE_TICKS;
  #held: HeldSample[] = [];
  /** Of the newest sample: its tick, and the short ticks of the stay by then. */
  #newest = { tick: 0, shortTicks: 0 };

  push(sample: HeldSample): void {
    if (this.#held.length === HELD_MAX) this.#held.shift();
    sample.deadline = sample.tick + this.graceTicks;
    if (sample.tick >= this.#newest.tick) this.#newest = { tick: sample.tick, shortTicks: sample.shortTicks };
    this.#held.push(sample);
  }

  /** The server was not heard for so many ticks. What of it is longer than half the grace does not count. */
  excuseSilence(ticks: number): void {
    const excused = ticks - Math.ceil(this.graceTicks / 2);
    if (excused > 0) for (const sample of this.#held) sample.deadline += excused;
  }

  clear(): void {
    this.#held = [];
    this.#newest = { tick: 0, shortTicks: 0 };
  }

  /** Whether all ticks of its grace are over, and how many of them were short is known. */
  #isDue(sample: HeldSample, newestTick: number): boolean {
    const excused = (this.#newest.shortTicks - sample.shortTicks) >>> 0;
    return Math.min(newestTick, this.#newest.tick) >= sample.deadline + excused;
  }

  check(copies: Copies): void {
    if (this.#held.length > 0) this.#held = this.#held.filter((sample) => !this.#isDone(sample, copies));
  }

  /** What could not be checked by its deadline is an error. */
  expire(copies: Copies, newestTick: number): void {
    const due = this.#held.filter((sample) => this.#isDue(sample, newestTick));
    if (due.length === 0) return;
    this.#held = this.#held.filter((sample) => !due.includes(sample));
    for (const sample of due) {
      if (!sample.isPresent || !copies.held(sample.id)) {
        this.#note(copies, sample, null, sample.isPresent ? "missing" : "remains");
        continue;
      }
      for (const { kind } of sample.wanted) this.#note(copies, sample, kind, "missing");
      for (const kind of sample.unwanted) this.#note(copies, sample, kind, "remains");
    }
  }

  #isDone(sample: HeldSample, copies: Copies): boolean {
    const { counts, schema } = copies;
    const row = copies.row(slotOf(sample.id));
    const held = row?.isAlive && row.generation === generationOf(sample.id) ? row : undefined;
    const isOvertaken = (row?.since ?? 0) > sample.tick;
    if (!sample.isPresent && !held) {
      counts.stateChecks++;
      return true;
    }
    if (!sample.isPresent || !held) {
      if (isOvertaken) counts.superseded++;
      return isOvertaken;
    }
    sample.wanted = sample.wanted.filter(({ kind, changedAt, exact }) => {
      const label = held.labels[kind]!;
      if (label > sample.tick) counts.superseded++;
      else if ((held.present >>> kind) & 1 && label >= changedAt) {
        if (schema.components[kind]!.agrees(held.values[kind], exact)) counts.stateChecks++;
        else this.#note(copies, sample, kind, "value");
      } else return true;
      return false;
    });
    sample.unwanted = sample.unwanted.filter((kind) => {
      if (((held.present >>> kind) & 1) === 0) counts.stateChecks++;
      else if (held.labels[kind]! > sample.tick) counts.superseded++;
      else return true;
      return false;
    });
    return sample.wanted.length + sample.unwanted.length === 0;
  }

  /** A check that failed. */
  #note({ counts, schema }: Copies, sample: HeldSample, kind: number | null, wrong: StateError["wrong"]): void {
    counts.stateChecks++;
    counts.stateErrors++;
    if (this.errors.length === ERRORS_KEPT_MAX) this.errors.shift();
    this.errors.push({ id: sample.id, component: kind === null ? null : schema.data.components[kind]!.name, tick: sample.tick, wrong });
  }
}
