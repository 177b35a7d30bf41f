// Summaries of a row, one level for each zoom step: what a block of 8, 64, 512, … scopes looks like from far away.
//
//   scopes     |0 1 2 3 4 5 6 7|8 9 ...
//   level 0    |      block    |  block ...       8 scopes each
//   level 1    |             block ...            8 blocks each
//
// A block shows its longest scope, and whether one in it is over its budget: the worst survives every step. Begin and
// end of a block are those of its first and last scope, and stand nowhere else. Five bytes for each block:
// 10,000,000 scopes have 7 MB of them.

/** Scopes in a block of level 0, and blocks in one of the next. */
export const FAN = 8;

export interface Level {
  /** The place of the longest scope. */
  longest: Uint32Array;
  /** 1: one of them is over its budget. */
  over: Uint8Array;
}

export function summarise(begin: Float64Array, end: Float64Array, site: Uint16Array, budgets: Float64Array): Level[] {
  const levels: Level[] = [];
  if (begin.length <= FAN) return levels;
  let below = ofScopes(begin, end, site, budgets);
  for (;;) {
    levels.push(below);
    if (below.longest.length <= FAN) return levels;
    below = ofBlocks(below, begin, end);
  }
}

function ofScopes(begin: Float64Array, end: Float64Array, site: Uint16Array, budgets: Float64Array): Level {
  const count = begin.length;
  const blocks = Math.ceil(count / FAN);
  const longest = new Uint32Array(blocks);
  const over = new Uint8Array(blocks);
  for (let block = 0, scope = 0; block < blocks; block++) {
    const last = Math.min(scope + FAN, count);
    let longestScope = scope;
    let longestNs = -1;
    let isOver = 0;
    for (; scope < last; scope++) {
      const ns = end[scope]! - begin[scope]!;
      if (ns > longestNs) {
        longestScope = scope;
        longestNs = ns;
      }
      if (ns > budgets[site[scope]!]!) isOver = 1;
    }
    longest[block] = longestScope;
    over[block] = isOver;
  }
  return { longest, over };
}

function ofBlocks(below: Level, begin: Float64Array, end: Float64Array): Level {
  const count = below.longest.length;
  const blocks = Math.ceil(count / FAN);
  const longest = new Uint32Array(blocks);
  const over = new Uint8Array(blocks);
  for (let block = 0, child = 0; block < blocks; block++) {
    const last = Math.min(child + FAN, count);
    let longestScope = below.longest[child]!;
    let longestNs = -1;
    for (; child < last; child++) {
      const scope = below.longest[child]!;
      const ns = end[scope]! - begin[scope]!;
      if (ns > longestNs) {
        longestScope = scope;
        longestNs = ns;
      }
      over[block]! |= below.over[child]!;
    }
    longest[block] = longestScope;
  }
  return { longest, over };
}
