// Tables that are sorted by a click on a heading and whose rows lead somewhere, by mouse and by keyboard.
//
// Only the first few hundred rows are made; a button makes more. A list of 1,000,000 frames is no page.

import { h, type Child } from "./dom.ts";

export interface Heading<Row> {
  name: string;
  /** What a cell shows. */
  cell: (row: Row) => Child | Child[];
  /** What it is sorted by; a column without cannot be sorted by. */
  by?: (row: Row) => number | string;
  isNumber?: boolean;
  title?: string;
}

export interface TableOptions<Row> {
  caption: string;
  headings: Heading<Row>[];
  /** The column that it is sorted by at first, largest or first in the alphabet on top. */
  sortedBy?: string;
  open?: (row: Row) => void;
  /** What opening a row does, for those who cannot see it: `go to`. */
  openLabel?: string;
  rowClass?: (row: Row) => string;
  empty?: string;
}

const ROWS_AT_ONCE = 200;

export class Table<Row> {
  readonly element: HTMLElement;
  private rows: Row[] = [];
  private shown = ROWS_AT_ONCE;
  private sortedBy: string | undefined;
  private isReversed = false;
  private readonly body = h("tbody");
  private readonly more = h("button", { type: "button", class: "more" }, "");
  private readonly nothing: HTMLElement;
  private readonly headings: HTMLTableCellElement[];

  constructor(private readonly options: TableOptions<Row>) {
    this.sortedBy = options.sortedBy;
    this.headings = options.headings.map((heading) => {
      const sort = () => {
        this.isReversed = this.sortedBy === heading.name && !this.isReversed;
        this.sortedBy = heading.name;
        this.fill();
      };
      const label = heading.by ? h("button", { type: "button", onclick: sort }, heading.name) : heading.name;
      return h("th", { scope: "col", class: heading.isNumber ? "number" : "", title: heading.title }, label);
    });
    this.nothing = h("p", { class: "nothing" }, options.empty ?? "Nothing here.");
    this.more.addEventListener("click", () => {
      this.shown += ROWS_AT_ONCE;
      this.fill();
    });
    const caption = h("caption", { class: "visually-hidden" }, options.caption);
    const table = h("table", {}, caption, h("thead", {}, h("tr", {}, this.headings)), this.body);
    this.element = h("div", { class: "table", tabindex: "-1" }, table, this.nothing, this.more);
  }

  set(rows: Row[]): void {
    this.rows = rows;
    this.shown = ROWS_AT_ONCE;
    this.fill();
  }

  private sorted(): Row[] {
    const by = this.options.headings.find((heading) => heading.name === this.sortedBy)?.by;
    if (!by) return this.rows;
    const sign = this.isReversed ? -1 : 1;
    const keyed = this.rows.map((row) => [by(row), row] as const);
    keyed.sort(([a], [b]) => {
      if (typeof a === "number" && typeof b === "number") return sign * (b - a);
      return sign * String(a).localeCompare(String(b));
    });
    return keyed.map(([, row]) => row);
  }

  private fill(): void {
    this.options.headings.forEach((heading, index) => {
      const isIt = heading.name === this.sortedBy;
      const order = this.isReversed === Boolean(heading.isNumber) ? "ascending" : "descending";
      this.headings[index]!.setAttribute("aria-sort", isIt ? order : "none");
    });
    this.body.replaceChildren(...this.sorted().slice(0, this.shown).map((row) => this.row(row)));
    this.nothing.hidden = this.rows.length > 0;
    this.more.hidden = this.rows.length <= this.shown;
    this.more.textContent = `Show more (${(this.rows.length - this.shown).toLocaleString("en-US")} left)`;
  }

  private row(row: Row): HTMLElement {
    const { headings, open, openLabel, rowClass } = this.options;
    const cells = headings.map((heading, index) => {
      const content = heading.cell(row);
      const isLink = index === 0 && open;
      const shown = isLink ? h("button", { type: "button", class: "link", title: openLabel }, content) : content;
      return h("td", { class: heading.isNumber ? "number" : "" }, shown);
    });
    const element = h("tr", { class: rowClass?.(row) ?? "" }, cells);
    if (open) {
      element.addEventListener("click", () => {
        // Whoever marks text wants to copy it.
        if (window.getSelection()?.isCollapsed !== false) open(row);
      });
    }
    return element;
  }
}
