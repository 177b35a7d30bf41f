// Draws the land around the player: trees, boulders, pits, houses and whose a plot is.

import { type Camera, disc } from "../camera.ts";
import { CELL_M, PLOT_M, SECTOR_M, cellAt, cornerOf, sectorOf } from "./cells.ts";
import type { Ground, Land } from "./land.ts";

const PIECES = { Floor: "#4d4a3a", Wall: "#8b7355" } as const;
const PLOTS = { Own: "#6db3f2", Others: "#e0607e" } as const;

/** All of it that can be seen and is known. */
export function drawLand(canvas: CanvasRenderingContext2D, camera: Camera, land: Land): void {
  for (const sector of sectorsInSight(camera)) {
    for (const [cell, ground] of land.cellsOf(sector)) drawCell(canvas, cornerOf(cell), ground);
  }
  canvas.globalAlpha = 1;
}

/** Of the nine around the camera those that can be seen: of others nothing is told. */
function* sectorsInSight({ x, z, halfMetres: [halfX, halfZ] }: Camera): Generator<number> {
  const [asideX, asideZ] = [Math.min(halfX, SECTOR_M), Math.min(halfZ, SECTOR_M)];
  const sectors = [-asideX, 0, asideX].flatMap((east) => [-asideZ, 0, asideZ].map((north) => sectorOf(cellAt(x + east, z + north))));
  yield* new Set(sectors);
}

function drawCell(canvas: CanvasRenderingContext2D, [x, z]: readonly [number, number], { growth, depth, piece, health, whose }: Ground): void {
  const [middleX, middleZ] = [x + CELL_M / 2, z + CELL_M / 2];
  if (depth > 0) {
    canvas.globalAlpha = 0.25 * depth;
    canvas.fillStyle = "#000000";
    canvas.fillRect(x, z, CELL_M, CELL_M);
  }
  if (piece) {
    canvas.globalAlpha = 0.3 + (0.7 * health) / 100;
    canvas.fillStyle = PIECES[piece];
    canvas.fillRect(x, z, CELL_M, CELL_M);
  }
  canvas.globalAlpha = 1;
  if (growth !== "Bare") {
    canvas.fillStyle = growth === "Tree" ? "#2f5d3a" : "#4b525e";
    disc(canvas, middleX, middleZ, growth === "Tree" ? 0.9 : 0.6);
  }
  if (whose !== "Nobodys") {
    canvas.strokeStyle = PLOTS[whose];
    canvas.lineWidth = 0.15;
    canvas.strokeRect(x, z, PLOT_M, PLOT_M);
  }
}
