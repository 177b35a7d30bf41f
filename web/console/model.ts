// The model: what the server told last, and some minutes of what it told before, for the panels to show.

import type { Frames, Health, Hello, Line, Second } from "./document.ts";

/** Frames that are kept: 20 s at 60 Hz. */
export const FRAMES_MAX = 1_200;
/** Seconds that are kept: five minutes. */
export const SECONDS_MAX = 300;

/** What charts show of a second. */
export interface Moment {
  atUnixS: number;
  players: number;
  frameMaxMs: number;
  frameBudgetMs: number;
  missed: number;
  cpuCores: number;
  /** Ready to run, and waiting for a core; as the next not a number where the host does not tell. */
  waitingCores: number;
  otherCores: number;
  stealCores: number;
  rssMb: number;
  bytesOut: number;
  packetsIn: number;
}

export type Part = "frames" | "health" | "second" | "hello";

export class Model {
  hello: Hello | undefined;
  health: Health | undefined;
  second: Second | undefined;
  /** The oldest first: number and length (us). */
  readonly frames: { number: number; us: number }[] = [];
  readonly history: Moment[] = [];
  /** Frames that did not come through. */
  framesLost = 0;
  private readonly listeners = new Set<(part: Part) => void>();

  onChange(listener: (part: Part) => void): void {
    this.listeners.add(listener);
  }

  take(line: Line): void {
    switch (line.line) {
      case "hello":
        this.hello = line;
        break;
      case "frames":
        this.takeFrames(line);
        break;
      case "health":
        this.health = line;
        break;
      case "second":
        this.takeSecond(line);
        break;
      default:
        // A newer server tells more than this page knows.
        return;
    }
    this.listeners.forEach((listener) => listener(line.line));
  }

  /** Of the host, by its name in docs/metrics.md; undefined where it does not tell. */
  hostFigure(name: string): number | undefined {
    return this.second?.host.find((figure) => figure.name === name)?.value;
  }

  /** What other processes use of the host's cores, without interrupts; undefined where the host does not tell. */
  otherCores(): number | undefined {
    const [busy, own] = [this.hostFigure("outside.host_busy_cores"), this.hostFigure("inside.cpu_cores")];
    const interrupts = this.hostFigure("outside.host_softirq_cores") ?? 0;
    return busy === undefined || own === undefined ? undefined : Math.max(0, busy - own - interrupts);
  }

  private takeFrames({ numbers, us, lost }: Frames): void {
    this.framesLost += lost;
    numbers.forEach((number, at) => this.frames.push({ number, us: us[at] ?? 0 }));
    if (this.frames.length > FRAMES_MAX) this.frames.splice(0, this.frames.length - FRAMES_MAX);
  }

  private takeSecond(second: Second): void {
    const { server } = second;
    // It counts from its start: another server, then, whose past is not this one's.
    if (this.second && server.second < this.second.server.second) {
      this.history.length = 0;
      this.frames.length = 0;
      this.framesLost = 0;
    }
    this.second = second;
    const oldest = second.at_unix_s - SECONDS_MAX;
    this.history.push({
      atUnixS: second.at_unix_s,
      players: server.players,
      frameMaxMs: server.frame_ms_max,
      frameBudgetMs: server.frame_budget_ms,
      missed: server.ticks_missed,
      cpuCores: server.cpu_cores,
      waitingCores: this.hostFigure("inside.run_queue_wait_cores") ?? NaN,
      otherCores: this.otherCores() ?? NaN,
      stealCores: this.hostFigure("outside.host_steal_cores") ?? 0,
      rssMb: server.rss_mb,
      bytesOut: server.bytes_out_per_s,
      packetsIn: server.packets_in_per_s,
    });
    const firstKept = this.history.findIndex(({ atUnixS }) => atUnixS >= oldest);
    this.history.splice(0, Math.max(firstKept, this.history.length - SECONDS_MAX));
  }
}
