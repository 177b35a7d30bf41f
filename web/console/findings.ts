// Findings: what is wrong with worlds and cores, in a few sentences, each with the panel that says more.

import { h } from "../elements/dom.ts";
import { counted } from "../elements/quantity.ts";
import { cores, percent } from "./figures.ts";
import { STEAL_BAD, WAITING_BAD } from "./host.ts";
import type { Model, Moment } from "./model.ts";
import type { Surroundings } from "./panel.ts";
import { BEHIND_S, behind, isLongItself, type WorldNow, worldRows, worldState } from "./worlds.ts";

export interface Finding {
  text: string;
  /** The panel that says more. */
  where: string;
}

/** Worlds that are told by name: of a hundred slow ones the first tell enough. */
const WORLDS_MAX = 3;

/** What is wrong now, or was in the last minute: as long as worlds are told to be behind, so are reasons for it. */
export function findings(model: Model): Finding[] {
  const { second } = model;
  if (!second) return [];
  const { worlds, at_unix_s: now } = second;
  const behindNow = worldRows(worlds).filter((world) => behind(world, now)?.isStill || world.hangs_for_ms !== null);
  const [long, held] = [behindNow.filter(isLongItself), behindNow.filter((world) => !isLongItself(world))];
  const found = long.slice(0, WORLDS_MAX).map((world) => ({ text: longWorldTold(world, now), where: `world/${world.world}` }));
  if (long.length > WORLDS_MAX) found.push({ text: `So it is with ${long.length - WORLDS_MAX} more.`, where: "worlds" });
  const host = hostTold(model);
  if (host) found.push({ text: host, where: "host" });
  if (held.length > 0) {
    const least = second.worlds_left_out > 0 ? "At least " : "";
    found.push({ text: `${least}${counted(held.length, "world")} more ${held.length === 1 ? "was" : "were"} behind in the last minute though most of their ticks are short: they waited for a worker, for a core or for a long frame, or had a single long tick.`, where: "worlds" });
  }
  return found;
}

function longWorldTold(world: WorldNow, now: number): string {
  const name = `${world.kind} ${world.world}`;
  if (world.hangs_for_ms !== null) return `${name} ${worldState(world)}.`;
  const since = behind(world, now);
  return `${name} is behind since ${since?.since} UTC with ticks that are too long (${worldState(world)}, ${percent(world.load)} of a worker).`;
}

/** What took cores away in the last minute; undefined if nothing did, or the host does not tell. */
function hostTold(model: Model): string | undefined {
  const { past } = model;
  const from = (past.at(-1)?.atUnixS ?? 0) - BEHIND_S;
  const lately = past.filter(({ atUnixS }) => atUnixS > from);
  const worst = (of: "stealCores" | "waitingCores"): Moment | undefined =>
    lately.filter((moment) => !Number.isNaN(moment[of])).reduce<Moment | undefined>((worst, moment) => (worst && worst[of] >= moment[of] ? worst : moment), undefined);
  const [steal, waiting] = [worst("stealCores"), worst("waitingCores")];
  const told: string[] = [];
  if (steal && steal.stealCores > STEAL_BAD) told.push(`the hypervisor took up to ${cores(steal.stealCores)}`);
  if (waiting && waiting.waitingCores > WAITING_BAD) {
    const others = Number.isNaN(waiting.otherCores) ? "" : `; other processes used ${cores(waiting.otherCores)} then`;
    told.push(`up to ${waiting.waitingCores.toFixed(1)} threads of this server were ready and had no core${others}`);
  }
  if ((model.hostFigure("outside.group_throttled_share") ?? 0) > 0) told.push("this server's group is held to its share of the cores");
  return told.length === 0 ? undefined : `In the last minute ${told.join("; ")}.`;
}

/** The findings as a list. A row stays, whatever becomes of its figures, so that it can be clicked. */
export class FindingList {
  private readonly list = h("ul", { class: "findings" });
  readonly element = h("section", { class: "wide", "aria-label": "What is wrong" }, h("h2", {}, "What is wrong"), this.list);
  private shown: string | undefined;

  constructor(
    private readonly found: Surroundings["found"],
    private readonly go: Surroundings["go"],
  ) {}

  update(): void {
    const found = this.found();
    const where = JSON.stringify(found.map(({ where }) => where));
    if (where !== this.shown) {
      this.shown = where;
      const row = ({ where }: Finding) => h("li", {}, h("span"), " ", h("button", { type: "button", class: "link", onclick: () => this.go(where) }, "More"));
      this.list.replaceChildren(...(found.length > 0 ? found.map(row) : [h("li", { class: "quiet" }, "No world is behind, and nothing takes its cores.")]));
    }
    found.forEach(({ text }, at) => {
      const said = this.list.children[at]!.firstElementChild!;
      if (said.textContent !== text) said.textContent = text;
    });
  }
}
