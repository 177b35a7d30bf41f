// Processor time of a process by its threads, to the nanosecond as Linux counts it; a thread that runs just then is told as
// of the kernel's last look at it, some milliseconds ago.

import { readdirSync, readFileSync } from "node:fs";

export interface ThreadTime {
  name: string;
  ns: number;
}

/** Of all threads that there are now, by their ids. */
export function threadsTime(pid: number): Map<string, ThreadTime> {
  const threads = new Map<string, ThreadTime>();
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    try {
      const [ns] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ");
      threads.set(task, { name: readFileSync(`/proc/${pid}/task/${task}/comm`, "utf8").trim(), ns: Number(ns) });
    } catch {
      // It has ended.
    }
  }
  if (![...threads.values()].some(({ ns }) => ns > 0)) throw new Error(`/proc/${pid}/task/*/schedstat tells no time`);
  return threads;
}

/** What was used between two looks, by all threads and by those of some names (ns); of a thread that ended in between, nothing. */
export function used(before: ReadonlyMap<string, ThreadTime>, after: ReadonlyMap<string, ThreadTime>, names: ReadonlySet<string>) {
  let [all, named] = [0, 0];
  for (const [task, { name, ns }] of after) {
    const own = ns - (before.get(task)?.ns ?? 0);
    all += own;
    if (names.has(name)) named += own;
  }
  const ended = [...before.keys()].filter((task) => !after.has(task)).length;
  return { all, named, ended };
}
