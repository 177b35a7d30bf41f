// The panels beside the picture, one per tab; each fills itself when it is looked at, and again when what it shows has
// changed.

import { copy, h, whenQuiet } from "../elements/dom.ts";
import { Table } from "../elements/table.ts";
import { bytes, count, duration, moment } from "../elements/quantity.ts";
import { comparison } from "./compare.ts";
import { describe, lastCore, whoHad } from "./describe.ts";
import { Longest } from "./prepare/longest.ts";
import { rangeSums, type Range, type RangeSum } from "./prepare/range_sums.ts";
import type { Change, State } from "./state.ts";
import { linked, lockWaits, shortStory, storyLinks, type LockWait, type Story } from "./story.ts";
import { boundsOf } from "./timeline/bounds.ts";

export interface Panel {
  id: string;
  name: string;
  element: HTMLElement;
  /** What makes it out of date while it is looked at. */
  follows: Change[];
  refresh: () => void;
}

const button = (label: string, go: () => void) => h("button", { type: "button", onclick: go }, label);

/** All of them, in the order of their tabs; of a capture to which others are compared, with what becomes of another one. */
export function panels(state: State, story: Story | undefined, compareWith?: (other: State) => void): Panel[] {
  const all = [storyPanel(state, story), detailsPanel(state), scopesPanel(state), framesPanel(state)];
  const { prepared } = state;
  const hasWaits = prepared.threads.some((thread) => thread.waits.begin.length > 0 || thread.preempted.at.length > 0);
  if (hasWaits) all.push(waitsPanel(state));
  if (prepared.logs.length > 0) all.push(logsPanel(state));
  const allocates = prepared.threads.some(({ allocated, largeAllocations }) => allocated.at.length + largeAllocations.at.length > 0);
  if (allocates || prepared.memory.bySite.length > 0) all.push(memoryPanel(state));
  return compareWith ? [...all, comparison(state, compareWith)] : all;
}

function storyPanel(state: State, story: Story | undefined): Panel {
  const text = story?.text ?? shortStory(state);
  const links = h("div", { class: "links" }, storyLinks(state).map(({ label, go }) => button(label, go)));
  const pre = h("pre", { class: story ? "story" : "story short", tabindex: "0", "aria-label": "What happened" });
  const verdict = h("p", { class: "verdict" });
  const copyButton = button("Copy text", () => void copy(text));
  const note = story
    ? undefined
    : h("p", { class: "quiet" }, "Made in this page. ", h("code", {}, "throng capture show FILE"), " names the cause, and tells more.");
  const element = h(
    "div",
    {},
    story ? verdict : undefined,
    links,
    pre,
    note,
    h("div", { class: "links" }, copyButton),
  );
  // The sentence stands above already; in the text it is the first paragraph.
  const shown = story ? text.slice(text.indexOf("\n\n") + 1).replace(/^\n+/, "") : text;
  const refresh = () => {
    pre.replaceChildren(...linked(state, shown));
    if (story) verdict.replaceChildren(...linked(state, story.verdict));
  };
  return { id: "story", name: "Story", element, follows: [], refresh };
}

