// The page: opens a capture, puts picture and panels beside each other, and passes keys on.

import { byId, copy, h, whenQuiet } from "../elements/dom.ts";
import { bytes, count, duration } from "../elements/quantity.ts";
import { toggleTheme, watchTheme } from "../elements/theme.ts";
import { addressOf, takeAddress } from "./address.ts";
import { awaitHanded } from "./handed.ts";
import { embedded, openFile, openPacked } from "./opening.ts";
import { panels, Tabs } from "./panels.ts";
import { pictureOf } from "./picture.ts";
import { worldSums } from "./prepare/range_sums.ts";
import { Second } from "./second.ts";
import { State } from "./state.ts";
import { embeddedStory, triggerText, type Story } from "./story.ts";
import type { Timeline } from "./timeline/timeline.ts";
import type { Answer } from "./worker.ts";

const KEYS: [string, string][] = [
  ["w / s, + / −", "zoom in and out"],
  ["a / d, ← / →", "pan"],
  ["↑ / ↓", "scroll the tracks"],
  ["f", "show everything"],
  ["[ / ]", "the bad frame before, after"],
  ["m", "show the selection"],
  ["n / p", "the next match of the search, the one before"],
  ["/", "search"],
  ["Esc", "let go: selection, search, world"],
  ["Ctrl + wheel", "zoom where the pointer is"],
  ["Shift + drag", "mark a stretch, which the table of scopes is then about"],
  ["of two captures", "keys are about the one that was clicked last"],
];

/** Worlds that can be chosen from; the busiest. */
const WORLDS_LISTED = 500;

let live: { state: State; timeline: Timeline; tabs: Tabs; search: HTMLInputElement; second?: Second | undefined } | undefined;
/** The one that was pressed or focused last is the one that keys are about. */
let isSecondInUse = false;

function showError(message: string): void {
  byId("status").textContent = "";
  byId("error").textContent = message;
  const toast = document.querySelector<HTMLElement>("#problem");
  if (toast) {
    toast.textContent = message;
    toast.hidden = false;
  }
}

async function open(name: string, answer: Promise<Answer>, story: Story | undefined): Promise<void> {
  const began = performance.now();
  document.body.dataset["state"] = "opening";
  byId("error").textContent = "";
  byId("status").textContent = `Opening ${name} …`;
  const result = await answer;
  if ("error" in result) {
    document.body.dataset["state"] = "error";
    return showError(`${name}: ${result.error}`);
  }
  const state = new State(result.prepared, name, story?.frame ?? undefined);
  const timeline = show(state, result.bytes, story);
  // A canvas may put off what was drawn until the browser paints, which the task behind it waits for.
  const opened = () => {
    document.body.dataset["state"] = "open";
    document.body.dataset["openMs"] = String(Math.round(performance.now() - began));
    document.body.dataset["readMs"] = String(Math.round(result.readMs));
  };
  timeline.canvas.addEventListener("drawn", () => setTimeout(opened), { once: true });
}

