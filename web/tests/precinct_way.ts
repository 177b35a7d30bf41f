// A way through precinct's city block to one of its portals, over squares of a metre, around what stands in between and around
// the other portals.

import { PORTALS, PORTAL_RADIUS_M } from "../play/precinct/portal_places.ts";
import { walk } from "../play/precinct/walk.ts";
import type { Place } from "./person.ts";

/** From the middle of the block to its end (squares), and rather more. */
const HALF = 100;
const WIDTH = 2 * HALF;
/** So far from another portal nobody is taken by it (m). */
const CLEAR_M = PORTAL_RADIUS_M + 0.5;
/** So many squares ahead it looks for one to go to straight. */
const AHEAD = 8;

type LeadsTo = (typeof PORTALS)[number]["leadsTo"];

const squareOf = ({ x, z }: Place): number => (Math.round(z) + HALF) * WIDTH + Math.round(x) + HALF;
const middleOf = (square: number): Place => ({ x: (square % WIDTH) - HALF, z: Math.floor(square / WIDTH) - HALF });
const around = (square: number): number[] => [square - 1, square + 1, square - WIDTH, square + WIDTH];

function leads(from: Place, to: Place): boolean {
  const end = walk(from, { x: to.x - from.x, z: to.z - from.z }, []);
  return Math.hypot(end.x - to.x, end.z - to.z) < 0.05;
}

/** Whether no other portal takes somebody there. */
function isClear({ x, z }: Place, leadsTo: LeadsTo): boolean {
  return PORTALS.every((portal) => portal.leadsTo === leadsTo || Math.hypot(x - portal.x, z - portal.z) > CLEAR_M);
}

/** The same of the straight way between two places. */
function isClearWay(from: Place, to: Place, leadsTo: LeadsTo): boolean {
  const parts = Math.ceil(Math.hypot(to.x - from.x, to.z - from.z) * 2);
  return Array.from({ length: parts + 1 }, (_, part) => part / Math.max(parts, 1)).every((share) =>
    isClear({ x: from.x + (to.x - from.x) * share, z: from.z + (to.z - from.z) * share }, leadsTo),
  );
}

/** Squares to the portal, by square: first those that are clear of other portals, then those that lead out to these. */
function distances(leadsTo: LeadsTo): Map<number, number> {
  const far = new Map([[squareOf(PORTALS.find((portal) => portal.leadsTo === leadsTo)!), 0]]);
  for (const mayBeUnclear of [false, true]) {
    // What is added while it goes on comes, too.
    for (const [square, squares] of far) {
      for (const next of around(square)) {
        if (far.has(next) || !(mayBeUnclear || isClear(middleOf(next), leadsTo)) || !leads(middleOf(square), middleOf(next))) continue;
        far.set(next, squares + (isClear(middleOf(next), leadsTo) ? 1 : WIDTH * WIDTH));
      }
    }
  }
  return far;
}

const known = new Map<LeadsTo, Map<number, number>>();

/** Where to walk next from here, to go through the portal that leads there. */
export function wayTo(leadsTo: LeadsTo, own: Place): Place {
  const far = known.get(leadsTo) ?? distances(leadsTo);
  known.set(leadsTo, far);
  const nearest = (squares: number[]): number => squares.reduce((best, square) => ((far.get(square) ?? Infinity) < (far.get(best) ?? Infinity) ? square : best));
  const here = squareOf(own);
  let square = nearest([here, ...around(here)]);
  let goal = middleOf(square);
  for (let ahead = 0; ahead < AHEAD; ahead++) {
    square = nearest([square, ...around(square)]);
    if (leads(own, middleOf(square)) && isClearWay(own, middleOf(square), leadsTo)) goal = middleOf(square);
  }
  return goal;
}
