// The reader against the golden blocks of docs/spec/capture.md, and against files that are damaged on purpose.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Capture } from "../viewer/format/capture.ts";
import { crc32 } from "../viewer/format/crc32.ts";
import { ReadError } from "../viewer/format/read_error.ts";
import { read } from "../viewer/format/read.ts";
import { Bytes, CaptureWriter } from "./capture_writer.ts";
import { largeCapture } from "./large_capture.ts";

const SPEC = readFileSync("../docs/spec/capture.md", "utf8");

/** The bytes of a block that begins with ```` ```golden NAME ````. */
function golden(name: string): Uint8Array {
  const begin = SPEC.indexOf("```golden " + name + "\n");
  assert.notEqual(begin, -1, `docs/spec/capture.md has no block "${name}"`);
  const block = SPEC.slice(SPEC.indexOf("\n", begin), SPEC.indexOf("\n```", begin));
  const digits = block.split("\n").map((line) => line.split("#")[0]!.trim()).join(" ");
  return Uint8Array.from(digits.split(/\s+/).filter((it) => it !== ""), (digit) => parseInt(digit, 16));
}

function plain(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return Array.from(value as Float64Array);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, plain(it)]));
  }
  return value;
}

test("the example of the specification is read as its comments tell", () => {
  const capture = read(golden("capture"));
  const { about, threads } = capture;
  assert.deepEqual(plain(about), {
    build: "t 1",
    game: "g",
    cores: 2,
    savedUnixS: 60,
    beginNs: 1_000,
    endNs: 1_000,
    frame: 7,
    switches: "cpu-wide",
    switchesWhyNot: "hm",
    recordsLost: 0,
    hasFreeText: true,
    trigger: { kind: "lock-wait", name: "m", measured: 300, allowed: 100, world: 5, atNs: 710, note: "" },
  });
  assert.deepEqual(capture.sites, [
    { name: "a.b", subsystem: "a", category: "net", file: "f.rs", line: 9, budgetNs: -1 },
    { name: "c", subsystem: "c", category: "", file: "", line: 0, budgetNs: 300 },
  ]);
  assert.deepEqual(capture.worlds, [{ id: 5, name: "hub", tickHz: 20 }]);
  assert.deepEqual([capture.locks, capture.counters], [["m"], ["n"]]);
  assert.deepEqual(plain(threads[0]), {
    name: "main",
    tid: 100,
    class: "frame",
    events: {
      scopes: { begin: [0, 110, 0, 750], end: [100, 150, 400, 740], site: [0, 0, 1, 1], inOrder: false },
      openScopes: { begin: [800], site: [1] },
      worlds: { at: [400], world: [5], tick: [9] },
      allocations: { scope: [1], count: [3], frees: [1], bytes: [200] },
      waits: { lock: [0], begin: [410], end: [710], holderThread: [1], holderSite: [0], holderWorld: [-1] },
      switches: { at: [420, 700], change: [2, 0], core: [0, 1] },
      pageFaults: { at: [] },
      largeAllocations: { at: [], bytes: [] },
      counts: { at: [720], counter: [0], value: [0.5] },
    },
  });
  assert.deepEqual(plain(threads[1]!.events), {
    scopes: { begin: [], end: [], site: [], inOrder: true },
    openScopes: { begin: [], site: [] },
    worlds: { at: [320], world: [-1], tick: [0] },
    allocations: { scope: [], count: [], frees: [], bytes: [] },
    waits: { lock: [0], begin: [300], end: [310], holderThread: [-1], holderSite: [-1], holderWorld: [-1] },
    switches: { at: [300], change: [1], core: [0] },
    pageFaults: { at: [200] },
    largeAllocations: { at: [200], bytes: [70_000] },
    counts: { at: [], counter: [], value: [] },
  });
  assert.deepEqual(plain(capture.frames), {
    number: [7],
    begin: [0],
    end: [900],
    budget: [500],
    firstPart: [0, 1],
    parts: { thread: [0], running: [600], waiting: [20], blocked: [280] },
  });
  assert.deepEqual(capture.logs, [{ atNs: 500, thread: 0, level: "warn", target: "a", text: "hm" }]);
  assert.deepEqual(plain(capture.memory), {
    at: [0, 500],
    bySite: [
      { site: 0, bytes: [64, 32] },
      { site: -1, bytes: [1, 1] },
    ],
  });
  assert.deepEqual(capture.processes, [{ pid: 9, name: "cc", cores: 1.5 }]);
  assert.deepEqual(capture.hostThreads, [
    { pid: 9, tid: 10, owner: "foreign", name: "as", process: "cc" },
    { pid: 0, tid: 0, owner: "idle", name: "", process: "" },
  ]);
  assert.deepEqual(plain(capture.cores), [{ number: 1, runs: { at: [0, 420, 700], thread: [1, 0, -1] } }]);
  assert.deepEqual(capture.hostStalls, [{ core: 1, beginNs: 100, endNs: 300 }]);
});

test("version 1 is read as well", () => {
  const [old, now] = [read(golden("capture of version 1")), read(golden("capture"))];
  assert.equal(old.about.switches, "perf-event");
  assert.equal(old.about.switchesWhyNot, "");
  assert.deepEqual(plain(old.threads), plain(now.threads));
  assert.deepEqual(old.cores, []);
});

test("a file that is cut short anywhere is refused, and so is each flipped bit", () => {
  const file = golden("capture");
  for (let length = 0; length < file.length; length++) refused(file.slice(0, length), /./);
  for (let bit = 0; bit < file.length * 8; bit++) {
    const flipped = file.slice();
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    refused(flipped, /./);
  }
});

