// What watching costs a server: its processor time with a viewer and without, in turns, under the load of bots.
//
// A B B A, since what grows or falls steadily is the same for both. `npm run figures` runs it; counts come first, since
// times on a busy machine tell little.

import { readdirSync, readFileSync } from "node:fs";
import type { Line } from "../console/document.ts";
import { lines } from "../console/stream.ts";
import { Server } from "./server.ts";

const TURN_S = Number(process.env["TURN_S"] ?? 10);
const ROUNDS = Number(process.env["ROUNDS"] ?? 4);
const PLAYERS = Number(process.env["PLAYERS"] ?? 100);
/** Of the kernel's clock, in /proc. */
const TICKS_PER_S = 100;

/** Processor time of the process and of its thread `admin` (s). */
function used(pid: number): { all: number; admin: number } {
  const of = (path: string) => {
    const fields = readFileSync(path, "utf8").replace(/^.*\) /s, "").split(" ");
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S;
  };
  let admin = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    if (readFileSync(`/proc/${pid}/task/${task}/comm`, "utf8").trim() === "admin") admin = of(`/proc/${pid}/task/${task}/stat`);
  }
  return { all: of(`/proc/${pid}/stat`), admin };
}

const wait = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
const server = await Server.start({ players: PLAYERS, npcs: 4 * PLAYERS });
try {
  await wait(15);
  const sums = { watched: { all: 0, admin: 0, turns: 0 }, alone: { all: 0, admin: 0, turns: 0 } };
  const told = { lines: 0, bytes: 0, seconds: 0, gatherUs: 0 };
  const turn = async (isWatched: boolean) => {
    const abort = new AbortController();
    const watching = isWatched
      ? (async () => {
          const answer = await fetch(`${server.url}/api/watch`, { signal: abort.signal });
          for await (const line of lines(answer.body!)) {
            told.lines++;
            told.bytes += JSON.stringify(line).length + 1;
            if (line.line === "second") told.seconds++;
            if (line.line === "health") told.gatherUs = Math.max(told.gatherUs, (line as Extract<Line, { line: "health" }>).watch.us);
          }
        })().catch(() => undefined)
      : undefined;
    await wait(1);
    const before = used(server.pid);
    await wait(TURN_S);
    const after = used(server.pid);
    abort.abort();
    await watching;
    const sum = isWatched ? sums.watched : sums.alone;
    sum.all += after.all - before.all;
    sum.admin += after.admin - before.admin;
    sum.turns++;
  };
  for (let round = 0; round < ROUNDS; round++) for (const isWatched of [false, true, true, false]) await turn(isWatched);
  const cores = (sum: number, turns: number) => sum / (turns * TURN_S);
  const [alone, watched] = [cores(sums.alone.all, sums.alone.turns), cores(sums.watched.all, sums.watched.turns)];
  console.log(`${PLAYERS} players: ${told.seconds} seconds told in ${told.lines} lines, ${Math.round(told.bytes / Math.max(1, told.seconds))} bytes a second; the longest making took ${told.gatherUs.toFixed(0)} us`);
  console.log(`cores used: ${alone.toFixed(4)} alone, ${watched.toFixed(4)} with one viewer: ${(((watched - alone) / alone) * 100).toFixed(2)} % more`);
  console.log(`of the thread admin: ${cores(sums.alone.admin, sums.alone.turns).toFixed(4)} alone, ${cores(sums.watched.admin, sums.watched.turns).toFixed(4)} with one viewer: ${((cores(sums.watched.admin, sums.watched.turns) / alone) * 100).toFixed(2)} % of what the server uses`);
} finally {
  await server.stop();
}
