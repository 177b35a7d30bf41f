// Promise: the client reads the bytes that docs/spec draws, as it says, and writes what it says.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { PacketWriter, readPacket } from "../client/connection/packet.ts";
import { readAuditSample } from "../client/replicas/held_samples.ts";
import { Replicas } from "../client/replicas/replicas.ts";
import { Schema, type SchemaData } from "../client/schema.ts";
import { entityId, type FieldShape, wholeCodec } from "../client/wire/field.ts";
import { type PackShape, PackWriter, packCodec, unpack } from "../client/wire/pack.ts";
import { Malformed, Reader } from "../client/wire/reader.ts";

/** The bytes of a block, comments apart. */
function block(page: string, fence: string): Uint8Array {
  const text = readFileSync(`../docs/spec/${page}.md`, "utf8");
  const found = text.split(`\`\`\`${fence}\n`)[1]?.split("```")[0];
  assert.ok(found, `${page}.md has ${fence}`);
  const digits = found.replaceAll(/#.*/g, "").split(/\s+/).filter(Boolean);
  return Uint8Array.from(digits, (pair) => Number.parseInt(pair, 16));
}

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);

test("packets are those of channels.md", () => {
  const first = block("channels", "hex header-first");
  assert.deepEqual(readPacket(first), { sequence: 7, acks: { newest: 0, bits: 0 }, chunks: [] });
  const acks = block("channels", "hex header-acks");
  assert.deepEqual(readPacket(acks), { sequence: 65_535, acks: { newest: 2, bits: 0b1011 }, chunks: [] });
  const unreliable = block("channels", "hex unreliable");
  assert.deepEqual(readPacket(unreliable)?.chunks, [{ is: "unreliable", bytes: ascii("abc") }]);
  const reliable = block("channels", "hex reliable");
  assert.deepEqual(readPacket(reliable)?.chunks, [
    { is: "fragment", id: 0, isLast: true, bytes: ascii("hi") },
    { is: "fragment", id: 1, isLast: true, bytes: ascii("!") },
    { is: "unreliable", bytes: ascii("x") },
  ]);
  const writer = new PacketWriter();
  writer.begin(1, { newest: 0, bits: 0 });
  writer.fragment(0, true, ascii("hi"));
  writer.fragment(1, true, ascii("!"));
  writer.unreliable(ascii("x"));
  assert.deepEqual(writer.bytes, reliable);
});

test("malformed packets are none", () => {
  const packet = (...chunks: number[]): Uint8Array => Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, ...chunks);
  for (const chunks of [[1], [1, 0], [0, 0], [1, 0xc0, 5], [2, 0x80, 1, 0, 9], [1, 0x40, 1, 0, 9], [0xff, 0xbf, 1, 0, 9]]) {
    assert.equal(readPacket(packet(...chunks)), null, String(chunks));
  }
  assert.equal(readPacket(Uint8Array.of(0, 0, 5, 0, 2, 0, 0, 0)), null, "bits without the newest");
});

const POSE: FieldShape = {
  is: "struct",
  fields: [
    ["place", { is: "numbers", count: 3, of: { is: "range", min: -150, max: 150, step: 0.02 } }],
    ["heading", { is: "angle", bits: 7 }],
  ],
};
const HEALTH: FieldShape = { is: "struct", fields: [["points", { is: "unsigned", bits: 10, full: 16 }]] };
const DATA: SchemaData = {
  hash: "0".repeat(16),
  components: [{ name: "Pose", shape: POSE }, { name: "Health", shape: HEALTH }],
  events: [], inputs: [], requests: [], messages: [],
};
type Types = {
  components: { Pose: { place: number[]; heading: number }; Health: { points: number } };
  events: object; inputs: object; requests: object; messages: object;
};

/** The client of the example: slots 0 to 3 are held since tick 1. */
function replicas(): Replicas<Types> {
  const copies = new Replicas<Types>(new Schema<Types>(DATA));
  const spawn = (slot: number): number[] => [slot === 0 ? 3 : (1 << 3) | 3, 1, 2, 100, 0];
  copies.apply(Uint8Array.from([2, 3, 1, 0, 0, 0, 0, 0, ...[0, 1, 2, 3].flatMap(spawn)]));
  return copies;
}

