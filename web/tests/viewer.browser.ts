// The viewer as a reader uses it: in chromium, from a file, without a network, with clicks and keys.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { BAD_FRAME, badFrameCapture } from "./bad_frame_capture.ts";
import { CaptureWriter } from "./capture_writer.ts";
import { largeCapture } from "./large_capture.ts";
import { file, launch, openCapture, page, withCapture } from "./page.ts";

let browser: Browser;
const bad = badFrameCapture();

before(async () => {
  browser = await launch();
});
after(async () => {
  await browser.close();
});

/** Runs with a page of its own, which must have thrown nothing and asked no network. */
async function onPage(options: Parameters<typeof page>[1], body: (page: Page) => Promise<void>): Promise<void> {
  const { page: it, errors, context } = await page(browser, options);
  try {
    await body(it);
    assert.deepEqual(errors, []);
  } finally {
    await context.close();
  }
}

/** Clicks into the picture at a moment (ns after the capture's begin), in the track that `y` pixels from above. */
async function clickAt(page: Page, moment: number, y: number): Promise<void> {
  await settled(page);
  const t = new URL(page.url()).hash.match(/t=(-?\d+),(-?\d+)/);
  assert.ok(t, `the address has no view: ${page.url()}`);
  const box = (await page.locator(".stage canvas").boundingBox())!;
  const gutter = box.width < 620 ? 0 : 84;
  const [begin, end] = [Number(t[1]), Number(t[2])];
  await page.mouse.click(box.x + gutter + ((moment - begin) / (end - begin)) * (box.width - gutter), box.y + y);
}

/** The address follows the view once it stands still. */
async function settled(page: Page): Promise<void> {
  // What was just pressed or clicked is told with the next picture.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await page.waitForFunction(() => document.body.dataset["address"] === "kept");
}

/** What is told of the thing with this title, once it is. */
async function selected(page: Page, title: string | RegExp): Promise<string> {
  await page.locator("#panel-selected .title", { hasText: title }).waitFor();
  return page.locator("#panel-selected").innerText();
}

const panel = (page: Page) => page.locator("[role=tabpanel]:visible").first();

test("a capture with a bad frame opens at it; its slow world and the scope are a click away", () =>
  onPage({}, async (page) => {
    await openCapture(page, file("bad.capture", bad));
    assert.match(await page.locator("#about").innerText(), /frame: 36\.6\sms where 16\.7\sms are allowed, in dark-zone 7/);
    const story = panel(page);
    assert.match(await story.innerText(), /dark-zone 7 on worker 1/);
    // From the story to the scope that had the time: its longest run in the frame.
    await story.getByRole("button", { name: "ai.path", exact: true }).click();
    const told = await selected(page, "ai.path");
    assert.match(told, /took\s+3\.58\sms/);
    assert.match(told, /budget\s+2\.00\sms, over by 1\.58\sms/);
    assert.match(told, /world\s+dark-zone 7, tick 530/);
    assert.match(told, /into frame 530/);
    // Only that world: the table of scopes on screen has nothing of the others.
    await panel(page).getByRole("button", { name: "Only dark-zone 7" }).click();
    await page.getByRole("button", { name: "Show everything (f)" }).click();
    await page.getByRole("tab", { name: "Scopes" }).click();
    await page.locator("#panel-scopes p", { hasText: "dark-zone 7 only" }).waitFor();
    const names = await panel(page).locator("tbody td:first-child").allInnerTexts();
    assert.ok(names.includes("ai.path") && !names.includes("movement.step"), names.join());
    assert.equal(await page.locator("#world").inputValue(), "7");
  }));

