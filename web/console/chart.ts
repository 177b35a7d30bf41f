// Charts: a figure of the last five minutes, or of the time since the server's start, as a line, with its name, its value
// now and its highest.

import { h } from "../elements/dom.ts";
import { color } from "../elements/theme.ts";
import { SECONDS_MAX, type Model, type Moment } from "./model.ts";

/** What a chart is wide at least, so that its first seconds are no wall (s). */
const SECONDS_MIN = 60;
/** Seconds that are further apart are no line: nothing was told between them (s). */
const APART = 2.5;
/** Of a standstill, beside the line (s). */
const MARGIN_S = 0.5;

export interface ChartOptions {
  name: string;
  value: (moment: Moment) => number;
  /** As people read it. */
  text: (value: number) => string;
  /** A line that is not to be crossed. */
  limit?: (moment: Moment) => number;
}

export class Chart {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { role: "img" });
  private readonly now = h("strong", {}, "–");
  private readonly most = h("span", { class: "quiet" }, "");

  constructor(
    private readonly model: Model,
    private readonly options: ChartOptions,
  ) {
    const head = h("figcaption", {}, h("span", {}, options.name), this.now, this.most);
    this.element = h("figure", { class: "chart" }, head, this.canvas);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    model.onChange((part) => (part === "second" || part === "past") && this.draw());
    this.canvas.addEventListener("mousemove", (event) => (this.canvas.title = this.told(event.offsetX)));
  }

  /** When the moment nearest to a place was, by the browser's clock, and what was told then. */
  private told(offsetX: number): string {
    const { model, options, canvas } = this;
    const { past } = model;
    if (past.length === 0 || canvas.clientWidth === 0) return "";
    const end = past.at(-1)!.atUnixS + MARGIN_S;
    const at = end - (1 - offsetX / canvas.clientWidth) * this.seconds(end);
    const nearest = past.reduce((best, moment) => (Math.abs(moment.atUnixS - at) < Math.abs(best.atUnixS - at) ? moment : best));
    return `${new Date(nearest.atUnixS * 1e3).toLocaleTimeString()}: ${options.text(options.value(nearest))}`;
  }

  /** How long the chart is, up to `end` (s). */
  private seconds(end: number): number {
    return Math.min(Math.max(end - this.model.past[0]!.atUnixS, SECONDS_MIN), SECONDS_MAX);
  }

  draw(): void {
    const { canvas, model, options } = this;
    const context = canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    const values = model.past.map(options.value);
    const last = values.at(-1);
    if (!context || width === 0 || last === undefined || Number.isNaN(last)) return;
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const moment = model.past.at(-1)!;
    const limit = options.limit?.(moment);
    const most = Math.max(...values.filter((value) => !Number.isNaN(value)));
    const top = Math.max(most, limit ?? 0, 1e-9) * 1.1;
    // By the clock and not by their number: while the server stands still nothing is told, and that is seen.
    const times = model.past.map(({ atUnixS }) => atUnixS);
    const end = times.at(-1)! + MARGIN_S;
    const seconds = this.seconds(end);
    const x = (at: number) => (1 - (end - times[at]!) / seconds) * width;
    const y = (value: number) => height - ratio - (value / top) * (height - 2 * ratio);
    context.clearRect(0, 0, width, height);
    if (limit !== undefined) {
      context.fillStyle = color("line");
      context.fillRect(0, Math.round(y(limit)), width, Math.max(1, Math.round(ratio)));
    }
    context.strokeStyle = limit !== undefined && most > limit ? color("bad") : color("link");
    context.lineWidth = 1.5 * ratio;
    context.lineJoin = "round";
    context.beginPath();
    values.forEach((value, at) => {
      if (Number.isNaN(value)) return;
      const isApart = at === 0 || Number.isNaN(values[at - 1]) || times[at]! - times[at - 1]! > APART;
      if (isApart) context.moveTo(x(at) - ratio, y(value));
      context.lineTo(x(at), y(value));
    });
    context.stroke();
    this.now.textContent = options.text(last);
    this.most.textContent = `most ${options.text(most)}`;
    canvas.setAttribute("aria-label", `${options.name}: ${options.text(last)}, at most ${options.text(most)} in the last ${Math.round(end - times[0]!)} s`);
  }
}
