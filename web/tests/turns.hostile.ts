// What hostile peers cost those who play: the mean of a tick while 40 of them do their worst with WebSockets, requests and metrics,
// and some with WebTransport in a browser, beside that of the seconds before and after, in turns.
//
// `THRONG=../target/release/throng npm run hostile [TURNS] [SECONDS] [GAME] [ATTACK...]`; attacks are those of attacks.ts, and
// `sessions`. A figure is the median of all turns, of a tick's time by the server's own metrics. Who attacks runs in the idle
// class, since on a host of its own it would take no core of the server's.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Schema, type SchemaData, SocketClient, openWebSocket } from "../client/index.ts";
import { ATTACKS, Answers, rest } from "./attacks.ts";
import { GIVES_UP_MS, type LiveServer, start, takeSchema, takeToken, until } from "./live_server.ts";
import { launch } from "./page.ts";

const [turns = "12", seconds = "5", game = "precinct", ...kinds] = process.argv.slice(2);
const PEERS = 40;
const SESSIONS = 10;
const BOTS = 200;

/** Time of all ticks, and their number, since the start. */
async function ticks(server: LiveServer): Promise<{ s: number; count: number }> {
  const text = await (await fetch(`http://${server.adminAddress}/metrics`)).text();
  const sum = (name: string): number =>
    text.split("\n").filter((line) => line.startsWith(`throng_world_tick_seconds_${name}{`)).reduce((sum, line) => sum + Number(line.split(" ")[1]), 0);
  return { s: sum("sum"), count: sum("count") };
}

async function meanTickUs(server: LiveServer): Promise<number> {
  const begin = await ticks(server);
  await rest(Number(seconds) * 1000);
  const end = await ticks(server);
  return ((end.s - begin.s) / (end.count - begin.count)) * 1e6;
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

async function compare(): Promise<void> {
  const server = await start(game, BOTS);
  try {
    const { token, ways } = await takeToken(server.playUrl);
    const honest = new SocketClient(new Schema((await takeSchema(server.playUrl)) as SchemaData), token, await openWebSocket(ways.webSocket, GIVES_UP_MS));
    await until("all play", () => server.status()["players"]! >= BOTS + 1 && honest.client.replicas.size > 0);
    const args = [process.execPath, ...process.execArgv, process.argv[1]!, "attack", server.playUrl, server.adminAddress, ...kinds];
    const attackers = spawn("chrt", ["--idle", "0", ...args], { stdio: ["pipe", "pipe", "inherit"] });
    const said = createInterface({ input: attackers.stdout! })[Symbol.asyncIterator]();
    await said.next();
    await rest(10_000);
    server.measure("begin");
    const [without, beside]: [number[], number[]] = [[], []];
    for (let turn = 0; turn < Number(turns); turn++) {
      without.push(await meanTickUs(server));
      attackers.stdin!.write("on\n");
      await rest(1000);
      beside.push(await meanTickUs(server));
      attackers.stdin!.write("off\n");
      await said.next();
      await rest(1000);
    }
    server.measure("end");
    attackers.stdin!.end();
    const { stateErrors, stateChecks } = honest.client.replicas.counts;
    const wasThere = honest.client.state === "connected";
    honest.close();
    const { server: report } = await server.stop();
    const counters = (report as unknown as { counters: Record<string, number> }).counters;
    const ratios = beside.map((us, turn) => us / without[turn]!);
    console.log(`${game}, ${BOTS} bots, ${turns} turns of ${seconds} s: a tick takes ${median(without).toFixed(1)} us, beside hostile peers ${median(beside).toFixed(1)} us: ${median(ratios).toFixed(3)} times (${Math.min(...ratios).toFixed(3)} to ${Math.max(...ratios).toFixed(3)})`);
    console.log(`${stateErrors} of ${stateChecks} values wrong, who played ${wasThere ? "still does" : "was thrown out"}; missed ${report["ticks_missed"]} ticks, ${report["ticks_missed_host"]} the host's`);
    console.log(`turned away: ${JSON.stringify(Object.fromEntries(Object.entries(counters).filter(([name]) => name.startsWith("browser."))))}`);
  } finally {
    server.kill();
  }
}

/** The other process: attacks between the lines `on` and `off`. */
async function attack(playUrl: string, admin: string, kinds: readonly string[]): Promise<void> {
  const { ways } = await takeToken(playUrl);
  const place = { play: new URL(ways.webSocket.replace(/^ws/, "http")), admin };
  const isMeant = (kind: string): boolean => kinds.length === 0 || kinds.includes(kind);
  const each = Object.entries(ATTACKS).flatMap(([kind, attack]) => (isMeant(kind) ? [attack] : []));
  const browser = await launch();
  const page = await browser.newPage();
  await page.goto(`${playUrl}schema.js`);
  console.log("ready");
  let isOver = true;
  let all: Promise<unknown>[] = [];
  createInterface({ input: process.stdin })
    .on("line", async (line) => {
      if (line === "on") {
        isOver = false;
        all = Array.from({ length: each.length > 0 ? PEERS : 0 }, (_, index) => each[index % each.length]!(place, () => isOver, new Answers()));
        if (isMeant("sessions")) all.push(page.evaluate(attackSessions, { place: ways.webTransport!, count: SESSIONS }));
      } else {
        isOver = true;
        await page.evaluate(() => void ((globalThis as any).isOver = true));
        await Promise.all(all);
        console.log("over");
      }
    })
    .on("close", () => void browser.close().finally(() => process.exit()));
}

/** In a page: datagrams and streams of noise as fast as they go, streams that stand still half-way, and sessions that say nothing. */
async function attackSessions({ place, count }: { place: { url: string; certificateHash: string | null }; count: number }): Promise<void> {
  const global = globalThis as any;
  global.isOver = false;
  const value = Uint8Array.from(atob(place.certificateHash!), (letter) => letter.charCodeAt(0));
  const one = async (index: number): Promise<void> => {
    while (!global.isOver) {
      const session = new WebTransport(place.url, { serverCertificateHashes: [{ algorithm: "sha-256", value }] });
      session.closed.catch(() => {});
      try {
        await session.ready;
        const datagrams = session.datagrams as any;
        const writer = (datagrams.createWritable?.() ?? datagrams.writable).getWriter();
        const kind = index % 4;
        // Half a packet each, and no end: as many as the server takes at once, but two.
        for (let stream = 0; kind === 3 && stream < 6; stream++) await (await session.createUnidirectionalStream()).getWriter().write(new Uint8Array(600));
        for (let sent = 0; !global.isOver; sent++) {
          if (kind === 0) await writer.write(crypto.getRandomValues(new Uint8Array(1 + (sent % 1000))));
          if (kind === 1) {
            const stream = (await session.createUnidirectionalStream()).getWriter();
            await stream.write(new Uint8Array(1 + (sent % 3000)));
            await stream.close();
          }
          if (kind > 1 || sent % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        }
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      session.close();
    }
  };
  await Promise.all(Array.from({ length: count }, (_, index) => one(index)));
}

if (turns === "attack") await attack(seconds, game, kinds);
else await compare();
