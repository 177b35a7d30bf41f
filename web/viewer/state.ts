// What a reader has open: the capture, the part that is on screen, what is selected, searched for and left out.
//
// Everything that changes goes through here and is told to all who show it.

import { isLong } from "../elements/frames.ts";
import { worldAt } from "./prepare/range_sums.ts";
import type { Prepared } from "./prepare/prepare.ts";
import { upperBound } from "./prepare/search.ts";
import type { Selection } from "./selection.ts";
import { closedAtFirst } from "./timeline/tracks.ts";
import { View } from "./timeline/view.ts";

/** Triggers whose measure is one stretch, which ended when they fired. */
const STRETCHES: ReadonlySet<string> = new Set(["frame", "scope", "lock-wait", "run-queue", "stuck-tick"]);

export type Change = "view" | "selection" | "search" | "world" | "tracks" | "tab";

/** Where the matches of a search are: by thread and depth, rising places. */
export type Matches = Uint32Array[][];

export class State {
  readonly view: View;
  readonly closed: Set<string>;
  readonly budgets: Float64Array;
  selection: Selection | undefined;
  /** Only what was done for this world; undefined: everything. */
  world: number | undefined;
  query = "";
  /** By site, whether its name has the query in it. */
  found: boolean[] | undefined;
  matches: Matches | undefined;
  /** The frame that the capture was saved for, and the story is about; -1: there are no frames. */
  toldFrame: number;
  private readonly worldNames: Map<number, string>;
  private readonly listeners = new Set<(changes: ReadonlySet<Change>) => void>();
  private pending = new Set<Change>();

  constructor(
    readonly prepared: Prepared,
    readonly fileName: string,
    toldFrameNumber?: number,
  ) {
    this.worldNames = new Map(prepared.worlds.map(({ id, name }) => [id, name]));
    this.view = new View(prepared.about.endNs);
    this.closed = closedAtFirst(prepared);
    this.budgets = Float64Array.from(prepared.sites, ({ budgetNs }) => (budgetNs < 0 ? Infinity : budgetNs));
    this.toldFrame = toldFrame(prepared, toldFrameNumber);
  }

  /** What it gives ends it. */
  onChange(listener: (changes: ReadonlySet<Change>) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Told once for all changes until the browser draws next. */
  changed(...changes: Change[]): void {
    if (this.pending.size === 0) {
      requestAnimationFrame(() => {
        const changes = this.pending;
        this.pending = new Set();
        this.listeners.forEach((listener) => listener(changes));
      });
    }
    changes.forEach((change) => this.pending.add(change));
  }

  select(selection: Selection | undefined): void {
    this.selection = selection;
    this.changed("selection");
  }

  search(query: string): void {
    this.query = query;
    const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
    if (words.length === 0) {
      this.found = this.matches = undefined;
    } else {
      const found = this.prepared.sites.map(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
      this.found = found;
      this.matches = matches(this.prepared, found);
    }
    this.changed("search");
  }

  filter(world: number | undefined): void {
    this.world = world;
    this.changed("world");
  }

  toggle(heading: string): void {
    if (!this.closed.delete(heading)) this.closed.add(heading);
    this.changed("tracks");
  }

  /** Shows a stretch, and what is in it in detail. */
  goTo(begin: number, end: number, selection?: Selection): void {
    this.view.around(begin, end);
    if (selection) {
      this.selection = selection;
      if ("thread" in selection) this.closed.delete(`thread ${selection.thread}`);
    }
    this.changed("view", "tracks", ...(selection ? (["selection"] as const) : []));
  }

  /** What is shown at first: the frame that the capture was saved for, and of what took too long all that there is. */
  firstView(): [number, number] | undefined {
    const { frames, about } = this.prepared;
    const { kind, atNs, measured } = about.trigger;
    const stretches: [number, number][] = [];
    if (this.toldFrame >= 0) stretches.push([frames.begin[this.toldFrame]!, frames.end[this.toldFrame]!]);
    if (STRETCHES.has(kind) && measured > 0) stretches.push([Math.max(0, atNs - measured), Math.min(atNs, about.endNs)]);
    if (stretches.length === 0) return undefined;
    return [Math.min(...stretches.map(([begin]) => begin)), Math.max(...stretches.map(([, end]) => end))];
  }

  goToFrame(frame: number): void {
    const { begin, end } = this.prepared.frames;
    this.goTo(begin[frame]!, end[frame]!, { kind: "frame", place: frame });
  }

  /** The scope of a site that began then. */
  goToScope(thread: number, site: number, begin: number): void {
    const { rows } = this.prepared.threads[thread]!;
    for (let depth = 0; depth < rows.length; depth++) {
      const row = rows[depth]!;
      for (let place = upperBound(row.begin, begin) - 1; place >= 0 && row.begin[place] === begin; place--) {
        if (row.site[place] !== site) continue;
        return this.goTo(begin, row.end[place]!, { kind: "scope", thread, depth, place });
      }
    }
  }

  siteName(site: number): string {
    return site < 0 ? "outside of scopes" : (this.prepared.sites[site]?.name ?? "?");
  }

  worldName(world: number): string {
    if (world < 0) return "no world";
    const name = this.worldNames.get(world);
    return name === undefined ? `world ${world}` : `${name} ${world}`;
  }

  /** The world that a thread worked for. */
  worldAt(thread: number, at: number): { world: number; tick: number } {
    return worldAt(this.prepared.threads[thread]!, at);
  }

  /** The frame of a moment; -1 between frames. */
  frameAt(at: number): number {
    const { begin, end } = this.prepared.frames;
    const frame = upperBound(begin, at) - 1;
    return frame >= 0 && at <= end[frame]! ? frame : -1;
  }

  isBad(frame: number): boolean {
    const { begin, end, budget } = this.prepared.frames;
    return isLong(end[frame]! - begin[frame]!, budget[frame]!);
  }
}

function toldFrame({ frames, about }: Prepared, number = about.trigger.kind === "manual" ? -1 : about.frame): number {
  const told = frames.number.indexOf(number);
  if (told >= 0) return told;
  let longest = -1;
  let longestNs = -1;
  frames.begin.forEach((begin, frame) => {
    if (frames.end[frame]! - begin > longestNs) {
      longest = frame;
      longestNs = frames.end[frame]! - begin;
    }
  });
  return longest;
}

function matches({ threads }: Prepared, found: readonly boolean[]): Matches {
  const isFound = Uint8Array.from(found, (it) => (it ? 1 : 0));
  return threads.map(({ rows }) =>
    rows.map(({ site }) => {
      let count = 0;
      for (let place = 0; place < site.length; place++) count += isFound[site[place]!]!;
      const places = new Uint32Array(count);
      for (let place = 0, next = 0; place < site.length; place++) if (isFound[site[place]!]) places[next++] = place;
      return places;
    }),
  );
}
