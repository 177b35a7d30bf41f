// Promise: what the pages predict of a player is what the games do with it. The files in steps/ are written by the games'
// own tests.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { directionOf, toMove } from "../play/direction.ts";
import { Body } from "../play/duel/body.ts";
import { ROWS } from "../play/duel/map.ts";
import { BASES, type Motion, type Wish, standing, step } from "../play/duel/movement.ts";
import type { Pose } from "../play/duel/schema.ts";
import { stepOf as stepOfFrontier } from "../play/frontier/movement.ts";
import { stepOf as stepOfPrecinct } from "../play/precinct/movement.ts";
import { Runner } from "../play/runner.ts";

type Three = [number, number, number];

interface Path {
  name: string;
  begin: Three;
  buys: boolean;
  legs: { direction: [number, number]; button: "" | "walk" | "jump"; ticks: number; at: Three; velocity: Three; is_on_ground: boolean }[];
}

const read = (game: string): unknown => JSON.parse(readFileSync(`tests/steps/${game}.json`, "utf8"));

/** Fails where numbers are farther apart than that. */
function near(numbers: readonly number[], expected: readonly number[], apart: number, what: string): void {
  numbers.forEach((number, index) => assert.ok(Math.abs(number - expected[index]!) <= apart, `${what}: ${numbers} instead of ${expected}`));
}

const wishOf = (direction: readonly [number, number], button = ""): Wish => ({
  direction: directionOf(toMove(direction)), isWalking: button === "walk", isJumping: button === "jump",
});

describe("a body in a match", () => {
  const { map, dt_s: seconds, paths } = read("duel") as { map: string[]; dt_s: number; paths: Path[] };
  // The page draws both sites alike.
  test("is among the walls of the map", () => assert.deepEqual(ROWS, map.map((row) => row.replaceAll("B", "A"))));
  for (const { name, begin, buys, legs } of paths) {
    test(name, () => {
      let motion: Motion = standing(begin);
      legs.forEach(({ direction, button, ticks, at, velocity, is_on_ground: isOnGround }, leg) => {
        for (let tick = 0; tick < ticks; tick++) motion = step(motion, wishOf(direction, button), buys ? BASES.attackers : null, seconds);
        near(motion.at, at, 0.001, `leg ${leg}, at`);
        near(motion.velocity, velocity, 0.01, `leg ${leg}, velocity`);
        assert.equal(motion.isOnGround, isOnGround, `leg ${leg}`);
      });
    });
  }
});

for (const [game, stepOf] of [["precinct", stepOfPrecinct], ["frontier", stepOfFrontier]] as const) {
  test(`a step of ${game}`, () => {
    const steps = read(game) as { direction: [number, number]; is_fast: boolean; tick_hz: number; metres: [number, number] }[];
    assert.ok(steps.length > 10);
    for (const { direction, is_fast: isFast, tick_hz: tickHz, metres } of steps) {
      const { x, z } = stepOf(toMove(direction), isFast, tickHz);
      near([x, z], metres, 1e-4, JSON.stringify(direction));
    }
  });
}

/** A match that has each input four ticks later, and tells rounded places. */
function playAlong(tick: (number: number) => Wish, ticks: number): Body {
  const [body, begin, late] = [new Body(), [-27, 0, 23] as const, 4];
  let motion = standing(begin);
  const round = (metres: number): number => Math.round(metres * 100) / 100;
  for (let number = 1; number <= ticks; number++) {
    const input = number - late;
    if (input > 0) motion = step(motion, tick(input), null, 1 / 128);
    const [x, y, z] = motion.at.map(round) as Three;
    body.shown(number, { state: { x, y, z, life: 1 } as Pose, input: Math.max(input, 0) });
    body.took(number, tick(number), "Live", true);
  }
  return body;
}

test("who starts, stops, jumps and runs into walls is not corrected", () => {
  const { stats } = playAlong((number) => wishOf([[1, 0], [0, 0], [0.7, -0.7], [-1, 0]][Math.floor(number / 100) % 4] as [number, number], number % 70 === 0 ? "jump" : ""), 2000);
  assert.deepEqual([stats.checks > 1900, stats.corrections], [true, 0]);
});

test("a step that is a tenth too long is corrected again and again", () => {
  const runner = new Runner();
  for (let number = 1; number <= 100; number++) {
    runner.shown(number, { state: { x: 0.25 * (number - 1), z: 0 }, input: number - 1 });
    runner.took(number, 0.275, 0);
  }
  assert.ok(runner.stats.corrections > 90, String(runner.stats.corrections));
});
