// Many clients who play, and what those who play know at the end: whether a value was wrong, and whether anybody was lost.
// Runs in Node and in a page alike, so it takes nothing but types from elsewhere.

import type { SocketClient } from "../client/index.ts";
import type { BotsReport } from "./live_server.ts";

/** Of some clients, or of all. */
export interface Known {
  readonly stateErrors: number;
  readonly stateChecks: number;
  /** Those who do not play any more. */
  readonly lost: number;
}

/** Plays with the clients of this list, and with those that are added to it; gives what tells of them. */
export function play(clients: readonly SocketClient[], inputName: string, everyMs: number): () => Known {
  setInterval(() => {
    const nowMs = performance.now();
    clients.forEach(({ client }, index) => {
      const angle = nowMs / 2000 + index;
      const input = { move_x: Math.round(100 * Math.sin(angle)), move_z: Math.round(100 * Math.cos(angle)), yaw: Math.floor(nowMs + 300 * index) & 0xffff, pitch_degrees: 0, buttons: 0 };
      for (let due = client.dueInputs(nowMs); due > 0; due--) client.sendInput(inputName as never, input as never, nowMs);
      client.takeMessages();
      client.takeEvents();
    });
  }, everyMs);
  return () => knownBy(clients);
}

export function knownBy(clients: readonly SocketClient[]): Known {
  return together(
    clients.map(({ client }) => ({
      stateErrors: client.replicas.counts.stateErrors + client.stats.protocolErrors,
      stateChecks: client.replicas.counts.stateChecks,
      lost: Number(client.state !== "connected"),
    })),
  );
}

/** What native bots know, by the report of their whole run. One that came back was lost all the same. */
export function knownByBots(report: BotsReport | null): Known {
  if (!report) return together([]);
  return {
    stateErrors: report.state_errors + report.protocol_errors,
    stateChecks: report.state_checks,
    lost: Math.max(report.disconnects, report.players_wanted - report.players_connected),
  };
}

export function together(all: readonly Known[]): Known {
  const sum = (of: keyof Known): number => all.reduce((sum, each) => sum + each[of], 0);
  return { stateErrors: sum("stateErrors"), stateChecks: sum("stateChecks"), lost: sum("lost") };
}

/** What of it fails a run, a line each. A run in which nothing was checked says nothing of values, and fails as well. */
export function failuresIn(who: string, { stateErrors, stateChecks, lost }: Known): string[] {
  const failures = [];
  if (stateErrors > 0) failures.push(`${who}: ${stateErrors} of ${stateChecks} values wrong`);
  if (stateChecks === 0) failures.push(`${who}: no value was checked`);
  if (lost > 0) failures.push(`${who}: ${lost} lost`);
  return failures;
}
