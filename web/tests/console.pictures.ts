// Pictures of the console to look at, under the load of bots: `npm run pictures`, into dist/pictures.

import { mkdirSync } from "node:fs";
import { launch, livePage } from "./page.ts";
import { Server } from "./server.ts";

const OUT = "dist/pictures";
mkdirSync(OUT, { recursive: true });
const server = await Server.start({ players: 60, npcs: 200, inject: ["slow-world"] });
const browser = await launch();
try {
  for (const dark of [false, true]) {
    for (const [name, width, height] of [["wide", 1440, 1000], ["narrow", 400, 860]] as const) {
      const { page, errors, context } = await livePage(browser, server.url, { width, height, dark });
      await page.waitForTimeout(dark || name === "narrow" ? 8_000 : 20_000);
      const shoot = (panel: string) => page.screenshot({ path: `${OUT}/console-${panel}-${name}-${dark ? "dark" : "light"}.png`, fullPage: name === "narrow" });
      await shoot("overview");
      for (const panel of ["worlds", "subsystems", "traffic", "host", "captures", "settings", "console"]) {
        await page.goto(`${server.url}/#/${panel}`);
        await page.waitForTimeout(1_500);
        await shoot(panel);
      }
      await page.goto(`${server.url}/#/worlds`);
      await page.locator("#main section:visible tbody button").first().click();
      await page.waitForTimeout(2_500);
      await shoot("world");
      if (errors.length > 0) console.error(errors.join("\n"));
      await context.close();
    }
  }
} finally {
  await browser.close();
  await server.stop();
}
