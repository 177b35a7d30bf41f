// A server of the shipped command with bots on it, for tests that play. The executable is what THRONG names; `cargo xtask
// play` builds it first.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type TokenAnswer, type Ways, waysOf } from "../client/index.ts";

export const EXECUTABLE = resolve(process.env["THRONG"] ?? "../target/debug/throng");
/** No test asks how fast something is: what has not come after so long does not come on a slow machine either (ms). */
export const GIVES_UP_MS = 120_000;
/** A test that waits for several things, one after the other (ms). */
export const TEST_GIVES_UP_MS = 5 * GIVES_UP_MS;

export interface LiveServer {
  /** Of the page. */
  readonly playUrl: string;
  readonly address: string;
  /** Of its metrics. */
  readonly adminAddress: string;
  /** What the server said last, once a second. */
  status(): Record<string, number>;
  /** All that it has said so, the newest at the end. */
  statuses(): readonly Record<string, number>[];
  /** Its metrics as they are now: names with their labels, and values. */
  metrics(): Promise<Map<string, number>>;
  /** Begins or ends the window that the server's report is about; the bots' is about their whole run. */
  measure(what: "begin" | "end"): void;
  /** Ends both, the bots first, and gives their reports. */
  stop(): Promise<{ server: ServerReport; bots: BotsReport | null }>;
  /** Ends what is still there of both, without a word. */
  kill(): void;
}

/** What is asked here of the report that a server ends with; runtime/server/src/report.rs has all of it. */
export interface ServerReport {
  /** Of the window that it is about (s). */
  readonly seconds: number;
  readonly server_cpu_cores: number;
  readonly frame_ms: { readonly max: number };
  readonly ticks_missed: number;
  /** Of these, those that the host took. */
  readonly ticks_missed_host: number;
  readonly worlds_parked: number;
  readonly counters: Readonly<Record<string, number>>;
  readonly game_per_s: Readonly<Record<string, number>>;
}

/** The same of bots; toolbox/bots/src/report.rs has all of it. */
export interface BotsReport {
  readonly players_wanted: number;
  readonly players_connected: number;
  readonly disconnects: number;
  readonly state_checks: number;
  readonly state_errors: number;
  readonly protocol_errors: number;
}

interface Told {
  ready?: { play_url: string; address: string; admin_address: string };
  status?: Record<string, number>;
  report?: unknown;
}

/** One of the two processes: its last words, each a JSON object. */
class Talker {
  readonly child: ChildProcess;
  readonly statuses: Record<string, number>[] = [];
  report: unknown = null;
  readonly ended: Promise<void>;
  readonly #subcommand: string;
  #onReady: (ready: Told["ready"]) => void = () => {};

  /** `executable`: with what is before its arguments. */
  constructor(executable: readonly string[], args: readonly string[], key: string, words: string[]) {
    const [command, ...before] = executable;
    this.#subcommand = args[0]!;
    this.child = spawn(command!, [...before, ...args], { env: { ...process.env, THRONG_PRIVATE_KEY: key }, stdio: ["pipe", "pipe", "pipe"] });
    const keep = (line: string): void => {
      words.push(line);
      if (words.length > 200) words.shift();
    };
    createInterface({ input: this.child.stderr! }).on("line", keep);
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      if (!line.startsWith("{")) return keep(line);
      const told = JSON.parse(line) as Told;
      if (told.ready) this.#onReady(told.ready);
      if (told.status) this.statuses.push(told.status);
      if (told.report) this.report = told.report;
    });
    this.ended = new Promise((done) => this.child.on("exit", () => done()));
  }

  ready(): Promise<NonNullable<Told["ready"]>> {
    const ready = new Promise<NonNullable<Told["ready"]>>((done, fail) => {
      this.#onReady = (ready) => done(ready!);
      this.child.on("error", fail);
      this.child.on("exit", (code) => fail(new Error(`it ended with ${code}`)));
    });
    return within(GIVES_UP_MS, "the server is ready", ready);
  }

  /** Asks it to end, and waits until it has. */
  async end(): Promise<void> {
    this.child.kill("SIGTERM");
    await within(GIVES_UP_MS, `${this.#subcommand} has ended`, this.ended);
  }
}

/** Players beside the bots that a server of a test is made for: enough for whoever comes by a page or as a client of its own. */
export const SPARE_PLAYERS = 210;

/** Starts `game` with so many bots on it; `settings` are a whole file of them, `more` further arguments of `serve`, `players` how many
 * the server is made for [at least `bots`]. */
export function start(game: string, bots: number, settings = "", more: readonly string[] = [], players = bots + SPARE_PLAYERS): Promise<LiveServer> {
  return startOf([EXECUTABLE], ["--game", game], { bots, settings, more, players });
}

