// What hostile peers cost those who play: the mean of a tick while 40 of them do their worst with WebSockets, requests and the admin
// port, and some with WebTransport in a browser, beside that of the seconds before and after, in turns.
//
// `THRONG=../target/release/throng npm run hostile [TURNS] [SECONDS] [GAME] [ATTACK...]`; attacks are those of attacks.ts, and
// `sessions`. A figure is the median of all turns, of a tick's time by the server's own metrics. It fails if it is sure that the
// goal is missed, if somebody who plays is harmed, and if anybody is answered who is to be refused. Who attacks runs in the idle
// class, since on a host of its own it would take no core of the server's.

import { Schema, type SchemaData, SocketClient, openWebSocket } from "../client/index.ts";
import { ATTACKS, type Answers, rest } from "./attacks.ts";
import { GIVES_UP_MS, type LiveServer, start, takeSchema, takeToken, until } from "./live_server.ts";
import { medianInterval } from "./median_interval.ts";
import { ProcessPart } from "./parts.ts";
import { failuresIn, knownBy, knownByBots } from "./playing.ts";

const [turns = "12", seconds = "5", game = "precinct", ...kinds] = process.argv.slice(2);
const TURNS = Number(turns);
const BOTS = 200;
const GIVES_WAY = ["chrt", "--idle", "0"];
/** Times that a tick may take of what it takes without them. */
const GOAL = 1.02;
/** After the last one has come in, and after attacks have begun or ended (ms). */
const SETTLES_MS = 10_000;
const TURNS_ROUND_MS = 1000;

/** Attacks that tell what they were answered, and how each of those answers begins. */
const TELLING: Record<string, RegExp> = { strangers: /^(cross-origin|rebinding)/, logins: /^wrong key/, watchers: /^watch/ };

const unknown = kinds.filter((kind) => kind !== "sessions" && !(kind in ATTACKS));
if (unknown.length > 0) throw new Error(`no attacks are called ${unknown.join(", ")}; there are ${[...Object.keys(ATTACKS), "sessions"].join(", ")}`);
if (!(Number.isInteger(TURNS) && TURNS > 0 && Number(seconds) > 0)) throw new Error(`no turns: ${turns} of ${seconds} s`);

interface Figures {
  /** Of each turn, and of the seconds before, between and after them: one more. */
  readonly besideUs: readonly number[];
  readonly withoutUs: readonly number[];
  readonly answers: Pick<Answers, "all" | "wrong" | "tokensGiven">;
  /** What the admin port has refused, dropped and cut off meanwhile. */
  readonly admin: Readonly<Record<string, number>>;
}

async function meanTickUs(server: LiveServer): Promise<number> {
  const ticks = async (): Promise<{ s: number; count: number }> => {
    const metrics = [...(await server.metrics())];
    const sum = (name: string): number => metrics.filter(([of]) => of.startsWith(`throng_world_tick_seconds_${name}{`)).reduce((sum, [, value]) => sum + value, 0);
    return { s: sum("sum"), count: sum("count") };
  };
  const begin = await ticks();
  await rest(Number(seconds) * 1000);
  const end = await ticks();
  if (end.count === begin.count) throw new Error(`no world has ticked within ${seconds} s`);
  return ((end.s - begin.s) / (end.count - begin.count)) * 1e6;
}

async function measured(server: LiveServer, attackers: ProcessPart): Promise<Figures> {
  const before = await server.metrics();
  const [withoutUs, besideUs]: [number[], number[]] = [[await meanTickUs(server)], []];
  let answers: Figures["answers"] = { all: {}, wrong: {}, tokensGiven: 0 };
  for (let turn = 0; turn < TURNS; turn++) {
    attackers.tell("on");
    await rest(TURNS_ROUND_MS);
    besideUs.push(await meanTickUs(server));
    attackers.tell("off");
    answers = JSON.parse(await attackers.next("all attacks have ended")) as Figures["answers"];
    await rest(TURNS_ROUND_MS);
    withoutUs.push(await meanTickUs(server));
  }
  const after = await server.metrics();
  const grown = [...after].filter(([name]) => name.startsWith("throng_admin_")).map(([name, value]) => [name.replace(/^throng_/, ""), value - (before.get(name) ?? 0)]);
  return { besideUs, withoutUs, answers, admin: Object.fromEntries(grown) };
}

