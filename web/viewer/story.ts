// The story beside the picture: the text that Rust told with the file, or a short one made here; names in it lead to
// the moment.

import { duration } from "../elements/quantity.ts";
import { h } from "../elements/dom.ts";
import { TRIGGER_KINDS } from "./format/capture.ts";
import { bytes } from "../elements/quantity.ts";
import { Longest } from "./prepare/longest.ts";
import { upperBound } from "./prepare/search.ts";
import { rangeSums, worldSums } from "./prepare/range_sums.ts";
import type { State } from "./state.ts";
import type { Link } from "./describe.ts";

/** What a page carries beside its capture; written by `throng capture show --html`. */
export interface Story {
  file: string;
  verdict: string;
  text: string;
  /** The frame that it is about. */
  frame: number | null;
}

/** The page's own; nothing if it has none, or not a sound one. */
export function embeddedStory(): Story | undefined {
  const text = document.getElementById("story")?.textContent;
  if (!text) return undefined;
  try {
    const story = JSON.parse(text) as Partial<Story>;
    if (typeof story.text !== "string" || typeof story.verdict !== "string") return undefined;
    return { file: String(story.file ?? ""), verdict: story.verdict, text: story.text, frame: story.frame ?? null };
  } catch {
    return undefined;
  }
}

/** What was measured when the trigger fired, in words. */
export function triggerText(state: State): string {
  const { trigger, frame } = state.prepared.about;
  const unit = TRIGGER_KINDS.find(([kind]) => kind === trigger.kind)?.[1] ?? "";
  const amount = (value: number) =>
    unit === "ns" ? duration(value) : unit === "bytes" ? bytes(value) : unit === "bytes/s" ? `${bytes(value)}/s` : `${value} ${unit}`;
  const what = trigger.name ? `${trigger.kind} ${trigger.name}` : trigger.kind;
  const measured = unit === "" ? "" : `: ${amount(trigger.measured)} where ${amount(trigger.allowed)} are allowed`;
  const world = trigger.world < 0 ? "" : `, in ${state.worldName(trigger.world)}`;
  const note = trigger.note ? ` (${trigger.note})` : "";
  return `${what}${measured}${world}, frame ${frame}${note}`;
}

/** A short story: the trigger, and where the frame's time went. What Rust tells is longer, and names the cause. */
export function shortStory(state: State): string {
  const { prepared } = state;
  const lines = [`Saved for ${triggerText(state)}.`];
  const { frames } = prepared;
  const frame = state.toldFrame;
  if (frame < 0) return lines[0]!;
  const range = [frames.begin[frame]!, frames.end[frame]!] as const;
  const budget = frames.budget[frame]!;
  lines.push("", `frame ${frames.number[frame]} took ${duration(range[1] - range[0])}, its budget is ${duration(budget)}.`);
  const worlds = worldSums(prepared, range).slice(0, 3);
  if (worlds.length > 0) {
    lines.push("", "Worlds that had the time:");
    worlds.forEach(({ world, total, thread }) =>
      lines.push(`  ${duration(total).padStart(9)}  ${state.worldName(world)} on ${prepared.threads[thread]!.name}`),
    );
  }
  const sums = rangeSums(prepared, range).filter(({ site }) => prepared.sites[site]!.category !== "idle").slice(0, 5);
  if (sums.length > 0) {
    lines.push("", "Scopes, without the scopes inside:");
    sums.forEach(({ site, self, count }) => lines.push(`  ${duration(self).padStart(9)}  ${state.siteName(site)} (${count} x)`));
  }
  const waits = lockWaits(state, range, 3);
  if (waits.length > 0) {
    lines.push("", "Longest waits for locks:");
    waits.forEach(({ thread, ns, lock, holder }) => {
      const held = holder < 0 ? "" : `, which ${prepared.threads[holder]!.name} had`;
      lines.push(`  ${duration(ns).padStart(9)}  ${prepared.threads[thread]!.name} for ${prepared.locks[lock]}${held}`);
    });
  }
  return lines.join("\n");
}

export interface LockWait {
  thread: number;
  place: number;
  lock: number;
  begin: number;
  ns: number;
  holder: number;
}

/** The longest waits that reach into a stretch, the longest first. */
export function lockWaits({ prepared }: State, [from, to]: readonly [number, number], most: number): LockWait[] {
  const longest = new Longest<LockWait>(most);
  prepared.threads.forEach(({ waits }, thread) => {
    for (let place = 0; place < waits.begin.length; place++) {
      const begin = waits.begin[place]!;
      const ns = waits.end[place]! - begin;
      if (begin >= to || begin + ns <= from) continue;
      const [lock, holder] = [waits.lock[place]!, waits.holderThread[place]!];
      longest.offer(ns, () => ({ thread, place, lock, begin, ns, holder }));
    }
  });
  return longest.all();
}

