// The picture of a capture: each frame as a bar above, the timeline, and below it buttons that move, what colours mean, and
// how much is on screen.

import { h } from "../elements/dom.ts";
import type { State } from "./state.ts";
import { categoryColor } from "./timeline/colors.ts";
import { Strip } from "./timeline/strip.ts";
import { Timeline } from "./timeline/timeline.ts";

export interface CapturePicture {
  readonly element: HTMLElement;
  readonly timeline: Timeline;
}

/** `label` tells it from others, `head` stands above all, `problem` above the buttons. */
export function pictureOf(state: State, { label, head, problem }: { label: string; head?: HTMLElement; problem?: HTMLElement }): CapturePicture {
  const timeline = new Timeline(state);
  const screen = h("span", { class: "screen" });
  state.onChange(() => {
    screen.textContent = timeline.summary();
  });
  const move = (label: string, title: string, key: string) =>
    h("button", { type: "button", title, "aria-label": title, onclick: () => timeline.key(new KeyboardEvent("keydown", { key })) }, label);
  const moves = h(
    "div",
    { class: "moves", role: "group", "aria-label": "Move" },
    move("−", "Zoom out (s)", "s"),
    move("+", "Zoom in (w)", "w"),
    move("Fit", "Show everything (f)", "f"),
    move("◂ bad", "The bad frame before ([)", "["),
    move("bad ▸", "The next bad frame (])", "]"),
  );
  const strip = state.prepared.frames.begin.length > 0 ? new Strip(state) : undefined;
  const element = h(
    "section",
    { class: "picture", "aria-label": label },
    head,
    strip?.canvas,
    h("div", { class: "stage" }, timeline.canvas, timeline.tip),
    problem,
    h("div", { class: "bar" }, moves, legend(state), screen),
  );
  return { element, timeline };
}

function legend(state: State): HTMLElement {
  const used = new Map<string, number>();
  state.prepared.sites.forEach(({ category }, site) => {
    const total = state.prepared.sums.self[site]!;
    if (total > 0) used.set(category, (used.get(category) ?? 0) + total);
  });
  const items = [...used].sort(([, a], [, b]) => b - a).slice(0, 12).map(([category]) => {
    const swatch = h("i");
    swatch.style.background = categoryColor(category);
    return h("li", {}, swatch, category || "no category");
  });
  return h("ul", { class: "legend", "aria-label": "Colours of categories" }, items);
}
