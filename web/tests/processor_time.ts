// Processor time of the browser's pages, as Linux counts it: what a figure is on a machine that others use too.

import { readdirSync, readFileSync } from "node:fs";

/** Of all renderers that this process has started, with their workers (ms); 0 where there is no /proc. */
export function renderersMs(): number {
  let sum = 0;
  for (const process of descendants(globalThis.process.pid)) {
    try {
      if (!readFileSync(`/proc/${process}/cmdline`, "utf8").includes("type=renderer")) continue;
      const fields = stat(process);
      // Ticks of 10 ms, in user code and in the kernel.
      sum += (Number(fields[11]) + Number(fields[12])) * 10;
    } catch {
      // It has ended.
    }
  }
  return sum;
}

/** The fields behind the name, which may hold spaces: the state is the first. */
function stat(process: number): string[] {
  const text = readFileSync(`/proc/${process}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

function descendants(parent: number): number[] {
  const children = new Map<number, number[]>();
  let names: string[];
  try {
    names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
  for (const name of names) {
    try {
      const its = Number(stat(Number(name))[1]);
      children.set(its, [...(children.get(its) ?? []), Number(name)]);
    } catch {
      // It has ended.
    }
  }
  const all: number[] = [];
  const visit = (process: number) => children.get(process)?.forEach((child) => (all.push(child), visit(child)));
  visit(parent);
  return all;
}
