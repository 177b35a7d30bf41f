// Cells: the landscape as squares of 2 m, plots of 8 x 8 cells and sectors of 32 x 32, with the numbers that
// games/frontier/src/land/cells.rs gives them. tests/steps/frontier_land.json, which Rust writes, holds the two together.

import type { Growth } from "./schema.ts";

/** Side of a cell (m). */
export const CELL_M = 2;
const HALF_SIDE_M = 4096;
const CELLS_PER_SIDE = 4096;
const SECTORS_PER_SIDE = 128;
const SECTOR_SIDE = 32;
const SECTOR_CELLS = SECTOR_SIDE * SECTOR_SIDE;
const PLOT_SIDE = 8;
/** Side of a sector (m). */
export const SECTOR_M = SECTOR_SIDE * CELL_M;
/** Side of a plot (m). */
export const PLOT_M = PLOT_SIDE * CELL_M;
/** One cell in so many has a tree, and one in so many a boulder. */
const CELLS_PER_TREE = 12n;
const CELLS_PER_BOULDER = 40n;

/** The number of the cell at a place; at the edge for places beyond it. */
export function cellAt(x: number, z: number): number {
  const index = (metres: number): number => Math.min(Math.max(Math.floor((metres + HALF_SIDE_M) / CELL_M), 0), CELLS_PER_SIDE - 1);
  return cellOf(index(x), index(z));
}

function cellOf(column: number, row: number): number {
  const sector = Math.floor(row / SECTOR_SIDE) * SECTORS_PER_SIDE + Math.floor(column / SECTOR_SIDE);
  return sector * SECTOR_CELLS + (row % SECTOR_SIDE) * SECTOR_SIDE + (column % SECTOR_SIDE);
}

function columnAndRow(cell: number): [column: number, row: number] {
  const [sector, within] = [sectorOf(cell), cell % SECTOR_CELLS];
  const column = (sector % SECTORS_PER_SIDE) * SECTOR_SIDE + (within % SECTOR_SIDE);
  return [column, Math.floor(sector / SECTORS_PER_SIDE) * SECTOR_SIDE + Math.floor(within / SECTOR_SIDE)];
}

/** Its corner to the west and south (m). */
export function cornerOf(cell: number): [x: number, z: number] {
  const [column, row] = columnAndRow(cell);
  return [column * CELL_M - HALF_SIDE_M, row * CELL_M - HALF_SIDE_M];
}

/** From its middle to a place (m). */
export function apartOf(cell: number, x: number, z: number): number {
  const [cornerX, cornerZ] = cornerOf(cell);
  return Math.hypot(cornerX + CELL_M / 2 - x, cornerZ + CELL_M / 2 - z);
}

/** The cell that says whose the plot is that a cell lies in. */
export function plotOf(cell: number): number {
  const [column, row] = columnAndRow(cell);
  return cellOf(column - (column % PLOT_SIDE), row - (row % PLOT_SIDE));
}

export const sectorOf = (cell: number): number => Math.floor(cell / SECTOR_CELLS);

/** A cell of a sector, by its place there. */
export const cellIn = (sector: number, index: number): number => sector * SECTOR_CELLS + index;

/** Whether a sector is another one or touches it. */
export function isAround(sector: number, other: number): boolean {
  const rowOf = (number: number): number => Math.floor(number / SECTORS_PER_SIDE);
  return Math.abs(rowOf(sector) - rowOf(other)) <= 1 && Math.abs((sector % SECTORS_PER_SIDE) - (other % SECTORS_PER_SIDE)) <= 1;
}

/** All cells of a sector on which something grows or lies while nobody has touched them. */
export function* untouched(sector: number, seed: bigint): Generator<[cell: number, growth: Growth]> {
  for (let index = 0; index < SECTOR_CELLS; index++) {
    const cell = cellIn(sector, index);
    const mixed = mix(seed ^ (BigInt(cell) << 20n));
    if (mixed % CELLS_PER_TREE === 0n) yield [cell, "Tree"];
    else if ((mixed >> 32n) % CELLS_PER_BOULDER === 0n) yield [cell, "Boulder"];
  }
}

/** A step of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
function mix(value: bigint): bigint {
  const u64 = (number: bigint): bigint => BigInt.asUintN(64, number);
  let mixed = u64(value + 0x9e3779b97f4a7c15n);
  mixed = u64((mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n);
  mixed = u64((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
  return mixed ^ (mixed >> 31n);
}
