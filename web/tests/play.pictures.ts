// Pictures of the pages that play, to look at, among bots: `npm run pictures`, into dist/pictures.

import { mkdirSync } from "node:fs";
import { start, until } from "./live_server.ts";
import { launch, livePage } from "./page.ts";
import { known } from "./person.ts";

const OUT = "dist/pictures";
mkdirSync(OUT, { recursive: true });
const browser = await launch();
try {
  for (const [game, bots] of [["precinct", 20], ["frontier", 30], ["duel", 9]] as const) {
    const settings = game === "duel" ? "[game]\nwarm_up_s = 1\nstagger_s = 0\nbuy_s = 3\nfill_s = 60\n" : "";
    const server = await start(game, bots, settings);
    try {
      // They look the same whatever the reader's scheme is: worlds are drawn in light on dark.
      for (const [name, width, height] of [["wide", 1440, 900], ["narrow", 400, 800]] as const) {
        // In a match there is one seat for it.
        const { page, errors, context } = await livePage(browser, server.playUrl, { width, height });
        const shoot = (what: string) => page.screenshot({ path: `${OUT}/play-${game}-${what}-${name}.png` });
        await shoot("first");
        await until(`somebody to steer in ${game}`, async () => (await known(page, game)).own !== null).catch(console.error);
        await page.keyboard.down("KeyD");
        await page.mouse.move(width * 0.6, height * 0.4);
        await page.mouse.down();
        await page.waitForTimeout(3_000);
        await shoot("playing");
        if (errors.length > 0) console.error(errors.join("\n"));
        await context.close();
      }
    } finally {
      server.kill();
    }
  }
} finally {
  await browser.close();
}
