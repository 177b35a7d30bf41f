// What bots are like beside people: persons play a game by its page in chromium, with mouse and keys, among bots on a server that
// records; then `throng bots --compare` says what differs by more than a tenth.
//
// `THRONG=../target/release/throng npm run people [GAME] [MINUTES] [PERSONS]`. The recording is left in dist/people/GAME, so that
// it can be held against others, or said again by `throng bots --inputs`. Status 1: a value was wrong, a page ended, or the
// comparison could not be made. What differs is no failure: it is what is asked.

import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { FIGHTS, Fighter } from "./fight.ts";
import { EXECUTABLE, GIVES_UP_MS, type LiveServer, start, until } from "./live_server.ts";
import { launch } from "./page.ts";
import { type Known, known, watch } from "./person.ts";

const [game = "precinct", minutes = "20", persons = "4"] = process.argv.slice(2);
const fight = FIGHTS[game];
if (!fight) throw new Error(`no game is called ${game}; there are ${Object.keys(FIGHTS).join(", ")}`);
const folder = resolve("dist", "people", game);
/** A person looks and decides so often (ms). */
const LOOKS_EVERY_MS = 100;

interface Played {
  readonly last: Known;
  readonly farthest: number;
  readonly errors: readonly string[];
}

async function came(browser: Browser, server: LiveServer): Promise<{ page: Page; errors: string[] }> {
  const page = await browser.newPage({ viewport: { width: 480, height: 400 } });
  page.setDefaultTimeout(GIVES_UP_MS);
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(`${server.playUrl}?audit${fight!.over === "WebSocket" ? "&websocket" : ""}`);
  await until("in a world, with somebody to steer", async () => (await known(page, game)).own !== null, () => errors.join("; "));
  await watch(page, game);
  return { page, errors };
}

async function plays({ page, errors }: { page: Page; errors: string[] }, untilMs: number): Promise<Played> {
  const fighter = new Fighter(page, game);
  let last = await known(page, game);
  while (Date.now() < untilMs && last.state === "connected") {
    const next = Date.now() + LOOKS_EVERY_MS;
    last = await fighter.turn();
    await new Promise((done) => setTimeout(done, Math.max(next - Date.now(), 0)));
  }
  await fighter.rest();
  return { last, farthest: fighter.farthest, errors };
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const browser = await launch();
const settings = fight.settings ? `[game]\n${fight.settings}\n` : "";
const server = await start(game, fight.bots, settings, ["--record", folder]);
let isFine = true;
try {
  const all = [];
  for (let person = 0; person < Number(persons); person++) all.push(await came(browser, server));
  server.measure("begin");
  const untilMs = Date.now() + Number(minutes) * 60_000;
  const played = await Promise.all(all.map((one) => plays(one, untilMs)));
  server.measure("end");
  for (const [person, { last, farthest, errors }] of played.entries()) {
    const isWell = last.state === "connected" && last.errors === 0 && last.protocolErrors === 0 && errors.length === 0;
    isFine &&= isWell;
    console.log(
      `person ${person + 1}: ${last.shots} shots, ${last.hits} hits, as far as ${farthest.toFixed(0)} m; ${last.errors} of ${last.checks} values wrong${isWell ? "" : `; ${last.state} ${errors.join("; ")}`}`,
    );
  }
  await browser.close();
  const { server: report } = await server.stop();
  console.log(`${game}, ${persons} persons and ${fight.bots} bots for ${report.seconds.toFixed(0)} s: ${report.ticks_missed} ticks missed, ${report.ticks_missed_host} of them the host's`);
} finally {
  await browser.close();
  server.kill();
}
const { status } = spawnSync(EXECUTABLE, ["bots", "--game", game, "--compare", folder], { stdio: "inherit" });
process.exitCode = isFine && (status === 0 || status === 1) ? 0 : 1;
