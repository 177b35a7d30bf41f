// Persons who walk through duel's map do so each for itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { letterAt } from "../play/duel/map.ts";
import { wayThrough } from "./duel_way.ts";

test("two who begin in either base come to the other one and back", () => {
  const walkers = [{ x: -41, z: 5 }, { x: 37, z: 5 }].map((own) => ({ own, way: wayThrough(), bases: letterAt(own.x, own.z) }));
  for (let step = 0; step < 200; step++) {
    for (const walker of walkers) {
      walker.own = walker.way(walker.own);
      const letter = letterAt(walker.own.x, walker.own.z);
      if ("ad".includes(letter) && letter !== walker.bases.at(-1)) walker.bases += letter;
    }
  }
  assert.deepEqual(walkers.map(({ bases }) => bases.slice(0, 3)), ["ada", "dad"]);
});
