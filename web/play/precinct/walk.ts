// Where a step leads among walls: along the ground of the city block and not through a closed door. The same as
// `NavMesh::walk_sliding` (runtime/query/src/nav/walk.rs) and `step` (games/precinct/src/movement.rs), in numbers of 64 bits
// where those have 32: who stands right on a corner of a wall may leave it on the other side. tests/steps/precinct_walks.json,
// which Rust writes, holds the two together.

import type { Run } from "../runner.ts";
import { CELL_M, GROUND, SOUTH_M, WEST_M } from "./ground.ts";

/** Places that are no farther apart are one, and what is no farther outside an edge is inside (m). */
const SKIN_M = 0.001;
const ROUNDING_M = SKIN_M / 10;
/** Walls that a step slides along, edges that it crosses and polygons around one corner, at most. */
const SLIDES_MAX = 3;
const CROSSINGS_MAX = 512;
const POLYGONS_AT_CORNER_MAX = 32;
/** Half of a door's length and thickness, and how far from it the middle of a body keeps (m). */
const DOOR_HALF_LENGTH_M = 1.5;
const DOOR_HALF_THICKNESS_M = 0.25;
const KEEP_OUT_M = 0.35;

/** From a corner of a polygon to the next one. */
interface Edge {
  readonly polygon: Polygon;
  readonly index: number;
  readonly begin: Run;
  readonly end: Run;
  /** Unit vector into the polygon. */
  readonly inward: Run;
  /** The same edge as the neighbour has it; `null`: here the ground ends. */
  twin: Edge | null;
}

/** Convex, its edges in turn. */
type Polygon = readonly Edge[];

/** Where a way leaves a polygon. */
interface Exit {
  readonly edge: Edge;
  readonly place: Run;
}

/** Where the middle of nobody enters while a door is closed. */
export interface ClosedDoor {
  readonly least: Run;
  readonly most: Run;
  /** Unit vector along the door. */
  readonly along: Run;
}

const plus = (one: Run, other: Run): Run => ({ x: one.x + other.x, z: one.z + other.z });
const minus = (one: Run, other: Run): Run => ({ x: one.x - other.x, z: one.z - other.z });
const times = ({ x, z }: Run, by: number): Run => ({ x: x * by, z: z * by });
const dot = (one: Run, other: Run): number => one.x * other.x + one.z * other.z;
const apart = (one: Run, other: Run): number => Math.hypot(one.x - other.x, one.z - other.z);
const metresInside = ({ begin, inward }: Edge, place: Run): number => dot(inward, minus(place, begin));

const POLYGONS: readonly Polygon[] = connect(GROUND.map(polygonOf));

/** Where somebody comes to who takes a step. */
export function walk(from: Run, by: Run, doors: readonly ClosedDoor[]): Run {
  if (by.x === 0 && by.z === 0) return from;
  const to = slide(from, by);
  const door = doorInTheWay(doors, from, to);
  if (!door) return to;
  // Along the door, if none is in the way there.
  const aside = slide(from, times(door.along, dot(by, door.along)));
  return doorInTheWay(doors, from, aside) ? from : aside;
}

/** Half of a door along both axes (m), by its yaw: it lies along one of them. */
export function doorHalf(yaw: number): [x: number, z: number] {
  return Math.abs(Math.sin(yaw)) > 0.5 ? [DOOR_HALF_LENGTH_M, DOOR_HALF_THICKNESS_M] : [DOOR_HALF_THICKNESS_M, DOOR_HALF_LENGTH_M];
}

/** A door that is closed, by its pose. */
export function closedDoor({ x, z, yaw }: Run & { readonly yaw: number }): ClosedDoor {
  const [halfX, halfZ] = doorHalf(yaw);
  const far = { x: halfX + KEEP_OUT_M, z: halfZ + KEEP_OUT_M };
  return { least: minus({ x, z }, far), most: plus({ x, z }, far), along: halfX > halfZ ? { x: 1, z: 0 } : { x: 0, z: 1 } };
}

/** A step along the ground: straight until it ends, and then along its edge. */
function slide(from: Run, by: Run): Run {
  let polygon = polygonAt(from);
  // A place that was told is rounded, and can lie a little beside the ground.
  let place = closestIn(polygon, from);
  let target = plus(place, by);
  let passed: Edge | null = null;
  let slides = 0;
  for (let crossings = 0; crossings < CROSSINGS_MAX; crossings++) {
    const exit: Exit | null = exitOf(polygon, place, target, passed);
    if (!exit) return closestIn(polygon, target);
    const { edge } = exit;
    place = exit.place;
    const onwards = edge.twin?.polygon ?? aroundCorner(exit, target);
    if (onwards) {
      [polygon, passed] = [onwards, edge.twin];
      continue;
    }
    const wall = { x: edge.inward.z, z: -edge.inward.x };
    const rest = times(wall, dot(minus(target, place), wall));
    const leadsOn = dot(rest, by) > 0 && Math.hypot(rest.x, rest.z) >= ROUNDING_M;
    if (slides === SLIDES_MAX || !leadsOn) break;
    [target, passed, slides] = [plus(place, rest), edge, slides + 1];
  }
  return closestIn(polygon, place);
}

