// Traffic: what goes to clients, by kind and cause, and the clients that take most.

import { h } from "../elements/dom.ts";
import { LiveTable } from "../elements/live_table.ts";
import type { ClientNow, PacketsOfKind } from "./document.ts";
import { bytesPerSecond, perSecond, us } from "./figures.ts";
import type { Panel, Surroundings } from "./panel.ts";

export function traffic({ model }: Surroundings): Panel {
  const packets = new LiveTable<PacketsOfKind>({
    caption: "What goes to clients, by kind and cause",
    key: ({ kind, cause }) => `${kind} ${cause}`,
    sortedBy: "bytes",
    empty: "Nothing was sent in the last second.",
    headings: [
      { name: "kind", cell: ({ kind }) => kind, by: ({ kind }) => kind },
      { name: "cause", cell: ({ cause }) => cause, by: ({ cause }) => cause },
      { name: "packets/s", cell: ({ packets_per_s }) => perSecond(packets_per_s), by: ({ packets_per_s }) => packets_per_s, isNumber: true },
      { name: "updates/s", cell: ({ updates_per_s }) => perSecond(updates_per_s), by: ({ updates_per_s }) => updates_per_s, isNumber: true },
      { name: "bytes", cell: ({ bytes_per_s }) => bytesPerSecond(bytes_per_s), by: ({ bytes_per_s }) => bytes_per_s, isNumber: true },
    ],
  });
  const clients = new LiveTable<ClientNow>({
    caption: "Clients that take most",
    key: ({ client }) => client,
    sortedBy: "work/s",
    empty: "Nobody plays.",
    headings: [
      { name: "client", cell: ({ client }) => client, by: ({ client }) => client },
      { name: "world", cell: ({ world }) => world, by: ({ world }) => world },
      { name: "work/s", cell: ({ work_per_s }) => perSecond(work_per_s), by: ({ work_per_s }) => work_per_s, isNumber: true, title: "what its messages ask of its world, in ordinary inputs" },
      { name: "line", cell: ({ line_us_per_s }) => us(line_us_per_s), by: ({ line_us_per_s }) => line_us_per_s, isNumber: true, title: "time to open and to write its packets, a second" },
      { name: "messages/s", cell: ({ messages_per_s }) => perSecond(messages_per_s), by: ({ messages_per_s }) => messages_per_s, isNumber: true },
      { name: "refused/s", cell: ({ refused_per_s }) => perSecond(refused_per_s), by: ({ refused_per_s }) => refused_per_s, isNumber: true, className: ({ refused_per_s }) => (refused_per_s > 0 ? "bad" : "") },
      { name: "in", cell: ({ bytes_in_per_s }) => bytesPerSecond(bytes_in_per_s), by: ({ bytes_in_per_s }) => bytes_in_per_s, isNumber: true },
      { name: "out", cell: ({ bytes_out_per_s }) => bytesPerSecond(bytes_out_per_s), by: ({ bytes_out_per_s }) => bytes_out_per_s, isNumber: true },
    ],
  });
  const show = () => {
    packets.set(model.second?.packets ?? []);
    clients.set(model.second?.clients ?? []);
  };
  return {
    name: "traffic",
    title: "Traffic",
    element: h(
      "div",
      {},
      h("section", { "aria-label": "Packets" }, h("h2", {}, "To clients, by kind"), packets.element),
      h("section", { "aria-label": "Clients" }, h("h2", {}, "Clients that take most"), clients.element),
    ),
    open: show,
    update: (part) => part === "second" && show(),
  };
}