async function compare(server: LiveServer, attackers: ProcessPart, honest: SocketClient): Promise<void> {
  await attackers.next("those who attack are ready");
  await rest(SETTLES_MS);
  server.measure("begin");
  const { besideUs, withoutUs, answers, admin } = await measured(server, attackers);
  server.measure("end");
  await attackers.end();
  const known = knownBy([honest]);
  honest.close();
  const { server: report, bots } = await server.stop();

  const ratios = besideUs.map((us, turn) => us / ((withoutUs[turn]! + withoutUs[turn + 1]!) / 2));
  const { median: ratio, low, high, confidence } = medianInterval(ratios);
  const native = knownByBots(bots);
  const browser = Object.fromEntries(Object.entries(report.counters).filter(([name]) => name.startsWith("browser.")));
  console.log(`${game}, ${BOTS} bots, ${TURNS} turns of ${seconds} s: a tick takes ${medianInterval(withoutUs).median.toFixed(1)} us, beside hostile peers ${medianInterval(besideUs).median.toFixed(1)} us`);
  console.log(`  ${ratio.toFixed(3)} times, ${low.toFixed(3)} to ${high.toFixed(3)} with ${(100 * confidence).toFixed(0)} % (all turns: ${Math.min(...ratios).toFixed(3)} to ${Math.max(...ratios).toFixed(3)}); the goal is at most ${GOAL}`);
  console.log(`  ${native.stateErrors} of ${native.stateChecks} values of bots wrong, ${native.lost} lost; ${known.stateErrors} of ${known.stateChecks} in a browser's client, ${known.lost} lost; missed ${report.ticks_missed} ticks, ${report.ticks_missed_host} the host's`);
  console.log(`  browsers turned away: ${JSON.stringify(browser)}`);
  console.log(`  at the admin port: ${JSON.stringify(admin)}`);
  console.log(`  answered: ${JSON.stringify(answers.all)}`);

  const isMeant = (kind: string): boolean => kinds.length === 0 || kinds.includes(kind);
  const silent = Object.entries(TELLING).filter(([kind, begins]) => isMeant(kind) && !Object.keys(answers.all).some((answer) => begins.test(answer)));
  const failures = [
    ...(low > GOAL ? [`a tick takes ${ratio.toFixed(3)} times as long, and ${low.toFixed(3)} at the least`] : []),
    ...failuresIn("bots", native),
    ...failuresIn("a browser's client", known),
    ...(report.worlds_parked > 0 ? ["a world has panicked"] : []),
    ...(answers.tokensGiven > 0 ? [`${answers.tokensGiven} tokens given to strangers`] : []),
    ...Object.entries(answers.wrong).map(([answer, count]) => `not refused: ${answer} (${count} times)`),
    ...silent.map(([kind]) => `${kind}: not one was answered`),
  ];
  console.log(failures.length > 0 ? `FAIL ${failures.join("; ")}` : low <= GOAL && high > GOAL ? "nothing is wrong; more turns would say whether the goal is met" : "the goal is met");
  if (failures.length > 0) process.exitCode = 1;
}

const server = await start(game, BOTS);
let attackers: ProcessPart | null = null;
try {
  const { token, ways } = await takeToken(server.playUrl);
  const honest = new SocketClient(new Schema((await takeSchema(server.playUrl)) as SchemaData), token, await openWebSocket(ways.webSocket, GIVES_UP_MS));
  await until("all play", () => server.status()["players"]! >= BOTS + 1 && honest.client.replicas.size > 0);
  attackers = new ProcessPart("turns", GIVES_WAY, [server.playUrl, server.adminAddress, ...kinds]);
  await compare(server, attackers, honest);
} finally {
  attackers?.kill();
  server.kill();
}
