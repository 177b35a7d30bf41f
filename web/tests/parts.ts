// Parts of a program that run elsewhere: `NAME.process.ts` in a process of its own, `NAME.page.ts` in a page of a browser.
// `run_tests.mjs` bundles both beside the program.

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { GIVES_UP_MS, within } from "./live_server.ts";

const bundled = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** The text of what a page is to evaluate. */
export const pagePart = (name: string): string => readFileSync(bundled(`${name}.page.js`), "utf8");

/** A process that is told lines, and tells lines. */
export class ProcessPart {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #lines: AsyncIterator<string>;

  /** `before`: a command that runs another one, such as `nice`. */
  constructor(name: string, before: readonly string[], args: readonly string[]) {
    const [command, ...words] = [...before, process.execPath, ...process.execArgv, bundled(`${name}.process.mjs`), ...args];
    this.#name = name;
    this.#child = spawn(command!, words, { stdio: ["pipe", "pipe", "inherit"] });
    const kill = (): void => this.kill();
    process.once("exit", kill);
    this.#ended = new Promise((resolve) => {
      this.#child.once("exit", () => (process.off("exit", kill), resolve()));
      this.#child.once("error", (error) => (console.error(String(error)), resolve()));
    });
    // What it is told after its end is nobody's.
    this.#child.stdin!.on("error", () => {});
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
  }

  /** Its next line, which says `what`. */
  async next(what: string): Promise<string> {
    const { done, value } = await within(GIVES_UP_MS, what, this.#lines.next());
    if (done) throw new Error(`${this.#name}.process.ts ended before: ${what}`);
    return value;
  }

  tell(line: string): void {
    this.#child.stdin!.write(`${line}\n`);
  }

  /** Waits until it has ended. */
  async end(): Promise<void> {
    this.#child.stdin!.end();
    await within(GIVES_UP_MS, `${this.#name}.process.ts has ended`, this.#ended);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
