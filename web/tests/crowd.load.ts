// 200 browsers' worth of clients beside 500 native ones in one server: ticks missed, values wrong, players lost, and what a
// browser's client costs the server beside a native one. Over WebSockets it is this package in Node; Node has no WebTransport,
// so over that it is the module that the server gives to pages, many clients to a page of chromium.
//
// `THRONG=../target/release/throng npm run load [GAME] [SECONDS] [CROWD...]`. A crowd is `NATIVE` or
// `NATIVE,WEBSOCKETS,WEBTRANSPORTS`; each has a server of its own, one after the other, and what is more in a crowd than in the
// first is said by the client. Ticks and costs (processor time of the server, gateway included) are those of the server's own
// report of the window; values and players those of the whole run, by bots and browsers. It fails if the goal is not met.

import { type LiveServer, start, until } from "./live_server.ts";
import { ProcessPart } from "./parts.ts";
import { type Known, failuresIn, knownByBots } from "./playing.ts";

// Node's own arguments and the file's name come first.
const [game = "precinct", seconds = "30", ...others] = process.argv.slice(2);
const SECONDS = Number(seconds);
const CROWDS = others.length > 0 ? others : ["500", "700", "500,200,0", "500,100,100"];
const GOAL = "0 ticks missed but for the host's, 0 values wrong, nobody lost";
/** Low priority, as native bots have: the server's workers do not wait for players. It begins with it: in Linux a program that
 * lowers itself lowers one thread, and Node has a dozen, which collect what is no longer used on whole cores. Chromium takes
 * it over. */
const GIVES_WAY = ["nice", "-n", "10"];
/** After the last one has come in (ms). */
const SETTLES_MS = 5000;

const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Crowd {
  readonly native: number;
  readonly webSockets: number;
  readonly webTransports: number;
}

interface Figures {
  /** Of the window (s). */
  readonly seconds: number;
  readonly cpuCores: number;
  /** The standard error of that, by the server's seconds. */
  readonly spread: number;
  readonly missed: number;
  readonly missedHost: number;
  readonly frameMsMax: number;
  readonly native: Known;
  /** `null`: there were none. */
  readonly browsers: Known | null;
}

function crowdOf(text: string): Crowd {
  const [native = 0, webSockets = 0, webTransports = 0] = text.split(",").map(Number);
  if (![native, webSockets, webTransports].every(Number.isInteger)) throw new Error(`no crowd: ${text}`);
  return { native, webSockets, webTransports };
}

const sizeOf = ({ native, webSockets, webTransports }: Crowd): number => native + webSockets + webTransports;

async function measuredWith(crowd: Crowd): Promise<Figures> {
  const server = await start(game, crowd.native);
  const { native, webSockets, webTransports } = crowd;
  let browsers: ProcessPart | null = null;
  try {
    await until("all native clients play", () => server.status()["players"]! >= native);
    if (sizeOf(crowd) > native) browsers = new ProcessPart("crowd", GIVES_WAY, [server.playUrl, String(webSockets), String(webTransports)]);
    await browsers?.next("all browsers play");
    await rest(SETTLES_MS);
    return await measured(server, browsers);
  } finally {
    browsers?.kill();
    server.kill();
  }
}

async function measured(server: LiveServer, browsers: ProcessPart | null): Promise<Figures> {
  const before = server.statuses().length;
  server.measure("begin");
  await rest(SECONDS * 1000);
  server.measure("end");
  const each = server.statuses().slice(before).map((status) => status["cpu_cores"]!);
  browsers?.tell("tell");
  const known = browsers && (JSON.parse(await browsers.next("the browsers tell what they know")) as Known);
  await browsers?.end();
  const { server: report, bots } = await server.stop();
  const mean = each.reduce((sum, cores) => sum + cores, 0) / each.length;
  return {
    seconds: report.seconds,
    cpuCores: report.server_cpu_cores,
    spread: Math.sqrt(each.reduce((sum, cores) => sum + (cores - mean) ** 2, 0)) / each.length,
    missed: report.ticks_missed,
    missedHost: report.ticks_missed_host,
    frameMsMax: report.frame_ms.max,
    native: knownByBots(bots),
    browsers: known,
  };
}

/** What keeps a crowd from the goal, a line each. */
function failuresOf({ native }: Crowd, { missed, missedHost, native: nativeKnown, browsers }: Figures): string[] {
  const ticks = missed > missedHost ? [`${missed - missedHost} ticks missed that the host did not take`] : [];
  return [...ticks, ...(native > 0 ? failuresIn("native", nativeKnown) : []), ...(browsers ? failuresIn("browsers", browsers) : [])];
}

const told = ({ stateErrors, stateChecks, lost }: Known): string => `${stateErrors} of ${stateChecks} values wrong, ${lost} lost`;

console.log(`${game}, ${SECONDS} s each; the goal is ${GOAL}`);
let first: { crowd: Crowd; cpuCores: number } | null = null;
for (const crowd of CROWDS.map(crowdOf)) {
  const of = await measuredWith(crowd);
  const who = [`${crowd.native} native`, ...(crowd.webSockets ? [`${crowd.webSockets} over WebSockets`] : []), ...(crowd.webTransports ? [`${crowd.webTransports} over WebTransport`] : [])].join(", ");
  console.log(`${who}, ${of.seconds.toFixed(1)} s: ${of.cpuCores.toFixed(3)} cores (± ${of.spread.toFixed(3)}), frame ${of.frameMsMax.toFixed(1)} ms at most, missed ${of.missed} ticks (${of.missedHost} the host's)`);
  console.log(`  native: ${told(of.native)}${of.browsers ? `; browsers: ${told(of.browsers)}` : ""}`);
  first ??= { crowd, cpuCores: of.cpuCores };
  const more = sizeOf(crowd) - sizeOf(first.crowd);
  if (more > 0) console.log(`  each of ${more} more takes ${(((of.cpuCores - first.cpuCores) / more) * 1e6).toFixed(0)} us a second of the server`);
  const failures = failuresOf(crowd, of);
  console.log(failures.length > 0 ? `  FAIL ${failures.join("; ")}` : "  the goal is met");
  if (failures.length > 0) process.exitCode = 1;
}
