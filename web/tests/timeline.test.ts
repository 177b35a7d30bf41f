// The picture's arithmetic without a browser: lines of pixels, zoom and pan, addresses, figures as text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, change, duration, moment } from "../elements/quantity.ts";
import { compared } from "../viewer/compare.ts";
import { read } from "../viewer/format/read.ts";
import { Longest } from "../viewer/prepare/longest.ts";
import { prepare } from "../viewer/prepare/prepare.ts";
import { worldStretches } from "../viewer/prepare/range_sums.ts";
import { parsed, written, type Selection } from "../viewer/selection.ts";
import { maximaOf, stepsOf } from "../viewer/timeline/curves.ts";
import { drawHolding, drawPlaces, drawRow, type Line } from "../viewer/timeline/scope_lines.ts";
import { closedAtFirst, layout } from "../viewer/timeline/tracks.ts";
import { View } from "../viewer/timeline/view.ts";
import { badFrameCapture } from "./bad_frame_capture.ts";
import { largeCapture } from "./large_capture.ts";

const WIDTH = 700;

function line(begin: number, end: number): Line {
  return { begin, scale: WIDTH / (end - begin), width: WIDTH, pixels: new Uint32Array(WIDTH), over: new Uint8Array(WIDTH) };
}

test("at every zoom each scope leaves a pixel", () => {
  const { sites, threads, about } = prepare(read(largeCapture(60_000)));
  const colors = Uint32Array.from(sites, (_, site) => site + 1);
  const budgets = new Float64Array(sites.length).fill(Infinity);
  for (let zoom = 1; zoom < 50_000; zoom *= 3) {
    const width = about.endNs / zoom;
    const begin = (about.endNs - width) * 0.37;
    for (const [depth, row] of threads[1]!.rows.entries()) {
      const it = line(begin, begin + width);
      drawRow(it, row, colors, 99, budgets, 40, []);
      for (let place = 0; place < row.begin.length; place++) {
        const x = Math.floor((row.begin[place]! - begin) * it.scale);
        // A block may begin in the pixel before.
        if (x >= 0 && x < WIDTH) assert.ok(it.pixels[x]! + (it.pixels[x - 1] ?? 0) > 0, `zoom ${zoom}, depth ${depth}, scope ${place}`);
      }
    }
  }
});

test("a scope over its budget leaves its mark from however far away", () => {
  const { sites, threads, about } = prepare(read(badFrameCapture()));
  const budgets = Float64Array.from(sites, ({ budgetNs }) => (budgetNs < 0 ? Infinity : budgetNs));
  const paths = threads[1]!.rows[2]!;
  assert.ok(paths.levels.length > 0, "the row has summaries");
  for (let times = 1; times < 10_000; times *= 2) {
    const it = line(0, about.endNs * times);
    drawRow(it, paths, new Uint32Array(sites.length).fill(1), 99, budgets, 40, []);
    const marked = it.over.findIndex((over) => over === 1);
    const expected = Math.floor(paths.begin[paths.begin.findIndex((begin, at) => paths.end[at]! - begin > 2e6)]! * it.scale);
    assert.ok(marked >= 0 && Math.abs(marked - expected) <= 1, `${times} times as far`);
  }
});

test("a scope that is a thousand pixels wide fills those on screen, and is named once", () => {
  const prepared = prepare(read(badFrameCapture()));
  const row = prepared.threads[1]!.rows[0]!;
  const longest = row.begin.reduce((best, _, at) => (row.end[at]! - row.begin[at]! > row.end[best]! - row.begin[best]! ? at : best), 0);
  const middle = (row.begin[longest]! + row.end[longest]!) / 2;
  const it = line(middle - 1_000, middle + 1_000);
  const labels: { place: number; left: number; right: number }[] = [];
  drawRow(it, row, new Uint32Array(20).fill(7), 99, new Float64Array(20).fill(Infinity), 40, labels);
  assert.ok(it.pixels.every((pixel) => pixel === 7));
  assert.deepEqual(labels, [{ place: longest, left: 0, right: WIDTH }]);
});

test("what a search found is drawn over the rest, from far away too", () => {
  const { threads } = prepare(read(largeCapture(60_000)));
  const row = threads[2]!.rows[3]!;
  const places = Uint32Array.from([5, 4_000, 9_999]);
  const it = line(0, row.end.at(-1)! + 1);
  drawPlaces(it, row, places, new Uint32Array(20).fill(3), 99);
  assert.equal(it.pixels.reduce((sum, pixel) => sum + (pixel === 3 ? 1 : 0), 0), 3);
});

test("a stretch that holds to the next one is drawn up to it", () => {
  const it = line(0, WIDTH);
  drawHolding(it, Float64Array.from([100, 200, 200.2, 300]), 400, (place) => place + 1);
  assert.deepEqual([it.pixels[99], it.pixels[100], it.pixels[199], it.pixels[299], it.pixels[399], it.pixels[400]], [0, 1, 1, 3, 4, 0]);
});

