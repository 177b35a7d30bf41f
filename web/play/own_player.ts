// The player whom a page steers: where it is shown and where it looks, and what keys and pointer ask of it, in the integers
// that all inputs say it in. How it moves by that is its game's affair (`runner.ts`, `duel/body.ts`).

import type { Camera } from "./camera.ts";
import type { Controls } from "./controls.ts";
import { toMove } from "./direction.ts";
import type { Run } from "./runner.ts";

const TURN = 2 * Math.PI;
/** A turn of an input's look. */
const TURN_PARTS = 65_536;

export interface Asked {
  readonly move: readonly [moveX: number, moveZ: number];
  /** In 65,536 parts of a turn. */
  readonly yaw: number;
  /** From the player to the pointer (m). */
  readonly pointerMetres: number;
}

export class OwnPlayer {
  x = 0;
  z = 0;
  /** Radians; 0 looks to the north, a quarter turn to the east. */
  yaw = 0;

  /** It is to be shown there, if that is known. */
  moveTo(place: Run | null | undefined): void {
    if (place) [this.x, this.z] = [place.x, place.z];
  }

  /** It looks to the pointer, and goes where the keys point to. */
  asked({ controls, camera }: { readonly controls: Controls; readonly camera: Camera }): Asked {
    const [x, z] = camera.worldAt(controls.pointerX, controls.pointerY);
    this.yaw = (Math.atan2(x - this.x, z - this.z) + TURN) % TURN;
    return {
      move: toMove(controls.direction),
      yaw: Math.floor(this.yaw * (TURN_PARTS / TURN)) & (TURN_PARTS - 1),
      pointerMetres: Math.hypot(x - this.x, z - this.z),
    };
  }
}
