// Promise: a person at the page of precinct is told of portals, walks from its hideout through one into the hub, meets another
// player there, plays on, and comes home through another; and what the page knows on the way is what the server knows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PORTAL_CLEAR_M } from "../play/precinct/portal_places.ts";
import { GIVES_UP_MS, TEST_GIVES_UP_MS, start, until } from "./live_server.ts";
import { launch, showBuilt } from "./page.ts";
import { Hands, type Place, keysTo, known } from "./person.ts";
import { wayTo } from "./precinct_way.ts";

test("a person goes through portals of precinct", { timeout: TEST_GIVES_UP_MS }, async (t) => {
  // A bot comes to the hub every ten seconds. NPCs are few, so that nobody dies of them on the way for long.
  const server = await start("precinct", 20, "", ["--npcs", "500"]);
  t.after(() => server.kill());
  const browser = await launch();
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 800, height: 600 } });
  page.setDefaultTimeout(GIVES_UP_MS);
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await showBuilt(page, { "/play/": "play_precinct.html" });
  await page.goto(`${server.playUrl}?audit`);
  let now = await known(page, "precinct");
  const told = (): string => `${JSON.stringify(now)}; the page: ${errors.join("; ") || "no errors"}`;
  const look = async (): Promise<void> => {
    now = await known(page, "precinct");
    assert.deepEqual([now.errors, now.protocolErrors, errors], [0, 0, []], told());
  };
  const picture = async (name: string): Promise<void> => void (process.env["PICTURES"] && (await page.screenshot({ path: `dist/portals_${name}.png` })));
  const hands = new Hands(page);
  /** Walks to a portal until that holds, and stands. Who does not get on, at a corner or among others, steps aside. */
  const walk = async (leadsTo: "hideout" | "hub", what: string, holds: (own: Place) => boolean): Promise<void> => {
    let moved = { at: { x: Infinity, z: Infinity }, ms: 0 };
    await until(what, async () => {
      await look();
      const { own } = now;
      if (own && holds(own)) return true;
      if (!own) return (await hands.hold([]), false);
      if (Math.hypot(own.x - moved.at.x, own.z - moved.at.z) > 1) moved = { at: own, ms: Date.now() };
      const next = wayTo(leadsTo, own);
      const [east, north] = [next.x - own.x, next.z - own.z];
      const asides = Math.floor((Date.now() - moved.ms) / 1000);
      const way = asides < 2 ? [east, north] : asides % 2 === 0 ? [-north, east] : [north, -east];
      await hands.hold(keysTo(way as [number, number]));
      return false;
    }, told);
    await hands.hold([]);
  };
  /** Values are held against the server's in this world, too. */
  const isChecked = async (): Promise<void> => {
    const before = now.checks;
    await until("100 more values are held against the server's", async () => (await look(), now.checks >= before + 100), told);
  };

  await until("at home", async () => (await look(), now.world === "hideout" && now.own !== null), told);
  await until("the page tells of portals", async () => /walk into a portal/.test(await page.locator(".told pre").innerText()), told);
  await picture("hideout");
  await walk("hub", "in the hub", () => now.world === "hub");
  await until("somebody who is no NPC", () =>
    page.evaluate(() => {
      const { client } = globalThis.throng.session!;
      const characters = [...client.replicas.each("Character" as never)] as [unknown, { npc: boolean }][];
      return characters.some(([id, { npc }]) => id !== client.ownEntity && !npc);
    }), told);
  await picture("hub");
  await isChecked();
  // From where it came out, so that the portal takes it when it comes back.
  const cameOut = now.own!;
  await walk("hub", "away from the portals", ({ x, z }) => Math.hypot(x - cameOut.x, z - cameOut.z) > 2 * PORTAL_CLEAR_M);
  await walk("hideout", "at home again", () => now.world === "hideout");
  await isChecked();
  console.log(`precinct: from home to the hub and back; ${now.checks} values held against the server's, ${now.errors} wrong`);
  await server.stop();
});
