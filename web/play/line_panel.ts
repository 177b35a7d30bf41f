// The panel in a corner: how the line is (latency, loss, what carries it), what was predicted wrongly, where the player is, and
// what keys do.

import { type GameTypes, type PredictionStats, type SocketClient } from "../client/index.ts";

const RENEWED_EVERY_MS = 250;
/** In a narrower window what keys do would hide the world, so it is shown when it is asked for (points). */
const HELP_WIDTH_MIN = 700;
/** Shows and hides what keys do. */
export const HELP_KEY = "KeyH";

export class LinePanel {
  readonly #text: HTMLPreElement;
  readonly #help: string;
  #showsHelp = innerWidth >= HELP_WIDTH_MIN;
  #renewedMs = -Infinity;
  /** Packets that arrived and that were lost, as of a while ago. */
  #before = { acked: 0, lost: 0, atMs: 0 };
  #lossPercent = 0;

  constructor(parent: HTMLElement, help: string) {
    this.#text = document.createElement("pre");
    this.#help = help;
    parent.append(this.#text);
    this.say("connecting");
  }

  say(text: string): void {
    this.#text.textContent = text;
    this.#renewedMs = -Infinity;
  }

  toggleHelp(): void {
    this.#showsHelp = !this.#showsHelp;
    this.#renewedMs = -Infinity;
  }

  show<G extends GameTypes>(session: SocketClient<G>, prediction: PredictionStats | null, more: readonly string[], nowMs: number): void {
    if (nowMs - this.#renewedMs < RENEWED_EVERY_MS) return;
    this.#renewedMs = nowMs;
    const { client, tunnel } = session;
    const { world, queue } = client;
    if (!world) {
      this.#text.textContent = queue === null ? "connecting" : queue === "world-being-made" ? "your world is being made" : `in line: ${queue.place} of ${queue.length}`;
      return;
    }
    const stats = client.connectionStats!;
    this.#measureLoss(stats.packetsAcked, stats.packetsLost, nowMs);
    const { stateChecks, stateErrors } = client.replicas.counts;
    const answered = client.inputToUpdateMs === null ? "" : `, an input is answered after ${client.inputToUpdateMs.toFixed(0)} ms`;
    const lines = [
      `${world.name}, ${world.tickHz} ticks/s${client.timePercent < 100 ? `, at ${client.timePercent} % of its speed` : ""}; ${client.replicas.size} things in sight`,
      `${tunnel.name}: round trip ${client.roundTripMs!.toFixed(0)} ms${answered}; ${this.#lossPercent.toFixed(1)} % lost`,
      ...(stateChecks > 0 ? [`${stateChecks} values held against the server's, ${stateErrors} wrong`] : []),
      ...(prediction && prediction.checks > 0 ? [correctionsText(prediction)] : []),
      this.#showsHelp ? `${this.#help}; H hides this` : "H says what keys do",
      ...more,
    ];
    this.#text.textContent = lines.join("\n");
  }

  /** Over some two seconds. */
  #measureLoss(acked: number, lost: number, nowMs: number): void {
    if (nowMs - this.#before.atMs < 2000) return;
    const [ackedNow, lostNow] = [acked - this.#before.acked, lost - this.#before.lost];
    this.#lossPercent = (100 * lostNow) / Math.max(ackedNow + lostNow, 1);
    this.#before = { acked, lost, atMs: nowMs };
  }
}

function correctionsText({ corrections, corrected, correctedMax }: PredictionStats): string {
  if (corrections === 0) return "your steps were predicted right";
  const [mean, longest] = [corrected / corrections, correctedMax].map((metres) => (metres * 100).toFixed(0));
  return `your steps were corrected ${corrections} times, by ${mean} cm, at most ${longest}`;
}
