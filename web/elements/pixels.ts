// A picture as numbers: what is drawn by the hundred thousand is written into memory, and given to a canvas once.
//
// A fill of the canvas's own takes microseconds; a pixel here takes a nanosecond.

/** As a picture's memory holds it on little-endian machines: alpha, blue, green, red. */
export type Pixel = number;

/** Of `#rrggbb`. */
export function pixel(color: string): Pixel {
  const value = parseInt(color.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/** `share` of `a`, the rest of `b`. [0 to 1] */
export function mix(a: Pixel, b: Pixel, share: number): Pixel {
  const part = (shift: number) =>
    Math.round(((a >>> shift) & 0xff) * share + ((b >>> shift) & 0xff) * (1 - share)) << shift;
  return (0xff000000 | part(16) | part(8) | part(0)) >>> 0;
}

/** Whether dark text is easier to read on it than light. */
export function isBright(color: Pixel): boolean {
  return 0.299 * (color & 0xff) + 0.587 * ((color >> 8) & 0xff) + 0.114 * ((color >> 16) & 0xff) > 135;
}

export class Pixels {
  image: ImageData;
  data: Uint32Array;

  constructor(
    public width: number,
    public height: number,
  ) {
    this.image = new ImageData(Math.max(1, width), Math.max(1, height));
    this.data = new Uint32Array(this.image.data.buffer);
  }

  resize(width: number, height: number): void {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.image = new ImageData(Math.max(1, width), Math.max(1, height));
    this.data = new Uint32Array(this.image.data.buffer);
  }

  clear(color: Pixel): void {
    this.data.fill(color);
  }

  /** Cut to what there is. */
  fill(x: number, y: number, width: number, height: number, color: Pixel): void {
    const [left, right] = [Math.max(0, x), Math.min(this.width, x + width)];
    const [top, bottom] = [Math.max(0, y), Math.min(this.height, y + height)];
    if (left >= right) return;
    for (let row = top; row < bottom; row++) this.data.fill(color, row * this.width + left, row * this.width + right);
  }

  /** The same line from `y` on, `height` times, from `x` on. */
  repeat(line: Uint32Array, x: number, y: number, height: number): void {
    const [top, bottom] = [Math.max(0, y), Math.min(this.height, y + height)];
    const part = line.length > this.width - x ? line.subarray(0, Math.max(0, this.width - x)) : line;
    for (let row = top; row < bottom; row++) this.data.set(part, row * this.width + x);
  }
}

/** Text that fits, cut with an ellipsis; remembers how wide letters are. */
export class Lettering {
  private readonly widths = new Map<string, number>();

  constructor(private readonly context: CanvasRenderingContext2D) {}

  /** After the font has changed. */
  forget(): void {
    this.widths.clear();
  }

  fit(text: string, width: number): string {
    if (this.width(text) <= width) return text;
    // Letters are about equally wide; what is measured is the whole.
    const letters = Math.floor((width / this.width(text)) * text.length) - 1;
    return letters < 2 ? "" : text.slice(0, letters) + "…";
  }

  width(text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 20_000) this.widths.clear();
      this.widths.set(text, (width = this.context.measureText(text).width));
    }
    return width;
  }
}
