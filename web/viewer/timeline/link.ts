// Two views in step: as wide as each other, and as far apart in time as they were when the link began. Whichever is moved, the
// other follows, as far as its capture goes.

import type { State } from "../state.ts";

export class Link {
  private isOn = false;
  /** From the first's moments to the second's (ns). */
  private apart = 0;
  /** What was last put there: a view that shows it was not moved since. */
  private readonly put = new Map<State, readonly [begin: number, end: number]>();
  private readonly ends: (() => void)[];

  constructor(
    private readonly first: State,
    private readonly second: State,
  ) {
    this.ends = [
      first.onChange((changes) => changes.has("view") && this.follow(first, second, 1)),
      second.onChange((changes) => changes.has("view") && this.follow(second, first, -1)),
    ];
  }

  /** From now on the second is around its middle what the first is around its own. */
  switch(isOn: boolean): void {
    this.isOn = isOn;
    if (!isOn) return;
    const middle = ({ view }: State) => (view.begin + view.end) / 2;
    this.apart = middle(this.second) - middle(this.first);
    this.put.clear();
    this.follow(this.first, this.second, 1);
  }

  /** Neither follows any more. */
  end(): void {
    this.ends.forEach((end) => end());
  }

  private follow(from: State, to: State, direction: 1 | -1): void {
    const { begin, end } = from.view;
    const put = this.put.get(from);
    if (!this.isOn || (put && put[0] === begin && put[1] === end)) return;
    to.view.show(begin + direction * this.apart, end + direction * this.apart);
    this.put.set(from, [begin, end]).set(to, [to.view.begin, to.view.end]);
    to.changed("view");
  }
}
