// Which part of the capture is on screen: a stretch of time, and how far tracks are scrolled. Zoom and pan are here.

/** The shortest stretch that is shown (ns). */
const SHORTEST_NS = 40;

export class View {
  begin: number;
  end: number;
  scrollY = 0;

  /** Of a capture that is `lengthNs` long. */
  constructor(readonly lengthNs: number) {
    this.begin = 0;
    this.end = Math.max(lengthNs, SHORTEST_NS);
  }

  get width(): number {
    return this.end - this.begin;
  }

  /** The most that is shown: all, and a little beside it. */
  private get widest(): number {
    return Math.max(this.lengthNs, SHORTEST_NS) * 1.04;
  }

  /** Shows that stretch, or as much of it as there is. */
  show(begin: number, end: number): void {
    const width = Math.min(this.widest, Math.max(SHORTEST_NS, end - begin));
    const middle = (begin + end) / 2;
    const margin = Math.max(this.lengthNs, SHORTEST_NS) * 0.02;
    const first = Math.min(Math.max(middle - width / 2, -margin), this.lengthNs + margin - width);
    this.begin = width >= this.widest ? -margin : first;
    this.end = this.begin + width;
  }

  fit(): void {
    this.show(0, this.lengthNs);
  }

  /** `factor` above 1 shows less; the moment at `share` of the width stays where it is. [0 to 1] */
  zoom(factor: number, share = 0.5): void {
    const width = Math.min(this.widest, Math.max(SHORTEST_NS, this.width / factor));
    const at = this.begin + this.width * share;
    this.show(at - width * share, at + width * (1 - share));
  }

  /** By a share of the width; above 0: to what is later. */
  pan(share: number): void {
    const by = this.width * share;
    this.show(this.begin + by, this.end + by);
  }

  /** Around a stretch, so that it takes most of the width. */
  around(begin: number, end: number): void {
    const margin = Math.max((end - begin) * 0.25, SHORTEST_NS);
    this.show(begin - margin, end + margin);
  }
}
