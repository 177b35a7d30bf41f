// The part of `npm run hostile` in a process of its own: attacks between the lines `on` and `off`. It says `ready` when it may be
// told so, and after each `off`, when all attacks have ended, what was answered since its start as JSON. It ends with its
// standard input.

import { createInterface } from "node:readline";
import { ATTACKS, Answers } from "./attacks.ts";
import { GIVES_UP_MS, takeToken, within } from "./live_server.ts";
import { launch } from "./page.ts";
import { pagePart } from "./parts.ts";
import type {} from "./turns.page.ts";

const PEERS = 40;
const SESSIONS = 10;
/** Until one is said to hang: sooner than whoever waits for all of them loses patience (ms). */
const ENDS_WITHIN_MS = GIVES_UP_MS / 2;

const [playUrl = "", admin = "", ...kinds] = process.argv.slice(2);
const { ways } = await takeToken(playUrl);
const place = { play: new URL(ways.webSocket.replace(/^ws/, "http")), admin };
const each = Object.entries(ATTACKS).filter(([kind]) => isMeant(kind));
const page = isMeant("sessions") ? await opened() : null;
const answers = new Answers();
let isOver = true;
let all: (readonly [kind: string, attack: Promise<void>])[] = [];

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "on") {
    isOver = false;
    all = Array.from({ length: each.length > 0 ? PEERS : 0 }, (_, index) => {
      const [kind, attack] = each[index % each.length]!;
      return [kind, attack(place, () => isOver, answers)];
    });
    await page?.evaluate(([place, count]) => sessions.begin(place, count), [ways.webTransport!, SESSIONS] as const);
  } else {
    isOver = true;
    if (page) all.push(["sessions", page.evaluate(() => sessions.end())]);
    await Promise.all(all.map(([kind, attack]) => within(ENDS_WITHIN_MS, `${kind} have ended`, attack)));
    console.log(JSON.stringify(answers));
  }
}
await page?.context().browser()?.close();
process.exit();

function isMeant(kind: string): boolean {
  return kinds.length === 0 || kinds.includes(kind);
}

async function opened() {
  const page = await (await launch()).newPage();
  page.on("pageerror", (error) => console.error(String(error)));
  await page.goto(`${playUrl}schema.js`);
  await page.evaluate(pagePart("turns"));
  return page;
}