function show(state: State, size: number, story: Story | undefined): Timeline {
  const { about, scopesCount, frames, threads } = state.prepared;
  document.title = `${state.fileName} · Throng capture`;
  byId("title").textContent = about.game ? `${about.game}: ${about.trigger.kind}` : about.trigger.kind;
  const saved = new Date(about.savedUnixS * 1000);
  const date = Number.isNaN(saved.getTime()) ? "" : saved.toISOString().slice(0, 16).replace("T", " ") + " UTC";
  byId("about").textContent =
    `${triggerText(state)} · saved ${date} · ${about.build} · ${duration(about.endNs)}, ${count(frames.begin.length)} frames, ` +
    `${threads.length} threads, ${count(scopesCount)} scopes, ${bytes(size)}` +
    (about.recordsLost > 0 ? ` · ${count(about.recordsLost)} records lost` : "");
  byId("about").title = byId("about").textContent ?? "";

  const tabs = new Tabs(state, panels(state, story, (other) => {
    const close = () => {
      live?.second?.remove();
      if (live) live.second = undefined;
      isSecondInUse = false;
    };
    close();
    if (live?.state === state) live.second = new Second(workspace, state, other, close);
  }));
  const problem = h("p", { id: "problem", class: "bad", role: "alert", hidden: true });
  const { element: picture, timeline } = pictureOf(state, { label: "Picture", problem });
  const workspace = h("div", { class: "workspace" }, picture, splitter(), tabs.element);
  byId("landing").hidden = true;
  document.querySelector(".workspace")?.remove();
  byId("main").append(workspace);

  const search = tools(state, tabs);
  const remember = whenQuiet(200, () => {
    try {
      history.replaceState(null, "", addressOf(state, tabs.current));
    } catch {
      // Some browsers keep the address of a local file as it is.
    }
    document.body.dataset["address"] = "kept";
  });
  state.onChange(() => {
    document.body.dataset["address"] = "behind";
    remember();
  });
  live = { state, timeline, tabs, search };
  isSecondInUse = false;

  const { tab, hasView } = takeAddress(state, location.hash);
  if (!hasView) {
    const first = state.firstView();
    if (first) state.view.around(...first);
  }
  state.changed("view");
  // What the address selects opens its own panel first.
  requestAnimationFrame(() => requestAnimationFrame(() => tab && tabs.open(tab)));
  return timeline;
}

/** Between picture and panels; drawn aside by pointer or by arrows, for a story has 110 columns. */
function splitter(): HTMLElement {
  const element = h("div", {
    class: "splitter",
    role: "separator",
    tabindex: "0",
    "aria-orientation": "vertical",
    "aria-label": "Width of the panels",
  });
  const set = (width: number) => document.documentElement.style.setProperty("--panels", `${Math.round(width)}px`);
  const width = () => document.querySelector(".panels")!.clientWidth;
  element.addEventListener("pointerdown", (event) => element.setPointerCapture(event.pointerId));
  element.addEventListener("pointermove", (event) => {
    if (element.hasPointerCapture(event.pointerId)) set(window.innerWidth - event.clientX - 4);
  });
  element.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowLeft" ? 40 : event.key === "ArrowRight" ? -40 : 0;
    if (by === 0) return;
    event.stopPropagation();
    set(width() + by);
  });
  return element;
}

/** Search, worlds, other files, theme, keys; gives back the field to search in. */
function tools(state: State, tabs: Tabs): HTMLInputElement {
  const search = h("input", { type: "search", placeholder: "Search scopes ( / )", "aria-label": "Search scopes by name", id: "search" });
  const found = h("span", { id: "found", class: "quiet", "aria-live": "polite" });
  search.addEventListener("input", whenQuiet(120, () => state.search(search.value)));
  search.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") match(state, event.shiftKey ? -1 : 1);
    if (event.key === "Escape") {
      state.search("");
      search.blur();
    }
  });
  const worlds = worldSums(state.prepared, [0, state.prepared.about.endNs]).slice(0, WORLDS_LISTED);
  const listed = worlds.map(({ world, total }) => h("option", { value: world }, `${state.worldName(world)} (${duration(total)})`));
  const select = h("select", { "aria-label": "World", id: "world" }, h("option", { value: "" }, "All worlds"), listed);
  select.addEventListener("change", () => state.filter(select.value === "" ? undefined : Number(select.value)));
  state.onChange((changes) => {
    if (changes.has("search")) {
      if (search.value !== state.query) search.value = state.query;
      const total = state.matches?.flat().reduce((sum, places) => sum + places.length, 0);
      found.textContent = total === undefined ? "" : `${count(total)} found`;
    }
    if (changes.has("world")) select.value = state.world === undefined ? "" : String(state.world);
  });
  const picker = h("input", { type: "file", class: "visually-hidden", tabindex: "-1", "aria-label": "Capture file" });
  picker.addEventListener("change", () => {
    const file = picker.files?.[0];
    if (file) void open(file.name, openFile(file), undefined);
  });
  const tool = (label: string, title: string, go: () => void) => h("button", { type: "button", title, "aria-label": title, onclick: go }, label);
  const compare = tool("Compare", "Compare with another capture", () => tabs.open("compare"));
  compare.id = "compare";
  const link = tool("Link", "Copy a link to this view", () => void copy(location.href));
  link.id = "link";
  byId("tools").replaceChildren(
    search,
    found,
    worlds.length > 0 ? select : "",
    compare,
    tool("Open", "Open another capture", () => picker.click()),
    link,
    themeButton(),
    tool("?", "Keys", () => keysDialog()),
    picker,
  );
  return search;
}

