// Promise: whoever opens the address that `demo` prints has a place among its bots, once all of these are in.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { EXECUTABLE, GIVES_UP_MS, TEST_GIVES_UP_MS, until } from "./live_server.ts";
import { launch, showBuilt } from "./page.ts";
import { known } from "./person.ts";

/** Bots of each demo. As many as make it small; of duel one match, and another in which five seats are free, as in its usual one. */
const BOTS: Record<string, number> = { precinct: 12, frontier: 12, duel: 15 };

let browser: Browser;
before(async () => void (browser = await launch()));
after(() => browser.close());

interface Report {
  readonly bars: readonly { readonly key: string; readonly passed: boolean }[];
}

/** A demo, and what it has said. */
class Demo {
  readonly child: ChildProcess;
  readonly folder = mkdtempSync(join(tmpdir(), "throng-demo-"));
  readonly #ended: Promise<unknown>;
  /** For a person, and, once it ends, its report. */
  said = "";
  #report = "";

  constructor(game: string, bots: number) {
    const npcs = game === "duel" ? [] : ["--npcs", "40"];
    const words = ["demo", "--game", game, "--players", String(bots), ...npcs, "--saves", "none", "--report", this.folder, "--json"];
    this.child = spawn(EXECUTABLE, words, { stdio: ["ignore", "pipe", "pipe"] });
    this.child.stderr!.on("data", (bytes: Buffer) => void (this.said += bytes.toString()));
    this.child.stdout!.on("data", (bytes: Buffer) => void (this.#report += bytes.toString()));
    // When all of both has been read.
    this.#ended = new Promise((done) => this.child.on("close", done));
  }

  get playUrl(): string | null {
    return /play among them: (http:\S+)/.exec(this.said)?.[1] ?? null;
  }

  /** As Ctrl-C does; gives the report, which is the last line on stdout. */
  async stop(): Promise<Report> {
    this.child.kill("SIGINT");
    await this.#ended;
    return JSON.parse(this.#report.trimEnd().split("\n").at(-1)!) as Report;
  }

  kill(): void {
    this.child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function visit(game: string): Promise<void> {
  const bots = BOTS[game]!;
  const demo = new Demo(game, bots);
  const page = await browser.newPage({ viewport: { width: 480, height: 400 } });
  page.setDefaultTimeout(GIVES_UP_MS);
  try {
    await until("all bots play", () => demo.said.includes(`${bots} of ${bots} bots are playing`), () => demo.said);
    await showBuilt(page, { "/play/": `play_${game}.html` });
    await page.goto(`${demo.playUrl}?audit`);
    let now = await known(page, game);
    const told = (): string => `${JSON.stringify(now)}\n${demo.said}`;
    await until("a person plays among them", async () => {
      now = await known(page, game);
      return now.state === "connected" && now.own !== null && now.checks > 10;
    }, told);
    assert.deepEqual([now.errors, now.protocolErrors], [0, 0], told());
    // Who comes and goes is none of the bots that the demo counts.
    await page.close();
    const { bars } = await demo.stop();
    const isKept = (key: string): boolean | undefined => bars.find((bar) => bar.key === key)?.passed;
    assert.deepEqual(["players_connected", "disconnects", "state_errors"].map(isKept), [true, true, true], told());
  } finally {
    await page.close();
    demo.kill();
  }
}

describe("whoever opens the page of a demo plays", { concurrency: true }, () => {
  for (const game of Object.keys(BOTS)) test(`in ${game}`, { timeout: TEST_GIVES_UP_MS }, () => visit(game));
});