/** The edge through which the way from `place` to `target` leaves a polygon; `null` if it ends inside. */
function exitOf(polygon: Polygon, place: Run, target: Run, passed: Edge | null): Exit | null {
  let best: Edge | null = null;
  let bestAt = Infinity;
  for (const edge of polygon) {
    const [targetM, placeM] = [metresInside(edge, target), metresInside(edge, place)];
    // The last: outside already by rounding, and on the way in.
    if (targetM >= -ROUNDING_M || edge === passed || targetM >= placeM) continue;
    const at = Math.max(placeM, 0) / (Math.max(placeM, 0) - targetM);
    // Two edges met in the same place: the way goes through a corner, and an open edge leads on.
    const isTogether = best !== null && Math.abs(at - bestAt) * apart(place, target) <= SKIN_M && !edge.twin !== !best.twin;
    if (isTogether ? edge.twin : at < bestAt) [best, bestAt] = [edge, at];
  }
  return best && { edge: best, place: closestOn(best, plus(place, times(minus(target, place), bestAt))) };
}

/** The polygon in which the way goes on if the ground's end was met at its corner, where several polygons meet. */
function aroundCorner({ edge, place }: Exit, target: Run): Polygon | null {
  if (apart(place, edge.begin) <= SKIN_M) return turn(edge, edge.begin, target, -1);
  return apart(place, edge.end) <= SKIN_M ? turn(edge, edge.end, target, 1) : null;
}

/** From polygon to polygon around a corner, away from the ground's end, to the first that the way leads into. */
function turn(edge: Edge, corner: Run, target: Run, by: 1 | -1): Polygon | null {
  for (let tried = 0; tried < POLYGONS_AT_CORNER_MAX; tried++) {
    const { polygon, index } = edge;
    const { twin } = polygon[(index + by + polygon.length) % polygon.length]!;
    if (!twin) return null;
    const exit = exitOf(twin.polygon, corner, target, null);
    if (!exit || apart(exit.place, corner) > SKIN_M) return twin.polygon;
    edge = twin;
  }
  return null;
}

/** The first polygon that holds a place, or the one that is nearest to it. */
function polygonAt(place: Run): Polygon {
  let [nearest, nearestM] = [POLYGONS[0]!, Infinity];
  for (const polygon of POLYGONS) {
    // Most are farther away by one of their edges alone.
    if (polygon.some((edge) => metresInside(edge, place) <= -nearestM)) continue;
    const metres = apart(closestIn(polygon, place), place);
    if (metres < nearestM) [nearest, nearestM] = [polygon, metres];
  }
  return nearest;
}

function closestIn(polygon: Polygon, place: Run): Run {
  if (polygon.every((edge) => metresInside(edge, place) >= 0)) return place;
  const closest = polygon.map((edge) => closestOn(edge, place));
  return closest.reduce((best, other) => (apart(other, place) < apart(best, place) ? other : best));
}

function closestOn({ begin, end }: Edge, place: Run): Run {
  const along = minus(end, begin);
  return plus(begin, times(along, Math.min(Math.max(dot(minus(place, begin), along) / dot(along, along), 0), 1)));
}

/** The first closed door that a straight step would walk into. Who stands in one already may walk out. */
function doorInTheWay(doors: readonly ClosedDoor[], from: Run, to: Run): ClosedDoor | null {
  const at = doors.map((door) => enteredAt(door, from, minus(to, from)));
  const first = Math.min(...at);
  return Number.isFinite(first) ? doors[at.indexOf(first)]! : null;
}

/** Where a straight way enters a door's space, as a share of the way; `Infinity` if it does not, or begins inside. */
function enteredAt({ least, most }: ClosedDoor, from: Run, way: Run): number {
  let [enters, leaves] = [-Infinity, 1];
  for (const axis of ["x", "z"] as const) {
    const [low, high] = [least[axis] - from[axis], most[axis] - from[axis]];
    if (way[axis] === 0) {
      // Along a face is outside.
      if (low >= 0 || high <= 0) return Infinity;
      continue;
    }
    const [one, other] = [low / way[axis], high / way[axis]];
    enters = Math.max(enters, Math.min(one, other));
    leaves = Math.min(leaves, Math.max(one, other));
  }
  return enters >= 0 && enters < leaves ? enters : Infinity;
}

function polygonOf(cells: readonly number[]): Polygon {
  const polygon: Edge[] = [];
  const corner = (number: number): Run => ({ x: WEST_M + cells[number % cells.length]! * CELL_M, z: SOUTH_M + cells[(number + 1) % cells.length]! * CELL_M });
  for (let number = 0; number < cells.length; number += 2) {
    const [begin, end] = [corner(number), corner(number + 2)];
    const inward = times({ x: begin.z - end.z, z: end.x - begin.x }, 1 / apart(begin, end));
    polygon.push({ polygon, index: number / 2, begin, end, inward, twin: null });
  }
  return polygon;
}

/** Two polygons are neighbours where an edge of the one is an edge of the other, the other way round. */
function connect(polygons: readonly Polygon[]): readonly Polygon[] {
  const name = (from: Run, to: Run): string => `${from.x} ${from.z} ${to.x} ${to.z}`;
  const edges = new Map(polygons.flat().map((edge) => [name(edge.begin, edge.end), edge]));
  for (const edge of edges.values()) edge.twin = edges.get(name(edge.end, edge.begin)) ?? null;
  return polygons;
}
