// Pictures of the page to look at: light and dark, wide and narrow, into the folder dist/pictures.

import { mkdirSync } from "node:fs";
import { badFrameCapture } from "./bad_frame_capture.ts";
import { file, launch, openCapture, page } from "./page.ts";

mkdirSync("dist/pictures", { recursive: true });
const capture = process.argv[2] ?? file("bad-frame.capture", badFrameCapture());
const other = file("slower.capture", badFrameCapture(2));
const browser = await launch();
for (const dark of [false, true]) {
  for (const width of [1400, 400]) {
    const { page: it, errors } = await page(browser, { width, height: width < 500 ? 800 : 900, dark });
    const name = `dist/pictures/${dark ? "dark" : "light"}-${width}`;
    await it.screenshot({ path: `${name}-landing.png` });
    await openCapture(it, capture);
    await it.waitForTimeout(400);
    await it.screenshot({ path: `${name}.png` });
    for (const tab of ["scopes", "frames", "waits", "log", "memory", "compare"]) {
      const button = it.locator(`#tab-${tab}`);
      if ((await button.count()) === 0) continue;
      await button.click();
      if (tab === "compare") {
        await it.setInputFiles("#other-file", other);
        await it.locator("#panel-compare tbody tr").first().waitFor();
      }
      await it.waitForTimeout(300);
      await it.screenshot({ path: `${name}-${tab}.png` });
    }
    if (errors.length > 0) console.log(name, errors);
    await it.context().close();
  }
}
await browser.close();
