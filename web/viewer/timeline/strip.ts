// The strip: every frame of the capture as a bar, in the order of time, the bad ones red; what is on screen below is
// framed in it. A click leads to the frame.

import { h } from "../../elements/dom.ts";
import { color } from "../../elements/theme.ts";
import { duration } from "../../elements/quantity.ts";
import type { State } from "../state.ts";

export class Strip {
  readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D;
  /** By bar, the frame that took longest. */
  private bars: Int32Array = new Int32Array(0);

  constructor(private readonly state: State) {
    const { frames } = state.prepared;
    const bad = frames.begin.reduce((sum, _, frame) => sum + (state.isBad(frame) ? 1 : 0), 0);
    this.canvas = h("canvas", {
      class: "strip",
      role: "img",
      "aria-label": `${frames.begin.length} frames as bars, ${bad} over their budget; the panel Frames lists them`,
    });
    const context = this.canvas.getContext("2d");
    if (!context) throw new Error("this browser has no canvas");
    this.context = context;
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    state.onChange(() => this.draw());
    this.canvas.addEventListener("click", (event) => {
      const frame = this.bars[Math.floor((event.offsetX / this.canvas.clientWidth) * this.bars.length)] ?? -1;
      if (frame >= 0) state.goToFrame(frame);
    });
    this.canvas.addEventListener("mousemove", (event) => {
      const frame = this.bars[Math.floor((event.offsetX / this.canvas.clientWidth) * this.bars.length)] ?? -1;
      this.canvas.title =
        frame < 0 ? "" : `frame ${frames.number[frame]}: ${duration(frames.end[frame]! - frames.begin[frame]!)} of ${duration(frames.budget[frame]!)}`;
    });
  }

  draw(): void {
    const { canvas, context, state } = this;
    const { frames } = state.prepared;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const count = frames.begin.length;
    const wall = (frame: number) => frames.end[frame]! - frames.begin[frame]!;
    const barsCount = Math.max(1, Math.min(count, Math.floor(width / (2 * ratio))));
    if (this.bars.length !== barsCount) {
      this.bars = new Int32Array(barsCount).fill(-1);
      for (let frame = 0; frame < count; frame++) {
        const bar = Math.floor((frame / count) * barsCount);
        const longest = this.bars[bar]!;
        if (longest < 0 || wall(frame) > wall(longest)) this.bars[bar] = frame;
      }
    }
    const most = Math.max(1, ...Array.from(this.bars, (frame) => (frame < 0 ? 0 : Math.max(wall(frame), frames.budget[frame]! * 1.1))));
    context.fillStyle = color("page");
    context.fillRect(0, 0, width, height);
    const barWidth = width / barsCount;
    const { view } = state;
    const [good, bad, mark, line] = [color("quiet"), color("bad"), color("mark"), color("text")];
    const scale = (height - 4 * ratio) / most;
    let [left, right] = [-1, -1];
    this.bars.forEach((frame, bar) => {
      if (frame < 0) return;
      const isOnScreen = frames.end[frame]! > view.begin && frames.begin[frame]! < view.end;
      if (isOnScreen && left < 0) left = bar * barWidth;
      if (isOnScreen) right = (bar + 1) * barWidth;
    });
    if (left >= 0) {
      context.fillStyle = mark;
      context.fillRect(left, 0, Math.max(2 * ratio, right - left), height);
    }
    this.bars.forEach((frame, bar) => {
      if (frame < 0) return;
      const tall = Math.max(ratio, wall(frame) * scale);
      context.fillStyle = state.isBad(frame) ? bad : good;
      const gap = barWidth > 4 * ratio ? ratio : 0;
      context.fillRect(bar * barWidth, height - tall, Math.max(ratio, barWidth - gap), tall);
    });
    const budget = frames.budget[state.toldFrame] ?? 0;
    if (budget > 0) {
      context.fillStyle = line;
      context.globalAlpha = 0.6;
      context.fillRect(0, Math.round(height - budget * scale), width, Math.max(1, Math.round(ratio)));
      context.globalAlpha = 1;
      context.font = `${Math.round(10 * ratio)}px sans-serif`;
      context.textBaseline = "bottom";
      const text = `budget ${duration(budget)}`;
      const wide = context.measureText(text).width + 8 * ratio;
      const top = Math.round(height - budget * scale) - 13 * ratio;
      context.fillStyle = color("page");
      context.fillRect(0, Math.max(0, top), wide, 12 * ratio);
      context.fillStyle = line;
      context.fillText(text, 4 * ratio, Math.max(12 * ratio, top + 12 * ratio));
    }
  }
}
