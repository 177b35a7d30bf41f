// Rows, summaries and sums against slow and simple versions of themselves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { read } from "../viewer/format/read.ts";
import { prepare } from "../viewer/prepare/prepare.ts";
import { rangeSums, wholeSums, worldAt } from "../viewer/prepare/range_sums.ts";
import { FAN } from "../viewer/prepare/summary.ts";
import { CaptureWriter } from "./capture_writer.ts";
import { largeCapture } from "./large_capture.ts";

const SITES = [
  { name: "outer", category: "other" },
  { name: "inner", category: "network", budgetNs: 100 },
];

function small(put: (writer: CaptureWriter) => void) {
  const trigger = { kind: 0, name: "", measured: 0, allowed: 0, atNs: 0, note: "" };
  const writer = new CaptureWriter({ beginNs: 0, endNs: 10_000, frame: 1, trigger });
  writer.sites(SITES).threads([{ name: "t", tid: 1, class: 1 }]).beginThread(0);
  put(writer);
  return prepare(read(writer.endThread().done()));
}

test("scopes stand in rows by depth, and what is still open ends with the capture", () => {
  const prepared = small((writer) => {
    writer.scope(1, 100, 200).scope(1, 200, 400).scope(0, 50, 500).scope(1, 600, 700);
    writer.openScope(0, 550);
  });
  const rows = prepared.threads[0]!.rows.map((row) => Array.from(row.begin, (begin, at) => [begin, row.end[at]]));
  assert.deepEqual(rows, [[[50, 500], [550, 10_000]], [[100, 200], [200, 400], [600, 700]]]);
  const [outer, inner] = [0, 1].map((site) => wholeSums(prepared).find((sum) => sum.site === site)!);
  assert.deepEqual([outer!.count, outer!.total, outer!.self], [2, 9_900, 9_500]);
  assert.deepEqual([inner!.count, inner!.total, inner!.self, inner!.longest], [3, 400, 400, 200]);
  assert.equal(prepared.sums.over[1], 1);
});

test("allocations belong to the scope before them", () => {
  const prepared = small((writer) => {
    writer.scope(1, 100, 200).allocations(2, 1, 64).scope(1, 300, 400).scope(0, 50, 500).allocations(1, 0, 8);
  });
  const [outer, inner] = prepared.threads[0]!.rows;
  assert.deepEqual([...outer!.allocations.bytes], [8]);
  assert.deepEqual([[...inner!.allocations.place], [...inner!.allocations.bytes]], [[0], [64]]);
  assert.deepEqual([...prepared.threads[0]!.allocated.bytes], [64, 72]);
});

test("scopes that do not nest overlap nothing in their row", () => {
  const prepared = small((writer) => {
    writer.scope(0, 300, 800).scope(1, 500, 1_000).scope(0, 100, 400).scope(1, 50, 60).scope(0, 900, 850);
  });
  for (const row of prepared.threads[0]!.rows) {
    for (let at = 1; at < row.begin.length; at++) assert.ok(row.begin[at]! >= row.end[at - 1]!);
  }
  assert.equal(prepared.threads[0]!.rows.reduce((sum, row) => sum + row.begin.length, 0), 5);
});

test("scopes in each other thousands deep take no stack of calls and no more rows than are drawn", () => {
  const prepared = small((writer) => {
    for (let depth = 0; depth < 4_000; depth++) writer.scope(0, 4_000 - depth, 5_000 + depth);
  });
  const [thread] = prepared.threads;
  assert.equal(thread!.rows.length, 64);
  assert.equal(thread!.leftOut, 4_000 - 64);
});

test("every summary knows the longest scope under it, and whether one is over its budget", () => {
  const prepared = prepare(read(largeCapture(50_000)));
  for (const { rows } of prepared.threads) {
    for (const row of rows) {
      row.levels.forEach((level, index) => {
        const size = FAN ** (index + 1);
        level.longest.forEach((longest, block) => {
          let over = 0;
          let longestNs = 0;
          for (let at = block * size; at < Math.min((block + 1) * size, row.begin.length); at++) {
            const ns = row.end[at]! - row.begin[at]!;
            longestNs = Math.max(longestNs, ns);
            const budget = prepared.sites[row.site[at]!]!.budgetNs;
            if (budget >= 0 && ns > budget) over = 1;
          }
          assert.equal(row.end[longest]! - row.begin[longest]!, longestNs);
          assert.equal(level.over[block], over);
        });
      });
    }
  }
});

test("sums of a range are those of all scopes in it, cut to it", () => {
  const prepared = prepare(read(largeCapture(20_000)));
  const range = [1_234_567, 3_456_789] as const;
  const expected = new Map<number, { total: number; count: number }>();
  for (const { rows } of prepared.threads) {
    for (const row of rows) {
      for (let at = 0; at < row.begin.length; at++) {
        const ns = Math.min(row.end[at]!, range[1]) - Math.max(row.begin[at]!, range[0]);
        if (ns <= 0) continue;
        const sum = expected.get(row.site[at]!) ?? { total: 0, count: 0 };
        sum.total += ns;
        sum.count += row.end[at]! <= range[1] ? 1 : 0;
        expected.set(row.site[at]!, sum);
      }
    }
  }
  const sums = rangeSums(prepared, range);
  assert.equal(sums.length, expected.size);
  for (const { site, total, count } of sums) assert.deepEqual({ total, count }, expected.get(site));
  // Time without the scopes inside, together, is the time in scopes at all.
  const outermost = prepared.threads.map(({ rows }) => rows[0]!).reduce((sum, row) => {
    for (let at = 0; at < row.begin.length; at++) {
      sum += Math.max(0, Math.min(row.end[at]!, range[1]) - Math.max(row.begin[at]!, range[0]));
    }
    return sum;
  }, 0);
  assert.equal(sums.reduce((sum, it) => sum + it.self, 0), outermost);
});

test("the whole is the sum of the worlds and of what is in none", () => {
  const prepared = prepare(read(largeCapture(20_000)));
  const all = rangeSums(prepared, [0, prepared.about.endNs]).reduce((sum, it) => sum + it.self, 0);
  const worlds = prepared.worlds.map(({ id }) => rangeSums(prepared, [0, prepared.about.endNs], id));
  assert.equal(worlds.flat().reduce((sum, it) => sum + it.self, 0), all);
  assert.ok(prepared.worlds.some(({ id }) => id === worldAt(prepared.threads[0]!, 300_000).world));
});
