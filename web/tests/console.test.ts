// The console's parts without a browser: lines, what is kept of them, budgets, completion, and how much the page weighs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Line, Second, Subsystem, Worlds } from "../console/document.ts";
import { findings } from "../console/findings.ts";
import { FRAMES_MAX, Model, SECONDS_MAX } from "../console/model.ts";
import { lines } from "../console/stream.ts";
import { budgetShare } from "../console/subsystems.ts";
import { commonBeginning, withLastWord } from "../console/terminal.ts";
import { longDuration } from "../console/figures.ts";
import { ticksTold } from "../console/world.ts";
import { findWorld, worldRows } from "../console/worlds.ts";

const page = readFileSync(resolve("../toolbox/pages/built/console.html"), "utf8");

/** A body that comes in these pieces. */
function body(pieces: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      pieces.forEach((piece) => controller.enqueue(piece));
      controller.close();
    },
  });
}

async function read(pieces: Uint8Array[]): Promise<Line[]> {
  const found: Line[] = [];
  for await (const line of lines(body(pieces))) found.push(line);
  return found;
}

const frames = (numbers: number[]): Line => ({ line: "frames", numbers, us: numbers.map((number) => number * 10), lost: 0 });

test("lines come whole whatever pieces they come in", async () => {
  const sent: Line[] = [{ line: "hello", version: "ä", role: "observe", who: null }, frames([1, 2]), frames([3])];
  const text = new TextEncoder().encode(sent.map((line) => `${JSON.stringify(line)}\n`).join(""));
  for (const size of [1, 2, 7, text.length]) {
    const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.subarray(at * size, (at + 1) * size));
    assert.deepEqual(await read(pieces), sent, `pieces of ${size}`);
  }
});

test("what is no line is an error and not a picture", async () => {
  await assert.rejects(read([new TextEncoder().encode("<html>\n")]), SyntaxError);
});

test("the model keeps so many frames and seconds and no more", () => {
  const model = new Model();
  const parts: string[] = [];
  model.onChange((part) => parts.push(part));
  for (let number = 0; number < 3 * FRAMES_MAX; number += 2) model.take(frames([number, number + 1]));
  assert.equal(model.frames.length, FRAMES_MAX);
  assert.deepEqual(model.frames.at(-1), { number: 3 * FRAMES_MAX - 1, us: (3 * FRAMES_MAX - 1) * 10 });
  const second = { line: "second", at_unix_s: 1, load: {}, host: [{ name: "outside.host_steal_cores", value: 0.5 }] } as unknown as Line & Second;
  for (let at = 0; at < SECONDS_MAX + 5; at++) model.take({ ...second, server: { second: at, players: 3 } } as unknown as Line);
  assert.equal(model.past.length, SECONDS_MAX);
  assert.equal(model.past[0]!.stealCores, 0.5);
  assert.equal(parts.at(-1), "second");
  model.take({ line: "something newer" } as unknown as Line);
  assert.equal(parts.at(-1), "second");
});

/** What a server says of its past; second n ended at 1000 + n. */
function past(seconds: number[], values: Partial<Record<string, (number | null)[]>> = {}): Line {
  const figures = ["players", "worlds_overloaded", "frame_ms_max", "frame_budget_ms", "ticks_missed", "bytes_out_per_s", "cpu_cores", "rss_mb"];
  const lists = Object.fromEntries(figures.map((name) => [name, seconds]));
  const host = Object.entries(values).map(([name, list]) => ({ name, values: list }));
  return { line: "past", second: seconds, at_unix_s: seconds.map((at) => 1_000 + at), ...lists, host } as unknown as Line;
}

const secondLine = (at_unix_s: number, second: number) => ({ line: "second", at_unix_s, server: { second, players: 1 }, load: {}, host: [] }) as unknown as Line;

