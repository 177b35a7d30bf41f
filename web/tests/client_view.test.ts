// Promise: what is shown goes on evenly and never back, and a prediction is right where the server says so. The same cases as
// the native client's, which tests/ beside its files has.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Answers } from "../client/view/answers.ts";
import { InputBuffer } from "../client/view/input_buffer.ts";
import { InputClock } from "../client/view/input_clock.ts";
import { Track, mix, mixAngle } from "../client/view/interpolation.ts";
import { type Place, Predictor } from "../client/view/prediction.ts";
import { ServerClock } from "../client/view/server_clock.ts";
import { ViewClock, momentOf } from "../client/view/view_clock.ts";

test("a world is shown two ticks late, and goes on between snapshots", () => {
  const [clock, view] = [new ServerClock(), new ViewClock()];
  for (let number = 0; number < 10; number++) clock.heard(1000 + 50 * number, 100 + number, 20, 100);
  const moments = [0, 25, 50, 75].map((later) => momentOf(view.seen(1450 + later, clock, 109, 20)));
  assert.deepEqual(moments, [{ tick: 107, part: 0 }, { tick: 107, part: 0.5 }, { tick: 108, part: 0 }, { tick: 108, part: 0.5 }]);
});

test("snapshots that come unevenly are shown evenly, and never back", () => {
  const [clock, view] = [new ServerClock(), new ViewClock()];
  const lateMs = [0, 20, 5, 30, 0, 10, 25, 0, 15, 40, 0, 0, 35, 5, 0, 30, 10, 0, 20, 0];
  let before = 0;
  for (let number = 0; number < 400; number++) {
    const atMs = 1000 + 50 * number + lateMs[number % lateMs.length]!;
    clock.heard(atMs, 100 + number, 20, 100);
    for (const later of [0, 5, 9]) {
      const { tick, part } = momentOf(view.seen(atMs + later, clock, 100 + number, 20));
      assert.ok(tick + part >= before, "never back");
      before = tick + part;
      // 12 ms late on average, two ticks behind.
      const even = (50 * number + (atMs - 1000 - 50 * number) + later - 112) / 50 + 100;
      if (number > 40) assert.ok(Math.abs(before - even) * 50 < 6, `${(before - even) * 50} ms off`);
    }
  }
});

test("slowed time and a standstill are followed", () => {
  const clock = new ServerClock();
  for (let number = 0; number < 40; number++) clock.heard(1000 + 100 * number, 100 + number, 20, 50);
  const read = [4900, 5000].map((nowMs) => clock.read(nowMs, 20)!);
  assert.ok(Math.abs(read[1]! - read[0]! - 50) < 2, "half as fast");
  clock.heard(60_000, 200, 20, 100);
  clock.heard(60_050, 201, 20, 100);
  assert.ok(Math.abs(clock.read(60_050, 20)! - 201 * 50) < 30, "after a standstill it is there at once");
});

test("an input is due for each tick, and not for what was missed", () => {
  const inputs = new InputClock();
  assert.deepEqual([1000, 1010, 1050, 1200, 9000].map((ms) => inputs.due(ms, 20)), [1, 0, 1, 3, 5]);
});

test("inputs are said again, in order, until they are answered", () => {
  const [inputs, never] = [new InputBuffer(), () => assert.fail("there is room")];
  const packet = (): number[] => {
    const said: number[] = [];
    inputs.queueDue((message) => void said.push(message[0]!));
    return said;
  };
  const packets: number[][] = [];
  for (let number = 1; number <= 6; number++) {
    inputs.push(number, 3, Uint8Array.of(number), never);
    packets.push(packet());
  }
  assert.deepEqual(packets, [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]]);
  inputs.answered(5);
  assert.deepEqual(packet(), [6]);
});

test("a value holds for as long as every snapshot came, or a second", () => {
  const answers = new Answers();
  for (const tick of [206, 207, 208, 209, 211, 212]) answers.heard(tick, tick - 100, tick - 100);
  assert.deepEqual([207, 211, 210].map((tick) => answers.holdsUntil(tick, 20)?.tick), [209, 212, undefined]);
  const odd = new Answers();
  for (let number = 0; number < 60; number++) odd.heard(201 + 2 * number, 1 + number, 100);
  assert.equal(odd.holdsUntil(201, 20)?.tick, 299);
});

test("who stood still moves off in the last tick", () => {
  const track = new Track<number>();
  for (const [tick, value] of [[20, 1], [21, 2], [23, 6], [43, 8]] as const) track.push(tick, value);
  const at = (ticks: number) => track.sample({ tick: Math.floor(ticks), part: ticks % 1 }, 20, mix);
  assert.deepEqual([19.5, 20.25, 22.5, 30, 42, 42.5, 43, 50].map(at), [1, 1.25, 5, 6, 6, 7, 8, 8]);
  assert.ok(Math.abs(mixAngle(6.2, 0.1, 0.5) - 6.2916) < 0.001, "the shorter way round");
});

test("a prediction is right where the server agrees, and slides where it does not", () => {
  const predictor = new Predictor<number, number>({ step: (x, by) => x + by, place: (x): Place => [x, 0, 0], shifted: (x, [by]) => x + by });
  predictor.reconcile(0, 0, 10);
  for (let number = 1; number <= 4; number++) predictor.apply(number, 1);
  predictor.reconcile(10, 2, 12);
  assert.deepEqual([predictor.predicted, predictor.shown(10), predictor.stats.corrections], [14, 14, 0]);
  // A wall stood in the way of the third.
  predictor.reconcile(20, 3, 12);
  assert.deepEqual([predictor.predicted, predictor.shown(20), predictor.stats.corrections], [13, 14, 1]);
  assert.ok(Math.abs(predictor.shown(70)! - 13.5) < 1e-9);
  assert.equal(predictor.shown(120), 13);
  // It was put elsewhere: no slide.
  predictor.reconcile(130, 4, 500);
  assert.equal(predictor.shown(130), 500);
});
