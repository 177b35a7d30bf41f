// What is known about one thing, as a title and facts: for the panel, for tips, and to be copied as text.

import { bytes, count, duration, moment } from "../elements/quantity.ts";
import { BLOCKED, PREEMPTED, RUNNING } from "./format/capture.ts";
import { upperBound } from "./prepare/search.ts";
import type { Selection } from "./selection.ts";
import type { State } from "./state.ts";
import { boundsOf } from "./timeline/bounds.ts";

export interface Link {
  label: string;
  go: () => void;
}

export interface Description {
  title: string;
  facts: [name: string, value: string][];
  links: Link[];
}

export function describe(state: State, selection: Selection): Description {
  const { prepared } = state;
  const bounds = boundsOf(prepared, selection);
  if (!bounds) return { title: "Nothing is selected", facts: [], links: [] };
  const ns = bounds.end - bounds.begin;
  const when: [string, string][] = [
    ["begins", `${moment(bounds.begin, 100)} after the capture's begin${inFrame(state, bounds.begin)}`],
  ];
  const thread = "thread" in selection ? prepared.threads[selection.thread]! : undefined;
  const threadFact: [string, string][] = thread ? [["thread", thread.name]] : [];
  const links: Link[] = [];
  const worldLink = (world: number) => {
    if (world < 0) return;
    const isIt = state.world === world;
    links.push({
      label: isIt ? "All worlds" : `Only ${state.worldName(world)}`,
      go: () => state.filter(isIt ? undefined : world),
    });
  };
  switch (selection.kind) {
    case "range":
      return { title: "Marked stretch", facts: [["takes", duration(ns)], ...when], links };
    case "scope": {
      const row = thread!.rows[selection.depth]!;
      const site = prepared.sites[row.site[selection.place]!]!;
      const { world, tick } = state.worldAt(selection.thread, bounds.begin + ns / 2);
      worldLink(world);
      const facts: [string, string][] = [["took", duration(ns)]];
      if (site.budgetNs >= 0) {
        facts.push(["budget", `${duration(site.budgetNs)}${ns > site.budgetNs ? `, over by ${duration(ns - site.budgetNs)}` : ""}`]);
      }
      facts.push(["world", world < 0 ? "none" : `${state.worldName(world)}, tick ${tick}`], ...threadFact, ...when);
      const inside = innerNs(state, selection.thread, selection.depth, bounds.begin, bounds.end);
      if (inside > 0) facts.push(["itself", `${duration(ns - inside)} without the scopes inside`]);
      const { waiting, blocked } = states(state, selection.thread, bounds.begin, bounds.end);
      if (waiting > 0) facts.push(["without a core", duration(waiting)]);
      if (blocked > 0) facts.push(["blocked", duration(blocked)]);
      const allocation = row.allocations.place.indexOf(selection.place);
      if (allocation >= 0) {
        const { count: made, frees, bytes: amount } = row.allocations;
        facts.push(["allocated itself", `${bytes(amount[allocation]!)} in ${count(made[allocation]!)}, freed ${count(frees[allocation]!)}`]);
      }
      facts.push(["category", site.category || "none"], ["subsystem", site.subsystem]);
      if (site.file) facts.push(["at", `${site.file}:${site.line}`]);
      links.push({ label: `Find all ${site.name}`, go: () => state.search(site.name) });
      return { title: site.name, facts, links };
    }
    case "wait": {
      const { waits } = thread!;
      const holder = waits.holderThread[selection.place]!;
      const facts: [string, string][] = [["waited", duration(ns)], ...threadFact];
      if (holder >= 0) {
        const held = prepared.threads[holder]!;
        const site = waits.holderSite[selection.place]!;
        const world = waits.holderWorld[selection.place]!;
        facts.push(["held by", `${held.name}, in ${state.siteName(site)}, ${state.worldName(world)}`]);
        const isInversion = held.class === "long-task" && thread!.class !== "long-task";
        if (isInversion) facts.push(["priority inversion", "a long task let the frame wait"]);
        const depth = held.rows.findIndex((row) => {
          const place = upperBound(row.begin, bounds.begin) - 1;
          return place >= 0 && row.end[place]! >= bounds.begin && (site < 0 || row.site[place] === site);
        });
        links.push({
          label: `Show ${held.name} meanwhile`,
          go: () => {
            const place = depth < 0 ? -1 : upperBound(held.rows[depth]!.begin, bounds.begin) - 1;
            state.goTo(bounds.begin, bounds.end, place < 0 ? undefined : { kind: "scope", thread: holder, depth, place });
          },
        });
      } else {
        facts.push(["held by", "not known"]);
      }
      return { title: `Wait for the lock ${prepared.locks[waits.lock[selection.place]!]}`, facts: [...facts, ...when], links };
    }
    case "switch": {
      const { switches } = thread!;
      const change = switches.change[selection.place]!;
      const facts: [string, string][] = [["for", duration(ns)], ...threadFact];
      if (change === RUNNING) facts.push(["core", String(switches.core[selection.place])]);
      if (change === PREEMPTED) {
        const core = lastCore(state, selection.thread, selection.place);
        facts.push(["core that it lost", core < 0 ? "not known" : String(core)]);
        const had = core < 0 ? [] : whoHad(state, core, bounds.begin, bounds.end);
        if (had.length > 0) facts.push(["who had it", had.map(({ name, ns }) => `${name} ${duration(ns)}`).join(", ")]);
      }
      const titles = ["Runs", "Its core was taken away", "Blocked: it gave its core up"];
      return { title: titles[change] ?? "?", facts: [...facts, ...when], links };
    }
    case "world": {
      const { worlds } = thread!;
      const world = worlds.world[selection.place]!;
      worldLink(world);
      const facts: [string, string][] = [["took", duration(ns)], ["tick", String(worlds.tick[selection.place])]];
      const known = prepared.worlds.find(({ id }) => id === world);
      if (known) facts.push(["rate", `${known.tickHz} Hz`]);
      return { title: world < 0 ? "No world" : `World ${state.worldName(world)}`, facts: [...facts, ...threadFact, ...when], links };
    }
    case "largeAllocation": {
      const amount = thread!.largeAllocations.bytes[selection.place]!;
      return { title: "Large allocation", facts: [["bytes", bytes(amount)], ...threadFact, ...when], links };
    }
    case "pageFault":
      return { title: "Page fault", facts: [...threadFact, ...when], links };
    case "frame": {
      const { frames } = prepared;
      const budget = frames.budget[selection.place]!;
      const facts: [string, string][] = [["took", duration(ns)], ["budget", duration(budget)]];
      if (state.isBad(selection.place)) facts.push(["over by", duration(ns - budget)]);
      if (selection.place === state.toldFrame) facts.push(["told", "the capture was saved for this frame"]);
      for (let part = frames.firstPart[selection.place]!; part < frames.firstPart[selection.place + 1]!; part++) {
        const { thread, running, waiting, blocked } = frames.parts;
        facts.push([
          prepared.threads[thread[part]!]!.name,
          `ran ${duration(running[part]!)}, without a core ${duration(waiting[part]!)}, blocked ${duration(blocked[part]!)}`,
        ]);
      }
      return { title: `Frame ${frames.number[selection.place]}`, facts: [...facts, ...when], links };
    }
    case "log": {
      const { level, target, text, thread } = prepared.logs[selection.place]!;
      return {
        title: `${level}: ${text}`,
        facts: [["target", target], ["thread", prepared.threads[thread]!.name], ...when],
        links,
      };
    }
    case "stall":
      return {
        title: "A core stood still for everybody",
        facts: [["for", duration(ns)], ["core", String(prepared.hostStalls[selection.place]!.core)], ...when],
        links,
      };
    case "run": {
      const core = prepared.cores[selection.core]!;
      const it = prepared.hostThreads[core.runs.thread[selection.place]!];
      const title = !it ? "Not known" : it.owner === "idle" ? "Idle" : it.name || it.process;
      const facts: [string, string][] = [["had the core for", duration(ns)], ["core", String(core.number)]];
      if (it && it.owner !== "idle") {
        facts.push(["process", `${it.process} (pid ${it.pid}, thread ${it.tid})`], ["whose", it.owner === "own" ? "this server's" : "another process"]);
      }
      return { title, facts: [...facts, ...when], links };
    }
    case "series": {
      const series = prepared.series[selection.series]!;
      return {
        title: prepared.counters[series.counter] ?? "?",
        facts: [["value", String(series.value[selection.place])], ...when],
        links,
      };
    }
  }
}

