// Promise: a person plays each game in a browser among bots: walks, shoots, and hits by the server's word; and what the page
// knows is what the server knows.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { GIVES_UP_MS, TEST_GIVES_UP_MS, start, until } from "./live_server.ts";
import { launch } from "./page.ts";
import { wayThrough } from "./duel_way.ts";
import { Hands, type Known, METRE_PIXELS, type Place, known, watch } from "./person.ts";

let browser: Browser;
before(async () => void (browser = await launch()));
after(() => browser.close());

/** How a game is fought. */
interface Fight {
  readonly bots: number;
  /** What carries the datagrams. */
  readonly over: "WebSocket" | "WebTransport";
  /** `[game]` of its settings. */
  readonly settings?: string;
  /** From how far away (m). */
  readonly within: number;
  /** Pixels of a metre, where the pointer has to be on somebody. */
  readonly pixels?: number;
  /** Keys that are held beside the mouse while somebody is near enough. */
  readonly keys: readonly string[];
  /** Shift runs, where it is far. */
  readonly runs?: true;
  isOn(now: Known): boolean;
  /** The page's own pointer follows whoever is nearest, frame by frame. */
  readonly follows?: true;
  /** Where to go when nobody is in sight; else round and round. */
  way?(own: Place): Place;
}

const FIGHTS: Record<string, Fight> = {
  precinct: { bots: 12, over: "WebSocket", within: 20, keys: [], isOn: () => true },
  frontier: {
    bots: 12,
    over: "WebTransport",
    within: 12,
    pixels: METRE_PIXELS,
    keys: ["Digit1", "Space"],
    runs: true,
    isOn: () => true,
  },
  // A match of ten, which begins when they are there.
  duel: {
    bots: 9,
    over: "WebTransport",
    settings: "warm_up_s = 1\nstagger_s = 0\nbuy_s = 1\nround_s = 30\nspike_s = 10\nover_s = 1\nrounds_to_win = 30\nfill_s = 60",
    within: 25,
    keys: [],
    isOn: ({ phase }) => phase === "Live" || phase === "Planted",
    follows: true,
    way: wayThrough,
  },
};

/** Keys by which one walks that way. */
function keysTo([east, north]: readonly [number, number]): string[] {
  const apart = Math.hypot(east, north);
  return [...(Math.abs(east) > apart / 3 ? [east > 0 ? "KeyD" : "KeyA"] : []), ...(Math.abs(north) > apart / 3 ? [north > 0 ? "KeyW" : "KeyS"] : [])];
}

/** One look of a person: points at the nearest, goes there until near enough, and fights. Who has stood still for some looks
 * tries another way. */
async function act(hands: Hands, { own, ...now }: Known, fight: Fight, turn: number, stillTurns: number): Promise<void> {
  const target = now.enemies[0];
  if (!own || !fight.isOn({ own, ...now })) {
    await hands.trigger(false);
    return hands.hold([]);
  }
  // Round what stands in the way, every now and then.
  const aside = ["KeyW", "KeyD", "KeyS", "KeyA"][Math.floor(turn / 12) % 4]!;
  if (!target) {
    await hands.trigger(false);
    const next = fight.way?.(own);
    return hands.hold(next ? keysTo([next.x - own.x, next.z - own.z]) : [aside]);
  }
  const to = [target.x - own.x, target.z - own.z] as const;
  const apart = Math.max(Math.hypot(...to), 0.1);
  const pixels = fight.pixels ?? 150 / apart;
  if (!fight.follows) await hands.point(to[0] * pixels, to[1] * pixels);
  const goesAside = stillTurns % 25 > 15 && !fight.way;
  if (apart > fight.within || goesAside) {
    await hands.trigger(false);
    return hands.hold([...(goesAside ? [aside] : keysTo(to)), ...(fight.runs ? ["ShiftLeft"] : [])]);
  }
  // Whom a click chooses is chosen anew each time; a weapon that climbs comes down between two bursts.
  if (fight.pixels) await hands.trigger(false);
  await hands.trigger(!fight.follows || turn % 8 < 4);
  await hands.hold(fight.keys);
}

async function play(game: string): Promise<void> {
  const fight = FIGHTS[game]!;
  const server = await start(game, fight.bots, fight.settings ? `[game]\n${fight.settings}\n` : "");
  const page = await browser.newPage({ viewport: { width: 480, height: 400 } });
  // Whatever a step waits for that is not said by `until`: a picture's frame, an answer of the page.
  page.setDefaultTimeout(GIVES_UP_MS);
  try {
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
    server.measure("begin");
    const hands = new Hands(page);
    const first = now.own!;
    let [farthest, turn] = [0, 0];
    let moved = { at: first, turn };
    await until("walked, hit somebody, and held 100 values against the server's", async () => {
      now = await known(page, game);
      assert.deepEqual([now.errors, now.protocolErrors, errors], [0, 0, []], told());
      if (now.own) {
        farthest = Math.max(farthest, Math.hypot(now.own.x - first.x, now.own.z - first.z));
        if (Math.hypot(now.own.x - moved.at.x, now.own.z - moved.at.z) > 1) moved = { at: now.own, turn };
      }
      await act(hands, now, fight, turn, turn - moved.turn);
      turn++;
      return farthest > 1 && now.shots >= 3 && now.hits >= 1 && now.checks >= 100;
    }, () => `went ${farthest.toFixed(1)} m; ${told()}`);
    await hands.trigger(false);
    await hands.hold([]);
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