test("a spike of a counter survives every zoom", () => {
  const at = Float64Array.from({ length: 1_000 }, (_, index) => index * 10);
  const value = Float64Array.from(at, (_, index) => (index === 777 ? 50 : 1));
  for (const width of [50, 700, 5_000]) {
    const columns = maximaOf(at, value, { begin: 0, scale: width / 10_000, width, pixels: new Uint32Array(), over: new Uint8Array() });
    assert.equal(Math.max(...columns), 50, `${width} pixels`);
  }
  const steps = stepsOf(Float64Array.from([10, 20, 9_000]), Float64Array.from([5, 9, 10]), line(0, 10_000));
  assert.equal(steps.reduce((sum, it) => sum + it, 0), 10);
});

test("the longest of many are kept, in their order", () => {
  const longest = new Longest<number>(3);
  for (let at = 0; at < 10_000; at++) longest.offer((at * 7_919) % 10_007, () => at);
  const expected = Array.from({ length: 10_000 }, (_, at) => at).sort((a, b) => ((b * 7_919) % 10_007) - ((a * 7_919) % 10_007));
  assert.deepEqual(longest.all(), expected.slice(0, 3));
});

test("zoom keeps the moment under the pointer, and stays within the capture", () => {
  const view = new View(1_000_000);
  view.show(200_000, 400_000);
  view.zoom(2, 0.25);
  assert.deepEqual([view.begin, view.end], [225_000, 325_000]);
  view.pan(-100);
  assert.ok(view.begin >= -20_000 && view.width === 100_000);
  for (let step = 0; step < 200; step++) view.zoom(3);
  assert.equal(view.width, 40);
  for (let step = 0; step < 200; step++) view.zoom(1 / 3);
  assert.ok(view.begin < 0 && view.end > 1_000_000 && view.width < 1_050_000);
});

test("tracks do not overlap, and a closed thread is its heading alone", () => {
  const prepared = prepare(read(badFrameCapture()));
  const closed = closedAtFirst(prepared);
  const open = layout(prepared, closed);
  open.tracks.forEach((track, at) => at > 0 && assert.ok(track.y >= open.tracks[at - 1]!.y + open.tracks[at - 1]!.height));
  const shut = layout(prepared, new Set([...closed, "thread 1"]));
  assert.deepEqual(shut.tracks.filter((track) => "thread" in track && track.thread === 1).map(({ kind }) => kind), ["heading"]);
});

test("a thread's time of one world is cut to the stretch that is asked for", () => {
  const { threads, about } = prepare(read(badFrameCapture()));
  const all = worldStretches(threads[1]!, 7, [0, about.endNs], about.endNs);
  assert.equal(all.length, 60);
  assert.deepEqual(worldStretches(threads[1]!, 5, [0, about.endNs], about.endNs), []);
  const [begin, end] = all[3]!;
  assert.deepEqual(worldStretches(threads[1]!, 7, [begin + 10, end - 10], about.endNs), [[begin + 10, end - 10]]);
});

test("two captures are compared by name, per frame", () => {
  const rows = compared(prepare(read(badFrameCapture())), prepare(read(badFrameCapture(2))));
  const row = rows.find(({ name }) => name === "movement.step")!;
  assert.deepEqual(row, { name: "movement.step", count: [60, 60], total: [36e6, 72e6], mean: [6e5, 12e5], perFrame: [6e5, 12e5] });
});

test("a selection in an address comes back, and nothing else does", () => {
  const selection: Selection = { kind: "scope", thread: 1, depth: 2, place: 345 };
  assert.equal(written(selection), "scope.1.2.345");
  assert.deepEqual(parsed("scope.1.2.345"), selection);
  for (const text of ["", "scope.1.2", "scope.1.2.x", "toString.1", "range.1.2.3", "frame.1e9"]) assert.equal(parsed(text), undefined, text);
});

test("figures have the digits that tell something", () => {
  const plain = (text: string) => text.replaceAll("\u202f", " ");
  assert.deepEqual([0, 999, 1_234, 36_600_000, 2e9].map((ns) => plain(duration(ns))), ["0 ns", "999 ns", "1.23 µs", "36.6 ms", "2.00 s"]);
  assert.equal(plain(moment(1_234_567_890, 1_000)), "1.234568 s");
  assert.deepEqual([512, 1_536, 9_000_000].map((count) => plain(bytes(count))), ["512 B", "1.50 KiB", "8.58 MiB"]);
  assert.deepEqual([change(100, 150), change(100, 99), change(0, 1)].map(plain), ["+50 %", "-1.0 %", "new"]);
});
