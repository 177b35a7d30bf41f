// The console as an operator uses it: in chromium, on a real server with bots and a world that is slow on purpose.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import type { WorldShown } from "../console/world.ts";
import { launch, livePage } from "./page.ts";
import { Server } from "./server.ts";

let browser: Browser;
let server: Server;

before(async () => {
  [browser, server] = await Promise.all([launch(), Server.start({ players: 8, npcs: 24, inject: ["slow-world"] })]);
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

async function onConsole(where: string, options: Parameters<typeof livePage>[2], body: (page: Page) => Promise<void>, of = server): Promise<void> {
  const { page, errors, context } = await livePage(browser, `${of.url}/${where}`, options);
  try {
    await page.locator("body[data-stream=live]").waitFor();
    await body(page);
    assert.deepEqual(errors, []);
  } finally {
    await context.close();
  }
}

const tab = (page: Page, name: string) => page.locator("#tabs").getByRole("button", { name, exact: true }).click();
const section = (page: Page, name: string) => page.locator(`section[aria-label="${name}"]:visible`);

async function giveKey(page: Page, key: string): Promise<void> {
  const dialog = page.getByRole("dialog", { name: "Key" });
  await dialog.getByLabel("Key").fill(key);
  await dialog.getByRole("button", { name: "Show it" }).click();
}

/** A cell of a table that says exactly this. */
const cell = (page: Page, text: string) => page.locator("td", { hasText: new RegExp(`^${text}$`) });

/** The scope in which a world that is slow on purpose spends its time; no other world has it. */
const FAULT = "throng_faults.world.inflict";

/** The world that has the fault, by what the server says each of them ran. */
async function slowWorld(of = server): Promise<{ id: string; kind: string }> {
  for (let look = 0; look < 60; look++) {
    const { rows } = await of.command<{ rows: { world: string; kind: string }[] }>("world.list");
    for (const { world: id, kind } of rows) {
      const { scopes } = await of.command<Pick<WorldShown, "scopes">>(`world.show ${id}`);
      if (scopes.some(({ name }) => name === FAULT)) return { id, kind };
    }
    // Nobody has come to it yet, so that it sleeps or is not there.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  throw new Error(`no world has the scope ${FAULT}`);
}

test("the overview runs: frames, players, subsystems and worlds change by themselves", () =>
  onConsole("", {}, async (page) => {
    await page.waitForFunction(() => Number(document.querySelector<HTMLElement>("canvas.frames")?.dataset["frames"]) > 60);
    await page.waitForFunction(() => Number(document.querySelector("#tile-players strong")?.textContent) === 8);
    await section(page, "Subsystems").locator("tbody tr").first().waitFor();
    const worlds = section(page, "Worlds");
    await worlds.locator("tbody tr").first().waitFor();
    // The slow one comes to the top, since its ticks take 40 ms more than any other's; its longest is no less.
    await page.waitForFunction(() => {
      const cells = [...document.querySelectorAll('section[aria-label="Worlds"] tbody tr:first-child td')].map((cell) => cell.textContent ?? "");
      const ms = (text?: string) => (/ms|\bs$/.test(text ?? "") ? Number.parseFloat(text!) : 0);
      return ms(cells[3]) >= 35 && ms(cells[4]) >= 35;
    });
    assert.match(await page.locator("#state").innerText(), /running/);
    await section(page, "What is wrong").locator("li").first().waitFor();
  }));

/** What a chart is of, up to its newest second (s). */
async function charted(page: Page, name: string): Promise<number> {
  const label = await page.locator(`canvas[aria-label^="${name}:"]`).getAttribute("aria-label");
  return Number(/in the last (\d+) s$/.exec(label!)![1]);
}

test("who opens the page sees what was before, after a reload as well", async () => {
  const seconds = 10;
  while ((await server.past()).second.length < seconds) await new Promise((resolve) => setTimeout(resolve, 500));
  const check = async (page: Page, opened: number) => {
    const [told, open] = [await charted(page, "Longest frame"), (Date.now() - opened) / 1_000];
    assert.ok(told >= seconds - 1 && told > open, `${told} s of a page that was opened ${open} s ago`);
    const [, from] = /^From (\S+ \S+) to /.exec(await page.locator(".charts > p").innerText())!;
    assert.ok(Date.parse(`${from}Z`) < opened, `from ${from}`);
  };
  const opened = Date.now();
  await onConsole("", {}, async (page) => {
    await check(page, opened);
    const again = Date.now();
    await page.reload();
    await check(page, again);
  });
});

test("who was not there sees since when a world is behind, after a reload as well", async () => {
  const wait = () => new Promise((resolve) => setTimeout(resolve, 500));
  const bad = await Server.start({ players: 4, npcs: 12, inject: ["short-surge"] });
  try {
    const { id } = await slowWorld(bad);
    // Five seconds and more after a world was overloaded first, and nobody has looked.
    const overloaded = async () => (await bad.past()).worlds_overloaded.slice(0, -5).some((worlds) => worlds > 0);
    while (!(await overloaded())) await wait();
    const opened = Date.now();
    const since = async (page: Page): Promise<string> => {
      const about = page.locator("#world-about", { hasText: /behind/ });
      return /behind (?:since|from) (\d\d:\d\d:\d\d)/.exec(await about.innerText())![1]!;
    };
    await onConsole(`#/world/${id}`, {}, async (page) => {
      const told = await since(page);
      const day = new Date(opened).toISOString().slice(0, 10);
      const ago = (opened - Date.parse(`${day}T${told}Z`)) / 1_000;
      // A day more, where midnight lies between.
      assert.ok((ago + 86_400) % 86_400 < 3_600, `${told} is ${ago} s before the page was opened`);
      await page.reload();
      assert.equal(await since(page), told);
      await tab(page, "Worlds");
      await section(page, "Worlds").locator("td", { hasText: told }).waitFor();
      await tab(page, "Overview");
      const label = await page.locator('canvas[aria-label^="Worlds overloaded:"]').getAttribute("aria-label");
      assert.match(label!, /at most [1-9]/);
    }, bad);
  } finally {
    await bad.stop();
  }
});

test("a bad frame is opened, and its slow world found in the picture", () =>
  onConsole("#/worlds", {}, async (page) => {
    const { id, kind } = await slowWorld();
    await tab(page, "Captures");
    const captures = section(page, "Captures").locator("tbody tr");
    const row = captures.filter({ has: cell(page, "scope") }).filter({ has: cell(page, `${kind} ${id}`) }).first();
    await row.waitFor();
    const words = section(page, "Captures").getByRole("searchbox");
    await words.fill("no such words");
    await captures.first().waitFor({ state: "detached" });
    await section(page, "Captures").getByText("None of them has what is looked for.").waitFor();
    await words.fill(`${kind} ${id}`.toUpperCase());
    await row.waitFor();
    await captures.filter({ hasNotText: `${kind} ${id}` }).first().waitFor({ state: "detached" });
    const [viewer] = await Promise.all([page.context().waitForEvent("page"), row.locator("button").click()]);
    await viewer.waitForFunction(() => /open$|error/.test(document.body.dataset["state"] ?? ""));
    assert.equal(await viewer.locator("body").getAttribute("data-state"), "open", await viewer.locator("#error").innerText());
    assert.ok(viewer.url().startsWith(`${server.url}/viewer`));
    assert.match(await viewer.locator("#about").innerText(), /scope .+\sms where/);
    const verdict = viewer.locator(".verdict");
    assert.match(await verdict.innerText(), new RegExp(`world ${id} \\(${kind}\\)`));
    // From its name in the story to it in the picture, and in it to the scope that is slow on purpose.
    await verdict.getByRole("button", { name: `world ${id}`, exact: true }).click();
    await viewer.locator("#panel-selected .title", { hasText: `World ${kind} ${id}` }).waitFor();
    assert.equal(await viewer.locator("#world").inputValue(), id);
    await viewer.getByRole("tab", { name: "Scopes" }).click();
    await viewer.locator("#panel-scopes tbody td:first-child", { hasText: FAULT }).waitFor();
    // A second look: the page hands it over again.
    await viewer.reload();
    await viewer.waitForFunction(() => document.body.dataset["state"] === "open");
  }));

test("a budget is changed with a key, and seen to act", () =>
  onConsole("", {}, async (page) => {
    await page.waitForFunction(() => /\d/.test(document.querySelector("#tile-captures strong")?.textContent ?? ""));
    const before = Number((await page.locator("#tile-captures strong").innerText()).replace(/\D/g, ""));
    await tab(page, "Settings");
    const budgets = section(page, "Budgets");
    await budgets.getByLabel("Name").fill("replication");
    await budgets.getByLabel("Microseconds").fill("0.5");
    await budgets.getByRole("button", { name: "Give a budget" }).click();
    // Nobody has shown a key yet; what is none is refused in words.
    const dialog = page.getByRole("dialog", { name: "Key" });
    await giveKey(page, "open sesame");
    assert.match(await dialog.getByRole("alert").innerText(), /64 hexadecimal digits/);
    await giveKey(page, server.key);
    await page.locator(".said.good", { hasText: "replication may take 0.5" }).waitFor();
    assert.ok(!page.url().includes(server.key), "a key is in no address");
    const changed = section(page, "Changes").locator("tbody tr").first();
    await changed.filter({ hasText: "budget.set subsystem replication 0.5" }).waitFor();
    await tab(page, "Subsystems");
    const row = section(page, "Subsystems").locator("tbody tr", { has: page.locator("td", { hasText: /^replication$/ }) });
    await row.locator("td.bad").waitFor();
    await tab(page, "Overview");
    await page.waitForFunction((most) => Number((document.querySelector("#tile-captures strong")?.textContent ?? "").replace(/\D/g, "")) > most, before);
    // And away again.
    await server.command("budget.clear subsystem replication", server.key);
    await tab(page, "Subsystems");
    await row.locator("td.bad").waitFor({ state: "detached" });
  }));

test("a rule is changed with a key, a wrong value is refused in the server's words, and the file takes it back", () =>
  onConsole("#/settings", {}, async (page) => {
    const rules = section(page, "Rules");
    const rule = (key: string) => rules.locator(`tr[data-name="${key}"]`);
    const frame = rule("triggers.frame.cooldown_s");
    const shows = async (value: string, from: string) => {
      await frame.locator("td", { hasText: new RegExp(`^${from}$`) }).waitFor();
      assert.equal(await frame.getByRole("textbox").inputValue(), value);
    };
    const give = async (value: string) => {
      await frame.getByRole("textbox").fill(value);
      await frame.getByRole("button", { name: "Set" }).click();
    };
    await shows("30", "default");
    // As the file of these tests has it (server.ts).
    const ofFile = rule("triggers.subsystem.cooldown_s");
    await ofFile.locator("td", { hasText: /^file$/ }).waitFor();
    assert.equal(await ofFile.getByRole("textbox").inputValue(), "5");
    assert.equal(await rule("replication.tiers").getByRole("textbox").count(), 0, "tiers are changed in the file");

    await give("7");
    await page.getByRole("dialog", { name: "Key" }).getByRole("button", { name: "Cancel" }).click();
    await page.locator(".said.bad", { hasText: "that needs a key" }).waitFor();
    await give("-1");
    await giveKey(page, server.key);
    const said = page.locator(".said.bad", { hasText: "triggers.frame.cooldown_s: -1 is too low; it may be 0 to 86400 s" });
    await said.waitFor();
    const box = (await said.boundingBox())!;
    assert.ok(box.y >= 0 && box.y + box.height <= 900, "it is on the screen, beside the row that was changed");
    await shows("30", "default");
    await give("7");
    await page.locator(".said.good", { hasText: "triggers.frame.cooldown_s is 7" }).waitFor();
    await shows("7", "console");
    const changes = section(page, "Changes").locator("tbody tr");
    await changes.nth(0).filter({ hasText: "rules.set triggers.frame.cooldown_s 7" }).filter({ hasText: "200" }).waitFor();
    await changes.nth(1).filter({ hasText: "rules.set triggers.frame.cooldown_s -1" }).filter({ hasText: "400" }).waitFor();

    // Rows that come while somebody types take nothing of it.
    let isAnswered = false;
    await page.route("**/*", async (route) => {
      if (!route.request().postData()?.includes("rules.list")) return route.continue();
      await new Promise((resolve) => setTimeout(resolve, 500));
      await route.continue();
      isAnswered = true;
    });
    await give("-2");
    await page.locator(".said.bad", { hasText: "-2 is too low" }).waitFor();
    await frame.getByRole("textbox").fill("9");
    while (!isAnswered) await page.waitForTimeout(50);
    await page.unrouteAll({ behavior: "wait" });
    await page.waitForTimeout(500);
    assert.equal(await frame.getByRole("textbox").inputValue(), "9");
    await frame.getByRole("button", { name: "Set" }).click();
    await shows("9", "console");

    // A category of the log has no row before somebody names it.
    await rules.getByLabel("Key of the rule").fill("log.server.clients");
    await rules.getByLabel("Value of the rule").fill("debug");
    await rules.getByRole("button", { name: "Set a rule" }).click();
    const category = rule("log.server.clients");
    await category.locator("td", { hasText: /^console$/ }).waitFor();
    await page.getByRole("button", { name: "Read the rules again" }).click();
    await category.waitFor({ state: "detached" });
    await shows("30", "default");
  }));

test("a world is drilled into: its systems, its clients' lines, its entities", () =>
  onConsole("#/worlds", {}, async (page) => {
    const worlds = section(page, "Worlds");
    await worlds.getByRole("button", { name: "players", exact: true }).click();
    const row = worlds.locator("tbody tr").first();
    const players = Number(await row.locator("td").nth(2).innerText());
    assert.ok(players > 0);
    await row.locator("button").click();
    await page.locator("body[data-panel=world]").waitFor();
    assert.match(page.url(), /#\/world\/\d+/);
    await section(page, "Systems").locator("tbody tr", { hasText: "replication" }).first().waitFor();
    const client = section(page, "Clients").locator("tbody tr").first();
    assert.match(await client.innerText(), /\d+\s+[\d.]+\s(ms|µs|ns|s)\s+[\d.]+\s%\s+[\d.]+\s[KM]iB\/s/);
    await section(page, "Entities").locator("tbody tr").first().waitFor();
    assert.match(await page.locator("#world-about").innerText(), /(awake|slowed to \d+ %), \d+ Hz, \d+ players?/);
    // A word that is none of a world's is not passed on.
    await page.goto(`${server.url}/#/world/evil`);
    await page.getByText("evil is no world").waitFor();
  }));

test("the console completes with Tab, answers, and says what needs a key", () =>
  onConsole("#/console", {}, async (page) => {
    const line = page.getByLabel("Command");
    await line.fill("world.li");
    await line.press("Tab");
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>(".line")?.value === "world.list ");
    await line.press("Enter");
    await page.locator(".answers pre", { hasText: "players" }).waitFor();
    await line.fill("trig");
    await line.press("Tab");
    await page.locator(".choices button", { hasText: "trigger.list" }).waitFor();
    await line.fill("trigger.set tick off");
    await line.press("Enter");
    await page.getByRole("dialog", { name: "Key" }).getByRole("button", { name: "Cancel" }).click();
    await page.locator(".answers pre.bad", { hasText: "operate" }).waitFor();
    await line.press("ArrowUp");
    assert.equal(await line.inputValue(), "trigger.set tick off");
  }));

test("a wrong key lets nobody in, and another one does", () =>
  onConsole("", {}, async (page) => {
    await page.getByRole("button", { name: "Show a key" }).click();
    await giveKey(page, "77".repeat(32));
    await page.locator("body[data-stream=refused]").waitFor();
    assert.match(await page.locator("#problem").innerText(), /no key of this server/);
    await page.getByRole("button", { name: "Show another key" }).click();
    await giveKey(page, server.key);
    await page.locator("body[data-stream=live]").waitFor();
    await page.locator("#who", { hasText: "operate" }).waitFor();
  }));

test("on a phone nothing is wider than the screen, in any panel, light and dark", async () => {
  for (const dark of [false, true]) {
    await onConsole("", { width: 400, height: 800, dark }, async (page) => {
      for (const panel of ["overview", "worlds", "subsystems", "traffic", "host", "captures", "settings", "console"]) {
        await page.goto(`${server.url}/#/${panel}`);
        await page.locator(`body[data-panel=${panel}]`).waitFor();
        await page.locator("#main h2:visible").first().waitFor();
        const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
        assert.ok(wide! <= screen!, `${panel}: ${wide} of ${screen}`);
      }
    });
  }
});

test("a server that stands still is told as silent, and as running when it goes on", () =>
  onConsole("", {}, async (page) => {
    server.pause(true);
    try {
      await page.locator("body[data-stream=silent]").waitFor();
      assert.match(await page.locator("#state").innerText(), /silent/);
    } finally {
      server.pause(false);
    }
    await page.locator("body[data-stream=live]").waitFor();
  }));
