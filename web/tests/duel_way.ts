// A way through duel's map, from either base to the other, by its drawing.

import { ROWS, SQUARE_M } from "../play/duel/map.ts";
import type { Place } from "./person.ts";

const WIDTH = ROWS[0]!.length;
const isOpen = (square: number): boolean => !"#cC".includes(ROWS[Math.floor(square / WIDTH)]?.[square % WIDTH] ?? "#");

const squareOf = ({ x, z }: Place): number => (ROWS.length / 2 - 1 - Math.floor(z / SQUARE_M)) * WIDTH + Math.floor(x / SQUARE_M) + WIDTH / 2;
const middleOf = (square: number): Place => ({
  x: ((square % WIDTH) - WIDTH / 2 + 0.5) * SQUARE_M,
  z: (ROWS.length / 2 - 1 - Math.floor(square / WIDTH) + 0.5) * SQUARE_M,
});

/** Squares to each of the letter's, by square; where one is there, 0. */
function distances(letter: string): number[] {
  const all = ROWS.join("");
  const far = new Array<number>(all.length).fill(Infinity);
  let edge = [...all].flatMap((each, square) => (each === letter ? [square] : []));
  for (let steps = 0; edge.length > 0; steps++) {
    edge = edge.filter((square) => far[square] === Infinity && isOpen(square));
    for (const square of edge) far[square] = steps;
    edge = [...new Set(edge.flatMap((square) => [square - 1, square + 1, square - WIDTH, square + WIDTH]))];
  }
  return far;
}

const TO: Record<string, number[]> = { a: distances("a"), d: distances("d") };

/** Says where to walk next from a place: to the base that is farther away, and, from there, back. Each who walks needs one. */
export function wayThrough(): (own: Place) => Place {
  let towards = "";
  return (own) => {
    const square = squareOf(own);
    const farther = TO["a"]![square]! > TO["d"]![square]! ? "a" : "d";
    if (towards === "" || TO[towards]![square]! === 0) towards = farther;
    const near = [square, square - 1, square + 1, square - WIDTH, square + WIDTH].filter(isOpen);
    return middleOf(near.sort((one, other) => TO[towards]![one]! - TO[towards]![other]!)[0] ?? square);
  };
}