test("the picture is clicked: a scope, a wait with its holder, a lost core with who had it", () =>
  onPage({}, async (page) => {
    await openCapture(page, file("bad.capture", bad));
    const frameBegin = 30 * 16_600_000;
    // Heights of tracks: the thread `worker 1` begins below `frame`; found by its lock wait.
    await page.getByRole("tab", { name: "Waits" }).click();
    await panel(page).getByRole("button", { name: "levels" }).click();
    const wait = await selected(page, "Wait for the lock levels");
    assert.match(wait, /held by\s+long 0, in saves\.write/);
    assert.match(wait, /priority inversion/);
    await panel(page).getByRole("button", { name: "Show long 0 meanwhile" }).click();
    await selected(page, /^saves\.write$/);
    await page.getByRole("tab", { name: "Waits" }).click();
    await panel(page).getByRole("button", { name: "worker 1", exact: true }).click();
    assert.match(await selected(page, "Its core was taken away"), /who had it\s+rsync \(backup, pid 4711\) 800\sµs/);
    // A frame, by the pointer: the track below the ruler.
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Show everything (f)" }).click();
    await clickAt(page, frameBegin + 18_000_000, 24 + 9);
    assert.match(await selected(page, "Frame 530"), /the capture was saved for this frame/);
  }));

test("search finds scopes by name, steps through them and marks them", () =>
  onPage({}, async (page) => {
    await openCapture(page, file("bad.capture", bad));
    await page.keyboard.press("/");
    await page.keyboard.type("replication");
    await page.getByText("120 found").waitFor();
    await page.locator("#panel-scopes p", { hasText: "replication" }).waitFor();
    assert.deepEqual(await panel(page).locator("tbody td:first-child").allInnerTexts(), ["replication.snapshot"]);
    await page.keyboard.press("Enter");
    await selected(page, "replication.snapshot");
    const first = await page.locator("#panel-selected").textContent();
    await page.locator("#search").press("Enter");
    await page.waitForFunction((first) => document.querySelector("#panel-selected")!.textContent !== first, first);
    await page.locator("#search").press("Escape");
    await page.locator("#found", { hasText: /^$/ }).waitFor({ state: "attached" });
  }));

test("two captures are compared by the sums of their scopes", () =>
  onPage({}, async (page) => {
    await openCapture(page, file("bad.capture", bad));
    await page.getByRole("button", { name: "Compare with another capture" }).click();
    await page.setInputFiles("#other-file", file("slower.capture", badFrameCapture(2)));
    await panel(page).locator("tr").nth(1).waitFor();
    const row = panel(page).locator("tr", { hasText: "movement.step" });
    assert.match(await row.innerText(), /60\s+60\s+36\.0\sms\s+72\.0\sms\s+600\sµs\s+1\.20\sms\s+\+100\s%\s+\+600\sµs/);
    assert.match(await panel(page).locator("tr").nth(1).innerText(), /movement\.step/, "what differs most comes first");
    await page.setInputFiles("#other-file", file("junk.capture", new TextEncoder().encode("junk")));
    await panel(page).getByText("junk.capture: this is not a capture").waitFor();
  }));

test("the second capture is seen below the first: its story, its frames, and its view in step with the other's", () =>
  onPage({}, async (page) => {
    await openCapture(page, file("bad.capture", bad));
    await page.getByRole("tab", { name: "Compare" }).click();
    await page.setInputFiles("#other-file", file("slower.capture", badFrameCapture(2)));
    const second = page.locator('[data-capture="second"]');
    const screens = page.locator(".screen");
    await second.getByText("slower.capture: frame: 36.6").waitFor();
    assert.match(await second.getByRole("tabpanel").innerText(), /dark-zone 7 on worker 1/);
    const widths = async (isSame: boolean) => {
      await page.waitForFunction(
        (isSame) => {
          const [first, second] = [...document.querySelectorAll(".screen")].map((it) => it.textContent);
          return second !== "" && (first === second) === isSame;
        },
        isSame,
      );
      return screens.allInnerTexts();
    };
    const [before] = await widths(true);
    // What is pressed is about the one that was clicked last, and the other follows.
    await page.locator(".stage canvas").first().click({ position: { x: 300, y: 6 } });
    await page.keyboard.press("w");
    await page.waitForFunction((before) => document.querySelector(".screen")!.textContent !== before, before);
    const [closer] = await widths(true);
    await page.locator(".stage canvas").last().click({ position: { x: 300, y: 6 } });
    await page.keyboard.press("w");
    await page.waitForFunction((closer) => document.querySelector(".screen")!.textContent !== closer, closer);
    await widths(true);
    await page.getByLabel("move together").uncheck();
    await page.locator(".stage canvas").last().click({ position: { x: 300, y: 6 } });
    await page.keyboard.press("f");
    await widths(false);
    // Its own tables lead to its own things, and leave the first one's selection alone.
    await second.getByRole("tab", { name: "Frames" }).click();
    await second.getByRole("button", { name: "530" }).click();
    await second.locator("#second-panel-selected .title", { hasText: "Frame 530" }).waitFor();
    assert.equal(await page.locator("#panel-selected .title").count(), 0);
    // A search is for both.
    await page.locator("#search").fill("movement");
    await second.locator("#second-panel-scopes p", { hasText: "movement" }).waitFor();
    const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.equal(wide, screen);
    await second.getByRole("button", { name: "Close the second capture" }).click();
    await second.first().waitFor({ state: "detached" });
    assert.equal(await page.locator(".stage canvas").count(), 1);
  }));