function inFrame(state: State, at: number): string {
  const frame = state.frameAt(at);
  if (frame < 0) return "";
  const { frames } = state.prepared;
  return `, ${duration(at - frames.begin[frame]!)} into frame ${frames.number[frame]}`;
}

function innerNs(state: State, thread: number, depth: number, begin: number, end: number): number {
  const row = state.prepared.threads[thread]!.rows[depth + 1];
  if (!row) return 0;
  let sum = 0;
  for (let place = upperBound(row.end, begin); place < row.begin.length && row.begin[place]! < end; place++) {
    sum += Math.min(row.end[place]!, end) - Math.max(row.begin[place]!, begin);
  }
  return sum;
}

/** How long a thread was without a core, and blocked, in a stretch. */
function states(state: State, thread: number, begin: number, end: number): { waiting: number; blocked: number } {
  const { switches } = state.prepared.threads[thread]!;
  const spent = { waiting: 0, blocked: 0 };
  for (let place = Math.max(0, upperBound(switches.at, begin) - 1); place < switches.at.length; place++) {
    const from = Math.max(begin, switches.at[place]!);
    if (from >= end) break;
    const ns = Math.min(end, switches.at[place + 1] ?? state.prepared.about.endNs) - from;
    if (ns <= 0) continue;
    if (switches.change[place] === PREEMPTED) spent.waiting += ns;
    if (switches.change[place] === BLOCKED) spent.blocked += ns;
  }
  return spent;
}

