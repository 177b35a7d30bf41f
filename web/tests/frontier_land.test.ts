// Promise: the page of frontier knows the land around its player as the server does, and predicts what keeps a player. The files
// in steps/ are written by the game's own tests.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { toMove } from "../play/direction.ts";
import { apartOf, cellAt, cornerOf, plotOf, untouched } from "../play/frontier/cells.ts";
import { Land } from "../play/frontier/land.ts";
import { type Hindrance, stepOf, walk } from "../play/frontier/movement.ts";
import type { CellChanged, CellSeen } from "../play/frontier/schema.ts";
import { workOf } from "../play/frontier/works.ts";
import { type Run, Runner } from "../play/runner.ts";

type Two = [number, number];

interface Known {
  cells: { at: Two; cell: number; middle: Two; plot: number }[];
  seed: string;
  sector: number;
  trees: number[];
  boulders: number[];
  walls: number[];
  walks: { begin: Two; direction: Two; is_snared: boolean; ticks: number; at: Two }[];
}

const read = <T>(file: string): T => JSON.parse(readFileSync(`tests/steps/${file}.json`, "utf8")) as T;
const known = read<Known>("frontier_land");
const TICK_HZ = 20;

const changed = (cell: number, more: Partial<CellChanged> = {}): CellChanged => ({ cell, growth: "Bare", depth: 0, piece: null, health: 0, whose: "Nobodys", ...more });
const wall = (cell: number): CellChanged => changed(cell, { piece: "Wall", health: 100 });

/** The land with the house of the file. */
function house(): Land {
  const land = new Land();
  land.begin(BigInt(known.seed));
  for (const cell of known.walls) land.changed(wall(cell));
  return land;
}

const free = (land: Land): Hindrance => ({ land, isHeld: false, isSnared: false });
const isNear = ({ x, z }: Run, to: Two, what: string): void => assert.ok(Math.abs(x - to[0]) <= 0.002 && Math.abs(z - to[1]) <= 0.002, `${what}: ${x}, ${z} instead of ${to}`);

describe("cells", () => {
  test("have the numbers that the server gives them", () => {
    for (const { at, cell, middle: [x, z], plot } of known.cells) {
      assert.equal(cellAt(...at), cell, String(at));
      assert.deepEqual([cornerOf(cell), apartOf(cell, x, z), plotOf(cell)], [[x - 1, z - 1], 0, plot], String(at));
    }
    assert.equal(known.cells.length, 5);
  });

  test("beyond the land are those at its edge", () => {
    assert.equal(cellAt(-1e9, 0), cellAt(-4096, 0));
    assert.equal(cellAt(0, 1e9), cellAt(0, 4095.9));
  });

  test("have what grows there while nobody has touched them", () => {
    const all = [...untouched(known.sector, BigInt(known.seed))];
    const of = (growth: string): number[] => all.filter(([, is]) => is === growth).map(([cell]) => cell);
    assert.ok(known.trees.length > 50 && known.boulders.length > 10);
    assert.deepEqual([of("Tree"), of("Boulder")], [known.trees, known.boulders]);
  });
});