test("a hostile file is refused in words, and the page goes on", () =>
  onPage({}, async (page) => {
    const damaged = bad.slice();
    damaged[damaged.length - 400]! ^= 1;
    await openCapture(page, file("damaged.capture", damaged));
    assert.match(await page.locator("#error").innerText(), /damaged\.capture: at byte \d+: the section that begins here is damaged/);
    await openCapture(page, file("short.capture", bad.slice(0, 5_000)));
    assert.match(await page.locator("#error").innerText(), /the file ends in the middle/);
    await openCapture(page, file("bad.capture", bad));
    await page.getByText("frame 530").first().waitFor();
    // With one open, another that is damaged leaves it where it is.
    await page.setInputFiles("#file", file("damaged.capture", damaged));
    await page.locator("#problem", { hasText: "is damaged" }).waitFor();
    assert.equal(await page.locator(".workspace").count(), 1);
  }));

test("names that a stranger wrote are text, whatever they say", () =>
  onPage({}, async (page) => {
    const evil = "<img src=x onerror=document.title=1>";
    const writer = new CaptureWriter({
      beginNs: 1_000,
      endNs: 9_000_000,
      frame: 1,
      game: evil,
      build: evil,
      trigger: { kind: 3, name: evil, measured: 9, allowed: 5, world: 1, atNs: 5_000, note: evil },
    });
    writer.sites([{ name: evil, category: evil }]).worlds([{ id: 1, name: evil, tickHz: 20 }]).locks([evil]).counters([evil]);
    writer.threads([{ name: evil, tid: 1, class: 1 }]);
    writer.beginThread(0).world(2_000, 1, 1).wait(0, 2_500, 3_000, { thread: 0 }).scope(0, 2_000, 5_000).count(6_000, 0, 1).endThread();
    writer.frames([{ number: 1, begin: 1_000, end: 8_000, budget: 5_000 }]);
    writer.logs([{ at: 4_000, thread: 0, level: evil, target: evil, text: evil }]);
    const story = { file: evil, verdict: evil, text: `${evil}\n\n${evil} </script><script>document.title=2</script>`, frame: 1 };
    await page.goto(withCapture("evil.html", writer.done(), story));
    await page.waitForFunction(() => document.body.dataset["state"] === "open");
    for (const tab of ["Selected", "Scopes", "Frames", "Waits", "Log", "Compare", "Story"]) {
      await page.getByRole("tab", { name: tab }).click();
      assert.equal(await page.locator("img").count(), 0, tab);
    }
    await page.getByRole("tab", { name: "Scopes" }).click();
    await panel(page).getByRole("button", { name: evil }).click();
    await selected(page, evil);
    assert.equal(await page.locator("img").count(), 0);
    assert.match(await page.title(), /^<img/);
  }));

