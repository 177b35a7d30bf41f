// What is selected: one thing of the capture, or a stretch of time.

export type Selection =
  | { kind: "scope"; thread: number; depth: number; place: number }
  | { kind: "wait"; thread: number; place: number }
  | { kind: "switch"; thread: number; place: number }
  | { kind: "world"; thread: number; place: number }
  | { kind: "largeAllocation"; thread: number; place: number }
  | { kind: "pageFault"; thread: number; place: number }
  | { kind: "frame"; place: number }
  | { kind: "log"; place: number }
  | { kind: "stall"; place: number }
  | { kind: "run"; core: number; place: number }
  | { kind: "series"; series: number; place: number }
  | { kind: "range"; begin: number; end: number };

/** As a part of the page's address: `scope.0.2.1234`. */
export function written(selection: Selection): string {
  return Object.values(selection).join(".");
}

const FIELDS: Record<Selection["kind"], string[]> = {
  scope: ["thread", "depth", "place"],
  wait: ["thread", "place"],
  switch: ["thread", "place"],
  world: ["thread", "place"],
  largeAllocation: ["thread", "place"],
  pageFault: ["thread", "place"],
  frame: ["place"],
  log: ["place"],
  stall: ["place"],
  run: ["core", "place"],
  series: ["series", "place"],
  range: ["begin", "end"],
};

/** The selection that was written so; nothing that is not of numbers comes through. */
export function parsed(text: string): Selection | undefined {
  const [kind, ...values] = text.split(".");
  const fields = FIELDS[kind as Selection["kind"]];
  if (!fields || values.length !== fields.length || !values.every((value) => /^-?\d+$/.test(value))) return undefined;
  return { kind, ...Object.fromEntries(fields.map((field, at) => [field, Number(values[at])])) } as Selection;
}