test("what does not fit is told with its byte", () => {
  const file = golden("capture");
  refused(new Uint8Array(), /does not begin with `throng-capture`/);
  refused(new TextEncoder().encode("not a capture at all"), /does not begin/);
  const version9 = file.slice();
  version9[14] = 9;
  refused(version9, /at byte 14: version 9 is not known, only 1 to 2/);
  const damaged = file.slice();
  damaged[30]! ^= 4;
  refused(damaged, /at byte 16: the section that begins here is damaged/);
  refused(Uint8Array.from([...file, 0]), new RegExp(`at byte ${file.length}: bytes after the end`));
});

test("sections with right checksums and wrong contents are refused as the Rust reader refuses them", () => {
  const order = writer();
  order.section(5, new Bytes().text("lock").done()).section(4, new Bytes().varint(1).text("w").varint(20).done());
  refused(order.done(), /a section of kind 4 cannot stand here/);
  refused(writer().section(19, new Uint8Array()).done(), /a section of kind 19 cannot stand here/);
  refused(writer().section(8, new Bytes().varint(0).done()).done(), /thread 0 does not exist, the capture has only 0/);
  refused(with_thread((bytes) => bytes.byte(16).varint(1)), /common site 0 does not exist, the capture has only 0/);
  refused(with_thread((bytes) => bytes.byte(0).varint(3).varint(1)), /site 3 does not exist/);
  refused(with_thread((bytes) => bytes.byte(8).varint(0)), /lock 0 does not exist/);
  refused(with_thread((bytes) => bytes.byte(5).varint(0)), /ends in the middle/);
  refused(with_thread((bytes) => bytes.byte(6).varint(0).varint(2 ** 32).varint(0)), /a world is out of range/);
  const eleven = Uint8Array.from(Array<number>(11).fill(0xff));
  refused(with_thread((bytes) => bytes.byte(5).all(eleven)), /a number of more than 64 bits is out of range/);
  refused(writer().section(4, new Bytes().varint(1).text("w").varint(70_000).done()).done(), /a tick rate is out of range/);
  const ten = (last: number) => Uint8Array.from([...Array<number>(9).fill(0xff), last]);
  refused(with_thread((bytes) => bytes.byte(5).all(ten(2))), /a number of more than 64 bits is out of range/);
  refused(with_thread((bytes) => bytes.byte(5).all(ten(1))), /104 days/);
  const text = new Bytes().varint(2).byte(0xc3).byte(0x28);
  refused(writer().section(5, text.done()).done(), /a lock's name is not UTF-8/);
  const long = new Bytes().varint(2 ** 20 + 1);
  refused(writer().section(5, long.done()).done(), /a lock's name is out of range/);
});

test("a scope that would begin before the recorder did is refused, and so are times beyond what a double holds", () => {
  const site = (bytes: CaptureWriter) => bytes.sites([{ name: "a", category: "other" }]);
  refused(with_thread((bytes) => bytes.byte(2).varint(0).varint(0).varint(1_001), site), /the time of a scope/);
  refused(with_thread((bytes) => bytes.byte(5).varint(2 ** 55).varint(0)), /104 days/);
  refused(with_thread((bytes) => bytes.byte(0).varint(0).varint(2 ** 54), site), /104 days/);
});

test("memory has a maximum, whatever the file claims", () => {
  const file = with_thread((bytes) => {
    for (let event = 0; event < 1_000; event++) bytes.byte(12).varint(0);
  });
  assert.equal(read(file, 1 << 20).threads[0]!.events.switches.at.length, 1_000);
  refused(file, /the capture takes more than 0 MiB of memory/, 48 * 999);
});

test("what the writer writes is read back, in sections of 64 KiB", () => {
  const capture = read(largeCapture(100_000));
  const scopes = capture.threads.reduce((sum, thread) => sum + thread.events.scopes.begin.length, 0);
  assert.equal(scopes, 100_000);
  assert.ok(capture.threads.every(({ events }) => events.scopes.end.every((end, at, all) => at === 0 || end >= all[at - 1]!)));
});

test("the checksum is the CRC-32 of IEEE 802.3, in pieces as in one", () => {
  const text = new TextEncoder().encode("123456789");
  assert.equal(crc32(text, 0, 9), 0xcbf43926);
  assert.equal(crc32(text, 4, 9, crc32(text, 0, 4)), 0xcbf43926);
});

function writer(): CaptureWriter {
  const trigger = { kind: 0, name: "", measured: 0, allowed: 0, atNs: 1_500, note: "" };
  return new CaptureWriter({ beginNs: 1_000, endNs: 2_000, frame: 1, trigger });
}

/** A capture with one thread, whose events are what `put` writes. */
function with_thread(put: (bytes: Bytes) => void, before: (writer: CaptureWriter) => unknown = () => {}): Uint8Array {
  const whole = writer();
  before(whole);
  whole.threads([{ name: "t", tid: 1, class: 0 }]);
  const bytes = new Bytes().varint(0);
  put(bytes);
  return whole.section(8, bytes.done()).done();
}

function refused(file: Uint8Array, message: RegExp, memoryBytesMax?: number): void {
  let capture: Capture | undefined;
  try {
    capture = read(file, memoryBytesMax);
  } catch (error) {
    assert.ok(error instanceof ReadError, String(error));
    assert.match(error.message, message);
  }
  assert.equal(capture, undefined, "it was read");
}
