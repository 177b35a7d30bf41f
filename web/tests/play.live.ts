// Promise: a person plays each game in a browser among bots: walks as the page predicts, shoots, and hits by the server's word;
// and what the page knows is what the server knows.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import type { PredictionStats } from "../client/index.ts";
import { GIVES_UP_MS, TEST_GIVES_UP_MS, start, until } from "./live_server.ts";
import { FIGHTS, Fighter } from "./fight.ts";
import { launch, showBuilt } from "./page.ts";
import { Hands, known, watch } from "./person.ts";

let browser: Browser;
before(async () => void (browser = await launch()));
after(() => browser.close());

/** A walk, and what was corrected of it. */
interface Walk extends PredictionStats {
  readonly metres: number;
}

/** Walks in one of four directions, in a match with starts, stops and a jump, and stands until all of it has been told. */
async function walk(page: Page, hands: Hands, game: string, number: number): Promise<Walk> {
  const key = ["KeyD", "KeyA", "KeyW", "KeyS"][number % 4]!;
  const before = await known(page, game);
  await page.evaluate(() => Object.assign(globalThis.throng.prediction!, { checks: 0, corrections: 0, corrected: 0, correctedMax: 0, drift: [0, 0, 0] }));
  for (const keys of game === "duel" ? [[key], [], [key, "Space"], [], [key], []] : [[key], [key], [key], []]) {
    await hands.hold(keys);
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  const [after, stats] = [await known(page, game), await page.evaluate(() => ({ ...globalThis.throng.prediction! }))];
  const isWhole = before.own && after.own && FIGHTS[game]!.isOn(before) && FIGHTS[game]!.isOn(after);
  return { ...stats, metres: isWhole ? Math.hypot(after.own.x - before.own.x, after.own.z - before.own.z) : 0 };
}

/** Whether a walk was predicted. A page that is held up, and whoever dies or meets what the page does not know, is
 * corrected; so one walk is enough, and what tells a wrong step is told apart from that: a step that is a tenth too long
 * drifts by a tenth of the way, and with a body that starts and stops otherwise than the match's half of the way is
 * corrected. */
function isPredicted(game: string, { metres, checks, corrections, corrected, correctedMax, drift }: Walk): boolean {
  const [drifted, mean] = [Math.hypot(...drift), corrected / Math.max(corrections, 1)];
  console.log(
    `${game}: walked ${metres.toFixed(1)} m; ${corrections} corrections of ${checks}, by ${(mean * 100).toFixed(1)} cm, at most ${(correctedMax * 100).toFixed(1)}; drifted ${(drifted * 100).toFixed(1)} cm`,
  );
  // Whoever rose elsewhere did not walk there.
  const isWalked = metres > 2 && metres < 9 && checks > 40;
  return isWalked && correctedMax < 1 && mean < 0.6 && drifted < 0.07 * metres && (game !== "duel" || corrected < 0.15 * metres);
}

async function play(game: string): Promise<void> {
  const fight = FIGHTS[game]!;
  const server = await start(game, fight.bots, fight.settings ? `[game]\n${fight.settings}\n` : "");
  const page = await browser.newPage({ viewport: { width: 480, height: 400 } });
  // Whatever a step waits for that is not said by `until`: a picture's frame, an answer of the page.
  page.setDefaultTimeout(GIVES_UP_MS);
  try {
    await showBuilt(page, { "/play/": `play_${game}.html` });
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.goto(`${server.playUrl}?audit${fight.over === "WebSocket" ? "&websocket" : ""}`);
    let now = await known(page, game);
    const told = (): string => `${JSON.stringify(now)}; the page: ${errors.join("; ") || "no errors"}`;
    await until("in a world, with somebody to steer", async () => {
      now = await known(page, game);
      return now.own !== null && now.state === "connected" && fight.isOn(now);
    }, told);
    await watch(page, game);
    const hands = new Hands(page);
    let walks = 0;
    await until("walked as predicted", async () => isPredicted(game, await walk(page, hands, game, walks++)), told);
    server.measure("begin");
    const fighter = new Fighter(page, game);
    await until("walked, hit somebody, and held 100 values against the server's", async () => {
      now = await fighter.turn();
      assert.deepEqual([now.errors, now.protocolErrors, errors], [0, 0, []], told());
      return fighter.farthest > 1 && now.shots >= 3 && now.hits >= 1 && now.checks >= 100;
    }, () => `went ${fighter.farthest.toFixed(1)} m; ${told()}`);
    await fighter.rest();
    server.measure("end");
    if (process.env["PICTURES"]) await page.screenshot({ path: `dist/play_${game}.png` });
    assert.ok(now.others > 1 && now.inputs > 20, told());
    const line = await page.locator(".told pre").innerText();
    assert.equal(now.tunnel, fight.over);
    assert.match(line, /Web(Socket|Transport): round trip \d+ ms, an input is answered after \d+ ms; [\d.]+ % lost/);
    await page.close();
    const { server: report } = await server.stop();
    const perSecond = report.game_per_s;
    assert.ok(perSecond["hits"]! > 0, `hits that the server counted: ${JSON.stringify(perSecond)}`);
    console.log(`${game}: ${now.checks} values held against the server's, ${now.errors} wrong, over a ${now.tunnel}; ${now.others} in sight; ${now.shots} shots, ${now.hits} hits`);
  } finally {
    await page.close();
    await server.kill();
  }
}

// Each waits for its world, its match and its enemies most of the time.
describe("a person in a browser fights among bots", { concurrency: true }, () => {
  for (const game of Object.keys(FIGHTS)) test(`of ${game}`, { timeout: TEST_GIVES_UP_MS }, () => play(game));
});
