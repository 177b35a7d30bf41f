// The panel that compares two captures: sums per scope name of this one and of another, and by how much they differ. The other
// one's own picture is drawn below (`second.ts`).
//
// Captures are of different lengths, so what is compared is the time per frame, and the mean of one scope.

import { h } from "../elements/dom.ts";
import { Table } from "../elements/table.ts";
import { change, count, duration } from "../elements/quantity.ts";
import { openFile } from "./opening.ts";
import type { Panel } from "./panels.ts";
import { wholeSums } from "./prepare/range_sums.ts";
import type { Prepared } from "./prepare/prepare.ts";
import { State } from "./state.ts";

export interface Compared {
  name: string;
  count: [number, number];
  total: [number, number];
  mean: [number, number];
  /** Time per frame (ns). */
  perFrame: [number, number];
}

/** By name: sites may stand in another order, or at another line, in another build. */
export function compared(a: Prepared, b: Prepared): Compared[] {
  const rows = new Map<string, Compared>();
  [a, b].forEach((prepared, side) => {
    const frames = Math.max(1, prepared.frames.begin.length);
    for (const sum of wholeSums(prepared)) {
      const name = prepared.sites[sum.site]!.name;
      let row = rows.get(name);
      if (!row) rows.set(name, (row = { name, count: [0, 0], total: [0, 0], mean: [0, 0], perFrame: [0, 0] }));
      row.count[side]! += sum.count;
      row.total[side]! += sum.total;
      row.mean[side] = row.total[side]! / row.count[side]!;
      row.perFrame[side] = row.total[side]! / frames;
    }
  });
  return [...rows.values()];
}

/** `compareWith` is given what was opened. */
export function comparison(state: State, compareWith: (other: State) => void): Panel {
  const difference = ({ perFrame: [a, b] }: Compared) => b - a;
  const table = new Table<Compared>({
    caption: "Scopes of two captures",
    sortedBy: "per frame",
    openLabel: "Find the scope",
    open: ({ name }) => state.search(name),
    rowClass: ({ mean: [a, b] }) => (a > 0 && b > a * 1.1 ? "slower" : b > 0 && a > b * 1.1 ? "faster" : ""),
    headings: [
      { name: "scope", cell: ({ name }) => name, by: ({ name }) => name },
      { name: "count", cell: ({ count: [a, b] }) => pair(count(a), count(b)), by: ({ count }) => count[0], isNumber: true },
      { name: "total", cell: ({ total: [a, b] }) => pair(duration(a), duration(b)), by: ({ total }) => total[0], isNumber: true },
      { name: "mean", cell: ({ mean: [a, b] }) => pair(duration(a), duration(b)), by: ({ mean }) => mean[0], isNumber: true },
      {
        name: "change",
        title: "Of the mean",
        cell: ({ mean: [a, b] }) => h("span", { class: b > a * 1.1 ? "bad" : a > b * 1.1 ? "good" : "" }, b === 0 ? "gone" : a === b ? "" : change(a, b)),
        by: ({ mean: [a, b] }) => (a === 0 ? Infinity : b / a),
        isNumber: true,
      },
      {
        name: "per frame",
        title: "How much more time a frame has for it in the second",
        cell: (row) => (difference(row) === 0 ? "" : `${difference(row) > 0 ? "+" : ""}${duration(difference(row))}`),
        by: (row) => Math.abs(difference(row)),
        isNumber: true,
      },
    ],
    empty: "Neither has scopes.",
  });
  const picker = h("input", { type: "file", id: "other-file", class: "visually-hidden" });
  const about = h("p", { class: "quiet", "aria-live": "polite" }, "Sums per scope of this capture (first figure) and of another one (second figure), whose picture is drawn below.");
  table.element.hidden = true;
  picker.addEventListener("change", async () => {
    const file = picker.files?.[0];
    if (!file) return;
    about.className = "quiet";
    about.textContent = `Opening ${file.name} …`;
    const answer = await openFile(file);
    if ("error" in answer) {
      about.className = "bad";
      about.textContent = `${file.name}: ${answer.error}`;
      return;
    }
    const other = answer.prepared;
    const frames = [state.prepared, other].map((it) => count(it.frames.begin.length));
    about.textContent = `First: ${state.fileName} (${frames[0]} frames). Second: ${file.name} (${frames[1]} frames, ${other.about.build}).`;
    table.element.hidden = false;
    table.set(compared(state.prepared, other));
    picker.value = "";
    compareWith(new State(other, file.name));
  });
  const label = h("label", { for: "other-file", class: "button", tabindex: "-1" }, "Open the other capture …");
  const element = h("div", {}, about, h("p", {}, picker, label), table.element);
  return { id: "compare", name: "Compare", element, follows: [], refresh: () => {} };
}

const pair = (a: string, b: string) => [h("div", {}, a), h("div", { class: "second" }, b)];
