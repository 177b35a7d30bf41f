// The model: what the server told last, and some minutes of what it told before, for the panels to show.

import type { Frames, Health, Hello, Line, Past, Second } from "./document.ts";

/** Frames that are kept: 20 s at 60 Hz. */
export const FRAMES_MAX = 1_200;
/** Seconds that are kept: five minutes. */
export const SECONDS_MAX = 300;

/** What charts show of a second. */
export interface Moment {
  /** Since the server's start (s). */
  second: number;
  atUnixS: number;
  players: number;
  frameMaxMs: number;
  frameBudgetMs: number;
  missed: number;
  worldsOverloaded: number;
  cpuCores: number;
  /** Ready to run, and waiting for a core; as the next not a number where the host does not tell. */
  waitingCores: number;
  otherCores: number;
  stealCores: number;
  rssMb: number;
  bytesOut: number;
}

export type Part = "frames" | "health" | "second" | "hello" | "past";

export class Model {
  hello: Hello | undefined;
  health: Health | undefined;
  second: Second | undefined;
  /** The oldest first: number and length (us). */
  readonly frames: { number: number; us: number }[] = [];
  readonly past: Moment[] = [];
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
      case "past":
        this.takePast(line);
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
    return otherCores((name) => this.hostFigure(name));
  }

  /** What the server has kept is no less than what was told before, and that of another server is no past of this one. */
  private takePast(past: Past): void {
    if (this.second && (past.second.at(-1) ?? -1) < this.second.server.second) {
      this.second = undefined;
      this.frames.length = 0;
      this.framesLost = 0;
    }
    const host = new Map(past.host.map(({ name, values }) => [name, values]));
    this.past.length = 0;
    past.second.forEach((second, at) => {
      this.past.push({
        second,
        atUnixS: past.at_unix_s[at]!,
        players: past.players[at]!,
        frameMaxMs: past.frame_ms_max[at]!,
        frameBudgetMs: past.frame_budget_ms[at]!,
        missed: past.ticks_missed[at]!,
        worldsOverloaded: past.worlds_overloaded[at]!,
        cpuCores: past.cpu_cores[at]!,
        rssMb: past.rss_mb[at]!,
        bytesOut: past.bytes_out_per_s[at]!,
        ...ofHost((name) => host.get(name)?.[at] ?? undefined),
      });
    });
    this.forgetOld();
  }

  private takeFrames({ numbers, us, lost }: Frames): void {
    this.framesLost += lost;
    numbers.forEach((number, at) => this.frames.push({ number, us: us[at] ?? 0 }));
    if (this.frames.length > FRAMES_MAX) this.frames.splice(0, this.frames.length - FRAMES_MAX);
  }

  private takeSecond(second: Second): void {
    const { server, load } = second;
    this.second = second;
    // It is in the past already if it ended just before this page came.
    if (this.past.at(-1)?.second === server.second) this.past.pop();
    this.past.push({
      second: server.second,
      atUnixS: second.at_unix_s,
      players: server.players,
      frameMaxMs: server.frame_ms_max,
      frameBudgetMs: server.frame_budget_ms,
      missed: server.ticks_missed,
      worldsOverloaded: load.worlds_overloaded,
      cpuCores: server.cpu_cores,
      rssMb: server.rss_mb,
      bytesOut: server.bytes_out_per_s,
      ...ofHost((name) => this.hostFigure(name)),
    });
    this.forgetOld();
  }

  private forgetOld(): void {
    const oldest = (this.past.at(-1)?.atUnixS ?? 0) - SECONDS_MAX;
    const firstKept = this.past.findIndex(({ atUnixS }) => atUnixS >= oldest);
    this.past.splice(0, Math.max(firstKept, this.past.length - SECONDS_MAX));
  }
}

type HostFigures = (name: string) => number | undefined;

/** What charts show of the host. */
const ofHost = (figure: HostFigures): Pick<Moment, "waitingCores" | "otherCores" | "stealCores"> => ({
  waitingCores: figure("inside.run_queue_wait_cores") ?? NaN,
  otherCores: otherCores(figure) ?? NaN,
  stealCores: figure("outside.host_steal_cores") ?? 0,
});

function otherCores(figure: HostFigures): number | undefined {
  const [busy, own] = [figure("outside.host_busy_cores"), figure("inside.cpu_cores")];
  const interrupts = figure("outside.host_softirq_cores") ?? 0;
  return busy === undefined || own === undefined ? undefined : Math.max(0, busy - own - interrupts);
}