describe("the land", () => {
  const [tree] = known.trees as [number];
  const seenCell = (cell: number, more: Partial<CellSeen> = {}): CellSeen => ({ index: cell % 1024, growth: "Bare", depth: 0, piece: null, whose: "Nobodys", ...more });

  test("is what grows by the seed, and what was told of it since", () => {
    const land = house();
    assert.equal(land.at(tree).growth, "Tree");
    land.changed(changed(tree));
    assert.equal(land.at(tree).growth, "Bare");
    const [floor] = known.boulders as [number];
    land.seen({ sector: { number: known.sector }, cells: [seenCell(floor, { piece: { kind: "Floor", health: 40 } })] });
    assert.deepEqual([land.at(floor).piece, land.at(floor).health], ["Floor", 40]);
    // A sector that comes near is told whole.
    assert.deepEqual([land.at(tree).growth, land.at(known.walls[0]!).piece], ["Tree", null]);
  });

  test("that is far is forgotten when the player is elsewhere, and is as by the seed until it is told again", () => {
    const land = house();
    const [x, z] = cornerOf(known.walls[0]!);
    land.moveTo(cellAt(x + 64, z));
    assert.equal(land.at(known.walls[0]!).piece, "Wall");
    land.moveTo(cellAt(x + 500, z));
    assert.equal(land.at(known.walls[0]!).piece, null);
    // Told before the player's new place was: the old one, which comes once more, takes nothing of it.
    land.changed(wall(known.walls[0]!));
    land.moveTo(cellAt(x + 500, z + 4));
    assert.equal(land.at(known.walls[0]!).piece, "Wall");
    land.moveTo(cellAt(x, z));
    assert.equal(land.at(known.walls[0]!).piece, "Wall");
  });

  test("is unknown before its seed is told, and is another's with another seed", () => {
    const land = new Land();
    land.changed(wall(known.walls[0]!));
    assert.deepEqual([land.at(known.walls[0]!).piece, [...land.cellsOf(known.sector)]], [null, []]);
    const other = house();
    other.begin(1n);
    assert.equal(other.at(known.walls[0]!).piece, null);
  });
});

describe("a walk", () => {
  test("ends at walls as the server's does, and a snare makes it half as long", () => {
    const land = house();
    assert.ok(known.walks.length >= 32);
    known.walks.forEach(({ begin: [x, z], direction, is_snared: isSnared, ticks, at }, number) => {
      let place: Run = { x, z };
      for (let tick = 0; tick < ticks; tick++) place = walk(place, stepOf(toMove(direction), true, TICK_HZ), { ...free(land), isSnared });
      isNear(place, at, `walk ${number}`);
    });
  });

  test("ends at the land's edge", () => {
    const walks = read<{ from: Two; metres: Two; to: Two }[]>("frontier_edge");
    assert.ok(walks.length >= 4);
    for (const { from: [x, z], metres: [byX, byZ], to } of walks) isNear(walk({ x, z }, { x: byX, z: byZ }, free(new Land())), to, `from ${x}, ${z}`);
  });

  test("is none for who is stunned or dead", () => {
    assert.deepEqual(walk({ x: 1, z: 2 }, { x: 0.3, z: 0 }, { ...free(new Land()), isHeld: true }), { x: 1, z: 2 });
  });

  /** As players.rs has it, without the page's doubt where the edge of a wall is. */
  function serverWalk(from: Run, by: Run, land: Land): Run {
    const to = { x: from.x + by.x, z: from.z + by.z };
    const cell = cellAt(to.x, to.z);
    return cell !== cellAt(from.x, from.z) && land.at(cell).piece === "Wall" ? from : to;
  }

  /** A server that has each input four ticks later, tells rounded places, and stuns for a second; how often it was corrected. */
  function corrections(hindranceOf: (tick: number) => Hindrance, ticks: number, step: Run, begin: Run = { x: 101, z: -299 }): number {
    const [late, land] = [4, house()];
    const round = (metres: number): number => Math.round(metres * 100) / 100;
    let hindrance = hindranceOf(0);
    const runner = new Runner((from, by) => walk(from, by, hindrance));
    let place = begin;
    for (let tick = 1; tick <= ticks; tick++) {
      if (tick > late && !isStunned(tick)) place = serverWalk(place, step, land);
      hindrance = hindranceOf(tick);
      runner.shown(tick, { state: { x: round(place.x), z: round(place.z) }, input: Math.max(tick - late, 0) });
      runner.took(tick, step.x, step.z);
    }
    return runner.stats.corrections;
  }
  const isStunned = (tick: number): boolean => tick >= 20 && tick < 40;
  /** The end is told late. */
  const isToldStunned = (tick: number): boolean => tick >= 20 && tick < 43;

  test("into a wall is corrected once at most, wherever it begins, and at every step where walls are unknown", () => {
    const land = house();
    for (const [east, south] of [[1, 0], [-1, 0], [0, 1]] as const) {
      const step = stepOf(toMove([east, -south]), true, TICK_HZ);
      for (let offset = 0; offset < 0.375; offset += 0.001) {
        const beforeStun = (of: Land): number => corrections(() => free(of), 19, step, { x: 101 - east * offset, z: -299 + south * offset });
        assert.ok(beforeStun(land) <= 1, `${east}, ${south} from ${offset}`);
        assert.ok(beforeStun(new Land()) > 8);
      }
    }
  });

  test("is corrected when a stun begins and when it ends, and at every step between where stuns are unknown", () => {
    const [land, north] = [house(), stepOf(toMove([0, 1]), true, TICK_HZ)];
    const told = corrections((tick) => ({ ...free(land), isHeld: isToldStunned(tick) }), 60, north);
    const untold = corrections(() => free(land), 60, north);
    assert.ok(told <= 1 + 4, String(told));
    assert.ok(untold >= 20, String(untold));
  });
});

