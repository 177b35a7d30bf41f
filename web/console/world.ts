// One world: what its systems take, what it is made of, who is in it and how their lines are. Asked for while it is
// looked at, and not otherwise.

import { h } from "../elements/dom.ts";
import { LiveTable } from "../elements/live_table.ts";
import { bytes, count, counted, duration } from "../elements/quantity.ts";
import type { Second } from "./document.ts";
import { bytesPerSecond, longDuration, percent, us } from "./figures.ts";
import type { Panel, Surroundings } from "./panel.ts";
import { commandObject, Refused } from "./port.ts";
import { behind, findWorld } from "./worlds.ts";

/** What `world.show` answers. */
export interface WorldShown {
  world: string;
  kind: string | null;
  rate_hz: number | null;
  players: number | null;
  state: string;
  ticks_done: number | null;
  span_s: number;
  scopes: Scope[];
  entities: Sort[] | null;
  clients: Client[] | null;
  clients_left_out: number | null;
}

interface Scope {
  name: string;
  subsystem: string;
  count: number;
  own_ns: number;
  whole_ns: number;
  longest_ns: number;
}

interface Sort {
  count: number;
  replicated: string[];
  others: string[];
}

interface Client {
  client: string;
  rtt_ms: number;
  lost_share: number;
  usual_loss: number;
  budget_bytes_per_s: number | null;
  packets_sent: number;
  bytes_sent: number;
  bytes_received: number;
}

/** Between two looks (ms). */
const LOOK_EVERY_MS = 1_000;
/** A smoothed round trip above this is bad for a player (ms). */
const RTT_MS_BAD = 200;
const LOSS_BAD = 0.05;

/** What its ticks take, and when they were behind; nothing where it is not among the costliest, which are told of each second. */
export function ticksTold({ worlds, at_unix_s: now }: Second, id: string): string[] {
  const row = findWorld(worlds, id);
  if (row === undefined) return [];
  const episode = behind(row, now);
  return [
    `a tick takes ${us(row.tick_us)} of the ${us(1e8 / (row.rate_hz * Math.max(row.time_percent, 1)))} that it has, the longest lately ${us(row.longest_tick_us)}`,
    `${counted(row.ticks_missed, "tick")} missed`,
    episode === undefined ? "" : episode.isStill ? `behind since ${episode.since} UTC, ${longDuration(episode.sinceAgoS)} ago, last at ${episode.until}` : `was behind from ${episode.since} to ${episode.until} UTC`,
  ];
}

