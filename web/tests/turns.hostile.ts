// What hostile peers cost those who play: the mean of a tick while 40 of them do their worst with WebSockets, requests and the admin
// port, and some with WebTransport in a browser, beside that of the seconds before and after, in turns.
//
// `THRONG=../target/release/throng npm run hostile [TURNS] [SECONDS] [GAME] [ATTACK...]`; attacks are those of attacks.ts, and
// `sessions`. A figure is the median of all turns, of a tick's time by the server's own metrics. It fails if it is sure that the
// goal is missed, if somebody who plays is harmed, and if anybody is answered who is to be refused.
//
// Who attacks from this host takes its cores and its memory as well, which nobody does who attacks from elsewhere. So in the seconds
// before and after they do the same to another server, which nobody plays on: what is held to the goal is what they cost the one
// that they attack beside one that only shares a host with them. That server and the attackers run in the idle class. What a tick
// takes while nobody attacks anything is told, too.

import { Schema, type SchemaData, SocketClient, openWebSocket } from "../client/index.ts";
import { ATTACKS, type Answers, rest } from "./attacks.ts";
import { GIVES_UP_MS, type LiveServer, start, startUnder, takeSchema, takeToken, until } from "./live_server.ts";
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

/** Servers by their numbers among those that attackers know. */
const [ATTACKED, OTHER] = ["0", "1"];

interface Figures {
  /** Of each turn: while it is attacked, and while nobody is. */
  readonly attackedUs: readonly number[];
  readonly calmUs: readonly number[];
  /** While the other one is attacked: before, between and after turns, so one more. */
  readonly besideUs: readonly number[];
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
  const figures = { attackedUs: [] as number[], calmUs: [] as number[], besideUs: [] as number[] };
  let answers: Figures["answers"] = { all: {}, wrong: {}, tokensGiven: 0 };
  const whileAttacked = async (which: string): Promise<number> => {
    attackers.tell(which);
    await rest(TURNS_ROUND_MS);
    const us = await meanTickUs(server);
    attackers.tell("off");
    answers = JSON.parse(await attackers.next("all attacks have ended")) as Figures["answers"];
    await rest(TURNS_ROUND_MS);
    return us;
  };
  figures.besideUs.push(await whileAttacked(OTHER!));
  for (let turn = 0; turn < TURNS; turn++) {
    figures.attackedUs.push(await whileAttacked(ATTACKED!));
    figures.besideUs.push(await whileAttacked(OTHER!));
    figures.calmUs.push(await meanTickUs(server));
  }
  const after = await server.metrics();
  const grown = [...after].filter(([name]) => name.startsWith("throng_admin_")).map(([name, value]) => [name.replace(/^throng_/, ""), value - (before.get(name) ?? 0)]);
  return { ...figures, answers, admin: Object.fromEntries(grown) };
}

async function compare(server: LiveServer, attackers: ProcessPart, honest: SocketClient): Promise<void> {
  await attackers.next("those who attack are ready");
  await rest(SETTLES_MS);
  server.measure("begin");
  const { attackedUs, calmUs, besideUs, answers, admin } = await measured(server, attackers);
  server.measure("end");
  await attackers.end();
  const known = knownBy([honest]);
  honest.close();
  const { server: report, bots } = await server.stop();

  const ratios = attackedUs.map((us, turn) => us / ((besideUs[turn]! + besideUs[turn + 1]!) / 2));
  const { median: ratio, low, high, confidence } = medianInterval(ratios);
  const native = knownByBots(bots);
  const browser = Object.fromEntries(Object.entries(report.counters).filter(([name]) => name.startsWith("browser.")));
  const us = (figures: readonly number[]): string => `${medianInterval(figures).median.toFixed(1)} us`;
  console.log(`${game}, ${BOTS} bots, ${TURNS} turns of ${seconds} s: a tick takes ${us(attackedUs)} while hostile peers attack its server, ${us(besideUs)} while they attack another one on this host, ${us(calmUs)} while they attack none`);
  console.log(`  ${ratio.toFixed(3)} times what it takes beside another one, ${low.toFixed(3)} to ${high.toFixed(3)} with ${(100 * confidence).toFixed(0)} % (all turns: ${Math.min(...ratios).toFixed(3)} to ${Math.max(...ratios).toFixed(3)}); the goal is at most ${GOAL}`);
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
let other: LiveServer | null = null;
let attackers: ProcessPart | null = null;
try {
  other = await startUnder(GIVES_WAY, game);
  const { token, ways } = await takeToken(server.playUrl);
  const honest = new SocketClient(new Schema((await takeSchema(server.playUrl)) as SchemaData), token, await openWebSocket(ways.webSocket, GIVES_UP_MS));
  await until("all play", () => server.status()["players"]! >= BOTS + 1 && honest.client.replicas.size > 0);
  attackers = new ProcessPart("turns", GIVES_WAY, ["2", ...[server, other].flatMap(({ playUrl, adminAddress }) => [playUrl, adminAddress]), ...kinds]);
  await compare(server, attackers, honest);
} finally {
  attackers?.kill();
  other?.kill();
  server.kill();
}
