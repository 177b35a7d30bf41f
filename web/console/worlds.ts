// Worlds: all of them, or the costliest of very many, by whatever the reader sorts by. A row leads into the world.

import { h } from "../elements/dom.ts";
import { LiveTable } from "../elements/live_table.ts";
import { count } from "../elements/quantity.ts";
import type { KindOfWorld, WorldNow } from "./document.ts";
import { ms, percent, us } from "./figures.ts";
import type { Panel, Surroundings } from "./panel.ts";

function state(world: WorldNow): string {
  if (world.hangs_for_ms !== null) return `hangs for ${ms(world.hangs_for_ms)}`;
  if (world.is_dormant) return "dormant";
  if (world.time_percent < 100) return `slowed to ${world.time_percent}\u202f%`;
  return world.overload === "normal" ? "awake" : world.overload.replaceAll("_", " ");
}

const stateClass = (world: WorldNow): string =>
  world.hangs_for_ms !== null ? "bad" : world.is_dormant ? "quiet" : world.time_percent < 100 || world.overload !== "normal" ? "warn" : "";

export function worldTable(caption: string, open: (world: WorldNow) => void, shown?: number): LiveTable<WorldNow> {
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
      { name: "state", cell: state, by: state, className: stateClass },
      { name: "players", cell: ({ players }) => count(players), by: ({ players }) => players, isNumber: true },
      { name: "tick", cell: ({ tick_us }) => us(tick_us), by: ({ tick_us }) => tick_us, isNumber: true, title: "what a tick takes, smoothed" },
      { name: "longest", cell: ({ longest_tick_us }) => us(longest_tick_us), by: ({ longest_tick_us }) => longest_tick_us, isNumber: true, title: "what the longest of the last 10 to 20 s took", className: ({ longest_tick_us, rate_hz }) => (longest_tick_us * rate_hz > 1e6 ? "bad" : "") },
      { name: "load", cell: ({ load }) => percent(load), by: ({ load }) => load, isNumber: true, title: "what its ticks take of one worker", className: ({ load }) => (load > 1 ? "bad" : load > 0.8 ? "warn" : "") },
      { name: "missed", cell: ({ ticks_missed }) => count(ticks_missed), by: ({ ticks_missed }) => ticks_missed, isNumber: true, title: "ticks missed since it is there" },
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
  const table = worldTable("All worlds", ({ world }) => go(`world/${world}`));
  const kinds = kindTable();
  const filter = h("input", { type: "search", placeholder: "kind or number", "aria-label": "Only worlds whose kind or number has" });
  const about = h("p", { class: "quiet" }, "");
  const show = () => {
    const { second } = model;
    if (!second) return;
    kinds.set(second.kinds);
    const wanted = filter.value.trim().toLowerCase();
    table.set(second.worlds.filter(({ kind, world }) => `${kind} ${world}`.toLowerCase().includes(wanted)));
    about.textContent =
      second.worlds_left_out > 0
        ? `The ${second.worlds.length} costliest of ${second.server.worlds}; the console's world.list tells all.`
        : `${second.worlds.length} worlds, ${second.server.worlds_awake} awake.`;
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
