// Captures: the bad frames that the server kept. One opens in the viewer, a page of its own that speaks to no network:
// it is handed the bytes.

import { h } from "../elements/dom.ts";
import { LiveTable } from "../elements/live_table.ts";
import { bytes, duration } from "../elements/quantity.ts";
import type { Handed } from "../viewer/handed.ts";
import { READY } from "../viewer/handed.ts";
import { moment } from "./figures.ts";
import type { Panel, Surroundings } from "./panel.ts";
import { captureBytes, captureStory, captures as list, saveCapture, Refused, type Capture } from "./port.ts";

/** Triggers that measure times. */
const TIMES = new Set(["frame", "tick", "subsystem", "scope", "lock-wait", "run-queue", "stuck-tick"]);
/** A list is asked for again so often at most, when the server says that there are more (ms). */
const AGAIN_AFTER_MS = 1_000;

/** What it was kept for. */
const keptFor = ({ trigger }: Capture): string => trigger ?? "cannot be read";

function measured(capture: Capture): string {
  const { trigger, measured: took, allowed } = capture;
  if (trigger === null || took === null || !TIMES.has(trigger)) return "";
  return allowed ? `${duration(took)} of ${duration(allowed)}` : duration(took);
}

/** What windows that were opened are to be given when they are ready, again after a reload. */
const handing = new WeakMap<object, { capture: Capture; handed?: Promise<Handed> | undefined }>();

window.addEventListener("message", (event) => {
  if (event.origin !== location.origin || event.data !== READY || !event.source) return;
  const source = event.source as Window;
  const wanted = handing.get(source);
  if (!wanted) return;
  wanted.handed ??= fetched(wanted.capture);
  void wanted.handed.then(
    (handed) => source.postMessage(handed, location.origin),
    (error: unknown) => {
      source.postMessage({ error: error instanceof Error ? error.message : String(error) }, location.origin);
      // A reload tries anew.
      wanted.handed = undefined;
    },
  );
});

/** Of a request that finds all places taken (ms). */
const BUSY_PAUSES_MS = [500, 1_000, 2_000, 4_000];

/** Asks again while others have the server's places. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (const pause of BUSY_PAUSES_MS) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 503) throw error;
      await new Promise((resolve) => window.setTimeout(resolve, pause));
    }
  }
  return ask();
}

/** One after the other, so that it takes one of the server's places and not two. */
async function fetched(capture: Capture): Promise<Handed> {
  const bytesOf = await patiently(() => captureBytes(capture.path));
  // The picture does without, and makes a shorter one itself.
  const story = await patiently(() => captureStory(capture.path)).catch(() => undefined);
  const name = capture.path.split("/").at(-1) ?? capture.path;
  return { capture: bytesOf, name, ...(story ? { story } : {}) };
}

export function captures({ model, signIn }: Surroundings): Panel {
  const problem = h("p", { class: "bad", role: "alert" }, "");
  const table = new LiveTable<Capture>({
    caption: "Captures, the newest first",
    key: ({ path }) => path,
    sortedBy: "saved (UTC)",
    openLabel: "open in the viewer",
    empty: "",
    open: (capture) => {
      // At once: a browser lets a page open a window in a click only.
      const opened = window.open("/viewer", "_blank");
      if (!opened) {
        problem.textContent = "the browser opened no window: allow this page to";
        return;
      }
      handing.set(opened, { capture });
    },
    headings: [
      { name: "saved (UTC)", cell: ({ saved_unix_s }) => moment(saved_unix_s), by: ({ saved_unix_s }) => saved_unix_s, isNumber: true },
      { name: "trigger", cell: keptFor, by: keptFor },
      { name: "about", cell: ({ name }) => name ?? "", by: ({ name }) => name ?? "" },
      { name: "world", cell: ({ world }) => world ?? "", by: ({ world }) => world ?? "" },
      { name: "took", cell: measured, by: ({ measured: took }) => took ?? 0, isNumber: true },
      { name: "frame", cell: ({ frame }) => (frame === null ? "" : String(frame)), by: ({ frame }) => frame ?? 0, isNumber: true },
      { name: "size", cell: (capture) => bytes(capture.bytes), by: (capture) => capture.bytes, isNumber: true },
    ],
  });
  const filter = h("input", { type: "search", placeholder: "trigger, about or world", "aria-label": "Only captures whose trigger, about or world has" });
  let all: Capture[] = [];
  /** Nothing is said before the server has told, nor where it cannot. */
  let whyNone = "";
  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    const has = (capture: Capture) => [keptFor(capture), capture.name, capture.world].join(" ").toLowerCase().includes(wanted);
    table.set(all.filter(has), all.length > 0 ? "None of them has what is looked for." : whyNone);
  };
  filter.addEventListener("input", show);
  let isOpen = false;
  let known = -1;
  let timer: number | undefined;
  const load = async () => {
    try {
      all = await list();
      whyNone = "None: nothing was bad enough to be kept.";
      show();
      problem.textContent = "";
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
    }
  };
  const save = h("button", { type: "button" }, "Save the last seconds");
  save.addEventListener("click", async () => {
    if (!(await signIn())) return;
    save.disabled = true;
    try {
      await saveCapture("from the console");
      // Whatever was looked for, the new one is to be seen.
      filter.value = "";
      await load();
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
    }
    save.disabled = false;
  });
  return {
    name: "captures",
    title: "Captures",
    element: h("section", { "aria-label": "Captures" }, h("div", { class: "head" }, h("h2", {}, "Captures"), filter, save), h("p", { class: "quiet" }, "A click opens the picture: which world and scope had the time, and who had the core."), problem, table.element),
    open: () => {
      isOpen = true;
      known = model.second?.recorder?.captures ?? -1;
      void load();
    },
    close: () => {
      isOpen = false;
      window.clearTimeout(timer);
    },
    update: (part) => {
      const count = model.second?.recorder?.captures ?? -1;
      if (part !== "second" || !isOpen || count === known) return;
      known = count;
      window.clearTimeout(timer);
      timer = window.setTimeout(() => void load(), AGAIN_AFTER_MS);
    },
  };
}
