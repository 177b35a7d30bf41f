// Worlds: all of them, or the costliest of very many, by whatever the reader sorts by. A row leads into the world.

import { h } from "../elements/dom.ts";
import { LiveTable } from "../elements/live_table.ts";
import { count } from "../elements/quantity.ts";
import type { KindOfWorld, Worlds } from "./document.ts";
import { ms, percent, timeOfDay, us } from "./figures.ts";
import type { Model } from "./model.ts";
import type { Panel, Surroundings } from "./panel.ts";

/** One of the worlds, which the server tells in a list for each figure. */
export type WorldNow = { [Figure in Exclude<keyof Worlds, "kinds" | "kind">]: Worlds[Figure][number] } & { kind: string };

/** All of them as rows, in their order. */
export const worldRows = (worlds: Worlds): WorldNow[] => worlds.world.map((_, at) => worldRow(worlds, at));

/** One by its number; undefined where it is not among them. */
export const findWorld = (worlds: Worlds, world: string): WorldNow | undefined => {
  const at = worlds.world.indexOf(world);
  return at < 0 ? undefined : worldRow(worlds, at);
};

const worldRow = (worlds: Worlds, at: number): WorldNow => ({
  world: worlds.world[at]!,
  kind: worlds.kinds[worlds.kind[at]!]!,
  rate_hz: worlds.rate_hz[at]!,
  players: worlds.players[at]!,
  is_dormant: worlds.is_dormant[at]!,
  time_percent: worlds.time_percent[at]!,
  tick_us: worlds.tick_us[at]!,
  last_tick_us: worlds.last_tick_us[at]!,
  longest_tick_us: worlds.longest_tick_us[at]!,
  load: worlds.load[at]!,
  ticks_missed: worlds.ticks_missed[at]!,
  behind_unix_s: worlds.behind_unix_s[at]!,
  overload: worlds.overload[at]!,
  hangs_for_ms: worlds.hangs_for_ms[at]!,
});

/** How it does, in a word or three. */
export function worldState(world: WorldNow): string {
  if (world.hangs_for_ms !== null) return `hangs for ${ms(world.hangs_for_ms)}`;
  if (world.is_dormant) return "dormant";
  if (world.time_percent < 100) return `slowed to ${world.time_percent}\u202f%`;
  return world.overload === "normal" ? "awake" : world.overload.replaceAll("_", " ");
}

const stateClass = (world: WorldNow): string =>
  world.hangs_for_ms !== null ? "bad" : world.is_dormant ? "quiet" : world.time_percent < 100 || world.overload !== "normal" ? "warn" : "";

/** Whether its ticks take more than its rate has room for, again and again, with what they wait for a core. Slowed time has room for
 * more, so a load that is less than it would be is held against that. */
export const isLongItself = (world: WorldNow): boolean => world.hangs_for_ms !== null || world.load > (LOAD_HIGH * world.time_percent) / 100;

/** What a world may take of one worker before that is told. */
const LOAD_HIGH = 0.8;

/** Who was behind so lately still is (s): as the server counts it, in `runtime/server/src/behind.rs`. */
export const BEHIND_S = 60;

/** A world's last episode of being behind. */
export interface Behind {
  /** Whether it lasts. */
  isStill: boolean;
  /** When it began, and when the last late tick of it ended, as people read moments. */
  since: string;
  until: string;
  /** How long ago it began (s). */
  sinceAgoS: number;
}

/** The last episode in which a world was behind; undefined if there was none. */
export function behind({ behind_unix_s }: WorldNow, nowUnixS: number): Behind | undefined {
  if (behind_unix_s === null) return undefined;
  const [since, until] = behind_unix_s;
  return { isStill: nowUnixS - until < BEHIND_S, since: timeOfDay(since, nowUnixS), until: timeOfDay(until, nowUnixS), sinceAgoS: nowUnixS - since };
}