/** The core that a thread ran on last before a switch; -1 if that is not known. */
export function lastCore(state: State, thread: number, place: number): number {
  const { switches } = state.prepared.threads[thread]!;
  for (let at = place; at >= 0; at--) if (switches.change[at] === RUNNING) return switches.core[at]!;
  return -1;
}

/** Who had a core in a stretch, the longest first: from the switches of whole cores, else of our own threads. */
export function whoHad(state: State, number: number, begin: number, end: number): { name: string; ns: number }[] {
  const { prepared } = state;
  const sums = new Map<string, number>();
  const add = (name: string, from: number, to: number) => {
    const ns = Math.min(to, end) - Math.max(from, begin);
    if (ns > 0) sums.set(name, (sums.get(name) ?? 0) + ns);
  };
  const core = prepared.cores.find((core) => core.number === number);
  if (core) {
    const { at, thread } = core.runs;
    for (let place = Math.max(0, upperBound(at, begin) - 1); place < at.length && at[place]! < end; place++) {
      const it = prepared.hostThreads[thread[place]!];
      const name = !it ? "not known" : it.owner === "idle" ? "idle" : `${it.name || it.process}${it.owner === "foreign" ? ` (${it.process}, pid ${it.pid})` : ""}`;
      add(name, at[place]!, at[place + 1] ?? prepared.about.endNs);
    }
  } else {
    for (const { name, switches } of prepared.threads) {
      for (let place = Math.max(0, upperBound(switches.at, begin) - 1); place < switches.at.length && switches.at[place]! < end; place++) {
        if (switches.change[place] !== RUNNING || switches.core[place] !== number) continue;
        add(name, switches.at[place]!, switches.at[place + 1] ?? prepared.about.endNs);
      }
    }
  }
  return [...sums].map(([name, ns]) => ({ name, ns })).sort((a, b) => b.ns - a.ns);
}
