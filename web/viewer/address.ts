// The page's address keeps the view: `#t=1000,2000&world=5&q=ai&sel=scope.0.2.7&tab=scopes`, so that a link leads to
// the same moment.

import { parsed, written } from "./selection.ts";
import type { State } from "./state.ts";
import { boundsOf } from "./timeline/bounds.ts";

export function addressOf(state: State, tab: string): string {
  const { view, world, query, selection } = state;
  const parts = [`t=${Math.round(view.begin)},${Math.round(view.end)}`];
  if (view.scrollY > 0) parts.push(`y=${Math.round(view.scrollY)}`);
  if (world !== undefined) parts.push(`world=${world}`);
  if (query) parts.push(`q=${encodeURIComponent(query)}`);
  if (selection) parts.push(`sel=${written(selection)}`);
  parts.push(`tab=${tab}`);
  return `#${parts.join("&")}`;
}

/** Takes what an address says; what does not fit this capture is left out. Returns the tab, and whether it had a view. */
export function takeAddress(state: State, address: string): { tab: string | undefined; hasView: boolean } {
  const values = new Map(address.replace(/^#/, "").split("&").map((part) => part.split("=", 2) as [string, string]));
  const [begin, end] = (values.get("t") ?? "").split(",").map(Number);
  const hasView = Number.isFinite(begin) && Number.isFinite(end) && begin! < end!;
  if (hasView) state.view.show(begin!, end!);
  const y = Number(values.get("y") ?? 0);
  if (y > 0) state.view.scrollY = y;
  const world = values.get("world");
  if (world !== undefined && /^\d+$/.test(world)) state.filter(Number(world));
  const query = values.get("q");
  if (query) {
    try {
      state.search(decodeURIComponent(query));
    } catch {
      // It was cut somewhere.
    }
  }
  const selection = parsed(values.get("sel") ?? "");
  if (selection && boundsOf(state.prepared, selection)) state.select(selection);
  return { tab: values.get("tab"), hasView };
}
