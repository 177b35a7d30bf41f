// The longest of many, without a list of all: a hostile capture may have forty million waits.

export class Longest<T> {
  private kept: { ns: number; it: T }[] = [];
  /** What is shorter is not kept any more. */
  private least = -1;

  constructor(private readonly most: number) {}

  /** `make` is called for what is kept at first. */
  offer(ns: number, make: () => T): void {
    if (ns <= this.least) return;
    this.kept.push({ ns, it: make() });
    if (this.kept.length >= 2 * this.most) this.cut();
  }

  private cut(): void {
    this.kept.sort((a, b) => b.ns - a.ns);
    this.kept.length = Math.min(this.kept.length, this.most);
    if (this.kept.length === this.most) this.least = this.kept.at(-1)!.ns;
  }

  /** The longest first. */
  all(): T[] {
    this.cut();
    return this.kept.map(({ it }) => it);
  }
}
