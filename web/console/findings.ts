// Findings: what is wrong, in a few sentences, each with the panel that says more. What else is red on the pages follows from it.

import { h } from "../elements/dom.ts";
import { counted } from "../elements/quantity.ts";
import { cores, percent } from "./figures.ts";
import { STEAL_BAD, WAITING_BAD } from "./host.ts";
import type { Model } from "./model.ts";
import type { Surroundings } from "./panel.ts";
import { behind, isSlowItself, type WorldNow, worldRows, worldState } from "./worlds.ts";

export interface Finding {
  text: string;
  /** The panel that says more. */
  where: string;
}

/** Worlds that are told by name: of a hundred slow ones the first tell enough. */
const WORLDS_MAX = 3;
/** Others take a core now and then, and that is to stand here until it can be read (s). */
const HOST_S = 15;

/** What is wrong now; nothing of what was and is over. */
export function findings(model: Model): Finding[] {
  const { second } = model;
  if (!second) return [];
  const behindNow = worldRows(second.worlds).filter((world) => behind(world, second.at_unix_s)?.isStill || world.hangs_for_ms !== null);
  const [slow, held] = [behindNow.filter(isSlowItself), behindNow.filter((world) => !isSlowItself(world))];
  const found = slow.slice(0, WORLDS_MAX).map((world) => ({ text: slowWorldTold(world, second.at_unix_s), where: `world/${world.world}` }));
  if (slow.length > WORLDS_MAX) found.push({ text: `${counted(slow.length - WORLDS_MAX, "more world")} are slow by themselves.`, where: "worlds" });
  const host = hostTold(model);
  if (host) found.push({ text: host, where: "host" });
  if (held.length > 0) {
    const by = host ? "while others had the cores, or beside a long frame" : "beside a long frame of the server, or for another reason that is not theirs";
    found.push({ text: `${counted(held.length, "world")} missed ticks in the last minute though their own are short: ${by}.`, where: "worlds" });
  }
  return found;
}

function slowWorldTold(world: WorldNow, now: number): string {
  const since = behind(world, now);
  const begun = since ? ` since ${since.since} UTC` : "";
  return `${world.kind} ${world.world} is behind${begun} by its own work: ${worldState(world)}, its ticks take ${percent(world.load)} of a worker.`;
}

/** What took cores away lately; undefined if nothing did. */
function hostTold({ past }: Model): string | undefined {
  const from = (past.at(-1)?.atUnixS ?? 0) - HOST_S;
  const lately = past.filter(({ atUnixS }) => atUnixS > from);
  const most = (of: "stealCores" | "waitingCores" | "otherCores") => lately.reduce((most, moment) => Math.max(most, Number.isNaN(moment[of]) ? 0 : moment[of]), 0);
  const told: string[] = [];
  if (most("stealCores") > STEAL_BAD) told.push(`the hypervisor took up to ${cores(most("stealCores"))}`);
  if (most("waitingCores") > WAITING_BAD) {
    told.push(`threads of this server were ready and had no core, up to ${most("waitingCores").toFixed(1)} of them at a time, while other processes used up to ${cores(most("otherCores"))}`);
  }
  return told.length === 0 ? undefined : `In the last ${HOST_S} s ${told.join("; ")}.`;
}

/** The findings as a list. Rows stay while they say the same, so that one can be clicked. */
export class FindingList {
  private readonly list = h("ul", { class: "findings" });
  readonly element = h("section", { class: "wide", "aria-label": "What is wrong" }, h("h2", {}, "What is wrong"), this.list);
  private shown = "";

  constructor(
    private readonly model: Model,
    private readonly go: Surroundings["go"],
  ) {}

  update(): void {
    const found = findings(this.model);
    const now = JSON.stringify(found);
    if (now === this.shown) return;
    this.shown = now;
    const row = ({ text, where }: Finding) => h("li", {}, text, " ", h("button", { type: "button", class: "link", onclick: () => this.go(where) }, "More"));
    this.list.replaceChildren(...(found.length > 0 ? found.map(row) : [h("li", { class: "quiet" }, "Nothing that this page knows of.")]));
  }
}