/** Moments that a reader of the story wants to see. */
export function storyLinks(state: State): Link[] {
  const { prepared } = state;
  const { about, frames } = prepared;
  const links: Link[] = [];
  const frame = state.toldFrame;
  if (frame >= 0) links.push({ label: `Frame ${frames.number[frame]}`, go: () => state.goToFrame(frame) });
  const at = about.trigger.atNs;
  links.push({ label: "Where the trigger fired", go: () => state.goTo(at - 500_000, at + 500_000) });
  const range = frame < 0 ? ([0, about.endNs] as const) : ([frames.begin[frame]!, frames.end[frame]!] as const);
  const [wait] = lockWaits(state, range, 1);
  if (wait) {
    links.push({
      label: `Longest lock wait (${duration(wait.ns)})`,
      go: () => state.goTo(wait.begin, wait.begin + wait.ns, { kind: "wait", thread: wait.thread, place: wait.place }),
    });
  }
  if (about.trigger.world >= 0) {
    links.push({ label: `Only ${state.worldName(about.trigger.world)}`, go: () => state.filter(about.trigger.world) });
  }
  return links;
}

/** Of so many names are known; others stay text. */
const WORLDS_LINKED = 5_000;
const FRAMES_LINKED = 5_000;

/** The text with scopes, threads, worlds and frames as links; all else, spaces too, as it is. */
export function linked(state: State, text: string): Node[] {
  const { prepared } = state;
  const frame = state.toldFrame;
  const range = frame < 0 ? ([0, prepared.about.endNs] as const) : ([prepared.frames.begin[frame]!, prepared.frames.end[frame]!] as const);
  const longest = new Map(rangeSums(prepared, range).map((sum) => [prepared.sites[sum.site]!.name, sum]));
  const targets = new Map<string, () => void>();
  prepared.threads.forEach(({ name }, thread) => {
    // One that is called as what every line is about would be a link in each.
    if (name.length > 2 && name !== "frame") targets.set(name, () => showThread(state, thread, range));
  });
  for (const [name, sum] of longest) {
    // A word of one part may be any word of a sentence.
    if (name.includes(".")) targets.set(name, () => state.goToScope(sum.longestThread, sum.site, sum.longestBegin));
  }
  for (const { id, name } of prepared.worlds.slice(0, WORLDS_LINKED)) {
    for (const form of [`${name} ${id}`, `world ${id}`, `${id} (${name})`]) targets.set(form, () => showWorld(state, id, range));
  }
  prepared.frames.number.forEach((number, place) => {
    if (place < FRAMES_LINKED) targets.set(`frame ${number}`, () => state.goToFrame(place));
  });
  const nodes: Node[] = [];
  // `12 (hideout)`, or a word with what names may have in it; pairs of a word and a number are tried first.
  const pattern = /\d+ \([\w-]+\)|[A-Za-z_][\w.-]*(?: \d+)?/g;
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    const bare = match[0].replace(/[.]+$/, "");
    const single = bare.split(" ")[0]!.replace(/[.]+$/, "");
    const name = [bare, single].find((name) => targets.has(name));
    if (name === undefined) continue;
    const go = targets.get(name)!;
    nodes.push(
      document.createTextNode(text.slice(from, match.index)),
      h("button", { type: "button", class: "link", onclick: go }, text.slice(match.index, match.index + name.length)),
    );
    from = match.index + name.length;
  }
  nodes.push(document.createTextNode(text.slice(from)));
  return nodes;
}

/** Where the world had most of a stretch; everything else is drawn pale. */
function showWorld(state: State, world: number, range: readonly [number, number]): void {
  let longest: { thread: number; place: number; begin: number; end: number } | undefined;
  state.prepared.threads.forEach(({ worlds }, thread) => {
    for (let place = Math.max(0, upperBound(worlds.at, range[0]) - 1); place < worlds.at.length; place++) {
      const begin = worlds.at[place]!;
      if (begin >= range[1]) break;
      const end = worlds.at[place + 1] ?? state.prepared.about.endNs;
      if (worlds.world[place] !== world || end <= range[0]) continue;
      if (!longest || end - begin > longest.end - longest.begin) longest = { thread, place, begin, end };
    }
  });
  state.filter(world);
  if (longest) state.goTo(longest.begin, longest.end, { kind: "world", thread: longest.thread, place: longest.place });
}

function showThread(state: State, thread: number, range: readonly [number, number]): void {
  const row = state.prepared.threads[thread]!.rows[0];
  const place = row ? row.begin.findIndex((begin, at) => begin < range[1] && row.end[at]! > range[0]) : -1;
  state.goTo(range[0], range[1], place < 0 ? undefined : { kind: "scope", thread, depth: 0, place });
}
