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
import { type ClosedDoor, closedDoor, walk } from "../play/precinct/walk.ts";
import { type Run, Runner } from "../play/runner.ts";

type Three = [number, number, number];

interface Path {
  name: string;
  begin: Three;
  buys: boolean;
  legs: { direction: [number, number]; button: "" | "walk" | "jump"; ticks: number; at: Three; velocity: Three; is_on_ground: boolean }[];
}

/** Of somebody in precinct. */
interface Walk {
  begin: [number, number];
  doors_are_closed: boolean;
  legs: { direction: [number, number]; is_fast: boolean; ticks: number; at: [number, number] }[];
}

interface Walks {
  tick_hz: number;
  doors: [x: number, z: number, yaw: number][];
  walks: Walk[];
  /** Where steps end that begin there and lead to the north, the north-east and so on; `null`: rounding decides. */
  corners: { begin: [number, number]; ends: ([number, number] | null)[] }[];
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

describe("a walk in the city block", () => {
  const { tick_hz: tickHz, doors, walks, corners } = read("precinct_walks") as Walks;
  const closed = doors.map(([x, z, yaw]) => closedDoor({ x, z, yaw }));

  test("ends at walls, corners and closed doors as the server's does", () => {
    assert.ok(walks.length > 30);
    walks.forEach(({ begin: [x, z], doors_are_closed: areClosed, legs }, number) => {
      let place: Run = { x, z };
      legs.forEach(({ direction, is_fast: isFast, ticks, at }, leg) => {
        const step = stepOfPrecinct(toMove(direction), isFast, tickHz);
        for (let tick = 0; tick < ticks; tick++) place = walk(place, step, areClosed ? closed : []);
        near([place.x, place.z], at, 0.001, `walk ${number}, leg ${leg}`);
      });
    });
  });

  test("goes on from a corner as the server's does", () => {
    assert.ok(corners.length > 50);
    for (const { begin: [x, z], ends } of corners) {
      ends.forEach((end, eighth) => {
        const angle = (Math.PI / 4) * eighth;
        const place = walk({ x, z }, stepOfPrecinct(toMove([Math.sin(angle), Math.cos(angle)]), true, tickHz), []);
        if (end) near([place.x, place.z], end, 0.001, `from ${x}, ${z}, direction ${eighth}`);
      });
    }
  });

  /** A server that has each input four ticks later and tells rounded places; what was corrected of all walks. */
  function corrected(runnerOf: (doors: readonly ClosedDoor[]) => Runner): { checks: number; corrections: number; metres: number } {
    const [late, sum] = [4, { checks: 0, corrections: 0, metres: 0 }];
    const round = (metres: number): number => Math.round(metres * 100) / 100;
    for (const { begin: [x, z], doors_are_closed: areClosed, legs } of walks) {
      const known = areClosed ? closed : [];
      const runner = runnerOf(known);
      const steps = legs.flatMap(({ direction, is_fast: isFast, ticks }) => Array<Run>(ticks).fill(stepOfPrecinct(toMove(direction), isFast, tickHz)));
      let place: Run = { x, z };
      for (let number = 1; number <= steps.length; number++) {
        const input = Math.max(number - late, 0);
        if (input > 0) place = walk(place, steps[input - 1]!, known);
        runner.shown(number, { state: { x: round(place.x), z: round(place.z) }, input });
        runner.took(number, steps[number - 1]!.x, steps[number - 1]!.z);
      }
      sum.checks += runner.stats.checks;
      sum.corrections += runner.stats.corrections;
      sum.metres += runner.stats.corrected;
    }
    return sum;
  }

  test("is hardly ever corrected, and one on the flat is at each wall", () => {
    const [known, flat] = [corrected((doors) => new Runner((from, by) => walk(from, by, doors))), corrected(() => new Runner())];
    const told = JSON.stringify({ known, flat });
    assert.ok(known.checks > 5000, told);
    assert.ok(known.corrections < known.checks / 1000, told);
    assert.ok(flat.corrections > flat.checks / 10, told);
  });
});

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

test("who dies, and stands up elsewhere, walks on from there and is not corrected", () => {
  const [runner, onTheirWay] = [new Runner(), 3];
  const isDead = (input: number): boolean => input >= 40 && input < 80;
  /** By the server, with this input in it. */
  const placeAt = (input: number): Run => ({ x: input < 80 ? 0.25 * Math.min(input, 39) : 60 + 0.25 * (input - 79), z: 0 });
  for (let number = 1; number <= 100; number++) {
    const input = Math.max(number - onTheirWay, 0);
    if (isDead(input)) runner.die();
    else runner.shown(number, { state: placeAt(input), input });
    runner.took(number, 0.25, 0);
  }
  const { checks, corrections } = runner.stats;
  assert.deepEqual([checks > 50, corrections, runner.shown(101, null)], [true, 0, placeAt(100)]);
});
