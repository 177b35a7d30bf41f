// Promise: the page that `throng new` writes plays in a browser: keys walk, as it predicts, and Space picks a flower. That is
// the page of `games/meadow`; a new game has it under its own name, where one was built (`cargo xtask new-game`).

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import type { PredictionStats } from "../client/index.ts";
import { GIVES_UP_MS, TEST_GIVES_UP_MS, pathOfOther, startOther, until } from "./live_server.ts";
import { launch, showBuilt } from "./page.ts";
import { Hands, type Place, keysTo } from "./person.ts";

let browser: Browser;
before(async () => void (browser = await launch()));
after(() => browser.close());

interface Look {
  readonly own: Place | null;
  /** The nearest one. */
  readonly flower: Place | null;
  readonly protocolErrors: number;
  readonly prediction: PredictionStats | null;
}

/** What the page's client knows. */
function look(page: Page): Promise<Look> {
  return page.evaluate(() => {
    const client = globalThis.throng?.session?.client;
    if (!client || client.ownEntity === null) return { own: null, flower: null, protocolErrors: 0, prediction: null };
    const place = (id: unknown): Place | undefined => client.replicas.get(id as never, "Position" as never);
    const own = place(client.ownEntity) ?? null;
    const sorts = [...(client.replicas.each("Sort" as never) as Iterable<[unknown, unknown]>)];
    const flowers = sorts.filter(([, sort]) => sort === "Flower").map(([id]) => place(id)).filter((each) => each !== undefined);
    const far = ({ x, z }: Place): number => Math.hypot(x - own!.x, z - own!.z);
    const flower = own && (flowers.sort((one, other) => far(one) - far(other))[0] ?? null);
    return { own, flower, protocolErrors: client.stats.protocolErrors, prediction: globalThis.throng.prediction };
  });
}

async function pickAFlower(game: string): Promise<void> {
  const server = await startOther(game);
  const page = await browser.newPage({ viewport: { width: 480, height: 400 } });
  page.setDefaultTimeout(GIVES_UP_MS);
  try {
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => message.type() === "error" && errors.push(`${message.text()} ${message.location().url}`));
    await showBuilt(page, { "/play/": "../../../games/meadow/src/page.html", "/play/client.js": "client.js" });
    await page.goto(server.playUrl);
    let now = await look(page);
    const told = (): string => `${JSON.stringify(now)}; the page: ${errors.join("; ") || "no errors"}`;
    await until("it has a place, and sees a flower", async () => (now = await look(page)).flower !== null, told);
    const hands = new Hands(page);
    let [begin, picked] = [now.own!, 0];
    // A page that is held up is corrected: then the way to the next flower is looked at.
    await until("it has walked to a flower as it predicted, and picked it", async () => {
      now = await look(page);
      if (!now.own || !now.flower || !now.prediction) return false;
      const to = [now.flower.x - now.own.x, now.flower.z - now.own.z] as const;
      await hands.hold(Math.hypot(...to) > 1 ? keysTo(to) : []);
      if (Math.hypot(...to) < 1.5) await page.keyboard.press("Space");
      const flowers = Number(/(\d+) flowers/.exec(await page.locator(".told pre").innerText())?.[1]);
      if (!(flowers > picked)) return false;
      picked = flowers;
      const [metres, drifted] = [Math.hypot(now.own.x - begin.x, now.own.z - begin.z), Math.hypot(...now.prediction.drift)];
      console.log(`${game}: walked ${metres.toFixed(1)} m to a flower; ${now.prediction.corrections} corrections; drifted ${(drifted * 100).toFixed(1)} cm`);
      begin = now.own;
      await page.evaluate(() => Object.assign(globalThis.throng.prediction!, { corrections: 0, corrected: 0, correctedMax: 0, drift: [0, 0, 0] }));
      // Two steps, which inputs that came late leave behind, and a tenth of the way.
      return metres > 2 && drifted < 0.61 + metres / 10;
    }, told);
    await hands.hold([]);
    assert.deepEqual([now.protocolErrors, errors], [0, []], told());
  } finally {
    await page.close();
    server.kill();
  }
}

for (const game of ["meadow", "my-game"]) {
  const isMissing = game !== "meadow" && !existsSync(pathOfOther(game));
  test(`the page of ${game} walks and picks a flower`, { timeout: TEST_GIVES_UP_MS, skip: isMissing && "`cargo xtask new-game` builds it" }, () => pickAFlower(game));
}