test("the past begins before the page, and goes on with what is told", () => {
  const model = new Model();
  const parts: string[] = [];
  model.onChange((part) => parts.push(part));
  model.take(past([4, 5, 6], { "outside.host_steal_cores": [0, null, 0.5], "outside.host_busy_cores": [3, 2, null], "inside.cpu_cores": [1, 1, 1] }));
  assert.deepEqual(parts, ["past"]);
  assert.deepEqual(model.past.map(({ second, atUnixS, rssMb }) => [second, atUnixS, rssMb]), [[4, 1_004, 4], [5, 1_005, 5], [6, 1_006, 6]]);
  assert.deepEqual(model.past.map(({ stealCores, otherCores }) => [stealCores, otherCores]), [[0, 2], [0, 1], [0.5, NaN]]);
  // The last of them is told again to whoever came just when it ended.
  [6, 7].forEach((at) => model.take(secondLine(1_000 + at, at)));
  assert.deepEqual(model.past.map(({ second }) => second), [4, 5, 6, 7]);
  // The stream was lost, and is back: what was told meanwhile is there.
  model.take(frames([7]));
  model.take(past([4, 5, 6, 7, 8, 9]));
  assert.deepEqual(model.past.map(({ second }) => second), [4, 5, 6, 7, 8, 9]);
  assert.equal(model.frames.length, 1);
});

test("the past is kept by the clock, and is that of one server", () => {
  const model = new Model();
  const told = (at_unix_s: number, second: number) => model.take(secondLine(at_unix_s, second));
  [1, 2, 3].forEach((at) => told(1_000 + at, at));
  // Nothing was told for four minutes.
  told(1_250, 250);
  assert.deepEqual(model.past.map(({ atUnixS }) => atUnixS), [1_001, 1_002, 1_003, 1_250]);
  told(1_302, 302);
  assert.deepEqual(model.past.map(({ atUnixS }) => atUnixS), [1_002, 1_003, 1_250, 1_302]);
  model.take(frames([7]));
  model.take(past([0, 1]));
  assert.deepEqual(model.past.map(({ atUnixS }) => atUnixS), [1_000, 1_001]);
  assert.deepEqual([model.frames.length, model.second], [0, undefined]);
});

/** A second of a server with these worlds, each at 20 Hz and well but for what is said of it. */
function secondWith(at: number, worlds: { world: string; behind?: [number, number]; time_percent?: number; load?: number; overload?: string }[], host: Record<string, number> = {}): Line {
  const of = <T>(value: (world: (typeof worlds)[number]) => T) => worlds.map(value);
  return {
    line: "second",
    at_unix_s: at,
    server: { second: at, players: 1 },
    load: {},
    worlds_left_out: 0,
    host: Object.entries(host).map(([name, value]) => ({ name, value })),
    worlds: {
      kinds: ["hub"], world: of(({ world }) => world), kind: of(() => 0), rate_hz: of(() => 20), players: of(() => 1), is_dormant: of(() => false),
      time_percent: of(({ time_percent }) => time_percent ?? 100), tick_us: of(() => 1), last_tick_us: of(() => 1), longest_tick_us: of(() => 1), load: of(({ load }) => load ?? 0.01),
      ticks_missed: of(() => 0), behind_unix_s: of(({ behind }) => behind ?? null), overload: of(({ overload }) => overload ?? "normal"), hangs_for_ms: of(() => null),
    },
  } as unknown as Line;
}

