// What a player may do to the land with a key: claim a plot or give it up, build on it, and fell, dig or batter what is there. A server says
// nothing of what it refuses (games/frontier/src/works.rs), so the page says why, as far as it knows: not of a second plot, of
// towns, and of the pause between two works.

import { apartOf, cellAt, plotOf } from "./cells.ts";
import type { Land } from "./land.ts";
import type { PieceKind, Work } from "./schema.ts";

/** How far from a player a cell's middle may be (m). */
const REACH_M = 6;
/** How deep a cell can be dug. */
const DEPTH_MAX = 3;

/** Who asks. */
export interface Worker {
  readonly x: number;
  readonly z: number;
  /** Stunned or dead. */
  readonly isHeld: boolean;
  /** What it carries; a piece of a house takes one. */
  readonly carried: number;
}

const OTHERS = "this is another's plot";
const PIECES: Record<string, PieceKind> = { KeyB: "Wall", KeyF: "Floor" };

/** What a key asks for at a cell, or why it is not to be had; `null`: it is no key for works. */
export function workOf(code: string, cell: number, land: Land, worker: Worker): Work | string | null {
  const piece = PIECES[code];
  if (code !== "KeyC" && code !== "KeyV" && code !== "KeyX" && !piece) return null;
  if (worker.isHeld) return "not now";
  if (apartOf(cell, worker.x, worker.z) > REACH_M) return `that is farther than ${REACH_M} m away`;
  const [ground, owner] = [land.at(cell), land.at(plotOf(cell)).whose];
  if (code === "KeyC") return owner === "Others" ? OTHERS : { is: "Claim", value: { number: cell } };
  if (code === "KeyV") return owner === "Own" ? { is: "Abandon" } : "this is no plot of yours";
  if (piece) {
    if (owner !== "Own") return "one builds on a plot of one's own: C claims it";
    if (piece === "Wall" && cell === cellAt(worker.x, worker.z)) return "nobody walls themselves in";
    if (ground.growth !== "Bare" || ground.depth > 0 || ground.piece) return "one builds on bare and level ground";
    return worker.carried > 0 ? { is: "Build", value: { cell: { number: cell }, kind: piece } } : "there is nothing to build with: X fells trees";
  }
  if (ground.piece) return { is: "Batter", value: { number: cell } };
  if (owner === "Others") return OTHERS;
  if (ground.growth === "Bare" && ground.depth === DEPTH_MAX) return "one digs no deeper than that";
  return { is: ground.growth === "Tree" ? "Harvest" : "Dig", value: { number: cell } };
}
