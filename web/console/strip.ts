// The strip: the last frames as bars, the newest on the right, those over the budget red. Drawn again with each line.
// One that was closed on time while a world was still in its tick has a colour of its own.

import { h } from "../elements/dom.ts";
import { CLOSED, isLong } from "../elements/frames.ts";
import { duration } from "../elements/quantity.ts";
import { color } from "../elements/theme.ts";
import type { Model } from "./model.ts";

/** Width of a frame's bar (CSS pixels). */
const BAR = 2;

export class Strip {
  readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D;

  constructor(private readonly model: Model) {
    this.canvas = h("canvas", { class: "frames", role: "img" });
    const context = this.canvas.getContext("2d");
    if (!context) throw new Error("this browser has no canvas");
    this.context = context;
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    model.onChange((part) => part === "frames" && this.draw());
    this.canvas.addEventListener("mousemove", (event) => {
      const frame = this.frameAt(event.offsetX);
      this.canvas.title = frame ? `frame ${frame.number}: ${duration(frame.us * 1e3)}` : "";
    });
  }

  /** How many fit. */
  private get shown(): number {
    return Math.max(1, Math.floor(this.canvas.clientWidth / BAR));
  }

  private frameAt(x: number): { number: number; us: number } | undefined {
    return this.model.frames.slice(-this.shown)[Math.floor(x / BAR)];
  }

  draw(): void {
    const { canvas, context, model } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (width === 0) return;
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const frames = model.frames.slice(-this.shown);
    const budgetUs = (model.second?.server.frame_budget_ms ?? 0) * 1e3;
    const longest = frames.reduce((most, frame) => Math.max(most, frame.us), 0);
    const scale = (height - 2 * ratio) / Math.max(1, longest, budgetUs * 1.25);
    context.fillStyle = color("page");
    context.fillRect(0, 0, width, height);
    const [usual, closed, bad] = [color("link"), color("warn"), color("bad")];
    let over = 0;
    frames.forEach((frame, place) => {
      const isBad = isLong(frame.us, budgetUs);
      const isClosed = budgetUs > 0 && frame.us > budgetUs * CLOSED[0];
      if (isBad) over++;
      const tall = Math.max(ratio, frame.us * scale);
      context.fillStyle = isBad ? bad : isClosed ? closed : usual;
      context.fillRect(place * BAR * ratio, height - tall, Math.max(1, (BAR - 0.5) * ratio), tall);
    });
    if (budgetUs > 0) {
      context.fillStyle = color("text");
      context.globalAlpha = 0.55;
      const y = Math.round(height - budgetUs * scale);
      context.fillRect(0, y, width, Math.max(1, Math.round(ratio)));
      context.globalAlpha = 1;
      context.font = `${Math.round(11 * ratio)}px sans-serif`;
      context.textBaseline = "bottom";
      const [label, edge] = [`budget ${duration(budgetUs * 1e3)}`, 4 * ratio];
      // Above the line, or it would stand in the bars; on its own ground, for some bars are higher.
      context.fillStyle = color("page");
      context.fillRect(0, y - 14 * ratio, context.measureText(label).width + 2 * edge, 13 * ratio);
      context.fillStyle = color("quiet");
      context.fillText(label, edge, y - ratio);
    }
    canvas.setAttribute("aria-label", `The last ${frames.length} frames; ${over} took more than their budget, the longest ${duration(longest * 1e3)}`);
    canvas.dataset["frames"] = String(frames.length);
    canvas.dataset["over"] = String(over);
  }
}
