// How fast the viewer is: a capture of 10,000,000 scopes is opened, then zoomed and panned, in headless chromium.
//
// `npm run figures speed [SCOPES]`. Each figure stands beside its goal, and the program ends with status 1 where one is
// missed. What is counted are pictures that were drawn; the browser asks for 60 in a second at most.

import { loadavg } from "node:os";
import type { Page } from "playwright-core";
import { largeCapture } from "./large_capture.ts";
import { file, launch, page, withCapture } from "./page.ts";
import { renderersMs } from "./processor_time.ts";

/** From the file to the first picture, at most (ms). */
const OPEN_MS_GOAL = 2_000;
/** While the view moves, more than so many. */
const PICTURES_PER_S_GOAL = 30;

/** What one picture's wheel turns (CSS pixels): 8 % closer, or 3 % of the width along. */
const ZOOM = 15.4;
const PAN = 40;

const scopes = Number(process.argv[2] ?? 10_000_000);
const began = performance.now();
const bytes = largeCapture(scopes);
const path = file("large.capture", bytes);
const say = (what: string, value: string) => console.log(`${what.padEnd(34)} ${value}`);
say("scopes", scopes.toLocaleString("en-US"));
say("file", `${(bytes.length / 2 ** 20).toFixed(1)} MiB (made in ${((performance.now() - began) / 1000).toFixed(1)} s)`);

let missed = 0;
/** The words that stand beside a figure. */
function judged(goal: string, isReached: boolean): string {
  if (!isReached) missed++;
  return `(goal: ${goal}${isReached ? "" : ", MISSED"})`;
}

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
process.exitCode = missed > 0 ? 1 : 0;

async function opened(page: Page, what: string): Promise<void> {
  await page.waitForFunction(() => /^(open|error)$/.test(document.body.dataset["state"] ?? ""), undefined, { timeout: 120_000 });
  const { state, openMs, readMs } = (await page.evaluate(() => ({ ...document.body.dataset }))) as Record<string, string>;
  const goal = judged(`< ${OPEN_MS_GOAL} ms`, state === "open" && Number(openMs) < OPEN_MS_GOAL);
  say(what, `${state}: ${openMs} ms until the first picture is drawn ${goal}, of them ${readMs} ms in the worker`);
}

/** A turn of the wheel, for so many pictures. */
interface Turn {
  pictures: number;
  zoom?: number;
  pan?: number;
}

/** Zooms in from all to nearly nothing and out again, and pans there and back at three zooms. */
async function moved(page: Page): Promise<void> {
  const thereAndBack = [{ pictures: 100, pan: PAN }, { pictures: 100, pan: -PAN }];
  for (const [what, closer, turns] of [
    ["zooming", 0, [{ pictures: 230, zoom: -ZOOM }, { pictures: 230, zoom: ZOOM }]],
    ["panning at a half", 9, thereAndBack],
    ["panning at a tenth", 30, thereAndBack],
    ["panning at a thousandth", 90, thereAndBack],
  ] as [string, number, Turn[]][]) {
    await page.keyboard.press("f");
    await page.waitForTimeout(600);
    if (closer > 0) await turned(page, [{ pictures: closer, zoom: -ZOOM }]);
    await page.waitForTimeout(600);
    const before = renderersMs();
    const { drawn, inputs } = await turned(page, turns);
    const processorMs = (renderersMs() - before) / drawn.length;
    const seconds = (drawn.at(-1)!.at - drawn[0]!.at) / 1000;
    const perSecond = (drawn.length - 1) / seconds;
    const took = drawn.map(({ ms }) => ms).sort((a, b) => a - b);
    const apart = drawn.slice(1).map(({ at }, before) => at - drawn[before]!.at);
    const slow = apart.filter((ms) => ms >= 1000 / PICTURES_PER_S_GOAL).length;
    say(
      what,
      `${perSecond.toFixed(1)} pictures/s ${judged(`> ${PICTURES_PER_S_GOAL}`, perSecond > PICTURES_PER_S_GOAL)}, ${drawn.length} drawn of ${inputs} turns of the wheel; ` +
        `one took ${took[took.length >> 1]!.toFixed(1)} ms (median), ${took.at(-1)!.toFixed(1)} ms (longest), with all else ${processorMs.toFixed(1)} ms of processor time; ` +
        `longest pause ${Math.max(...apart).toFixed(0)} ms, ${slow} of ${(1000 / PICTURES_PER_S_GOAL).toFixed(0)} ms or more`,
    );
  }
}

/** Turns the wheel once before each picture that the browser asks for, and notes what the timeline draws. */
function turned(page: Page, turns: Turn[]): Promise<{ drawn: { at: number; ms: number }[]; inputs: number }> {
  return page.evaluate(async (turns) => {
    const canvas = document.querySelector<HTMLCanvasElement>(".stage canvas")!;
    const box = canvas.getBoundingClientRect();
    const middle = { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true, cancelable: true };
    const drawn: { at: number; ms: number }[] = [];
    const note = (event: Event) => drawn.push({ at: performance.now(), ms: (event as CustomEvent<number>).detail });
    canvas.addEventListener("drawn", note);
    let inputs = 0;
    for (const { pictures, zoom, pan } of turns) {
      for (let picture = 0; picture < pictures; picture++, inputs++) {
        await new Promise(requestAnimationFrame);
        canvas.dispatchEvent(new WheelEvent("wheel", { ...middle, ctrlKey: zoom !== undefined, deltaX: pan ?? 0, deltaY: zoom ?? 0 }));
      }
    }
    // What the last turn changed is told in the next frame and drawn in the one behind it.
    for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
    canvas.removeEventListener("drawn", note);
    return { drawn, inputs };
  }, turns);
}
