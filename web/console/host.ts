// Memory and host: which scope holds what, what the process uses by its own word and by the host's, what is stolen and
// waited for, and what watching costs.

import { h } from "../elements/dom.ts";
import { LiveTable } from "../elements/live_table.ts";
import { bytes, count } from "../elements/quantity.ts";
import type { HostFigure, ScopeMemory, ServerNow } from "./document.ts";
import { cores, megabytes, percent, us } from "./figures.ts";
import type { Model } from "./model.ts";
import type { Panel, Surroundings } from "./panel.ts";

/** In plain words; names without are shown as they are. */
const WORDS: Record<string, string> = {
  "inside.cpu_cores": "processor time, by its own clock",
  "inside.kernel_cores": "of that in the kernel",
  "inside.run_queue_wait_cores": "ready to run, and waiting for a core",
  "inside.disk_read_bytes_per_s": "read from disk",
  "inside.disk_written_bytes_per_s": "written to disk",
  "outside.group_cpu_cores": "processor time, by its control group",
  "outside.group_quota_cores": "limit of the control group",
  "outside.group_throttled_share": "share of periods in which the limit made it stand still",
  "outside.group_throttled_ms_per_s": "stood still",
  "outside.host_cores": "cores of the host",
  "outside.host_busy_cores": "work of everybody on the host",
  "outside.host_steal_cores": "stolen by the hypervisor",
  "outside.host_softirq_cores": "after interrupts: packets, mostly",
  "outside.network_received_bytes_per_s": "received on all interfaces",
  "outside.network_received_packets_per_s": "packets received on them",
  "outside.network_sent_bytes_per_s": "sent on them",
  "outside.network_sent_packets_per_s": "packets sent on them",
  "outside.seconds": "between two readings",
};

function valueText({ name, value }: HostFigure): string {
  if (name.endsWith("_cores")) return cores(value);
  if (name.endsWith("bytes_per_s")) return `${bytes(value)}/s`;
  if (name.endsWith("packets_per_s")) return `${count(value)}/s`;
  if (name.endsWith("_share")) return percent(value);
  if (name.endsWith("_ms_per_s")) return `${value.toFixed(1)} ms/s`;
  return `${value.toFixed(2)} s`;
}

/** Waiting for cores, as cores, of which ticks may be late. */
export const WAITING_BAD = 0.2;
/** What the hypervisor may take (cores). */
export const STEAL_BAD = 0.05;

const isBad = ({ name, value }: HostFigure): boolean =>
  (name === "outside.group_throttled_share" && value > 0) || (name === "outside.host_steal_cores" && value > STEAL_BAD) || (name === "inside.run_queue_wait_cores" && value > WAITING_BAD);

/** Whether the process had its cores in this second, and who had them otherwise. */
function coresTold(model: Model, server: ServerNow): { text: string; isBad: boolean } {
  const waiting = model.hostFigure("inside.run_queue_wait_cores");
  const steal = model.hostFigure("outside.host_steal_cores") ?? 0;
  const told: string[] = [];
  if (server.ticks_missed_host > 0) {
    told.push(`The host took a core for ${server.host_took_ms_max.toFixed(0)} ms; ${count(server.ticks_missed_host)} ticks were missed for it in this second.`);
  }
  if (steal > STEAL_BAD) told.push(`The hypervisor took ${cores(steal)} from this host.`);
  if (waiting !== undefined && waiting > WAITING_BAD) {
    const [others, all] = [model.otherCores(), model.hostFigure("outside.host_cores")];
    const used = others === undefined ? "" : ` Other processes use ${cores(others)}${all === undefined ? "" : ` of ${all.toFixed(0)}`}.`;
    told.push(`Threads that were ready, those of low priority among them, waited for a core: ${cores(waiting)} of waiting.${used} Captures name who ran meanwhile: those of the trigger run-queue, and one that is saved now.`);
  }
  if (told.length === 0) {
    const text = waiting === undefined ? "This kernel does not tell how long threads wait for a core." : "The process had a core whenever it was ready, but for moments.";
    return { text, isBad: false };
  }
  return { text: told.join(" "), isBad: true };
}

export function host({ model, go }: Surroundings): Panel {
  const memory = new LiveTable<ScopeMemory>({
    caption: "Live memory by scope",
    key: ({ scope }) => scope,
    sortedBy: "live",
    empty: "Memory is not followed: the recorder is off.",
    headings: [
      { name: "scope", cell: ({ scope }) => scope, by: ({ scope }) => scope },
      { name: "live", cell: ({ mb }) => megabytes(mb), by: ({ mb }) => mb, isNumber: true, title: "estimated from samples of blocks" },
    ],
  });
  const figures = new LiveTable<HostFigure>({
    caption: "What the process uses, by its own word and by others'",
    key: ({ name }) => name,
    empty: "The host tells nothing.",
    headings: [
      { name: "figure", cell: ({ name }) => WORDS[name] ?? name, title: "names of docs/metrics.md begin with inside or outside" },
      { name: "by whom", cell: ({ name }) => (name.startsWith("inside") ? "itself" : "the host") },
      { name: "value", cell: valueText, isNumber: true, className: (figure) => (isBad(figure) ? "bad" : "") },
    ],
  });
  const sum = h("p", { class: "quiet" }, "");
  const took = h("p", {}, "");
  const toCaptures = h("button", { type: "button", class: "link", hidden: true, onclick: () => go("captures") }, "To the captures");
  const watch = h("p", { class: "quiet", id: "watch-cost" }, "");
  const show = () => {
    const { second, health } = model;
    if (second) {
      memory.set(second.memory.scopes);
      figures.set(second.host);
      sum.textContent = `${megabytes(second.memory.rss_mb)} resident; ${megabytes(second.memory.others_mb)} live in scopes that are not listed.`;
      const { text, isBad } = coresTold(model, second.server);
      took.textContent = text;
      took.className = isBad ? "bad" : "";
      toCaptures.hidden = !isBad;
    }
    if (health) {
      const { watchers, us: gatherUs, bytes: size, lines_dropped } = health.watch;
      watch.textContent = `Watching: ${watchers} of 8 places, ${us(gatherUs)} of the admin thread a second, ${bytes(size)} a second for each; ${count(lines_dropped)} lines were dropped for slow watchers.`;
    }
  };
  return {
    name: "host",
    title: "Memory and host",
    element: h(
      "div",
      {},
      h("section", { "aria-label": "Host" }, h("h2", {}, "Host"), took, toCaptures, figures.element, watch),
      h("section", { "aria-label": "Memory" }, h("h2", {}, "Memory by scope"), sum, memory.element),
    ),
    open: show,
    update: (part) => (part === "second" || part === "health") && show(),
  };
}
