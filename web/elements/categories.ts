// Colours of what kind of work it is: the same hue for a category in every page.

import { theme } from "./theme.ts";

/** The categories of `throng_profiler::Category`. Red is for what is bad, and stands for none. */
export const CATEGORIES: Record<string, string> = {
  replication: "#4c8dd6",
  network: "#35aaa4",
  gameplay: "#69a84f",
  "fog-of-war": "#a77bd1",
  animation: "#df87b9",
  movement: "#d3ae35",
  equipment: "#e08a3c",
  character: "#a8795a",
  physics: "#6a78d6",
  other: "#8a94a3",
};

/** For categories that a game has added. */
const MORE = ["#c26fa0", "#5fa88a", "#b59a4a", "#7f8fd0", "#b0806a", "#5b9bb5"];

export function categoryColor(category: string): string {
  if (category === "idle") return theme() === "dark" ? "#3b4350" : "#d0d6de";
  return CATEGORIES[category] ?? MORE[hash(category) % MORE.length]!;
}


export function hash(text: string): number {
  let hash = 2_166_136_261;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 16_777_619);
  return hash >>> 0;
}