/** Starts `game` without bots; `before`: a command that runs another one, such as `nice`. */
export function startUnder(before: readonly string[], game: string): Promise<LiveServer> {
  return startOf([...before, EXECUTABLE], ["--game", game]);
}

/** The command of a game that has its own, beside the one that has all games. */
export function pathOfOther(game: string): string {
  return join(dirname(EXECUTABLE), game);
}

/** Starts a game with a command of its own; without bots. */
export function startOther(game: string): Promise<LiveServer> {
  return startOf([pathOfOther(game)], []);
}

interface Wanted {
  readonly bots?: number;
  readonly settings?: string;
  readonly more?: readonly string[];
  readonly players?: number;
}

async function startOf(executable: readonly string[], game: readonly string[], { bots = 0, settings = "", more = [], players = SPARE_PLAYERS }: Wanted = {}): Promise<LiveServer> {
  const folder = mkdtempSync(join(tmpdir(), "throng-live-"));
  const config = ["--config", join(folder, "throng.toml")];
  writeFileSync(config[1]!, settings);
  const told: string[] = [];
  const key = randomBytes(32).toString("hex");
  const serve = ["serve", ...game, ...config, "--players", String(players), "--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--crashes", "off"];
  const server = new Talker(executable, [...serve, "--saves", "none", "--browser-address", "127.0.0.1:0", "--browser-tokens", "--web-transport-address", "127.0.0.1:0", "--audit-samples", "--status-json", ...more], key, told);
  const kill = (talker: Talker | null): void => void talker?.child.kill("SIGKILL");
  const { play_url: playUrl, address, admin_address: adminAddress } = await server.ready().catch((error: Error) => {
    kill(server);
    throw new Error(`${error.message}\n${told.join("\n")}`);
  });
  const swarm = bots > 0 ? new Talker(executable, ["bots", ...game, ...config, "--connect", address, "--players", String(bots), "--low-priority", "--status-json"], key, told) : null;
  const killBoth = (): void => {
    [swarm, server].forEach(kill);
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", killBoth);
  return {
    playUrl,
    address,
    adminAddress,
    status: () => server.statuses.at(-1) ?? {},
    statuses: () => server.statuses,
    metrics: () => takeMetrics(adminAddress),
    measure: (what) => [server, swarm].forEach((talker) => talker?.child.stdin!.write(`measure ${what}\n`)),
    async stop() {
      await swarm?.end();
      await server.end();
      if (!server.report || (swarm && !swarm.report)) throw new Error(`no report of the ${server.report ? "bots" : "server"}\n${told.join("\n")}`);
      return { server: server.report as ServerReport, bots: swarm ? (swarm.report as BotsReport) : null };
    },
    kill: killBoth,
  };
}

/** Waits until something holds; fails with what it waited for, and what `known` says of it. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, known: () => string = () => ""): Promise<void> {
  const end = Date.now() + GIVES_UP_MS;
  while (!(await within(GIVES_UP_MS, `an answer to: ${what}`, Promise.resolve(holds())))) {
    if (Date.now() > end) throw new Error(`not within ${GIVES_UP_MS / 1000} s: ${what}; ${known()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What a promise comes to; fails with what was waited for if that takes longer. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, fail) => (timer = setTimeout(() => fail(new Error(`not within ${ms / 1000} s: ${what}`)), ms)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What `/play/token` gives. */
export async function takeToken(playUrl: string, asksForAudit = true): Promise<{ token: string; ways: Ways }> {
  const answer = await fetch(`${playUrl}token${asksForAudit ? "?audit" : ""}`, { method: "POST", headers: { "x-throng": "play" } });
  if (!answer.ok) throw new Error(`no token: ${answer.status} ${await answer.text()}`);
  const given = (await answer.json()) as TokenAnswer;
  return { token: given.token, ways: waysOf(given, playUrl) };
}

/** The schema that the server says, as a page without a build takes it. */
export async function takeSchema(playUrl: string): Promise<unknown> {
  const text = await (await fetch(`${playUrl}schema.js`)).text();
  const { data } = (await import(`data:text/javascript,${encodeURIComponent(text)}`)) as { data: unknown };
  return data;
}

async function takeMetrics(adminAddress: string): Promise<Map<string, number>> {
  const answer = await fetch(`http://${adminAddress}/metrics`, { signal: AbortSignal.timeout(GIVES_UP_MS) });
  if (!answer.ok) throw new Error(`no metrics: ${answer.status} ${await answer.text()}`);
  const lines = (await answer.text()).matchAll(/^([a-z0-9_]+(?:\{.*?\})?) (\S+)/gm);
  return new Map([...lines].map(([, name, value]) => [name!, Number(value)]));
}
