// 200 browsers' worth of clients (this package, in Node, over WebSockets, since Node has no WebTransport) beside 500 native ones in one server: ticks missed,
// state errors, and what a browser's client costs the server beside a native one.
//
// `THRONG=../target/release/throng npm run load [GAME] [BROWSERS] [NATIVE] [SECONDS]`. Three runs, one after the other: the native
// crowd alone, so many more native ones, so many browsers instead. Costs are processor time of the server, gateway included,
// as it says itself once a second; what is left of the noise is said by the spread.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Schema, type SchemaData, SocketClient, openWebSocket } from "../client/index.ts";
import { GIVES_UP_MS, type LiveServer, start, takeSchema, takeToken, until } from "./live_server.ts";

// Node's own arguments and the file's name come first.
const [game = "precinct", browsers = "200", native = "500", seconds = "30"] = process.argv.slice(2);
const counts = { browsers: Number(browsers), native: Number(native), seconds: Number(seconds) };

const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

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
  /** Browsers that are connected no more. */
  readonly lost: number;
}

/** Browsers' worth of clients in a process of their own, of low priority as native bots are: the server's workers do not wait
 * for players. It begins with it: in Linux a program that lowers itself lowers one thread, and Node has a dozen, which collect
 * what is no longer used on whole cores. */
class Browsers {
  readonly #child: ChildProcess;
  #onLine: (line: string) => void = () => {};

  constructor(playUrl: string, count: number) {
    this.#child = spawn("nice", ["-n", "10", process.execPath, ...process.execArgv, process.argv[1]!, "browsers", playUrl, String(count)], { stdio: ["pipe", "pipe", "inherit"] });
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
    return new Promise((resolve) => (this.#onLine = resolve));
  }
}

/** The other process: joins, plays, and tells what it knows for each line that it reads. */
async function browse(playUrl: string, count: number): Promise<void> {
  const schema = new Schema((await takeSchema(playUrl)) as SchemaData);
  const clients: SocketClient[] = [];
  for (let index = 0; index < count; index++) {
    // As the server gives tokens to everybody: 20 a second.
    const { token, ways } = await takeToken(playUrl, index % 10 === 0);
    clients.push(new SocketClient(schema, token, await openWebSocket(ways.webSocket, GIVES_UP_MS)));
    await rest(60);
  }
  const name = schema.data.inputs[0]!.name as never;
  setInterval(() => {
    const nowMs = performance.now();
    clients.forEach(({ client }, index) => {
      const angle = nowMs / 2000 + index;
      const input = { move_x: Math.round(100 * Math.sin(angle)), move_z: Math.round(100 * Math.cos(angle)), yaw: Math.floor(nowMs + 300 * index) & 0xffff, pitch_degrees: 0, buttons: 0 };
      for (let due = client.dueInputs(nowMs); due > 0; due--) client.sendInput(name, input as never, nowMs);
      client.takeMessages();
    });
  }, 25);
  await until("all browsers play", () => clients.every(({ client }) => client.replicas.size > 0));
  console.log("playing");
  createInterface({ input: process.stdin })
    .on("line", () => {
      const sum = (of: (client: SocketClient) => number): number => clients.reduce((sum, client) => sum + of(client), 0);
      const known: Known = {
        stateErrors: sum(({ client }) => client.replicas.counts.stateErrors + client.stats.protocolErrors),
        stateChecks: sum(({ client }) => client.replicas.counts.stateChecks),
        lost: sum(({ client }) => Number(client.state !== "connected")),
      };
      console.log(JSON.stringify(known));
    })
    .on("close", () => {
      clients.forEach((client) => client.close());
      setTimeout(() => process.exit(), 500);
    });
}

/** Mean of the server's seconds. */
async function measured(server: LiveServer, browsers: Browsers | null): Promise<Figures> {
  server.measure("begin");
  const [cpu, frames]: [number[], number[]] = [[], []];
  let [missed, missedHost] = [0, 0];
  for (let second = 0; second < counts.seconds; second++) {
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

async function crowd(native: number, count: number): Promise<Figures> {
  const server = await start(game, native);
  await until("all native clients play", () => server.status()["players"]! >= native);
  const browsers = count > 0 ? new Browsers(server.playUrl, count) : null;
  await browsers?.playing();
  await rest(5000);
  const figures = await measured(server, browsers);
  browsers?.end();
  await rest(1000);
  await server.stop();
  return figures;
}

const show = (what: string, of: Figures): void =>
  console.log(`${what}: ${of.cpuCores.toFixed(3)} cores (± ${of.spread.toFixed(3)}), frame ${of.frameMsMax.toFixed(1)} ms at most, missed ${of.missed} ticks (${of.missedHost} the host's), ${of.stateErrors} of ${of.stateChecks} values wrong, ${of.lost} browsers lost`);

async function compare(): Promise<void> {
  console.log(`${game}, ${counts.seconds} s each`);
  const alone = await crowd(counts.native, 0);
  show(`${counts.native} native`, alone);
  const more = await crowd(counts.native + counts.browsers, 0);
  show(`${counts.native + counts.browsers} native`, more);
  const beside = await crowd(counts.native, counts.browsers);
  show(`${counts.native} native and ${counts.browsers} browsers`, beside);
  const each = (of: Figures): number => ((of.cpuCores - alone.cpuCores) / counts.browsers) * 1e6;
  console.log(`a further native client takes ${each(more).toFixed(0)} us a second of the server, a browser's ${each(beside).toFixed(0)}: ${(each(beside) / each(more)).toFixed(2)} times as much`);
}

if (game === "browsers") await browse(browsers, counts.native);
else await compare();