export function worldTable(model: Model, caption: string, open: (world: WorldNow) => void, shown?: number): LiveTable<WorldNow> {
  const behindNow = (world: WorldNow) => behind(world, model.second?.at_unix_s ?? 0);
  const behindTold = (world: WorldNow): string => {
    const episode = behindNow(world);
    if (!episode) return "";
    return episode.isStill ? `since ${episode.since}` : `until ${episode.until}`;
  };
  return new LiveTable<WorldNow>({
    caption,
    key: ({ world }) => world,
    // As they come: those that hang first, then the overloaded, then by what they take.
    open,
    openLabel: "look into this world",
    empty: "There are no worlds.",
    ...(shown === undefined ? {} : { shown }),
    headings: [
      { name: "world", cell: ({ world, kind }) => `${kind} ${world}`, by: ({ world, kind }) => `${kind} ${world}` },
      { name: "state", cell: worldState, by: worldState, className: stateClass },
      { name: "players", cell: ({ players }) => count(players), by: ({ players }) => players, isNumber: true },
      { name: "tick", cell: ({ tick_us }) => us(tick_us), by: ({ tick_us }) => tick_us, isNumber: true, title: "what a tick takes, smoothed" },
      { name: "longest", cell: ({ longest_tick_us }) => us(longest_tick_us), by: ({ longest_tick_us }) => longest_tick_us, isNumber: true, title: "what the longest of the last 10 to 20 s took", className: ({ longest_tick_us, rate_hz }) => (longest_tick_us * rate_hz > 1e6 ? "bad" : "") },
      { name: "load", cell: ({ load }) => percent(load), by: ({ load }) => load, isNumber: true, title: "what its ticks take of one worker", className: ({ load }) => (load > 1 ? "bad" : load > LOAD_HIGH ? "warn" : "") },
      { name: "missed", cell: ({ ticks_missed }) => count(ticks_missed), by: ({ ticks_missed }) => ticks_missed, isNumber: true, title: "ticks missed since it is there" },
      { name: "behind", cell: behindTold, by: ({ behind_unix_s }) => behind_unix_s?.[1] ?? 0, isNumber: true, title: "when it last missed ticks or was overloaded, by UTC; after a minute without it begins anew; red where its own ticks are too long, again and again: others waited for a worker, a core or the frame, or had a single long one", className: (world) => (behindNow(world)?.isStill ? (isLongItself(world) ? "bad" : "") : "quiet") },
    ],
  });
}

/** What ticks of each kind took in the last second. */
function kindTable(): LiveTable<KindOfWorld> {
  return new LiveTable<KindOfWorld>({
    caption: "Kinds of worlds",
    key: ({ kind }) => kind,
    sortedBy: "longest",
    empty: "No world ticked.",
    headings: [
      { name: "kind", cell: ({ kind }) => kind, by: ({ kind }) => kind },
      { name: "ticks", cell: ({ ticks }) => count(ticks), by: ({ ticks }) => ticks, isNumber: true },
      { name: "usual", cell: ({ tick_us_mean }) => us(tick_us_mean), by: ({ tick_us_mean }) => tick_us_mean, isNumber: true, title: "the mean of the last second" },
      { name: "longest", cell: ({ tick_us_max }) => us(tick_us_max), by: ({ tick_us_max }) => tick_us_max, isNumber: true, title: "of the last second" },
    ],
  });
}

export function worlds({ model, go }: Surroundings): Panel {
  const table = worldTable(model, "All worlds", ({ world }) => go(`world/${world}`));
  const kinds = kindTable();
  const filter = h("input", { type: "search", placeholder: "kind or number", "aria-label": "Only worlds whose kind or number has" });
  const about = h("p", { class: "quiet" }, "");
  const show = () => {
    const { second } = model;
    if (!second) return;
    kinds.set(second.kinds);
    const wanted = filter.value.trim().toLowerCase();
    const rows = worldRows(second.worlds);
    table.set(rows.filter(({ kind, world }) => `${kind} ${world}`.toLowerCase().includes(wanted)));
    about.textContent =
      second.worlds_left_out > 0
        ? `The ${rows.length} costliest of ${second.server.worlds}; the console's world.list tells all.`
        : `${rows.length} worlds, ${second.server.worlds_awake} awake.`;
  };
  filter.addEventListener("input", show);
  return {
    name: "worlds",
    title: "Worlds",
    element: h("section", { "aria-label": "Worlds" }, h("div", { class: "head" }, h("h2", {}, "Worlds"), filter), about, table.element, h("h2", {}, "Kinds of worlds in the last second"), kinds.element),
    open: show,
    update: (part) => part === "second" && show(),
  };
}
