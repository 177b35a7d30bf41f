// Tables whose rows change every second: elements stay, and only what differs is written, so that a row can be clicked,
// marked and read aloud while its figures run.
//
// Rows keep their order while a pointer is over the table; else what is to be clicked would jump away. New ones come last
// meanwhile, and the mark of the order is pale (`held`).

import { h } from "./dom.ts";

export interface LiveHeading<Row> {
  name: string;
  cell: (row: Row) => string;
  by?: (row: Row) => number | string;
  isNumber?: boolean;
  title?: string;
  /** Of the cell, for this row. */
  className?: (row: Row) => string;
}

export interface LiveTableOptions<Row> {
  caption: string;
  headings: LiveHeading<Row>[];
  /** Names a row; the same for the same thing. */
  key: (row: Row) => string;
  sortedBy?: string;
  open?: (row: Row) => void;
  openLabel?: string;
  rowClass?: (row: Row) => string;
  empty?: string;
  /** Rows at most; the first by the order. */
  shown?: number;
}

interface Shown<Row> {
  row: Row;
  element: HTMLTableRowElement;
  /** Where a cell's text goes. */
  texts: HTMLElement[];
}

const SHOWN = 256;

export class LiveTable<Row> {
  readonly element: HTMLElement;
  private rows: Row[] = [];
  private readonly shown = new Map<string, Shown<Row>>();
  private readonly body = h("tbody");
  private readonly nothing: HTMLElement;
  private readonly headings: HTMLTableCellElement[];
  private sortedBy: string | undefined;
  private isReversed = false;
  private isHeld = false;

  constructor(private readonly options: LiveTableOptions<Row>) {
    this.sortedBy = options.sortedBy;
    this.headings = options.headings.map((heading) => {
      const sort = () => {
        this.isReversed = this.sortedBy === heading.name && !this.isReversed;
        this.sortedBy = heading.name;
        this.fill(true);
      };
      const label = heading.by ? h("button", { type: "button", onclick: sort }, heading.name) : heading.name;
      return h("th", { scope: "col", class: heading.isNumber ? "number" : "", title: heading.title }, label);
    });
    this.nothing = h("p", { class: "nothing" }, options.empty ?? "Nothing here.");
    const caption = h("caption", { class: "visually-hidden" }, options.caption);
    const table = h("table", {}, caption, h("thead", {}, h("tr", {}, this.headings)), this.body);
    this.element = h("div", { class: "table" }, table, this.nothing);
    this.body.addEventListener("pointerenter", () => (this.isHeld = true));
    this.body.addEventListener("pointerleave", () => {
      this.isHeld = false;
      this.fill(true);
    });
  }

  /** `whyNone`: what is said if there are none, where that differs from time to time. */
  set(rows: Row[], whyNone?: string): void {
    this.rows = rows;
    if (whyNone !== undefined) this.nothing.textContent = whyNone;
    this.fill(false);
  }

  private sorted(): Row[] {
    const by = this.options.headings.find((heading) => heading.name === this.sortedBy)?.by;
    const most = this.options.shown ?? SHOWN;
    if (!by) return this.rows.slice(0, most);
    const sign = this.isReversed ? -1 : 1;
    const keyed = this.rows.map((row) => [by(row), row] as const);
    keyed.sort(([a], [b]) => {
      if (typeof a === "number" && typeof b === "number") return sign * (b - a);
      return sign * String(a).localeCompare(String(b), "en", { numeric: true });
    });
    return keyed.slice(0, most).map(([, row]) => row);
  }

  private fill(isOrdered: boolean): void {
    const { headings, key, rowClass } = this.options;
    headings.forEach((heading, index) => {
      const isIt = heading.name === this.sortedBy;
      const order = this.isReversed === Boolean(heading.isNumber) ? "ascending" : "descending";
      this.headings[index]!.setAttribute("aria-sort", isIt ? order : "none");
    });
    const rows = this.sorted();
    const left = new Set(this.shown.keys());
    const elements = rows.map((row) => {
      const name = key(row);
      left.delete(name);
      let shown = this.shown.get(name);
      if (!shown) this.shown.set(name, (shown = this.row(row)));
      shown.row = row;
      headings.forEach((heading, index) => {
        const text = heading.cell(row);
        const cell = shown.texts[index]!;
        if (cell.textContent !== text) cell.textContent = text;
        const className = `${heading.isNumber ? "number " : ""}${heading.className?.(row) ?? ""}`.trim();
        const outer = shown.element.cells[index]!;
        if (outer.className !== className) outer.className = className;
      });
      const className = rowClass?.(row) ?? "";
      if (shown.element.className !== className) shown.element.className = className;
      return shown.element;
    });
    for (const name of left) {
      this.shown.get(name)!.element.remove();
      this.shown.delete(name);
    }
    const isHeld = this.isHeld && !isOrdered;
    if (!isHeld) {
      elements.forEach((element, place) => {
        if (this.body.children[place] !== element) this.body.insertBefore(element, this.body.children[place] ?? null);
      });
    } else {
      elements.filter((element) => !element.isConnected).forEach((element) => this.body.append(element));
    }
    this.element.classList.toggle("held", isHeld && elements.some((element, place) => this.body.children[place] !== element));
    this.nothing.hidden = rows.length > 0;
  }

  private row(row: Row): Shown<Row> {
    const { headings, open, openLabel } = this.options;
    const texts: HTMLElement[] = [];
    const cells = headings.map((_, index) => {
      const isLink = index === 0 && open;
      const text = isLink ? h("button", { type: "button", class: "link", title: openLabel }) : undefined;
      const cell = h("td", {}, text);
      texts.push(text ?? cell);
      return cell;
    });
    const shown: Shown<Row> = { row, element: h("tr", {}, cells), texts };
    if (open) {
      shown.element.addEventListener("click", () => {
        // Whoever marks text wants to copy it.
        if (window.getSelection()?.isCollapsed !== false) open(shown.row);
      });
    }
    return shown;
  }
}
