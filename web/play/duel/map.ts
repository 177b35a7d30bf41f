// The map of duel as it is drawn in games/duel/src/map/layout.rs: a letter is a square of 2 m; the southern half is the
// northern one's mirror image. `#` is a wall, `c` and `C` are crates, `A` is a site, `a` and `d` are where teams stand up.

export const SQUARE_M = 2;

const NORTH = [
  "############################################",
  "#........................#.........##......#",
  "#..........c.......................##......#",
  "#...............C........#..AAAAA..##......#",
  "#.......................c#..AACAA..........#",
  "#......###################..AAAAA..........#",
  "#......###################..AcAAA..##......#",
  "#......#############........AAAAA..##......#",
  "#......#############...............##......#",
  "#......#############...###...C.....##......#",
  "#......#############...#########...##......#",
  "#......#############...#########...##......#",
  "#..........................#####...##......#",
  "#aaaa......C....#..........#...........dddd#",
  "#aaaa.........####.....................dddd#",
  "#aaaa.....c...####....C................dddd#",
];

/** From north to south, each from west to east. */
export const ROWS: readonly string[] = [...NORTH, ...NORTH.toReversed()];

/** What is drawn at a place; nothing outside of the map. */
export function letterAt(x: number, z: number): string {
  return ROWS[ROWS.length / 2 - 1 - Math.floor(z / SQUARE_M)]?.[Math.floor(x / SQUARE_M) + ROWS[0]!.length / 2] ?? "";
}

const COLORS: Record<string, string> = { "#": "#39414d", c: "#5b4b35", C: "#7a6547", A: "#2b3a2f", a: "#33262b", d: "#262d3a" };

/** Draws all of it: 44 x 32 squares. */
export function drawMap(canvas: CanvasRenderingContext2D): void {
  ROWS.forEach((letters, row) => {
    [...letters].forEach((letter, column) => {
      const color = COLORS[letter];
      if (!color) return;
      canvas.fillStyle = color;
      const [x, z] = [(column - letters.length / 2) * SQUARE_M, (ROWS.length / 2 - row - 1) * SQUARE_M];
      // A little more than the square, or seams show between two.
      canvas.fillRect(x, z, SQUARE_M + 0.1, SQUARE_M + 0.1);
    });
  });
}
