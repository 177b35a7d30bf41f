// Promise: the page of precinct names the portals that lead out of the player's world, with the way to those that are out of
// sight, and they are faint to somebody who has only just come out of one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PORTALS } from "../play/precinct/portal_places.ts";
import { Portals } from "../play/precinct/portals.ts";

globalThis.devicePixelRatio = 1;

/** What is written for a player there whose picture is 40 m wide and high, and how strongly. */
function written(portals: Portals, here: string, x: number, z: number): [text: string, alpha: number][] {
  const texts: [string, number][] = [];
  const canvas = {
    globalAlpha: 1,
    fillText: (text: string) => texts.push([text, canvas.globalAlpha]),
    getTransform: () => ({ a: 20 }),
    ...Object.fromEntries(["beginPath", "arc", "fill", "stroke", "moveTo", "lineTo", "save", "restore", "translate", "scale"].map((name) => [name, () => {}])),
  };
  portals.draw(canvas as unknown as CanvasRenderingContext2D, { x, z, halfMetres: [20, 20] }, here);
  assert.equal(canvas.globalAlpha, 1);
  return texts;
}

test("those out of sight are named with the way to them, those in sight by their names, one's own world's not at all", () => {
  const portals = new Portals();
  const [, hub, darkZone] = PORTALS;
  const far = { x: hub.x + 60, z: hub.z + 80 };
  const toDarkZoneM = Math.hypot(far.x - darkZone.x, far.z - darkZone.z).toFixed(0);
  assert.deepEqual(written(portals, "hideout", far.x, far.z), [["hub, 100 m", 1], [`dark zone, ${toDarkZoneM} m`, 1]]);
  assert.deepEqual(written(portals, "hub", 0, 0), [["your hideout", 1], ["dark zone", 1]]);
});

test("they are faint from a portal until all of them are some way off", () => {
  const portals = new Portals();
  const [hideout] = PORTALS;
  const alphasAt = (far: number): number[] => written(portals, "hub", hideout.x, hideout.z + far).map(([, alpha]) => alpha);
  for (const [far, isFaint] of [[3, true], [5.9, true], [6.1, false], [3, false]] as const) {
    assert.ok(alphasAt(far).every((alpha) => alpha < 1 === isFaint), `${far} m off`);
  }
  portals.enteredWorld();
  assert.ok(alphasAt(3).every((alpha) => alpha < 1));
});
