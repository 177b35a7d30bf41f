// A real server with real bots, as `throng demo` has them, for tests of the pages that it serves.

import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Past } from "../console/document.ts";
import { lines } from "../console/stream.ts";
import { BUILT } from "./page.ts";

/** Built by whoever runs the tests: `cargo xtask web --check` does. */
const EXECUTABLE = resolve(process.env["THRONG"] ?? "../target/debug/throng");
const PAGE = join(BUILT, "console.html");
/** A server says that it is ready within a second or two; on a busy machine it takes longer (ms). */
const READY_WITHIN_MS = 60_000;

export interface Options {
  players?: number;
  npcs?: number;
  /** Faults on purpose, such as `slow-world`. */
  inject?: string[];
  /** Lines of its settings beside those that a test needs. */
  settings?: string;
}

export class Server {
  private constructor(
    private readonly children: ChildProcess[],
    private readonly folder: string,
    /** `http://127.0.0.1:PORT`. */
    readonly url: string,
    /** Of the role `operate`, as it lies in the file that the server left for its own user. */
    readonly key: string,
  ) {}

  static async start({ players = 8, npcs = 24, inject = [], settings = "" }: Options = {}): Promise<Server> {
    if (!existsSync(EXECUTABLE)) throw new Error(`${EXECUTABLE} is not there: \`cargo build -p throng-shipped\` makes it`);
    const folder = mkdtempSync(join(tmpdir(), "throng-web-server-"));
    mkdirSync(join(folder, "run"), { mode: 0o700 });
    const config = join(folder, "throng.toml");
    writeFileSync(config, `[server]\nworkers = 2\n[recorder]\nrules = "rules.toml"\n${settings}\n`);
    // A cause is saved again soon, and without waiting for what follows.
    writeFileSync(join(folder, "rules.toml"), "[triggers.subsystem]\ncooldown_s = 5\n");
    const env = { ...process.env, THRONG_PRIVATE_KEY: randomBytes(32).toString("hex"), XDG_RUNTIME_DIR: join(folder, "run") };
    const size = ["--players", String(players), "--npcs", String(npcs), ...inject.flatMap((fault) => ["--inject", fault])];
    const where = ["--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--captures", join(folder, "captures"), "--crashes", "off", "--saves", "none"];
    const server = spawn(EXECUTABLE, ["serve", "--config", config, ...size, ...where, "--status-json"], { env, stdio: ["pipe", "pipe", "pipe"] });
    const children: ChildProcess[] = [server];
    try {
      const { address, admin_address: admin } = await ready(server);
      children.push(spawn(EXECUTABLE, ["bots", "--config", config, "--connect", address, "--players", String(players), "--low-priority", "--status-json"], { env, stdio: ["pipe", "ignore", "ignore"] }));
      const url = `http://${admin}`;
      if ((await (await fetch(url)).text()) !== readFileSync(PAGE, "utf8")) {
        throw new Error(`${EXECUTABLE} carries another page than ${PAGE}: \`cargo build -p throng-shipped\``);
      }
      const keys = readdirSync(join(folder, "run/throng"));
      const key = readFileSync(join(folder, "run/throng", keys.find((name) => name.endsWith(".key"))!), "utf8").trim();
      return new Server(children, folder, url, key.split(/\s+/).at(-1)!);
    } catch (error) {
      children.forEach((child) => child.kill("SIGKILL"));
      throw error;
    }
  }

  /** Has a line of the console carried out; its answer's object. */
  async command<T>(line: string, key?: string): Promise<T> {
    const headers: Record<string, string> = { "x-throng": "console", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
    const answer = await fetch(`${this.url}/console`, { method: "POST", headers, body: `${line} --json` });
    const said = (await answer.json()) as { text?: string; error?: string };
    if (said.text === undefined) throw new Error(said.error ?? String(answer.status));
    return JSON.parse(said.text) as T;
  }

  /** What it has kept of the last minutes, as a stream begins. */
  async past(): Promise<Past> {
    const answer = await fetch(`${this.url}/api/watch`);
    for await (const line of lines(answer.body!)) if (line.line === "past") return line;
    throw new Error("a stream without a past");
  }

  /** The server's process. */
  get pid(): number {
    return this.children[0]!.pid!;
  }

  /** Stands still, as a process whose host does; or goes on. */
  pause(isPaused: boolean): void {
    this.children[0]!.kill(isPaused ? "SIGSTOP" : "SIGCONT");
  }

  async stop(): Promise<void> {
    // Bots first, so that nobody has to be told of the end.
    for (const child of this.children.reverse()) {
      if (child.exitCode !== null) continue;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGCONT");
      // The end of its standard input is the order to stop.
      child.stdin?.end();
      const hard = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await ended;
      clearTimeout(hard);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The first line of what a server says. */
function ready(server: ChildProcess): Promise<{ address: string; admin_address: string }> {
  return new Promise((resolve, reject) => {
    let log = "";
    const give = setTimeout(() => reject(new Error(`the server was not ready within ${READY_WITHIN_MS} ms:\n${log}`)), READY_WITHIN_MS);
    server.stderr!.on("data", (text: Buffer) => {
      if (log.length < 20_000) log += text.toString();
    });
    server.once("exit", (status) => {
      clearTimeout(give);
      reject(new Error(`the server ended with ${status}:\n${log}`));
    });
    createInterface({ input: server.stdout! }).on("line", (line) => {
      const said = JSON.parse(line) as { ready?: { address: string; admin_address: string } };
      if (!said.ready) return;
      clearTimeout(give);
      resolve(said.ready);
    });
  });
}
