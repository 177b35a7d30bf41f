// The second capture: another one to compare with, below the first, with a picture and panels of its own. Its view moves with
// the first's unless the reader unties them, and it is searched for what the first is searched for.

import { h } from "../elements/dom.ts";
import { panels, Tabs } from "./panels.ts";
import { pictureOf } from "./picture.ts";
import type { State } from "./state.ts";
import { triggerText } from "./story.ts";
import { Link } from "./timeline/link.ts";
import type { Timeline } from "./timeline/timeline.ts";

export class Second {
  readonly timeline: Timeline;
  private readonly elements: HTMLElement[];
  private readonly link: Link;
  private readonly endSearch: () => void;

  /** In `workspace`, which has the first one; `closed` is called when the reader has enough of it. */
  constructor(workspace: HTMLElement, first: State, readonly state: State, closed: () => void) {
    const together = h("input", { type: "checkbox", id: "together", checked: true });
    const about = `${state.fileName}: ${triggerText(state)} · ${state.prepared.about.build}`;
    const head = h(
      "div",
      { class: "bar second-head" },
      h("b", { title: about }, about),
      h("label", { title: "Zoom and pan both, as far apart in time as they are now" }, together, "move together"),
      h("button", { type: "button", title: "Close the second capture", "aria-label": "Close the second capture", onclick: closed }, "×"),
    );
    const { element, timeline } = pictureOf(state, { label: "Picture of the second capture", head });
    const tabs = new Tabs(state, panels(state, undefined), { prefix: "second-", label: "Panels of the second capture" });
    this.timeline = timeline;
    this.elements = [element, tabs.element];
    this.elements.forEach((element) => (element.dataset["capture"] = "second"));
    this.link = new Link(first, state);
    together.addEventListener("change", () => this.link.switch(together.checked));
    const firstView = state.firstView();
    if (firstView) state.view.around(...firstView);
    this.link.switch(true);
    this.endSearch = first.onChange((changes) => changes.has("search") && state.search(first.query));
    if (first.query) state.search(first.query);
    workspace.append(...this.elements);
    workspace.classList.add("two");
    state.changed("view");
  }

  /** Whether something is in its half of the page. */
  has(target: Element): boolean {
    return this.elements.some((element) => element.contains(target));
  }

  /** Takes it out of the page. */
  remove(): void {
    this.link.end();
    this.endSearch();
    this.elements[0]!.parentElement?.classList.remove("two");
    this.elements.forEach((element) => element.remove());
  }
}
