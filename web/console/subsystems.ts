// Subsystems: what each takes in a frame and in a tick of each kind of world, against what it may take.

import { h } from "../elements/dom.ts";
import { LiveTable } from "../elements/live_table.ts";
import type { InKind, Subsystem } from "./document.ts";
import { budgetClass, percent, us } from "./figures.ts";
import type { Panel, Surroundings } from "./panel.ts";

/** Of its budget, in the costliest frame; undefined without one. */
export function budgetShare(of: Subsystem): number | undefined {
  const shares = [of.budget_us === null ? undefined : of.us_frame_max / of.budget_us, ...of.kinds.map(kindShare)];
  const known = shares.filter((share): share is number => share !== undefined);
  return known.length > 0 ? Math.max(...known) : undefined;
}

function kindShare(kind: InKind): number | undefined {
  const ofTick = kind.tick_budget_us === null || kind.us_per_tick === null ? undefined : kind.us_per_tick / kind.tick_budget_us;
  const ofFrame = kind.frame_budget_us === null ? undefined : kind.us_frame_max / kind.frame_budget_us;
  return ofTick === undefined ? ofFrame : Math.max(ofTick, ofFrame ?? 0);
}

export function subsystemTable(caption: string, shown?: number): LiveTable<Subsystem> {
  return new LiveTable<Subsystem>({
    caption,
    key: ({ name }) => name,
    sortedBy: "a frame",
    empty: "Nothing was recorded in the last second: the recorder may be off.",
    ...(shown === undefined ? {} : { shown }),
    headings: [
      { name: "subsystem", cell: ({ name }) => name || "outside of every scope", by: ({ name }) => name },
      { name: "category", cell: ({ category }) => category, by: ({ category }) => category },
      { name: "a frame", cell: ({ us_per_frame }) => us(us_per_frame), by: ({ us_per_frame }) => us_per_frame, isNumber: true, title: "in the mean frame, all threads together" },
      { name: "costliest", cell: ({ us_frame_max }) => us(us_frame_max), by: ({ us_frame_max }) => us_frame_max, isNumber: true, title: "in the costliest frame of the second" },
      { name: "budget", cell: ({ budget_us }) => (budget_us === null ? "" : us(budget_us)), by: ({ budget_us }) => budget_us ?? -1, isNumber: true },
      {
        name: "of it",
        cell: (of) => {
          const share = budgetShare(of);
          return share === undefined ? "" : percent(share);
        },
        by: (of) => budgetShare(of) ?? -1,
        isNumber: true,
        title: "the costliest frame's share of the budget; of a kind's budget where that is worse",
        className: (of) => budgetClass(budgetShare(of)),
      },
      { name: "locks", cell: ({ lock_wait_us_per_frame }) => (lock_wait_us_per_frame > 0 ? us(lock_wait_us_per_frame) : ""), by: ({ lock_wait_us_per_frame }) => lock_wait_us_per_frame, isNumber: true, title: "waited for locks in a frame" },
    ],
  });
}

interface KindRow {
  subsystem: string;
  of: InKind;
}

export function subsystems({ model }: Surroundings): Panel {
  const table = subsystemTable("All subsystems");
  const inKinds = new LiveTable<KindRow>({
    caption: "Subsystems in worlds of each kind",
    key: ({ subsystem, of }) => `${subsystem}@${of.kind}`,
    sortedBy: "a tick",
    empty: "No world has ticked in the last second.",
    headings: [
      { name: "kind", cell: ({ of }) => of.kind, by: ({ of }) => of.kind },
      { name: "subsystem", cell: ({ subsystem }) => subsystem, by: ({ subsystem }) => subsystem },
      { name: "a tick", cell: ({ of }) => (of.us_per_tick === null ? "" : us(of.us_per_tick)), by: ({ of }) => of.us_per_tick ?? 0, isNumber: true, title: "in the mean tick of one world" },
      { name: "budget of a tick", cell: ({ of }) => (of.tick_budget_us === null ? "" : us(of.tick_budget_us)), by: ({ of }) => of.tick_budget_us ?? -1, isNumber: true },
      { name: "costliest frame", cell: ({ of }) => us(of.us_frame_max), by: ({ of }) => of.us_frame_max, isNumber: true, title: "in all worlds of the kind together" },
      { name: "budget of a frame", cell: ({ of }) => (of.frame_budget_us === null ? "" : us(of.frame_budget_us)), by: ({ of }) => of.frame_budget_us ?? -1, isNumber: true },
      {
        name: "of it",
        cell: ({ of }) => {
          const share = kindShare(of);
          return share === undefined ? "" : percent(share);
        },
        by: ({ of }) => kindShare(of) ?? -1,
        isNumber: true,
        className: ({ of }) => budgetClass(kindShare(of)),
      },
    ],
  });
  const element = h(
    "div",
    {},
    h("section", { "aria-label": "Subsystems" }, h("h2", {}, "Subsystems in a frame"), h("p", { class: "quiet" }, "What the scopes of each took on all threads, without others inside; the second that is over."), table.element),
    h("section", { "aria-label": "Kinds of worlds" }, h("h2", {}, "In a tick of each kind of world"), inKinds.element),
  );
  return {
    name: "subsystems",
    title: "Subsystems",
    element,
    update: (part) => {
      if (part !== "second" || !model.second) return;
      table.set(model.second.subsystems);
      inKinds.set(model.second.subsystems.flatMap(({ name, kinds }) => kinds.map((of) => ({ subsystem: name, of }))));
    },
  };
}
