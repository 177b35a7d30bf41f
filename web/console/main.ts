// The page: a stream of what the server tells, panels that show it, and the address that says which.

import { byId, h } from "../elements/dom.ts";
import { toggleTheme, watchTheme } from "../elements/theme.ts";
import { captures } from "./captures.ts";
import { ms } from "./figures.ts";
import { type Finding, findings } from "./findings.ts";
import { host } from "./host.ts";
import { askForKey, hasKey } from "./key.ts";
import { Model } from "./model.ts";
import { overview } from "./overview.ts";
import type { Panel, Surroundings } from "./panel.ts";
import { headers, showKey, whenKeyIsDropped } from "./port.ts";
import { settings } from "./settings.ts";
import { Stream, type StreamState } from "./stream.ts";
import { subsystems } from "./subsystems.ts";
import { terminal } from "./terminal.ts";
import { traffic } from "./traffic.ts";
import { world } from "./world.ts";
import { worlds } from "./worlds.ts";

/** What an address may say of a panel: no more than commands take as a word. */
const ADDRESS = /^#\/([a-z]+)(?:\/([\w.]+))?$/;
/** Without a line for so long the server is silent (ms). */
const SILENT_AFTER_MS = 4_000;
/** A world that hangs in tick after tick is one that hangs, though it comes back in between (ms). */
const HUNG_FOR_MS = 5_000;

const model = new Model();
let streamState: StreamState = "connecting";
let streamWords = "";
let heardAt = performance.now();
let current: Panel | undefined;
let found: Finding[] = [];
model.onChange((part) => {
  if (part === "second") found = findings(model);
});
/** The most worlds that hung at once lately, and until when that is shown. */
let hung = { worlds: 0, until: 0 };

const surroundings: Surroundings = {
  model,
  found: () => found,
  go: (where) => {
    location.hash = `#/${where}`;
  },
  signIn: async () => {
    if (hasKey()) return true;
    const isGiven = await askForKey("This changes the server.");
    if (isGiven) keyChanged();
    return isGiven;
  },
};

const panels: Panel[] = [overview, worlds, world, subsystems, traffic, host, captures, settings, terminal].map((make) => make(surroundings));
const tabs = new Map<string, HTMLButtonElement>();

function show(): void {
  const [, name = "overview", rest = ""] = ADDRESS.exec(location.hash) ?? [];
  const wanted = panels.find((panel) => panel.name === name) ?? panels[0]!;
  current?.close?.();
  current = wanted;
  panels.forEach((panel) => (panel.element.hidden = panel !== wanted));
  tabs.forEach((tab, of) => {
    if (of === wanted.name || (of === "worlds" && wanted.name === "world")) {
      tab.setAttribute("aria-current", "page");
      tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else tab.removeAttribute("aria-current");
  });
  document.title = `${wanted.title} · Throng console`;
  wanted.open?.(rest);
  wanted.update?.("second");
  wanted.update?.("health");
  document.body.dataset["panel"] = wanted.name;
}

function showState(): void {
  const pill = byId("state");
  const isSilent = streamState === "live" && performance.now() - heardAt > SILENT_AFTER_MS;
  const { health } = model;
  let [text, mood] = ["connecting …", "warn"];
  if (streamState === "refused") [text, mood] = ["not let in", "bad"];
  else if (streamState === "lost") [text, mood] = ["not connected", "bad"];
  else if (isSilent) [text, mood] = ["silent", "bad"];
  else if (streamState === "live" && health) {
    [text, mood] = [health.state, health.state === "stuck" ? "bad" : "good"];
    const now = performance.now();
    if (now >= hung.until || health.worlds_stuck >= hung.worlds) hung = { worlds: health.worlds_stuck, until: now + HUNG_FOR_MS };
    if (mood === "good" && found.length > 0) mood = "warn";
    if (health.state !== "stuck" && hung.worlds > 0) [text, mood] = [hung.worlds === 1 ? "1 world hangs" : `${hung.worlds} worlds hang`, "bad"];
  }
  pill.textContent = text;
  pill.className = `pill ${mood}`;
  document.body.dataset["stream"] = isSilent ? "silent" : streamState;
  const notes = [
    streamState === "lost" || streamState === "refused" ? streamWords : "",
    streamState === "live" && health?.state === "stuck" ? `the last frame ended ${ms(health.frame_age_ms)} ago; figures below are older` : "",
    streamState === "live" && health?.saves_are_away ? "the store of the saves is away: play goes on, and nothing is saved" : "",
    streamState === "live" && (health?.long_tasks_stuck ?? 0) > 0 ? `${health?.long_tasks_stuck} long tasks are stuck` : "",
  ].filter((note) => note !== "");
  const problem = byId("problem");
  problem.textContent = notes.join("; ");
  problem.hidden = notes.length === 0;
  byId("key-again").hidden = streamState !== "refused";
}

function showWho(): void {
  const { hello } = model;
  const button = byId<HTMLButtonElement>("who");
  button.textContent = hello?.who ? `${hello.who} (${hello.role})` : hasKey() ? "key shown" : "Show a key";
  byId("version").textContent = hello ? `throng ${hello.version}` : "";
}

const stream = new Stream({
  headers,
  line: (line) => {
    heardAt = performance.now();
    model.take(line);
  },
  state: (state, words) => {
    [streamState, streamWords] = [state, words];
    showState();
  },
});

function keyChanged(): void {
  showWho();
  stream.restart();
  openAgain();
}

/** The panel that is shown, as if it had just been chosen. */
function openAgain(): void {
  current?.open?.(ADDRESS.exec(location.hash)?.[2] ?? "");
}

model.onChange((part) => {
  if (part === "hello") showWho();
  if (part === "health") showState();
  current?.update?.(part);
});
window.setInterval(showState, 1_000);

byId("who").addEventListener("click", async () => {
  if (hasKey()) {
    if (!window.confirm("Show this key no more?")) return;
    showKey("");
    return keyChanged();
  }
  if (await askForKey("It is kept for this tab only.")) keyChanged();
});
byId("key-again").addEventListener("click", async () => {
  if (await askForKey(streamWords)) keyChanged();
});
whenKeyIsDropped(showWho);
byId("theme").addEventListener("click", () => {
  toggleTheme();
  openAgain();
});
watchTheme(() => undefined);

byId("tabs").append(
  ...panels
    .filter((panel) => panel.name !== "world")
    .map((panel) => {
      const tab = h("button", { type: "button", onclick: () => surroundings.go(panel.name) }, panel.title);
      tabs.set(panel.name, tab);
      return tab;
    }),
);
byId("main").append(...panels.map((panel) => panel.element));
window.addEventListener("hashchange", show);
show();