test("a page with its capture inside opens by itself, with the story that came with it", () =>
  onPage(
    {
      url: withCapture("inside.html", bad, {
        file: "bad.capture",
        verdict: "world 7 (dark-zone) waited for a lock",
        text: "world 7 (dark-zone) waited for a lock\n\nframe 530 took 36.6 ms\n  ai.path 21 ms on worker 1\n",
        frame: BAD_FRAME,
      }),
    },
    async (page) => {
      await page.waitForFunction(() => document.body.dataset["state"] === "open");
      assert.match(await panel(page).innerText(), /world 7 \(dark-zone\) waited for a lock/);
      assert.equal(await page.locator("#capture").count(), 0);
      await panel(page).locator("pre").getByRole("button", { name: "frame 530" }).click();
      await selected(page, "Frame 530");
    },
  ));

test("keys move the picture, and the address keeps where it is", () =>
  onPage({}, async (page) => {
    await openCapture(page, file("bad.capture", bad));
    const width = async () => {
      await settled(page);
      const [, begin, end] = page.url().match(/t=(-?\d+),(-?\d+)/)!.map(Number);
      return [begin!, end! - begin!] as const;
    };
    const [begin0, width0] = await width();
    await page.keyboard.press("w");
    const [, width1] = await width();
    assert.ok(width1 < width0 * 0.8, `${width1} of ${width0}`);
    await page.keyboard.press("d");
    await page.keyboard.press("ArrowRight");
    const [begin2, width2] = await width();
    assert.ok(begin2 > begin0 && width2 === width1);
    await page.keyboard.press("[");
    await page.keyboard.press("f");
    const [, width3] = await width();
    assert.ok(width3 > 1_000_000_000);
    await page.keyboard.press("m");
    await settled(page);
    const address = page.url();
    assert.match(address, /sel=frame\.30/);
    await page.goto("about:blank");
    await page.goto(address);
    await openCapture(page, file("bad.capture", bad));
    await settled(page);
    assert.equal(new URL(page.url()).hash, new URL(address).hash);
  }));

test("at 400 pixels everything is there, without scrolling sideways", () =>
  onPage({ width: 400, height: 800, dark: true }, async (page) => {
    await openCapture(page, file("bad.capture", bad));
    const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.equal(widths[0], widths[1]);
    await page.getByRole("tab", { name: "Frames" }).click();
    await panel(page).getByRole("button", { name: "530" }).click();
    assert.match(await selected(page, "Frame 530"), /over by\s+19\.9\sms/);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(20, 24, 31)");
    await page.getByRole("button", { name: "Light or dark" }).click();
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(246, 247, 249)");
  }));

test("every control has a name", () =>
  onPage({}, async (page) => {
    await openCapture(page, file("bad.capture", bad));
    const nameless = await page.evaluate(() =>
      Array.from(document.querySelectorAll<HTMLElement>("button, input, select, canvas, [role=tabpanel]"))
        .filter((it) => {
          if (it.offsetParent === null) return false;
          const labels = (it as HTMLInputElement).labels?.length ?? 0;
          return !it.textContent?.trim() && !it.ariaLabel && !it.getAttribute("aria-labelledby") && labels === 0;
        })
        .map((it) => it.outerHTML),
    );
    assert.deepEqual(nameless, []);
  }));

test("from far away and from near, what is drawn is what the rows hold", () =>
  onPage({}, async (page) => {
    // A scope over its budget among 200,000 others is still red with everything on screen.
    await openCapture(page, file("large.capture", largeCapture(200_000)));
    const red = () =>
      page.evaluate(() => {
        const canvas = document.querySelector<HTMLCanvasElement>(".stage canvas")!;
        const { data } = canvas.getContext("2d")!.getImageData(0, 24, canvas.width, 20);
        let count = 0;
        for (let at = 0; at < data.length; at += 4) if (data[at]! > 180 && data[at + 1]! < 70 && data[at + 2]! < 80) count++;
        return count;
      });
    await page.keyboard.press("f");
    await settled(page);
    assert.ok((await red()) > 5, "the bad frame is seen");
  }));
