// The overview: what an operator looks at first. What is wrong, frames, how full the server is, what is overloaded or waits, the
// dearest subsystems against their budgets, the dearest worlds.

import { h } from "../elements/dom.ts";
import { categoryColor } from "../elements/categories.ts";
import { isLong } from "../elements/frames.ts";
import { bytes, count, counted } from "../elements/quantity.ts";
import { Chart } from "./chart.ts";
import type { Second } from "./document.ts";
import { bytesPerSecond, cores, megabytes, moment, ms, percent, us } from "./figures.ts";
import { FindingList } from "./findings.ts";
import type { Panel, Surroundings } from "./panel.ts";
import { Strip } from "./strip.ts";
import { subsystemTable } from "./subsystems.ts";
import { worldRows, worldTable } from "./worlds.ts";

/** Rows of the short tables here; each has a panel of its own with all. */
const ROWS = 8;

/** A figure with its name, red where it is bad. */
class Tile {
  readonly element: HTMLElement;
  private readonly value = h("strong", {}, "–");
  private readonly note = h("span", { class: "quiet" }, "");

  constructor(
    private readonly read: (second: Second) => { value: string; note?: string; mood?: "bad" | "warn" | "good" },
    name: string,
    id: string,
  ) {
    this.element = h("div", { class: "tile", id: `tile-${id}` }, h("span", { class: "name" }, name), this.value, this.note);
  }

  update(second: Second): void {
    const { value, note = "", mood = "" } = this.read(second);
    if (this.value.textContent !== value) this.value.textContent = value;
    if (this.note.textContent !== note) this.note.textContent = note;
    if (this.value.className !== mood) this.value.className = mood;
  }
}

const OVERLOAD: Record<string, string> = {
  normal: "none",
  long_tasks_yield: "long tasks yield",
  far_updates_thin: "far updates thin out",
  time_slows: "time slows",
  admission_closed: "time slows far",
};

function tiles(): Tile[] {
  return [
    new Tile(({ server }) => ({ value: count(server.players), note: server.players_by_kind.filter((kind) => kind.count > 0).map((kind) => `${kind.name} ${kind.count}`).join(", ") }), "Players", "players"),
    new Tile(({ server }) => ({ value: `${server.worlds_awake} of ${server.worlds}`, note: server.plans_parked > 0 ? `${server.plans_parked} plans parked` : "awake" }), "Worlds", "worlds"),
    new Tile(
      ({ server }) => ({
        value: ms(server.frame_ms_max),
        note: `of ${ms(server.frame_budget_ms)}, half under ${ms(server.frame_ms_p50)}`,
        ...(isLong(server.frame_ms_max, server.frame_budget_ms) ? { mood: "bad" as const } : {}),
      }),
      "Longest frame",
      "frame",
    ),
    new Tile(
      ({ server }) => ({
        value: count(server.ticks_missed),
        note: `of ${count(server.ticks)}; ${count(server.ticks_missed_host)} of them since the host took a core`,
        ...(server.ticks_missed > 0 ? { mood: "bad" as const } : {}),
      }),
      "Ticks missed in the second",
      "missed",
    ),
    new Tile(
      ({ load }) => ({
        value: OVERLOAD[load.overload] ?? load.overload,
        note:
          load.worlds_overloaded === 0
            ? "no world is overloaded"
            : `of ${counted(load.worlds_overloaded, "world")}${load.worlds_slowed === 0 ? "" : `; ${load.worlds_slowed} slowed, to ${percent(load.time_factor_min)} at worst`}${load.admission_is_closed ? "; newcomers wait" : ""}`,
        ...(load.admission_is_closed ? { mood: "bad" as const } : load.overload === "normal" ? {} : { mood: "warn" as const }),
      }),
      "Overload",
      "overload",
    ),
    new Tile(
      ({ load }) => ({
        value: `level ${load.starvation_level}`,
        note: `${load.long_tasks_waiting === 0 ? "no long task waits" : `${counted(load.long_tasks_waiting, "long task")} in line, ${ms(load.long_tasks_ms)} in all`}${load.admission_waits ? "; newcomers wait" : ""}`,
        ...(load.admission_waits ? { mood: "bad" as const } : load.starvation_level > 0 ? { mood: "warn" as const } : {}),
      }),
      "Starvation",
      "starvation",
    ),
    new Tile(({ door }) => ({ value: count(door.join_queue), note: `${counted(door.placements_pending, "player")} on the way to a world`, ...(door.join_queue > 0 ? { mood: "warn" as const } : {}) }), "In line at the door", "door"),
    new Tile(({ server }) => ({ value: bytesPerSecond(server.bytes_out_per_s), note: `${count(server.packets_out_per_s)} packets out, ${count(server.packets_in_per_s)} in` }), "Network", "network"),
    new Tile(({ recorder }) => (recorder ? { value: count(recorder.captures), note: `${count(recorder.in_cooldown)} more not kept: their trigger was in its pause` } : { value: "off", note: "no recorder" }), "Captures", "captures"),
  ];
}

