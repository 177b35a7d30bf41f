// Portals on the picture: a ring with the name of where it leads, and of one that is out of sight a pointer beside the player
// with its name and how far it is. They are faint until one of them may take the player, as games/precinct/src/portals.rs has it.

import { type Camera, disc, label, line } from "../camera.ts";
import { PORTALS, PORTAL_CLEAR_M, PORTAL_RADIUS_M } from "./portal_places.ts";

const NAMES = { hideout: "your hideout", hub: "hub", dark_zone: "dark zone" } as const;
const COLOR = "#c79bff";
const FAINT = 0.5;
/** Where pointers begin, as shares of the way to the picture's nearer edge: one for each, so that no name stands on another. */
const POINTERS_AT = [0.4, 0.55, 0.7] as const;
const POINTER_M = 1.2;
const LABEL_M = 0.8;

export class Portals {
  #wasAway = false;

  enteredWorld(): void {
    this.#wasAway = false;
  }

  /** Those that lead out of a world of the kind `here`, for a player in the middle of the picture. */
  draw(canvas: CanvasRenderingContext2D, camera: Pick<Camera, "x" | "z" | "halfMetres">, here: string): void {
    const apartOf = ({ x, z }: { readonly x: number; readonly z: number }): number => Math.hypot(x - camera.x, z - camera.z);
    this.#wasAway ||= PORTALS.every((portal) => apartOf(portal) > PORTAL_CLEAR_M);
    const [halfX, halfZ] = camera.halfMetres;
    canvas.fillStyle = canvas.strokeStyle = COLOR;
    for (const [number, portal] of PORTALS.entries()) {
      const { leadsTo, x, z } = portal;
      if (leadsTo === here) continue;
      canvas.globalAlpha = this.#wasAway ? 1 : FAINT;
      const isInSight = Math.abs(x - camera.x) < halfX - PORTAL_RADIUS_M && Math.abs(z - camera.z) < halfZ - PORTAL_RADIUS_M;
      if (isInSight) drawPortal(canvas, x, z, NAMES[leadsTo]);
      else {
        const [apart, far] = [apartOf(portal), Math.min(halfX, halfZ) * POINTERS_AT[number]!];
        const [east, north] = [(x - camera.x) / apart, (z - camera.z) / apart];
        const [beginX, beginZ] = [camera.x + east * far, camera.z + north * far];
        line(canvas, beginX, beginZ, beginX + east * POINTER_M, beginZ + north * POINTER_M, 0.15);
        disc(canvas, beginX, beginZ, 0.2);
        label(canvas, `${NAMES[leadsTo]}, ${apart.toFixed(0)} m`, beginX, beginZ + LABEL_M / 2, LABEL_M);
      }
    }
    canvas.globalAlpha = 1;
  }
}

function drawPortal(canvas: CanvasRenderingContext2D, x: number, z: number, name: string): void {
  label(canvas, name, x, z + PORTAL_RADIUS_M + LABEL_M / 2, LABEL_M);
  canvas.lineWidth = 0.2;
  canvas.beginPath();
  canvas.arc(x, z, PORTAL_RADIUS_M, 0, 2 * Math.PI);
  canvas.stroke();
  canvas.globalAlpha *= 0.25;
  canvas.fill();
}
