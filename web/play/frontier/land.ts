// The land around the player: what grows there by the world's seed, and what players have made of it, as the server tells it.
// A server tells what was changed in the nine sectors around its player when they come near, and each change from then on.

import { cellIn, isAround, sectorOf, untouched } from "./cells.ts";
import type { CellChanged, Growth, LandSeen, PieceKind, Whose } from "./schema.ts";

/** What is known of a cell. */
export interface Ground {
  readonly growth: Growth;
  /** How deep it was dug. */
  readonly depth: number;
  readonly piece: PieceKind | null;
  /** Of the piece, in percent. */
  readonly health: number;
  /** In the corner of a plot: whose that is. */
  readonly whose: Whose;
}

const BARE: Ground = { growth: "Bare", depth: 0, piece: null, health: 0, whose: "Nobodys" };

export class Land {
  #seed: bigint | null = null;
  /** Of each sector the cells that something grows on, and those of which something was told. */
  readonly #sectors = new Map<number, Map<number, Ground>>();
  #here: number | null = null;

  /** Which land it is. Whoever comes into a world is told this before anything else of the land there. */
  begin(seed: bigint): void {
    this.#seed = seed;
    this.#sectors.clear();
    this.#here = null;
  }

  /** All that was changed in a sector which has come near. */
  seen({ sector: { number }, cells }: LandSeen): void {
    this.#sectors.delete(number);
    const known = this.#sector(number);
    for (const { index, growth, depth, piece, whose } of cells) {
      known?.set(cellIn(number, index), { growth, depth, piece: piece?.kind ?? null, health: piece?.health ?? 0, whose });
    }
  }

  changed({ cell, growth, depth, piece, health, whose }: CellChanged): void {
    this.#sector(sectorOf(cell))?.set(cell, { growth, depth, piece, health, whose });
  }

  /** The player is in this cell, by the server's word. What is far is told anew when it comes near; what was told for a place
   * that is still on its way stays. */
  moveTo(cell: number): void {
    const here = sectorOf(cell);
    if (here === this.#here) return;
    this.#here = here;
    for (const sector of this.#sectors.keys()) if (!isAround(sector, here)) this.#sectors.delete(sector);
  }

  /** What a cell is like, as far as is known. */
  at(cell: number): Ground {
    return this.#sector(sectorOf(cell))?.get(cell) ?? BARE;
  }

  /** The cells of a sector of which something is known. */
  cellsOf(sector: number): Iterable<[cell: number, ground: Ground]> {
    return this.#sector(sector) ?? [];
  }

  #sector(number: number): Map<number, Ground> | null {
    if (this.#seed === null) return null;
    let cells = this.#sectors.get(number);
    if (!cells) {
      cells = new Map();
      for (const [cell, growth] of untouched(number, this.#seed)) cells.set(cell, { ...BARE, growth });
      this.#sectors.set(number, cells);
    }
    return cells;
  }
}
