// What watching costs a server: its processor time while the console shows one of its worlds in chromium, and without, in
// turns, under the load of bots.
//
// `npm run figures watch`; TURN_S, ROUNDS and PLAYERS in the environment. A round is A B B A, so that what grows or falls
// steadily adds to the one pair what it takes from the other. The browser runs in the idle class: it takes no core that
// the server wants. Each figure stands beside its goal, and the program ends with status 1 where the figure is surely
// beyond it: where even the lower end of its interval is. Fewer than three rounds make nothing sure.
//
// The difference of all threads has whatever else the turns differed in, so its interval is wide on a busy host. What
// the admin's own threads took is the larger part of watching and known far better; the rest, which the frame's thread and
// the watched world do for it, is in the difference alone.

import { loadavg } from "node:os";
import type { Page } from "playwright-core";
import { CONFIDENCE_MIN, medianInterval, type MedianInterval } from "./median_interval.ts";
import { launch, livePage } from "./page.ts";
import { Server } from "./server.ts";
import { threadsTime, used } from "./threads_time.ts";

const TURN_S = Number(process.env["TURN_S"] ?? 10);
const ROUNDS = Number(process.env["ROUNDS"] ?? 6);
const PLAYERS = Number(process.env["PLAYERS"] ?? 100);
/** Until bots are in their worlds. */
const WARM_UP_S = Number(process.env["WARM_UP_S"] ?? 15);

/** Of what the server uses while nobody watches, at most. */
const WATCHED_PERCENT_GOAL = 1;
/** While nobody watches the admin's threads do nothing but wake for a timer now and then. */
const UNWATCHED_PERCENT_GOAL = 0;
const NOTHING_PERCENT = 0.01;

/** The admin's own, and the one that carries out what may block it. */
const ADMIN_THREADS = new Set(["admin", "tokio-rt-worker"]);

interface Turn {
  /** Processor time a second (ns). */
  all: number;
  admin: number;
}

const wait = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
const say = (what: string, value: string) => console.log(`${what.padEnd(34)} ${value}`);
const told = { seconds: 0, bytes: 0, worlds: 0 };
let ended = 0;

const server = await Server.start({ players: PLAYERS, npcs: 4 * PLAYERS });
const browser = await launch({ isIdle: true });
try {
  const { page } = await livePage(browser, `${server.url}/#/worlds`);
  await wait(WARM_UP_S);
  const address = await fullestWorld(page);
  await countWhatIsTold(page);
  const pairs: { alone: Turn; watched: Turn }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const first = await turn(page);
    const watched = [await turn(page, address), await turn(page, address)] as const;
    const last = await turn(page);
    pairs.push({ alone: first, watched: watched[0] }, { alone: last, watched: watched[1] });
  }
  const isReached = report(address, pairs);
  process.exitCode = isReached ? 0 : 1;
} finally {
  await browser.close();
  await server.stop();
}

/** What the server uses while the page shows `address`, or none of the server's. */
async function turn(page: Page, address?: string): Promise<Turn> {
  await page.goto(address ?? "about:blank");
  if (address) await page.locator('section[aria-label="Systems"] tbody tr').first().waitFor();
  // What opening and closing cost is no cost of watching.
  await wait(2);
  const { bytes, worlds } = told;
  const [before, began] = [threadsTime(server.pid), performance.now()];
  await wait(TURN_S);
  const [after, seconds] = [threadsTime(server.pid), (performance.now() - began) / 1000];
  if (address) told.seconds += seconds;
  else [told.bytes, told.worlds] = [bytes, worlds];
  const { all, named, ended: gone } = used(before, after, ADMIN_THREADS);
  ended += gone;
  return { all: all / seconds, admin: named / seconds };
}

/** The address of the world that has most players. */
async function fullestWorld(page: Page): Promise<string> {
  const worlds = page.locator('section[aria-label="Worlds"]:visible');
  await worlds.getByRole("button", { name: "players", exact: true }).click();
  await worlds.locator("tbody tr").first().locator("button").click();
  await page.locator("body[data-panel=world]").waitFor();
  return page.url();
}

/** So that it is seen that the page was told something: bytes of its stream, and answers about its world. */
async function countWhatIsTold(page: Page): Promise<void> {
  const protocol = await page.context().newCDPSession(page);
  await protocol.send("Network.enable");
  protocol.on("Network.dataReceived", ({ dataLength }) => (told.bytes += dataLength));
  page.on("response", (answer) => {
    if (answer.request().method() === "POST" && answer.ok()) told.worlds++;
  });
}

function report(address: string, pairs: { alone: Turn; watched: Turn }[]): boolean {
  const median = (of: (pair: { alone: Turn; watched: Turn }) => number) => medianInterval(pairs.map(of));
  const cores = (ns: number) => `${(ns / 1e9).toFixed(4)} cores`;
  const perSecond = (of: number) => (of / told.seconds).toFixed(1);
  say("players, turns, s a turn", `${PLAYERS}, ${pairs.length} alone and ${pairs.length} watched, ${TURN_S}`);
  say("the page", `${address.replace(server.url, "")}: ${perSecond(told.bytes / 1024)} KiB and ${perSecond(told.worlds)} answers about the world in a second`);
  say("alone", `${cores(median(({ alone }) => alone.all).median)}, of them the admin's threads ${(median(({ alone }) => alone.admin).median / 1e3).toFixed(0)} us in a second`);
  say("watched", `${cores(median(({ watched }) => watched.all).median)}, of them the admin's threads ${(median(({ watched }) => watched.admin).median / 1e3).toFixed(0)} us in a second`);
  const more = median(({ alone, watched }) => ((watched.all - alone.all) / alone.all) * 100);
  const admin = median(({ alone, watched }) => ((watched.admin - alone.admin) / alone.all) * 100);
  const unwatched = median(({ alone }) => (alone.admin / alone.all) * 100);
  const verdicts = [
    judged("watched: more by all threads", more, `<= ${WATCHED_PERCENT_GOAL} %`, WATCHED_PERCENT_GOAL),
    judged("watched: more by the admin's own", admin, `<= ${WATCHED_PERCENT_GOAL} %`, WATCHED_PERCENT_GOAL),
    judged("unwatched: the admin's own", unwatched, `${UNWATCHED_PERCENT_GOAL} %`, UNWATCHED_PERCENT_GOAL + NOTHING_PERCENT),
  ];
  if (ended > 0) say("", `${ended} threads ended within turns; what those did in them is not counted`);
  say("load of the machine", loadavg().map((it) => it.toFixed(1)).join(" "));
  return verdicts.every((isReached) => isReached);
}

/** Percent of what the server uses alone. */
function judged(what: string, { median, low, high, confidence }: MedianInterval, goal: string, most: number): boolean {
  const isSure = confidence >= CONFIDENCE_MIN;
  const isMissed = isSure && low > most;
  const verdict = isMissed ? "MISSED" : isSure && high <= most ? "reached" : "not sure: more turns, or a quieter machine, would tell";
  say(what, `${median.toFixed(3)} %, between ${low.toFixed(3)} and ${high.toFixed(3)} (${(confidence * 100).toFixed(0)} % sure) (goal: ${goal}: ${verdict})`);
  return !isMissed;
}