test("a snapshot is that of replication.md, slowed or not", () => {
  for (const head of ["snapshot", "slowed"]) {
    const copies = replicas();
    const whole = block("replication", "golden snapshot");
    const message = head === "slowed" ? Uint8Array.from([...block("replication", "golden slowed"), ...whole.subarray(8)]) : whole;
    assert.deepEqual(copies.apply(message), { epoch: 3, tick: 7, input: 513, timePercent: head === "slowed" ? 40 : 100 });
    const place = copies.get(entityId(0, 1), "Pose")!.place.map((number) => Number(number.toFixed(3)));
    assert.deepEqual(place, [0.5, 0, 1]);
    assert.deepEqual(copies.get(entityId(1, 1), "Health"), { points: 70 });
    assert.equal(copies.has(entityId(2, 1)), false);
    assert.equal(copies.get(entityId(4, 1), "Health"), undefined);
    assert.deepEqual(copies.get(entityId(4, 1), "Pose")!.place.map(Math.round), [-150, 0, 1]);
    assert.deepEqual([copies.size, copies.newestTick, copies.tickOf(entityId(0, 1), "Pose")], [4, 7, 7]);
  }
});

test("audit samples are those of replication.md, and find out what is wrong", () => {
  const copies = replicas();
  const told = readAuditSample(block("replication", "golden audit-sample-present"), copies.schema);
  assert.deepEqual(told.wanted.map(({ kind, changedAt }) => [kind, changedAt]), [[0, 6], [1, 7]]);
  assert.deepEqual(told.wanted[1]!.exact, { points: 70 });
  const partial = readAuditSample(block("replication", "golden audit-sample-partial"), copies.schema);
  assert.deepEqual([partial.wanted.length, partial.unwanted, partial.id], [1, [], entityId(0, 1)]);
  assert.equal(readAuditSample(block("replication", "golden audit-sample-tombstone"), copies.schema).isPresent, false);

  copies.apply(block("replication", "golden snapshot"));
  copies.holdAuditSample(block("replication", "golden audit-sample-present"), 7);
  copies.holdAuditSample(block("replication", "golden audit-sample-tombstone"), 7);
  copies.checkAuditSamples();
  assert.deepEqual([copies.counts.stateChecks, copies.counts.stateErrors], [2, 0], "health and the tombstone agree");
  const wrong = block("replication", "golden audit-sample-present");
  wrong[wrong.length - 3] = 71;
  copies.holdAuditSample(wrong, 7);
  copies.checkAuditSamples();
  assert.equal(copies.counts.stateErrors, 1);
  assert.deepEqual(copies.takeStateError(), { id: entityId(1, 1), component: "Health", tick: 7, wrong: "value" });
  // Nobody ever tells the pose of entity 1, which the sample says is there.
  for (let tick = 8; tick <= 57; tick++) copies.apply(Uint8Array.from([2, 3, tick, 0, 0, 0, 0, 0]));
  const later = (tick: number, shortTicks: number): void => {
    const gone = block("replication", "golden audit-sample-tombstone");
    [gone[2], gone[gone.length - 1]] = [tick, shortTicks];
    copies.holdAuditSample(gone, tick);
    copies.checkAuditSamples();
  };
  // Ten of its ticks were short, so it is told for ten more.
  later(47, 10);
  assert.equal(copies.takeStateError(), undefined);
  later(57, 10);
  assert.deepEqual(copies.takeStateError(), { id: entityId(1, 1), component: "Pose", tick: 7, wrong: "missing" });
});

test("fields are those of replication.md", () => {
  const guard: FieldShape = {
    is: "struct",
    fields: [
      ["morale", { is: "signed", bits: 8, full: 8 }],
      ["step", { is: "signed", bits: 4, full: 8 }],
      ["bonus", { is: "integer", min: -10, max: 10, isSigned: true, full: 16 }],
      ["post", { is: "option", of: { is: "unsigned", bits: 8, full: 8 } }],
      ["friends", { is: "list", countMax: 2, of: { is: "link" } }],
      ["order", { is: "variants", variants: [["Stay", []], ["Follow", [[null, { is: "link" }]]], ["Wait", [["ticks", { is: "unsigned", bits: 8, full: 8 }]]]] }],
    ],
  };
  const codec = wholeCodec(guard);
  const expect = { morale: -3, step: 2, bonus: 7, post: 9, friends: [entityId(5, 1)], order: { is: "Wait", ticks: 20 } };
  const value = codec.read(new Reader(block("replication", "golden fields")));
  assert.deepEqual(value, expect);
  const exact = codec.readExact(new Reader(block("replication", "golden fields-exact")));
  assert.deepEqual(exact, expect);
  assert.ok(codec.agrees(value, exact));
  assert.ok(!codec.agrees({ ...expect, order: { is: "Wait", ticks: 21 } }, exact));
  assert.ok(!codec.agrees({ ...expect, friends: [] }, exact));
});

