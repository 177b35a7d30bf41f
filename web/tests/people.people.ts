// What bots are like beside people: persons play a game by its page in chromium, with mouse and keys, on servers that record; then
// `throng bots --compare` says what differs by more than a tenth.
//
// In a world that persons share with bots, counts and times are nobody's. So there are three servers, made for as many players and
// with the same settings: one that both share, one for persons alone, and one for as many bots. They run at the same time, so that a
// machine with too little time for everybody lacks it for all alike; times are of replays, which come afterwards.
//
// `THRONG=../target/release/throng npm run people [GAME] [MINUTES] [PERSONS]`. The recordings are left in dist/people/GAME, so that
// they can be held against others, or said again by `throng bots --inputs`. Status 1: a value was wrong, a page ended, or a
// comparison could not be made, or says nothing, since too little was played. What differs is no failure: it is what is asked.

import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { FIGHTS, Fighter } from "./fight.ts";
import { EXECUTABLE, GIVES_UP_MS, type LiveServer, SPARE_PLAYERS, start, until } from "./live_server.ts";
import { launch } from "./page.ts";
import { type Known, known, watch } from "./person.ts";

const [game = "precinct", minutes = "20", wanted = "4"] = process.argv.slice(2);
const fight = FIGHTS[game]!;
if (!fight) throw new Error(`no game is called ${game}; there are ${Object.keys(FIGHTS).join(", ")}`);
const count = Number(wanted);
const { matchSize } = fight;
// Whoever a match lacks would be waited for, and bots are to have a seat beside persons.
const fits = matchSize ? count % 2 === 0 && count < matchSize : true;
if (!(Number.isInteger(count) && count >= 1 && fits)) throw new Error(`${game} is not for ${wanted} persons${matchSize ? `, but for an even number below ${matchSize}` : ""}`);
/** Bots on the server that both share. */
const beside = matchSize ? matchSize - count : fight.bots;
/** As many on each server: worlds are made by that. */
const MADE_FOR = SPARE_PLAYERS + beside;
const folder = resolve("dist", "people", game);
/** A person looks and decides so often (ms). */
const LOOKS_EVERY_MS = 100;

/** A server that records, and who plays on it. */
interface Recorded {
  readonly who: string;
  readonly folder: string;
  readonly server: LiveServer;
}

interface Person {
  readonly page: Page;
  readonly errors: readonly string[];
}

interface Played {
  readonly last: Known;
  readonly farthest: number;
  readonly errors: readonly string[];
}

async function open(name: string, who: string, persons: number, bots: number): Promise<Recorded> {
  const recordings = join(folder, name);
  mkdirSync(recordings, { recursive: true });
  const settings = matchSize ? `[game]\nteam_size = ${(persons + bots) / 2}\n${fight.settings}\n` : "";
  const server = await start(game, bots, settings, ["--record", recordings], MADE_FOR);
  return { who, folder: recordings, server };
}

async function come(browser: Browser, { server }: Recorded): Promise<Person> {
  const page = await browser.newPage({ viewport: { width: 480, height: 400 } });
  page.setDefaultTimeout(GIVES_UP_MS);
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(`${server.playUrl}?audit${fight.over === "WebSocket" ? "&websocket" : ""}`);
  await until("in a world, with somebody to steer", async () => (await known(page, game)).own !== null, () => errors.join("; "));
  await watch(page, game);
  return { page, errors };
}

async function play({ page, errors }: Person, untilMs: number): Promise<Played> {
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

/** Says how it went for each; whether all was well. */
function tell(where: string, played: readonly Played[]): boolean {
  let isFine = true;
  for (const [person, { last, farthest, errors }] of played.entries()) {
    const isWell = last.state === "connected" && last.errors === 0 && last.protocolErrors === 0 && errors.length === 0;
    isFine &&= isWell;
    console.log(
      `person ${person + 1} ${where}: ${last.shots} shots, ${last.hits} hits, as far as ${farthest.toFixed(0)} m; ${last.errors} of ${last.checks} values wrong${isWell ? "" : `; ${last.state} ${errors.join("; ")}`}`,
    );
  }
  return isFine;
}

/** Whether the recordings could be held against each other, and enough was played to say something: otherwise its status is 2. */
function compare(heading: string, ...recordings: string[]): boolean {
  console.log(`\n${heading} (${recordings.map((path) => relative(".", path)).join(", ")})\n`);
  const { status } = spawnSync(EXECUTABLE, ["bots", "--game", game, "--compare", ...recordings], { stdio: "inherit" });
  return status === 0 || status === 1;
}

rmSync(folder, { recursive: true, force: true });
const browser = await launch();
const all: Recorded[] = [];
let isFine = true;
try {
  all.push(await open("together", `${count} persons beside ${beside} bots`, count, beside), await open("persons", `${count} persons`, count, 0));
  const here = await Promise.all(all.map((one) => Promise.all(Array.from({ length: count }, () => come(browser, one)))));
  // Not before persons are in, which takes them longer: both are to play for as long.
  const bots = await open("bots", `${count} bots`, 0, count);
  all.push(bots);
  await until("bots are in", () => (bots.server.status()["players"] ?? 0) >= count);
  for (const { server } of all) server.measure("begin");
  const untilMs = Date.now() + Number(minutes) * 60_000;
  const [playedBeside, playedAlone] = await Promise.all(here.map((those) => Promise.all(those.map((one) => play(one, untilMs)))));
  for (const { server } of all) server.measure("end");
  isFine = [tell("beside bots", playedBeside!), tell("alone", playedAlone!)].every(Boolean);
  await browser.close();
  const reports = await Promise.all(all.map(({ server }) => server.stop()));
  for (const [index, { server: report }] of reports.entries()) {
    console.log(`${game}, ${all[index]!.who} for ${report.seconds.toFixed(0)} s: ${report.ticks_missed} ticks missed, ${report.ticks_missed_host} of them the host's`);
  }
} finally {
  await browser.close();
  for (const { server } of all) server.kill();
}
const [shared, ofPersons, ofBots] = all.map((one) => one.folder) as [string, string, string];
const areCompared = [
  compare(`${game}, a: ${count} persons by themselves, b: ${count} bots by themselves`, ofPersons, ofBots),
  compare(`${game}, a: ${count} persons, b: ${beside} bots beside them on one server`, shared),
].every(Boolean);
process.exitCode = isFine && areCompared ? 0 : 1;
