// How fast the viewer is: a capture of 10,000,000 scopes is opened, then zoomed and panned, in headless chromium.
//
// `npm run figures [SCOPES]`. Figures to reach: open in less than 2 s, more than 30 pictures a second.

import { loadavg } from "node:os";
import type { Page } from "playwright-core";
import { largeCapture } from "./large_capture.ts";
import { file, launch, page, withCapture } from "./page.ts";
import { renderersMs } from "./processor_time.ts";

const scopes = Number(process.argv[2] ?? 10_000_000);
const began = performance.now();
const bytes = largeCapture(scopes);
const path = file("large.capture", bytes);
const say = (what: string, value: string) => console.log(`${what.padEnd(34)} ${value}`);
say("scopes", scopes.toLocaleString("en-US"));
say("file", `${(bytes.length / 2 ** 20).toFixed(1)} MiB (made in ${((performance.now() - began) / 1000).toFixed(1)} s)`);

const browser = await launch();
for (let run = 0; run < 3; run++) {
  const { page: it, context } = await page(browser);
  await it.waitForTimeout(300);
  const before = renderersMs();
  await it.setInputFiles("#file", path);
  await opened(it, `opened, run ${run + 1}`);
  say("", `${renderersMs() - before} ms of processor time on all its threads`);
  if (run === 2) await moved(it);
  await context.close();
}
const inside = withCapture("large.html", bytes, { file: "large", verdict: "", text: "large", frame: null });
const { page: it } = await page(browser, { url: inside });
await opened(it, "a page with it inside");
await browser.close();
say("load of the machine", loadavg().map((it) => it.toFixed(1)).join(" "));

async function opened(page: Page, what: string): Promise<void> {
  await page.waitForFunction(() => /^(open|error)$/.test(document.body.dataset["state"] ?? ""), undefined, { timeout: 120_000 });
  const { state, openMs, readMs } = (await page.evaluate(() => ({ ...document.body.dataset }))) as Record<string, string>;
  say(what, `${state}: ${openMs} ms from file to picture, of them ${readMs} ms in the worker`);
}

/** Zooms in from all to nearly nothing and out again, and pans at each zoom; a key a picture. */
async function moved(page: Page): Promise<void> {
  for (const [what, keys] of [
    ["zooming", ["f", ..."w".repeat(48), ..."s".repeat(48)]],
    ["panning with all on screen", ["f", ..."s", ..."d".repeat(40), ..."a".repeat(40)]],
    ["panning at a tenth", ["f", ..."w".repeat(8), ..."d".repeat(40), ..."a".repeat(40)]],
    ["panning at a thousandth", ["f", ..."w".repeat(23), ..."d".repeat(40), ..."a".repeat(40)]],
  ] as const) {
    await page.waitForTimeout(600);
    const times = await page.evaluate(async (keys) => {
      const times: number[] = [];
      let before = performance.now();
      for (const key of keys) {
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        // The state tells its change in one frame, the picture is drawn in the next.
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        const now = performance.now();
        times.push((now - before) / 2);
        before = now;
      }
      return times.slice(1);
    }, [...keys]);
    const sorted = [...times].sort((a, b) => a - b);
    const mean = times.reduce((sum, it) => sum + it, 0) / times.length;
    const worst = sorted.at(-1)!;
    const p95 = sorted[Math.floor(sorted.length * 0.95)]!;
    say(what, `${(1000 / mean).toFixed(0)} pictures/s; 95 %: ${p95.toFixed(1)} ms, slowest ${worst.toFixed(1)} ms`);
  }
}