export function world({ go, model }: Surroundings): Panel {
  const scopes = new LiveTable<Scope>({
    caption: "Systems and other scopes of this world",
    key: ({ name }) => name,
    sortedBy: "by itself",
    empty: "Nothing was recorded of it in the last second.",
    headings: [
      { name: "scope", cell: ({ name }) => name, by: ({ name }) => name },
      { name: "by itself", cell: ({ own_ns }) => duration(own_ns), by: ({ own_ns }) => own_ns, isNumber: true, title: "in the last second, without scopes inside" },
      { name: "whole", cell: ({ whole_ns }) => duration(whole_ns), by: ({ whole_ns }) => whole_ns, isNumber: true, title: "with them" },
      { name: "times", cell: ({ count: times }) => count(times), by: ({ count: times }) => times, isNumber: true },
      { name: "longest", cell: ({ longest_ns }) => duration(longest_ns), by: ({ longest_ns }) => longest_ns, isNumber: true },
    ],
  });
  const entities = new LiveTable<Sort>({
    caption: "Entities by what they are made of",
    key: ({ replicated, others }) => `${replicated.join()};${others.join()}`,
    sortedBy: "entities",
    empty: "There are none, or it has not answered.",
    headings: [
      { name: "entities", cell: (sort) => count(sort.count), by: (sort) => sort.count, isNumber: true },
      { name: "told to clients", cell: ({ replicated }) => replicated.join(", "), by: ({ replicated }) => replicated.join() },
      { name: "beside that", cell: ({ others }) => others.join(", "), by: ({ others }) => others.join() },
    ],
  });
  const clients = new LiveTable<Client>({
    caption: "Clients in this world",
    key: ({ client }) => client,
    sortedBy: "round trip",
    empty: "Nobody is here.",
    headings: [
      { name: "client", cell: ({ client }) => client, by: ({ client }) => client },
      { name: "round trip", cell: ({ rtt_ms }) => duration(rtt_ms * 1e6), by: ({ rtt_ms }) => rtt_ms, isNumber: true, className: ({ rtt_ms }) => (rtt_ms > RTT_MS_BAD ? "bad" : "") },
      { name: "lost", cell: ({ lost_share }) => percent(lost_share), by: ({ lost_share }) => lost_share, isNumber: true, title: "of our packets whose fate is known, since it connected", className: ({ lost_share }) => (lost_share > LOSS_BAD ? "bad" : "") },
      { name: "budget", cell: ({ budget_bytes_per_s }) => (budget_bytes_per_s === null ? "" : bytesPerSecond(budget_bytes_per_s)), by: ({ budget_bytes_per_s }) => budget_bytes_per_s ?? 0, isNumber: true, title: "what pacing lets it be sent" },
      { name: "sent", cell: ({ bytes_sent }) => bytes(bytes_sent), by: ({ bytes_sent }) => bytes_sent, isNumber: true },
      { name: "received", cell: ({ bytes_received }) => bytes(bytes_received), by: ({ bytes_received }) => bytes_received, isNumber: true },
    ],
  });
  const title = h("h2", {}, "World");
  const about = h("p", { class: "quiet", id: "world-about" }, "");
  const problem = h("p", { class: "bad", role: "alert" }, "");
  const back = h("button", { type: "button", class: "link", onclick: () => go("worlds") }, "All worlds");
  const toCaptures = h("button", { type: "button", class: "link", onclick: () => go("captures") }, "Captures");
  let watched: string | undefined;
  let timer: number | undefined;

  const look = async (id: string): Promise<void> => {
    try {
      const shown = await commandObject<WorldShown>(`world.show ${id}`);
      if (watched !== id) return;
      problem.textContent = "";
      title.textContent = shown.kind === null ? `World ${id}` : `${shown.kind} ${shown.world}`;
      const parts = [
        shown.state,
        shown.rate_hz === null ? "" : `${shown.rate_hz} Hz`,
        shown.players === null ? "" : counted(shown.players, "player"),
        shown.ticks_done === null ? "" : `${count(shown.ticks_done)} ticks done`,
        ...(model.second ? ticksTold(model.second, shown.world) : []),
        `its scopes of the last ${shown.span_s.toFixed(1)} s`,
      ];
      about.textContent = parts.filter((part) => part !== "").join(", ");
      scopes.set(shown.scopes);
      entities.set(shown.entities ?? []);
      clients.set(shown.clients ?? []);
    } catch (error) {
      if (watched !== id) return;
      problem.textContent = error instanceof Error ? error.message : String(error);
      // To ask again by itself would be refused again, and counted as one more wrong key.
      if (error instanceof Refused && [401, 403, 429].includes(error.status)) return;
    }
    if (watched === id) timer = window.setTimeout(() => void look(id), LOOK_EVERY_MS);
  };
  return {
    name: "world",
    title: "World",
    element: h(
      "div",
      { class: "world" },
      h("div", { class: "head" }, title, back, toCaptures),
      about,
      problem,
      h("section", { "aria-label": "Systems" }, h("h2", {}, "Systems"), scopes.element),
      h("section", { "aria-label": "Clients" }, h("h2", {}, "Clients"), clients.element),
      h("section", { "aria-label": "Entities" }, h("h2", {}, "Entities"), entities.element),
    ),
    open: (id) => {
      window.clearTimeout(timer);
      // It comes from the address; what is no world's number would be another command's word.
      watched = /^\d+(\.\d+)?$/.test(id) ? id : undefined;
      title.textContent = `World ${id}`;
      about.textContent = "";
      problem.textContent = watched === undefined ? `${id} is no world; choose one of the list` : "";
      [scopes.set([]), entities.set([]), clients.set([])];
      if (watched !== undefined) void look(watched);
    },
    close: () => {
      watched = undefined;
      window.clearTimeout(timer);
    },
  };
}