function detailsPanel(state: State): Panel {
  const element = h("div", { "aria-live": "polite" });
  const refresh = () => {
    const { selection } = state;
    if (!selection) {
      element.replaceChildren(h("p", { class: "nothing" }, "Click a scope, a wait, a frame or anything else in the picture."));
      return;
    }
    const { title, facts, links } = describe(state, selection);
    const text = [title, ...facts.map(([name, value]) => `${name}: ${value}`)].join("\n");
    const bounds = boundsOf(state.prepared, selection);
    element.replaceChildren(
      h("h2", { class: "title" }, title),
      h("dl", {}, facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      h(
        "div",
        { class: "links" },
        bounds && button("Show it", () => state.goTo(bounds.begin, bounds.end)),
        links.map(({ label, go }) => button(label, go)),
        button("Copy text", () => void copy(text)),
      ),
    );
  };
  return { id: "selected", name: "Selected", element, follows: ["selection", "world"], refresh };
}

/** What a table of scopes is about: a marked stretch, or else what is on screen. */
function tableRange(state: State): Range {
  const { selection, view } = state;
  return selection?.kind === "range" ? [selection.begin, selection.end] : [view.begin, view.end];
}

function scopesPanel(state: State): Panel {
  const { prepared } = state;
  const table = new Table<RangeSum>({
    caption: "Scopes by name, with their sums",
    sortedBy: "itself",
    openLabel: "Go to the longest",
    open: ({ longestThread, site, longestBegin }) => state.goToScope(longestThread, site, longestBegin),
    headings: [
      { name: "scope", cell: ({ site }) => state.siteName(site), by: ({ site }) => state.siteName(site) },
      { name: "count", cell: (row) => count(row.count), by: (row) => row.count, isNumber: true },
      { name: "total", cell: ({ total }) => duration(total), by: ({ total }) => total, isNumber: true, title: "Time in it, with the scopes inside" },
      { name: "itself", cell: ({ self }) => duration(self), by: ({ self }) => self, isNumber: true, title: "Time in it, without the scopes inside" },
      {
        name: "longest",
        isNumber: true,
        by: ({ longest }) => longest,
        cell: ({ longest, site }) => h("span", { class: longest > state.budgets[site]! ? "bad" : "" }, duration(longest)),
        title: "Red: over its budget",
      },
    ],
    empty: "No scope here.",
  });
  const about = h("p", { class: "quiet" });
  const element = h("div", {}, about, table.element);
  const refresh = () => {
    const range = tableRange(state);
    const sums = rangeSums(prepared, range, state.world).filter(({ site }) => !state.found || state.found[site]);
    const where = state.selection?.kind === "range" ? "in the marked stretch" : "on screen";
    const world = state.world === undefined ? "" : `, ${state.worldName(state.world)} only`;
    const search = state.query ? `, with “${state.query}” in their names` : "";
    const length = Math.min(range[1], prepared.about.endNs) - Math.max(range[0], 0);
    about.textContent = `Scopes ${where} (${duration(length)})${world}${search}. A row leads to the longest one.`;
    table.set(sums);
  };
  return { id: "scopes", name: "Scopes", element, follows: ["view", "selection", "search", "world"], refresh };
}

function framesPanel(state: State): Panel {
  const { frames } = state.prepared;
  const wall = (frame: number) => frames.end[frame]! - frames.begin[frame]!;
  const all = Array.from(frames.begin, (_, frame) => frame);
  const bad = all.filter((frame) => state.isBad(frame));
  let onlyBad = bad.length > 0;
  const table = new Table<number>({
    caption: "Frames",
    sortedBy: "took",
    openLabel: "Go to the frame",
    open: (frame) => state.goToFrame(frame),
    headings: [
      {
        name: "frame",
        by: (frame) => frames.number[frame]!,
        cell: (frame) => `${frames.number[frame]}${frame === state.toldFrame ? " ★" : ""}`,
        title: "★: the capture was saved for it",
        isNumber: false,
      },
      { name: "at", by: (frame) => frames.begin[frame]!, cell: (frame) => moment(frames.begin[frame]!, 1e5), isNumber: true },
      {
        name: "took",
        by: wall,
        cell: (frame) => h("span", { class: state.isBad(frame) ? "bad" : "" }, duration(wall(frame))),
        isNumber: true,
      },
      { name: "budget", by: (frame) => frames.budget[frame]!, cell: (frame) => duration(frames.budget[frame]!), isNumber: true },
      {
        name: "over by",
        by: (frame) => wall(frame) - frames.budget[frame]!,
        cell: (frame) => (state.isBad(frame) ? duration(wall(frame) - frames.budget[frame]!) : ""),
        isNumber: true,
      },
    ],
    empty: "The capture has no frames.",
  });
  const toggle = button("", () => {
    onlyBad = !onlyBad;
    refresh();
  });
  const refresh = () => {
    toggle.textContent = onlyBad ? `Show all ${count(all.length)} frames` : `Show the ${count(bad.length)} over budget`;
    toggle.hidden = bad.length === 0;
    table.set(onlyBad ? bad : all);
  };
  const about = h("p", { class: "quiet" }, `${count(all.length)} frames, ${count(bad.length)} over budget. `, h("kbd", {}, "["), " ", h("kbd", {}, "]"), " step through those.");
  return { id: "frames", name: "Frames", element: h("div", {}, about, toggle, table.element), follows: [], refresh };
}

/** As many of the longest are listed. */
const LISTED = 2_000;

function waitsPanel(state: State): Panel {
  const { prepared } = state;
  const whole = [0, prepared.about.endNs] as const;
  const locks = new Table<LockWait>({
    caption: "Waits for locks, the longest first",
    sortedBy: "waited",
    openLabel: "Go to the wait",
    open: ({ thread, place, begin, ns }) => state.goTo(begin, begin + ns, { kind: "wait", thread, place }),
    headings: [
      { name: "lock", cell: ({ lock }) => prepared.locks[lock]!, by: ({ lock }) => prepared.locks[lock]! },
      { name: "waited", cell: ({ ns }) => duration(ns), by: ({ ns }) => ns, isNumber: true },
      { name: "thread", cell: ({ thread }) => prepared.threads[thread]!.name, by: ({ thread }) => prepared.threads[thread]!.name },
      { name: "held by", cell: ({ holder }) => prepared.threads[holder]?.name ?? "not known", by: ({ holder }) => prepared.threads[holder]?.name ?? "" },
    ],
    empty: "No thread waited for a lock that the server names.",
  });
  interface CoreWait {
    thread: number;
    place: number;
    begin: number;
    ns: number;
  }
  const cores = new Table<CoreWait>({
    caption: "Waits for a core, the longest first",
    sortedBy: "waited",
    openLabel: "Go to the wait",
    open: ({ thread, place, begin, ns }) => state.goTo(begin, begin + ns, { kind: "switch", thread, place }),
    headings: [
      { name: "thread", cell: ({ thread }) => prepared.threads[thread]!.name, by: ({ thread }) => prepared.threads[thread]!.name },
      { name: "waited", cell: ({ ns }) => duration(ns), by: ({ ns }) => ns, isNumber: true },
      {
        name: "who had the core",
        cell: ({ thread, place, begin, ns }) => {
          const core = lastCore(state, thread, place);
          const had = core < 0 ? [] : whoHad(state, core, begin, begin + ns);
          return had.slice(0, 2).map(({ name }) => name).join(", ") || "not known";
        },
      },
    ],
    empty: "No thread lost its core, as far as this capture knows.",
  });
  const refresh = () => {
    locks.set(lockWaits(state, whole, LISTED));
    const lost = new Longest<CoreWait>(LISTED);
    prepared.threads.forEach(({ preempted, switches }, thread) =>
      preempted.place.forEach((place, at) => {
        const begin = preempted.at[at]!;
        const ns = (switches.at[place + 1] ?? prepared.about.endNs) - begin;
        lost.offer(ns, () => ({ thread, place, begin, ns }));
      }),
    );
    cores.set(lost.all());
  };
  const element = h("div", {}, h("h2", {}, "For locks"), locks.element, h("h2", {}, "For a core"), cores.element);
  return { id: "waits", name: "Waits", element, follows: [], refresh };
}

function logsPanel(state: State): Panel {
  const { logs } = state.prepared;
  const table = new Table<number>({
    caption: "Log lines",
    openLabel: "Go to the moment",
    open: (place) => state.goTo(logs[place]!.atNs - 500_000, logs[place]!.atNs + 500_000, { kind: "log", place }),
    headings: [
      { name: "at", cell: (place) => moment(logs[place]!.atNs, 1e4), isNumber: false, by: (place) => logs[place]!.atNs },
      { name: "level", cell: (place) => h("span", { class: levelClass(logs[place]!.level) }, logs[place]!.level), by: (place) => logs[place]!.level },
      { name: "text", cell: (place) => [h("span", { class: "quiet" }, `${logs[place]!.target} `), logs[place]!.text] },
    ],
  });
  return { id: "log", name: "Log", element: table.element, follows: [], refresh: () => table.set(logs.map((_, place) => place)) };
}

const levelClass = (level: string) => (level === "error" ? "bad" : level === "warn" ? "warn" : "quiet");

function memoryPanel(state: State): Panel {
  const { prepared } = state;
  const { sums, memory } = prepared;
  const scopes = new Table<number>({
    caption: "What scopes allocated",
    sortedBy: "bytes",
    openLabel: "Find the scope",
    open: (site) => state.goToScope(sums.longestThread[site]!, site, sums.longestBegin[site]!),
    headings: [
      { name: "scope", cell: (site) => state.siteName(site), by: (site) => state.siteName(site) },
      { name: "bytes", cell: (site) => bytes(sums.bytes[site]!), by: (site) => sums.bytes[site]!, isNumber: true },
      { name: "allocated", cell: (site) => count(sums.allocations[site]!), by: (site) => sums.allocations[site]!, isNumber: true },
      { name: "freed", cell: (site) => count(sums.frees[site]!), by: (site) => sums.frees[site]!, isNumber: true },
    ],
    empty: "No scope allocated anything.",
  });
  interface Large {
    thread: number;
    place: number;
    at: number;
    bytes: number;
  }
  const large = new Table<Large>({
    caption: "Large allocations",
    sortedBy: "bytes",
    openLabel: "Go to the moment",
    open: ({ thread, place, at }) => state.goTo(at - 100_000, at + 100_000, { kind: "largeAllocation", thread, place }),
    headings: [
      { name: "at", cell: ({ at }) => moment(at, 1e4), by: ({ at }) => at },
      { name: "bytes", cell: (row) => bytes(row.bytes), by: (row) => row.bytes, isNumber: true },
      { name: "thread", cell: ({ thread }) => prepared.threads[thread]!.name },
    ],
    empty: "No large one.",
  });
  const live = new Table<{ site: number; first: number; last: number }>({
    caption: "Live bytes",
    sortedBy: "grew by",
    headings: [
      { name: "scope", cell: ({ site }) => state.siteName(site), by: ({ site }) => state.siteName(site) },
      { name: "in the end", cell: ({ last }) => bytes(last), by: ({ last }) => last, isNumber: true },
      { name: "grew by", cell: ({ first, last }) => bytes(last - first), by: ({ first, last }) => last - first, isNumber: true },
    ],
    empty: "Nothing was noted.",
  });
  const refresh = () => {
    scopes.set(prepared.sites.map((_, site) => site).filter((site) => sums.allocations[site]! + sums.frees[site]! > 0));
    large.set(
      prepared.threads.flatMap(({ largeAllocations: { at, bytes } }, thread) =>
        Array.from(at, (at, place) => ({ thread, place, at, bytes: bytes[place]! })),
      ),
    );
    live.set(memory.bySite.map(({ site, bytes }) => ({ site, first: bytes[0] ?? 0, last: bytes.at(-1) ?? 0 })));
  };
  const element = h(
    "div",
    {},
    h("h2", {}, "Allocated by scopes themselves"),
    scopes.element,
    h("h2", {}, "Large allocations"),
    large.element,
    h("h2", {}, "Live bytes"),
    live.element,
  );
  return { id: "memory", name: "Memory", element, follows: [], refresh };
}

/** Shows one panel at a time; fills it when it is looked at. What is selected or searched for opens the panel that tells of it. */
export class Tabs {
  readonly element = h("div", { class: "panels" });
  current: string;
  private readonly stale: Set<string>;
  private readonly tabs: HTMLButtonElement[];
  private readonly catchUp: () => void;

  constructor(
    private readonly state: State,
    private readonly all: Panel[],
    /** Where a page has several, what the ids of one begin with, and what it is called. */
    { prefix = "", label = "Panels" } = {},
  ) {
    this.current = all[0]!.id;
    this.stale = new Set(all.map(({ id }) => id));
    this.tabs = all.map(({ id, name }) =>
      h("button", { type: "button", role: "tab", id: `${prefix}tab-${id}`, "aria-controls": `${prefix}panel-${id}`, onclick: () => this.open(id) }, name),
    );
    const list = h("div", { role: "tablist", class: "tabs", "aria-label": label }, this.tabs);
    list.addEventListener("keydown", (event) => {
      const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (by === 0) return;
      event.stopPropagation();
      const at = all.findIndex(({ id }) => id === this.current);
      this.open(all[(at + by + all.length) % all.length]!.id);
      this.tabs[(at + by + all.length) % all.length]!.focus();
    });
    for (const { id, element } of all) {
      element.classList.add("panel");
      element.setAttribute("role", "tabpanel");
      element.setAttribute("aria-labelledby", `${prefix}tab-${id}`);
      element.id = `${prefix}panel-${id}`;
    }
    this.element.append(list, ...all.map(({ element }) => element));
    this.catchUp = whenQuiet(150, () => this.fill());
    state.onChange((changes) => {
      for (const panel of all) if (panel.follows.some((change) => changes.has(change))) this.stale.add(panel.id);
      if (this.stale.has(this.current)) {
        // What was clicked is told at once; sums wait until the picture stands still.
        if (changes.has("selection") && this.current === "selected") this.fill();
        else this.catchUp();
      }
      if (changes.has("selection") && state.selection) this.open(state.selection.kind === "range" ? "scopes" : "selected");
      if (changes.has("search") && state.query) this.open("scopes");
    });
    this.show();
  }

  open(id: string): void {
    if (!this.all.some((panel) => panel.id === id)) return;
    this.current = id;
    this.show();
    this.state.changed("tab");
  }

  private show(): void {
    this.all.forEach(({ id, element }, index) => {
      const isIt = id === this.current;
      element.hidden = !isIt;
      this.tabs[index]!.setAttribute("aria-selected", String(isIt));
      this.tabs[index]!.tabIndex = isIt ? 0 : -1;
    });
    this.fill();
  }

  private fill(): void {
    if (!this.stale.delete(this.current)) return;
    this.all.find(({ id }) => id === this.current)!.refresh();
  }
}
