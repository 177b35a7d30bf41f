// Promise: a person at the page of frontier claims a plot, fells a tree, builds a wall and stands before it, as the page predicts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SocketClient, openWebSocket } from "../client/index.ts";
import { CELL_M, apartOf, cellAt, cornerOf, plotOf, sectorOf, untouched } from "../play/frontier/cells.ts";
import { schema } from "../play/frontier/schema.ts";
import { GIVES_UP_MS, type LiveServer, TEST_GIVES_UP_MS, start, takeToken, until } from "./live_server.ts";
import { launch, showBuilt } from "./page.ts";
import { Hands, METRE_PIXELS, type Place, keysTo, known } from "./person.ts";

/** Of the land, which every player is told once. */
async function seedOf(server: LiveServer): Promise<bigint> {
  const { token, ways } = await takeToken(server.playUrl, false);
  const visitor = new SocketClient(schema, token, await openWebSocket(ways.webSocket, GIVES_UP_MS));
  let seed: bigint | null = null;
  await until("the land is told", () => {
    for (const message of visitor.client.takeMessages()) if (message.name === "frontier.realm") seed = message.value.seed;
    return seed !== null;
  });
  visitor.close();
  return seed!;
}

/** What grows around a place, from what is nearest on. */
function growingNear({ x, z }: Place, seed: bigint): [cell: number, growth: string][] {
  const sectors = new Set([-40, 0, 40].flatMap((east) => [-40, 0, 40].map((north) => sectorOf(cellAt(x + east, z + north)))));
  const all = [...sectors].flatMap((sector) => [...untouched(sector, seed)]);
  return all.sort(([one], [other]) => apartOf(one, x, z) - apartOf(other, x, z));
}

test("a person builds in frontier", { timeout: TEST_GIVES_UP_MS }, async (t) => {
  const server = await start("frontier", 0);
  t.after(() => server.kill());
  const browser = await launch();
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 480, height: 400 } });
  page.setDefaultTimeout(GIVES_UP_MS);
  await showBuilt(page, { "/play/": "play_frontier.html" });
  await page.goto(server.playUrl);
  const own = async (): Promise<Place> => (await known(page, "frontier")).own!;
  await until("in a world", async () => (await own()) !== null);
  const seed = await seedOf(server);
  const says = async (words: RegExp): Promise<boolean> => words.test(await page.locator(".told pre").innerText());
  for (const words of [/WASD walk/, /H says what keys do/]) {
    await page.keyboard.press("KeyH");
    await until(`H shows or hides the keys: ${words}`, () => says(words));
  }
  const hands = new Hands(page);
  const point = async (cell: number): Promise<void> => {
    const [{ x, z }, [west, south]] = [await own(), cornerOf(cell)];
    await hands.point((west + CELL_M / 2 - x) * METRE_PIXELS, (south + CELL_M / 2 - z) * METRE_PIXELS);
  };
  /** Whether the server tells the same place for a while. */
  const isStill = async (): Promise<boolean> => {
    const before = await own();
    await page.waitForTimeout(400);
    const { x, z } = await own();
    return x === before.x && z === before.z;
  };
  /** Lets go of all keys, and says where it stands then. */
  const standing = async (): Promise<Place> => {
    await hands.hold([]);
    await until("it stands", isStill);
    return own();
  };
  /** Points at a cell and presses a key, until the page says so. */
  const work = async (code: string, cell: number, words: RegExp): Promise<void> => {
    await until(`${code} does its work`, async () => {
      await point(cell);
      await page.keyboard.press(code);
      await page.waitForTimeout(300);
      return says(words);
    }, () => String(cell));
  };

  const grows = growingNear(await own(), seed);
  const [tree] = grows.find(([, growth]) => growth === "Tree")!;
  // Keys are held for a while that a slow machine makes longer, so it looks where it stands when it has let go.
  await until("beside a tree", async () => {
    const [{ x, z }, [west, south]] = [await standing(), cornerOf(tree)];
    if (apartOf(tree, x, z) < 5.5) return true;
    await hands.hold(keysTo([west + CELL_M / 2 - x, south + CELL_M / 2 - z]));
    await page.waitForTimeout(300);
    return false;
  });
  await work("KeyX", tree, /carries 2/);
  const here = await own();
  await work("KeyC", cellAt(here.x, here.z), /on your plot/);
  if (process.env["PICTURES"]) await page.screenshot({ path: "dist/works_claimed.png" });

  // Straight to one of four sides, so that it walks into what it builds.
  const taken = new Set(grows.map(([cell]) => cell));
  const sides = [["KeyD", 1, 0], ["KeyA", -1, 0], ["KeyW", 0, 1], ["KeyS", 0, -1]] as const;
  const sites = [1, 2].flatMap((cells) => sides.map(([key, east, north]) => ({ key, east, north, cell: cellAt(here.x + east * cells * CELL_M, here.z + north * cells * CELL_M) })));
  const site = sites.find(({ cell }) => plotOf(cell) === plotOf(cellAt(here.x, here.z)) && !taken.has(cell))!;
  const { cell, key, east, north } = site;
  await work("KeyB", cell, /carries 1/);
  await hands.hold([key]);
  /** To the side of the wall that it comes to (m). */
  const toWall = ({ x, z }: Place): number => {
    const [west, south] = cornerOf(cell);
    return Math.abs(east * (west + CELL_M / 2 - x) + north * (south + CELL_M / 2 - z)) - CELL_M / 2;
  };
  await until("before the wall", async () => toWall(await own()) < 0.26);
  await page.evaluate(() => Object.assign(globalThis.throng.prediction!, { corrections: 0 }));
  const inputs = (await known(page, "frontier")).inputs;
  await until("100 more inputs", async () => (await known(page, "frontier")).inputs > inputs + 100);
  const [stands, { corrections }] = [await own(), await page.evaluate(() => ({ ...globalThis.throng.prediction! }))];
  if (process.env["PICTURES"]) await page.screenshot({ path: "dist/works_wall.png" });
  assert.notEqual(cellAt(stands.x, stands.z), cell, "it is in the wall");
  // One that runs on into the wall is corrected by each place that it is told.
  assert.ok(corrections < 5, `${corrections} corrections`);
  console.log(`frontier: stood ${toWall(stands).toFixed(2)} m before its wall; ${corrections} corrections`);

  // It takes four blows, with a pause between two.
  const isThrough = async (): Promise<boolean> => cellAt((await own()).x, (await own()).z) !== cellAt(stands.x, stands.z);
  await until("the wall is down", async () => {
    if (await isThrough()) return true;
    await point(cell);
    await page.keyboard.press("KeyX");
    await page.waitForTimeout(300);
    return false;
  });
  await hands.hold([]);
  assert.deepEqual((await known(page, "frontier")).protocolErrors, 0);
  await server.stop();
});