describe("a work", () => {
  const worker = { x: 101, z: -299, isHeld: false, carried: 1 };
  const own = (land: Land): Land => (land.changed(changed(plotOf(cellAt(101, -299)), { whose: "Own" })), land);
  /** Beside the worker's own cell. */
  const bare = [cellAt(101, -297), cellAt(101, -295)].find((cell) => !known.trees.includes(cell) && !known.boulders.includes(cell))!;

  test("is asked for as its key and what is there say", () => {
    const land = house();
    assert.deepEqual(workOf("KeyC", bare, land, worker), { is: "Claim", value: { number: bare } });
    own(land);
    assert.deepEqual(workOf("KeyC", bare, land, worker), { is: "Claim", value: { number: bare } });
    assert.deepEqual(workOf("KeyV", bare, land, worker), { is: "Abandon" });
    assert.deepEqual(workOf("KeyB", bare, land, worker), { is: "Build", value: { cell: { number: bare }, kind: "Wall" } });
    assert.deepEqual(workOf("KeyF", bare, land, worker), { is: "Build", value: { cell: { number: bare }, kind: "Floor" } });
    assert.deepEqual(workOf("KeyX", bare, land, worker), { is: "Dig", value: { number: bare } });
    assert.deepEqual(workOf("KeyX", known.walls[0]!, land, worker), { is: "Batter", value: { number: known.walls[0]! } });
    land.changed(changed(bare, { growth: "Tree" }));
    assert.deepEqual(workOf("KeyX", bare, land, worker), { is: "Harvest", value: { number: bare } });
    assert.equal(workOf("KeyQ", bare, land, worker), null);
  });

  test("that would be refused is not asked for, and the page says why", () => {
    const land = house();
    const why = (code: string, cell: number, carried = 1): unknown => workOf(code, cell, land, { ...worker, carried });
    assert.match(String(why("KeyC", cellAt(108, -299))), /farther than 6 m/);
    assert.match(String(why("KeyV", bare)), /no plot of yours/);
    assert.match(String(why("KeyB", bare)), /plot of one's own/);
    own(land);
    assert.equal(workOf("KeyX", bare, land, { ...worker, isHeld: true }), "not now");
    assert.match(String(why("KeyB", known.walls[0]!)), /bare and level/);
    land.changed(changed(cellAt(101, -299)));
    assert.match(String(why("KeyB", cellAt(101, -299))), /walls themselves in/);
    assert.equal((why("KeyF", cellAt(101, -299)) as { is: string }).is, "Build");
    assert.match(String(why("KeyF", bare, 0)), /nothing to build with/);
    land.changed(changed(bare, { depth: 3 }));
    assert.match(String(why("KeyX", bare)), /no deeper/);
    land.changed(changed(plotOf(bare), { whose: "Others" }));
    assert.match(String(why("KeyX", bare)), /another's/);
    assert.match(String(why("KeyC", bare)), /another's/);
  });
});