export function overview({ model, found, go }: Surroundings): Panel {
  const all = tiles();
  const wrong = new FindingList(found, go);
  const strip = new Strip(model);
  const charts = [
    new Chart(model, { name: "Players", value: (moment) => moment.players, text: count }),
    new Chart(model, { name: "Longest frame", value: (moment) => moment.frameMaxMs, text: ms, limit: (moment) => moment.frameBudgetMs }),
    new Chart(model, { name: "Ticks missed", value: (moment) => moment.missed, text: count }),
    new Chart(model, { name: "Worlds overloaded", value: (moment) => moment.worldsOverloaded, text: count }),
    new Chart(model, { name: "Processor", value: (moment) => moment.cpuCores, text: cores }),
    new Chart(model, { name: "Waiting for a core", value: (moment) => moment.waitingCores, text: cores }),
    new Chart(model, { name: "Used by other processes", value: (moment) => moment.otherCores, text: cores }),
    new Chart(model, { name: "Stolen by the hypervisor", value: (moment) => moment.stealCores, text: cores }),
    new Chart(model, { name: "Memory", value: (moment) => moment.rssMb, text: megabytes }),
    new Chart(model, { name: "To clients", value: (moment) => moment.bytesOut, text: (value) => `${bytes(value)}/s` }),
  ];
  const span = h("p", { class: "quiet wide" }, "");
  const subsystems = subsystemTable("Dearest subsystems", ROWS);
  const worlds = worldTable(model, "Dearest worlds", (world) => go(`world/${world.world}`), ROWS);
  const bar = h("div", { class: "categories", role: "img" });
  const legend = h("ul", { class: "legend" });
  const more = (where: string, text: string) => h("button", { type: "button", class: "link", onclick: () => go(where) }, text);
  const element = h(
    "div",
    { class: "overview" },
    wrong.element,
    h("section", { class: "wide", "aria-label": "Frames" }, h("h2", {}, "Frames"), strip.canvas, h("p", { class: "quiet legend" }, "Red: longer than the budget. Amber: closed on time while a world was still in its tick, which is no fault by itself: Worlds says whose.")),
    h("section", { class: "wide tiles", "aria-label": "Figures" }, all.map((tile) => tile.element)),
    h("section", { class: "wide charts", "aria-label": "The last five minutes" }, charts.map((chart) => chart.element), span),
    h("section", { "aria-label": "Subsystems" }, h("h2", {}, "Subsystems against budgets"), bar, legend, subsystems.element, more("subsystems", "All subsystems")),
    h("section", { "aria-label": "Worlds" }, h("h2", {}, "Worlds by cost"), worlds.element, more("worlds", "All worlds")),
  );
  return {
    name: "overview",
    title: "Overview",
    element,
    open: () => {
      strip.draw();
      charts.forEach((chart) => chart.draw());
    },
    update: (part) => {
      const { second } = model;
      const [first, last] = [model.past[0], model.past.at(-1)];
      if (first && last && part !== "frames") span.textContent = `From ${moment(first.atUnixS)} to ${moment(last.atUnixS)} UTC. Where a line is broken the server told nothing.`;
      if (part !== "second" || !second) return;
      wrong.update();
      all.forEach((tile) => tile.update(second));
      subsystems.set(second.subsystems.filter(({ category }) => isWork(category)));
      worlds.set(worldRows(second.worlds));
      showCategories(bar, legend, second);
    },
  };
}

/** Whether it is work of frames: waiting for some is none, nor is what threads do outside of every scope, such as sleep. */
const isWork = (category: string): boolean => category !== "idle" && category !== "outside";

/** What a frame's work was, by heading. */
function showCategories(bar: HTMLElement, legend: HTMLElement, second: Second): void {
  const busy = second.categories.filter(({ name, us_per_frame }) => isWork(name) && us_per_frame > 0);
  const all = busy.reduce((sum, { us_per_frame }) => sum + us_per_frame, 0);
  bar.setAttribute("aria-label", busy.map(({ name, us_per_frame }) => `${name} ${us(us_per_frame)}`).join(", "));
  bar.replaceChildren(
    ...busy.map(({ name, us_per_frame }) => {
      const part = h("i", { title: `${name}: ${us(us_per_frame)} a frame` });
      part.style.width = `${(us_per_frame / all) * 100}%`;
      part.style.background = categoryColor(name);
      return part;
    }),
  );
  legend.replaceChildren(
    ...busy.slice(0, 8).map(({ name, us_per_frame }) => {
      const mark = h("i");
      mark.style.background = categoryColor(name);
      return h("li", {}, mark, `${name} ${us(us_per_frame)}`);
    }),
  );
}
