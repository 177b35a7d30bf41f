// 200 browsers' worth of clients beside 500 native ones in one server: ticks missed, state errors, and what a browser's client
// costs the server beside a native one. Over WebSockets it is this package in Node; Node has no WebTransport, so over that it
// is the module that the server gives to pages, many clients to a page of chromium.
//
// `THRONG=../target/release/throng npm run load [GAME] [SECONDS] [CROWD...]`. A crowd is `NATIVE` or
// `NATIVE,WEBSOCKETS,WEBTRANSPORTS`; each has a server of its own, one after the other, and what is more in a crowd than in the
// first is said by the client. Costs are processor time of the server, gateway included, as it says itself once a second; what
// is left of the noise is said by the spread.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Page } from "playwright-core";
import { Schema, type SchemaData, SocketClient, openWebSocket } from "../client/index.ts";
import { GIVES_UP_MS, type LiveServer, start, takeSchema, takeToken, until } from "./live_server.ts";
import { launch } from "./page.ts";

// Node's own arguments and the file's name come first.
const [game = "precinct", seconds = "30", ...others] = process.argv.slice(2);
const SECONDS = Number(seconds);
const CROWDS = others.length > 0 ? others : ["500", "700", "500,200,0", "500,100,100"];
/** Clients of a page. */
const PAGE_CLIENTS = 25;
/** As the server gives tokens to everybody: 20 a second (ms). */
const TOKEN_EVERY_MS = 60;
const INPUT_EVERY_MS = 25;
/** One in so many asks for audit samples. */
const AUDITED = 10;

const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Crowd {
  readonly native: number;
  readonly webSockets: number;
  readonly webTransports: number;
}

interface Figures {
  readonly cpuCores: number;
  readonly spread: number;
  readonly missed: number;
  readonly missedHost: number;
  readonly frameMsMax: number;
  readonly stateErrors: number;
  readonly stateChecks: number;
  readonly lost: number;
}

/** What browsers know, all together. */
interface Known {
  readonly stateErrors: number;
  readonly stateChecks: number;
  /** Browsers that are connected no more, or by another way than they were to. */
  readonly lost: number;
}

/** Browsers' worth of clients in a process of their own, of low priority as native bots are: the server's workers do not wait
 * for players. It begins with it: in Linux a program that lowers itself lowers one thread, and Node has a dozen, which collect
 * what is no longer used on whole cores. Chromium takes it over. */
class Browsers {
  readonly #child: ChildProcess;
  #onLine: (line: string) => void = () => {};

  constructor(playUrl: string, { webSockets, webTransports }: Crowd) {
    const args = [...process.execArgv, process.argv[1]!, "browsers", playUrl, String(webSockets), String(webTransports)];
    this.#child = spawn("nice", ["-n", "10", process.execPath, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.#child.stdout! }).on("line", (line) => this.#onLine(line));
  }

  /** When all of them play. */
  playing(): Promise<string> {
    return this.#said();
  }

  async known(): Promise<Known> {
    const said = this.#said();
    this.#child.stdin!.write("tell\n");
    return JSON.parse(await said) as Known;
  }

  end(): void {
    this.#child.stdin!.end();
  }

  #said(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#onLine = resolve;
      this.#child.once("exit", (code) => reject(new Error(`the browsers ended with ${code}`)));
    });
  }
}

/** Plays with some clients, and tells what they know. Runs in Node and in a page alike, so it stands by itself. */
function playWith(clients: SocketClient[], name: string, everyMs: number): () => Known {
  setInterval(() => {
    const nowMs = performance.now();
    clients.forEach(({ client }, index) => {
      const angle = nowMs / 2000 + index;
      const input = { move_x: Math.round(100 * Math.sin(angle)), move_z: Math.round(100 * Math.cos(angle)), yaw: Math.floor(nowMs + 300 * index) & 0xffff, pitch_degrees: 0, buttons: 0 };
      for (let due = client.dueInputs(nowMs); due > 0; due--) client.sendInput(name as never, input as never, nowMs);
      client.takeMessages();
      client.takeEvents();
    });
  }, everyMs);
  const sum = (of: (client: SocketClient) => number): number => clients.reduce((sum, client) => sum + of(client), 0);
  return () => ({
    stateErrors: sum(({ client }) => client.replicas.counts.stateErrors + client.stats.protocolErrors),
    stateChecks: sum(({ client }) => client.replicas.counts.stateChecks),
    lost: sum(({ client }) => Number(client.state !== "connected")),
  });
}

