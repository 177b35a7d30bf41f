// The part of `npm run hostile` in a process of its own: attacks on a server from the line that has its number until `off`. It says
// `ready` when it may be told so, and after each `off`, when all attacks have ended, what was answered since its start as JSON. It
// ends with its standard input.
//
// Its arguments: how many servers there are, the play page and the admin port of each, and which attacks.

import { createInterface } from "node:readline";
import type { Page } from "playwright-core";
import { ATTACKS, Answers, openSessionsPage } from "./attacks.ts";
import { GIVES_UP_MS, takeToken, within } from "./live_server.ts";
import { launch } from "./page.ts";

const PEERS = 40;
const SESSIONS = 10;
/** Until one is said to hang: sooner than whoever waits for all of them loses patience (ms). */
const ENDS_WITHIN_MS = GIVES_UP_MS / 2;

const [count, ...words] = process.argv.slice(2);
const urls = words.slice(0, 2 * Number(count));
const kinds = words.slice(2 * Number(count));
const each = Object.entries(ATTACKS).filter(([kind]) => isMeant(kind));
const browser = isMeant("sessions") ? await launch() : null;
const servers = await Promise.all(Array.from({ length: Number(count) }, (_, index) => attacked(urls[2 * index]!, urls[2 * index + 1]!)));
const answers = new Answers();
let isOver = true;
let page: Page | null = null;
let all: (readonly [kind: string, attack: Promise<void>])[] = [];

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  if (line !== "off") {
    const { place, webTransport, page: its } = servers[Number(line)]!;
    isOver = false;
    page = its;
    all = Array.from({ length: each.length > 0 ? PEERS : 0 }, (_, index) => {
      const [kind, attack] = each[index % each.length]!;
      return [kind, attack(place, () => isOver, answers)];
    });
    await page?.evaluate(([place, count]) => sessions.begin(place, count), [webTransport, SESSIONS] as const);
  } else {
    isOver = true;
    if (page) all.push(["sessions", page.evaluate(() => sessions.end())]);
    await Promise.all(all.map(([kind, attack]) => within(ENDS_WITHIN_MS, `${kind} have ended`, attack)));
    console.log(JSON.stringify(answers));
  }
}
await browser?.close();
process.exit();

function isMeant(kind: string): boolean {
  return kinds.length === 0 || kinds.includes(kind);
}

/** A server to attack, and the page whose sessions do so. */
async function attacked(playUrl: string, admin: string) {
  const { ways } = await takeToken(playUrl);
  const place = { play: new URL(ways.webSocket.replace(/^ws/, "http")), admin };
  const page = browser && (await openSessionsPage(browser, playUrl));
  return { place, webTransport: ways.webTransport!, page };
}
