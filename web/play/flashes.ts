// What is seen for a moment: a shot's line, a number where somebody was hurt.

interface Flash {
  readonly untilMs: number;
  readonly lastsMs: number;
  draw(canvas: CanvasRenderingContext2D, share: number): void;
}

const FLASHES_MAX = 256;

export class Flashes {
  #flashes: Flash[] = [];

  /** `draw` is told how much of it is left, 1 to 0. */
  add(nowMs: number, lastsMs: number, draw: Flash["draw"]): void {
    if (this.#flashes.length === FLASHES_MAX) this.#flashes.shift();
    this.#flashes.push({ untilMs: nowMs + lastsMs, lastsMs, draw });
  }

  draw(canvas: CanvasRenderingContext2D, nowMs: number): void {
    this.#flashes = this.#flashes.filter(({ untilMs }) => untilMs > nowMs);
    for (const flash of this.#flashes) {
      canvas.save();
      flash.draw(canvas, (flash.untilMs - nowMs) / flash.lastsMs);
      canvas.restore();
    }
  }
}