/** What a page has of the server's own module. */
interface Module {
  readonly Schema: typeof Schema;
  readonly SocketClient: typeof SocketClient;
  openWebTransport(place: unknown, timeoutMs: number): Promise<never>;
}

/** A page to have clients in. */
async function opened(page: Page, playUrl: string, name: string): Promise<void> {
  page.on("pageerror", (error) => console.error(String(error)));
  await page.goto(`${playUrl}schema.js`);
  await page.evaluate(`globalThis.playWith = ${playWith}`);
  await page.evaluate(async ([from, name, everyMs]) => {
    // Taken from the server as any page takes it.
    const module = (await import(`${from}client.js`)) as Module;
    const { data } = (await import(`${from}schema.js`)) as { data: SchemaData };
    const clients: SocketClient[] = [];
    const known = ((globalThis as any).playWith as typeof playWith)(clients, name, everyMs);
    Object.assign(globalThis, { crowd: { module, schema: new module.Schema(data), clients, known } });
  }, [playUrl, name, INPUT_EVERY_MS] as const);
}

/** One more client in it. */
function joined(page: Page, token: string, place: unknown): Promise<void> {
  return page.evaluate(async ([token, place, timeoutMs]) => {
    const { module, schema, clients } = (globalThis as any).crowd as { module: Module; schema: Schema; clients: SocketClient[] };
    clients.push(new module.SocketClient(schema, token, await module.openWebTransport(place, timeoutMs)));
  }, [token, place, GIVES_UP_MS] as const);
}

/** The other process: joins, plays, and tells what it knows for each line that it reads. */
async function browse(playUrl: string, webSockets: number, webTransports: number): Promise<void> {
  const schema = new Schema((await takeSchema(playUrl)) as SchemaData);
  const name = schema.data.inputs[0]!.name;
  const clients: SocketClient[] = [];
  const known = playWith(clients, name, INPUT_EVERY_MS);
  for (let index = 0; index < webSockets; index++) {
    const { token, ways } = await takeToken(playUrl, index % AUDITED === 0);
    clients.push(new SocketClient(schema, token, await openWebSocket(ways.webSocket, GIVES_UP_MS)));
    await rest(TOKEN_EVERY_MS);
  }
  const browser = webTransports > 0 ? await launch() : null;
  const pages: Page[] = [];
  for (let index = 0; index < webTransports; index++) {
    if (index % PAGE_CLIENTS === 0) {
      // A process of its own.
      pages.push(await (await browser!.newContext()).newPage());
      await opened(pages.at(-1)!, playUrl, name);
    }
    const { token, ways } = await takeToken(playUrl, index % AUDITED === 0);
    await joined(pages.at(-1)!, token, ways.webTransport);
    await rest(TOKEN_EVERY_MS);
  }
  const inPages = (): Promise<number[]> => Promise.all(pages.map((page) => page.evaluate(() => ((globalThis as any).crowd.clients as SocketClient[]).filter(({ client }) => client.replicas.size > 0).length)));
  await until("all browsers play", async () => {
    const there = (await inPages()).reduce((sum, each) => sum + each, 0);
    return clients.every(({ client }) => client.replicas.size > 0) && there === webTransports;
  });
  console.log("playing");
  createInterface({ input: process.stdin })
    .on("line", async () => {
      const all = [known(), ...(await Promise.all(pages.map((page) => page.evaluate(() => (globalThis as any).crowd.known() as Known))))];
      const sum = (of: keyof Known): number => all.reduce((sum, each) => sum + each[of], 0);
      console.log(JSON.stringify({ stateErrors: sum("stateErrors"), stateChecks: sum("stateChecks"), lost: sum("lost") } satisfies Known));
    })
    .on("close", () => {
      clients.forEach((client) => client.close());
      void Promise.all([browser?.close(), rest(500)]).finally(() => process.exit());
    });
}

