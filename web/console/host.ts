// Memory and host: which scope holds what, what the process uses by its own word and by the host's, what is stolen and
// waited for, and what watching costs.

import { h } from "../elements/dom.ts";
import { LiveTable } from "../elements/live_table.ts";
import { bytes, count } from "../elements/quantity.ts";
import type { HostFigure, ScopeMemory } from "./document.ts";
import { megabytes, percent, us } from "./figures.ts";
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
  if (name.endsWith("_cores")) return `${value.toFixed(2)} cores`;
  if (name.endsWith("bytes_per_s")) return `${bytes(value)}/s`;
  if (name.endsWith("packets_per_s")) return `${count(value)}/s`;
  if (name.endsWith("_share")) return percent(value);
  if (name.endsWith("_ms_per_s")) return `${value.toFixed(1)} ms/s`;
  return `${value.toFixed(2)} s`;
}

const isBad = ({ name, value }: HostFigure): boolean =>
  (name === "outside.group_throttled_share" && value > 0) || (name === "outside.host_steal_cores" && value > 0.05) || (name === "inside.run_queue_wait_cores" && value > 0.2);

export function host({ model }: Surroundings): Panel {
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
  const watch = h("p", { class: "quiet", id: "watch-cost" }, "");
  const show = () => {
    const { second, health } = model;
    if (second) {
      memory.set(second.memory.scopes);
      figures.set(second.host);
      sum.textContent = `${megabytes(second.memory.rss_mb)} resident; ${megabytes(second.memory.others_mb)} live in scopes that are not listed.`;
      const { ticks_missed_host, host_took_ms_max } = second.server;
      took.textContent = ticks_missed_host > 0 ? `The host took a core for ${host_took_ms_max.toFixed(0)} ms; ${count(ticks_missed_host)} ticks were missed for it in this second.` : "The host took no core for long in this second.";
      took.className = ticks_missed_host > 0 ? "bad" : "";
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
      h("section", { "aria-label": "Host" }, h("h2", {}, "Host"), took, figures.element, watch),
      h("section", { "aria-label": "Memory" }, h("h2", {}, "Memory by scope"), sum, memory.element),
    ),
    open: show,
    update: (part) => (part === "second" || part === "health") && show(),
  };
}