test("what is wrong is said in sentences: worlds whose ticks are long, what took the cores, and who else was behind", () => {
  const model = new Model();
  const told = () => findings(model).map(({ text, where }) => `${where}: ${text}`);
  assert.deepEqual(told(), []);
  model.take(secondWith(1_000, [{ world: "1" }, { world: "2", behind: [900, 930] }]));
  assert.deepEqual(told(), [], "what is over is not wrong");
  const slowed = { time_percent: 50, overload: "time_slows", behind: [900, 1_000] as [number, number] };
  model.take(secondWith(1_001, [{ world: "2", load: 0.45, ...slowed }, { world: "1", load: 0.02, ...slowed }, { world: "3", behind: [990, 1_000] }]));
  const [long, held] = told();
  assert.match(long!, /^world\/2: hub 2 is behind since 00:15:00 UTC with ticks that are too long \(slowed to 50.%, 45.% of a worker\)\.$/);
  assert.match(held!, /^worlds: 2 worlds more were behind in the last minute though most of their ticks are short/, "a world that is slowed since it waits for workers is no long one");
  // Others have the cores for a moment, which is told for as long as worlds are behind for it.
  const stolen = { "inside.run_queue_wait_cores": 1.9, "outside.host_busy_cores": 1.5, "inside.cpu_cores": 0.5, "outside.host_steal_cores": 0 };
  model.take(secondWith(1_002, [{ world: "1", behind: [990, 1_000] }], stolen));
  const quiet = { ...stolen, "inside.run_queue_wait_cores": 0.1, "outside.host_busy_cores": 0.5 };
  model.take(secondWith(1_050, [{ world: "1", behind: [990, 1_002] }], quiet));
  assert.equal(told()[0], "host: In the last minute up to 1.9 threads of this server were ready and had no core; other processes used 1.00 cores then.");
  assert.match(told()[1]!, /^worlds: 1 world more was behind/);
  model.take(secondWith(1_063, [], quiet));
  assert.deepEqual(told(), []);
  model.take(secondWith(1_064, [], { "inside.run_queue_wait_cores": 0.5, "outside.group_throttled_share": 0.1 }));
  assert.equal(told()[0], "host: In the last minute up to 0.5 threads of this server were ready and had no core; this server's group is held to its share of the cores.");
  const many = Array.from({ length: 5 }, (_, at) => ({ world: `${at}`, behind: [1_125, 1_130] as [number, number], load: 0.9 }));
  model.take(secondWith(1_130, many, quiet));
  assert.deepEqual(findings(model).map(({ where }) => where), ["world/0", "world/1", "world/2", "worlds"]);
});

test("a key that the server refuses is shown once", async () => {
  const stored = new Map<string, string>();
  const storage = { getItem: (name: string) => stored.get(name) ?? null, setItem: (name: string, value: string) => void stored.set(name, value), removeItem: (name: string) => void stored.delete(name) };
  const shown: (string | null)[] = [];
  const [before, beforeStorage] = [globalThis.fetch, globalThis.sessionStorage];
  globalThis.fetch = (async (_: unknown, init?: RequestInit) => {
    shown.push(new Headers(init?.headers).get("authorization"));
    return new Response(JSON.stringify({ error: "no such key" }), { status: 401 });
  }) as typeof fetch;
  Object.defineProperty(globalThis, "sessionStorage", { value: storage, configurable: true });
  try {
    const port = await import("../console/port.ts");
    let dropped = 0;
    port.whenKeyIsDropped(() => dropped++);
    const key = "ab".repeat(32);
    assert.ok(port.showKey(key));
    await assert.rejects(port.command("world.list"), { status: 401, message: "no such key" });
    await assert.rejects(port.command("world.list"), { status: 401 });
    assert.deepEqual(shown, [`Bearer ${key}`, null]);
    assert.deepEqual([dropped, stored.size, port.key()], [1, 0, undefined]);
  } finally {
    globalThis.fetch = before;
    Object.defineProperty(globalThis, "sessionStorage", { value: beforeStorage, configurable: true });
  }
});

test("the budget that a subsystem is nearest to is the one that counts", () => {
  const of = (more: Partial<Subsystem>): Subsystem => ({ name: "ai", category: "gameplay", us_per_frame: 1, us_frame_max: 50, lock_wait_us_per_frame: 0, budget_us: null, kinds: [], ...more });
  assert.equal(budgetShare(of({})), undefined);
  assert.equal(budgetShare(of({ budget_us: 100 })), 0.5);
  const kind = { kind: "hub", us_frame_max: 30, frame_budget_us: null, us_per_tick: 9, tick_budget_us: 6 };
  assert.equal(budgetShare(of({ budget_us: 100, kinds: [kind] })), 1.5);
  assert.equal(budgetShare(of({ kinds: [{ ...kind, us_per_tick: null, frame_budget_us: 10 }] })), 3);
});