/** Mean of the server's seconds. */
async function measured(server: LiveServer, browsers: Browsers | null): Promise<Figures> {
  server.measure("begin");
  const [cpu, frames]: [number[], number[]] = [[], []];
  let [missed, missedHost] = [0, 0];
  for (let second = 0; second < SECONDS; second++) {
    await rest(1000);
    const status = server.status();
    cpu.push(status["cpu_cores"]!);
    frames.push(status["frame_ms_max"]!);
    missed += status["ticks_missed"]!;
    missedHost += status["ticks_missed_host"]!;
  }
  server.measure("end");
  const mean = cpu.reduce((sum, each) => sum + each, 0) / cpu.length;
  const spread = Math.sqrt(cpu.reduce((sum, each) => sum + (each - mean) ** 2, 0) / cpu.length / cpu.length);
  const known = (await browsers?.known()) ?? { stateErrors: 0, stateChecks: 0, lost: 0 };
  const native = server.botsStatus();
  return {
    cpuCores: mean,
    spread,
    missed,
    missedHost,
    frameMsMax: Math.max(...frames),
    stateErrors: known.stateErrors + (native["state_errors"] ?? 0),
    stateChecks: known.stateChecks + (native["state_checks"] ?? 0),
    lost: known.lost,
  };
}

function crowdOf(text: string): Crowd {
  const [native = 0, webSockets = 0, webTransports = 0] = text.split(",").map(Number);
  if (![native, webSockets, webTransports].every(Number.isInteger)) throw new Error(`no crowd: ${text}`);
  return { native, webSockets, webTransports };
}

const sizeOf = ({ native, webSockets, webTransports }: Crowd): number => native + webSockets + webTransports;

async function measuredWith(crowd: Crowd): Promise<Figures> {
  const server = await start(game, crowd.native);
  try {
    await until("all native clients play", () => server.status()["players"]! >= crowd.native);
    const browsers = sizeOf(crowd) > crowd.native ? new Browsers(server.playUrl, crowd) : null;
    await browsers?.playing();
    await rest(5000);
    const figures = await measured(server, browsers);
    browsers?.end();
    await rest(1000);
    await server.stop();
    return figures;
  } finally {
    server.kill();
  }
}

async function compare(): Promise<void> {
  console.log(`${game}, ${SECONDS} s each`);
  let first: { crowd: Crowd; cpuCores: number } | null = null;
  for (const crowd of CROWDS.map(crowdOf)) {
    const of = await measuredWith(crowd);
    const who = [`${crowd.native} native`, ...(crowd.webSockets ? [`${crowd.webSockets} over WebSockets`] : []), ...(crowd.webTransports ? [`${crowd.webTransports} over WebTransport`] : [])].join(", ");
    console.log(`${who}: ${of.cpuCores.toFixed(3)} cores (± ${of.spread.toFixed(3)}), frame ${of.frameMsMax.toFixed(1)} ms at most, missed ${of.missed} ticks (${of.missedHost} the host's), ${of.stateErrors} of ${of.stateChecks} values wrong, ${of.lost} browsers lost`);
    first ??= { crowd, cpuCores: of.cpuCores };
    const more = sizeOf(crowd) - sizeOf(first.crowd);
    if (more > 0) console.log(`  each of ${more} more takes ${(((of.cpuCores - first.cpuCores) / more) * 1e6).toFixed(0)} us a second of the server`);
  }
}

const [, url = "", sockets = "0", transports = "0"] = process.argv.slice(2);
if (game === "browsers") await browse(url, Number(sockets), Number(transports));
else await compare();