const themeButton = () =>
  h("button", { type: "button", title: "Light or dark", "aria-label": "Light or dark", id: "theme", onclick: () => {
    toggleTheme();
    themeChanged();
  } }, "◐");

function themeChanged(): void {
  if (!live) return;
  for (const { timeline, state } of live.second ? [live, live.second] : [live]) {
    timeline.themeChanged();
    state.changed("view");
  }
}

/** The next scope that a search found, from the selection or from what is on screen. */
function match(state: State, direction: 1 | -1): void {
  const { matches, view, selection, prepared } = state;
  if (!matches) return;
  const from =
    selection?.kind === "scope"
      ? prepared.threads[selection.thread]!.rows[selection.depth]!.begin[selection.place]!
      : direction > 0
        ? view.begin
        : view.end;
  let best: { thread: number; depth: number; place: number; begin: number } | undefined;
  matches.forEach((rows, thread) =>
    rows.forEach((places, depth) => {
      const { begin } = prepared.threads[thread]!.rows[depth]!;
      let [low, high] = [0, places.length];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (direction > 0 ? begin[places[middle]!]! <= from : begin[places[middle]!]! < from) low = middle + 1;
        else high = middle;
      }
      const place = places[direction > 0 ? low : low - 1];
      if (place === undefined) return;
      if (!best || direction * (begin[place]! - best.begin) < 0) best = { thread, depth, place, begin: begin[place]! };
    }),
  );
  if (!best) return;
  const { thread, depth, place } = best;
  state.goToScope(thread, prepared.threads[thread]!.rows[depth]!.site[place]!, best.begin);
}

function keysDialog(): void {
  const rows = KEYS.flatMap(([keys, what]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, what)]);
  const dialog: HTMLDialogElement = h("dialog", { "aria-label": "Keys" }, h("h2", {}, "Keys"), h("dl", {}, rows), h("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

for (const type of ["pointerdown", "focusin"]) {
  document.addEventListener(type, ({ target }) => {
    isSecondInUse = target instanceof Element && live?.second?.has(target) === true;
  });
}

document.addEventListener("keydown", (event) => {
  if (!live || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const target = event.target as HTMLElement;
  if (target.closest("input, select, textarea")) return;
  const { search } = live;
  const { state, timeline } = isSecondInUse && live.second ? live.second : live;
  // In a panel the arrows scroll the panel.
  const isInPanel = target.closest(".panels") !== null;
  if (isInPanel && /^(Arrow|Page)/.test(event.key)) return;
  if (event.key === "/") search.focus();
  else if (event.key === "?") keysDialog();
  else if (event.key === "n" || event.key === "p") match(state, event.key === "n" ? 1 : -1);
  else if (event.key === "Escape") {
    state.select(undefined);
    live.state.search("");
    state.filter(undefined);
  } else if (!timeline.key(event)) return;
  event.preventDefault();
});

const dropping = (is: boolean) => document.body.classList.toggle("dropping", is);
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  dropping(true);
});
document.addEventListener("dragleave", () => dropping(false));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  dropping(false);
  const file = event.dataTransfer?.files[0];
  if (file) void open(file.name, openFile(file), undefined);
});
byId<HTMLInputElement>("file").addEventListener("change", (event) => {
  const input = event.target as HTMLInputElement;
  const file = input.files?.[0];
  if (file) void open(file.name, openFile(file), undefined);
  input.value = "";
});

watchTheme(themeChanged);
byId("tools").append(themeButton());
const packed = embedded();
if (packed) {
  const story = embeddedStory();
  void open(story?.file || "capture", openPacked(packed), story);
} else {
  awaitHanded(
    ({ capture, name, story }) => void open(name, openFile(new File([capture], name)), story),
    (words) => showError(`the capture did not come: ${words}`),
  );
}