test("completion goes as far as all choices agree", () => {
  assert.equal(commonBeginning(["tune.list", "tune.get", "tune.set"]), "tune.");
  assert.equal(commonBeginning(["help"]), "help");
  assert.equal(commonBeginning([]), "");
  assert.equal(withLastWord("tune.set sp", "speed"), "tune.set speed");
  assert.equal(withLastWord("tune.set ", "speed"), "tune.set speed");
});

test("the page weighs little and speaks to its own server alone", () => {
  assert.ok(gzipSync(page).length < 500 * 1024, `${gzipSync(page).length} bytes with gzip`);
  const policy = /Content-Security-Policy" content="([^"]*)"/.exec(page)![1]!;
  assert.match(policy, /^default-src 'none'; script-src 'sha256-/);
  assert.match(policy, /connect-src 'self'/);
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  assert.doesNotMatch(page, /(src|href)="https?:/);
});

test("worlds that are told in a list for each figure are rows again, and one is found by its number", () => {
  const worlds: Worlds = {
    world: ["7", "8.1"],
    kinds: ["hub", "hideout"],
    kind: [1, 0],
    rate_hz: [20, 60],
    players: [3, 4],
    is_dormant: [false, true],
    time_percent: [100, 50],
    tick_us: [1.5, 2],
    last_tick_us: [1, 2],
    longest_tick_us: [10, 20],
    load: [0.5, 0.25],
    ticks_missed: [0, 9],
    behind_unix_s: [null, [500, 700]],
    overload: ["normal", "slowed"],
    hangs_for_ms: [null, 1_500],
  };
  const second = { world: "8.1", kind: "hub", rate_hz: 60, players: 4, is_dormant: true, time_percent: 50, tick_us: 2, last_tick_us: 2, longest_tick_us: 20, load: 0.25, ticks_missed: 9, behind_unix_s: [500, 700] as [number, number], overload: "slowed", hangs_for_ms: 1_500 };
  assert.deepEqual(worldRows(worlds).map(({ world, kind }) => `${kind} ${world}`), ["hideout 7", "hub 8.1"]);
  assert.deepEqual(worldRows(worlds)[1], second);
  assert.deepEqual(findWorld(worlds, "8.1"), second);
  assert.equal(findWorld(worlds, "8"), undefined);
});

test("a world is behind until a minute after its last late tick, and then was", () => {
  const at = (time: string) => Date.parse(`2026-11-28T${time}Z`) / 1_000;
  const told = (now: number, behind: [number, number] | null) => {
    const lists = { world: ["7"], kinds: ["hub"], kind: [0], tick_us: [1e3], longest_tick_us: [2e3], ticks_missed: [1], behind_unix_s: [behind] };
    const rest = ["rate_hz", "players", "is_dormant", "time_percent", "last_tick_us", "load", "overload", "hangs_for_ms"].map((name) => [name, [0]]);
    return ticksTold({ worlds: { ...Object.fromEntries(rest), ...lists }, at_unix_s: now } as unknown as Second, "7").at(-1);
  };
  const [since, last] = [at("12:04:31"), at("12:07:29")];
  assert.equal(told(last, null), "");
  assert.equal(told(last + 2, [since, last]), "behind since 12:04:31 UTC, 3\u202fmin ago, last at 12:07:29");
  assert.equal(told(last + 60, [since, last]), "was behind from 12:04:31 to 12:07:29 UTC");
  assert.equal(told(last + 86_400, [since, last]), "was behind from 2026-11-28 12:04:31 to 2026-11-28 12:07:29 UTC");
  assert.deepEqual([0, 119, 120, 7_199, 7_200, 172_800].map(longDuration), ["0\u202fs", "119\u202fs", "2\u202fmin", "119\u202fmin", "2\u202fh", "2\u202fdays"]);
});