const ITEM: PackShape = {
  is: "variants",
  variants: [
    ["Medkit", []],
    ["Weapon", [["kind", { is: "unsigned", bits: 8 }], ["rounds", { is: "option", of: { is: "unsigned", bits: 16 } }]]],
    ["Coins", [[null, { is: "unsigned", bits: 32 }]]],
  ],
};
const TRAVELLER: PackShape = {
  is: "struct",
  fields: [
    ["name", { is: "text", bytesMax: 24 }],
    ["health", { is: "unsigned", bits: 8, min: 0, max: 100 }],
    ["facing", { is: "float", bits: 32, min: -4, max: 4 }],
    ["items", { is: "list", countMax: 32, of: ITEM }],
    ["score", { is: "signed", bits: 32 }],
    ["seed", { is: "unsigned", bits: 32, isFixed: true }],
    ["ammunition", { is: "unsigned", bits: 16 }],
  ],
};

test("packed values are those of pack.md, both ways", () => {
  const check = (shape: PackShape, fence: string, value: unknown): void => {
    const [codec, bytes, out] = [packCodec(shape), block("pack", `hex ${fence}`), new PackWriter()];
    assert.deepEqual(unpack(codec, bytes), value, fence);
    codec.write(value, out, fence);
    assert.deepEqual(out.take(), bytes, fence);
  };
  check({ is: "unsigned", bits: 16 }, "u16", 300);
  check({ is: "signed", bits: 32 }, "i32", -3);
  check({ is: "float", bits: 32 }, "f32", 1.5);
  check({ is: "text", bytesMax: 24 }, "text", "Zoë");
  check({ is: "option", of: { is: "unsigned", bits: 16 } }, "option", 300);
  check({ is: "list", countMax: 4, of: { is: "signed", bits: 8 } }, "list", [1, -1]);
  check(ITEM, "enum", { is: "Weapon", kind: 3, rounds: 300 });
  const items = [{ is: "Medkit" }, { is: "Weapon", kind: 3, rounds: 300 }, { is: "Weapon", kind: 1, rounds: null }];
  check(TRAVELLER, "traveller", { name: "Zoë", health: 80, facing: 1.5, items, score: -3, seed: 0xddccbbaa, ammunition: 200 });
});

test("what breaks a limit is refused, with its place", () => {
  const codec = packCodec(TRAVELLER);
  const good = { name: "Zoë", health: 80, facing: 1.5, items: [], score: -3, seed: 1, ammunition: 200 };
  for (const [wrong, place] of [
    [{ ...good, health: 101 }, /traveller\.health is 101/],
    [{ ...good, facing: Number.NaN }, /traveller\.facing/],
    [{ ...good, items: [{ is: "Sword" }] }, /traveller\.items\[0\]\.is/],
    [{ ...good, name: "é".repeat(13) }, /at most 24 bytes/],
  ] as const) {
    assert.throws(() => codec.write(wrong, new PackWriter(), "traveller"), place);
  }
  for (const [shape, bytes] of [
    [{ is: "unsigned", bits: 16 }, [0x80, 0]],
    [{ is: "unsigned", bits: 16 }, [0xff, 0xff, 0x04]],
    [{ is: "bool" }, [2]],
    [{ is: "text", bytesMax: 4 }, [2, 0xc3, 0x28]],
    [{ is: "bool" }, [1, 1]],
  ] as [PackShape, number[]][]) {
    assert.throws(() => unpack(packCodec(shape), Uint8Array.from(bytes)), Malformed);
  }
});

test("no bytes of a server break the copies", () => {
  const copies = replicas();
  const messages = ["golden snapshot", "golden audit-sample-present"].map((fence) => block("replication", fence));
  let [refused, seed] = [0, 1];
  const below = (end: number): number => (seed = (seed * 48_271) % 2_147_483_647) % end;
  for (let round = 0; round < 20_000; round++) {
    const message = messages[below(2)]!.slice();
    for (let turns = below(4); turns > 0; turns--) message[below(message.length)] = below(256);
    try {
      if (message[0] === 3) copies.holdAuditSample(message.subarray(0, below(message.length) + 1), 7);
      else copies.apply(message);
    } catch (error) {
      assert.ok(error instanceof Malformed, String(error));
      refused++;
    }
  }
  assert.ok(refused > 1000, String(refused));
});
