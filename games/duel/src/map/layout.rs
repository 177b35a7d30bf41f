//! Layout: the map as it is drawn, and the boxes that it is made of.
//!
//! One letter is a square of 2 m. The northern half is drawn; the southern half is its mirror image, with site B where
//! the northern has A. North is up (+z), east is right (+x).
//!
//! ```text
//! #   wall, 5 m high            c   low crate, 0.9 m: to jump on, and to look over
//! A   site: to plant on         C   tall crate, 1.4 m: hides who stands behind it up to the chin
//! a   attackers stand up here   d   defenders do
//! ```
//!
//! The attackers' three ways to a site: `long` along the edge, through the western door of the site; `short` out of the
//! middle, through the door below it; `link` through the market in the east, up the alley in front of the defenders'
//! base. The defenders come from their base through the site's eastern door, or by the link.

use glam::Vec3;
use throng_query::geometry::Aabb;

/// Side of a letter's square (m).
pub const SQUARE_M: f32 = 2.0;
pub const COLUMNS: usize = 44;
pub const ROWS: usize = 32;

const NORTH: [&str; ROWS / 2] = [
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

const WALL_M: f32 = 5.0;
const LOW_M: f32 = 0.9;
const TALL_M: f32 = 1.4;

/// The letters of the whole map, by row from the north and column from the west.
pub fn letters() -> [[u8; COLUMNS]; ROWS] {
    std::array::from_fn(|row| {
        let is_north = row < ROWS / 2;
        let drawn = NORTH[if is_north { row } else { ROWS - 1 - row }].as_bytes();
        std::array::from_fn(|column| match drawn[column] {
            b'A' if !is_north => b'B',
            letter => letter,
        })
    })
}

/// The middle of a square, on the ground.
pub fn middle_of(column: usize, row: usize) -> Vec3 {
    let x = (column as f32 + 0.5 - COLUMNS as f32 / 2.0) * SQUARE_M;
    let z = (ROWS as f32 / 2.0 - row as f32 - 0.5) * SQUARE_M;
    Vec3::new(x, 0.0, z)
}

/// The square that a place is in; `None` outside of the map.
pub fn square_of(place: Vec3) -> Option<(usize, usize)> {
    let column = place.x / SQUARE_M + COLUMNS as f32 / 2.0;
    let row = ROWS as f32 / 2.0 - place.z / SQUARE_M;
    let is_inside = (0.0..COLUMNS as f32).contains(&column) && (0.0..ROWS as f32).contains(&row);
    is_inside.then_some((column as usize, row as usize))
}

/// Everything solid, in a constant order. Squares of a kind that lie side by side are one box, since one solid hides
/// more than two halves of it.
pub fn solids() -> Vec<Aabb> {
    let letters = letters();
    let mut solids = Vec::new();
    for (letter, height_m) in [(b'#', WALL_M), (b'c', LOW_M), (b'C', TALL_M)] {
        let mut is_open = letters.map(|row| row.map(|drawn| drawn == letter));
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                if is_open[row][column] {
                    let (columns, rows) = take_rectangle(&mut is_open, column, row);
                    solids.push(solid_over(column, row, columns, rows, height_m));
                }
            }
        }
    }
    solids
}

/// The widest run from a square on, as far down as all of it goes on; taken out.
fn take_rectangle(is_open: &mut [[bool; COLUMNS]; ROWS], column: usize, row: usize) -> (usize, usize) {
    let columns = is_open[row][column..].iter().take_while(|is_open| **is_open).count();
    let run = column..column + columns;
    let rows = is_open[row..].iter().take_while(|line| line[run.clone()].iter().all(|is_open| *is_open)).count();
    for line in &mut is_open[row..row + rows] {
        line[run.clone()].fill(false);
    }
    (columns, rows)
}

fn solid_over(column: usize, row: usize, columns: usize, rows: usize, height_m: f32) -> Aabb {
    let half = Vec3::new(SQUARE_M / 2.0, 0.0, SQUARE_M / 2.0);
    let (north_west, south_east) = (middle_of(column, row), middle_of(column + columns - 1, row + rows - 1));
    let min = Vec3::new(north_west.x, 0.0, south_east.z) - half;
    let max = Vec3::new(south_east.x, height_m, north_west.z) + half;
    // Walls go below the ground, so that no line runs along under them.
    Aabb::new(min.with_y(-0.5), max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_and_places_agree() {
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                assert_eq!(square_of(middle_of(column, row)), Some((column, row)));
            }
        }
        assert_eq!(square_of(Vec3::new(44.1, 0.0, 0.0)), None);
        assert_eq!(square_of(Vec3::new(f32::NAN, 0.0, 0.0)), None);
    }

    /// Promise: each square that is drawn solid is in one box, and no other is in any.
    #[test]
    fn boxes_cover_what_is_drawn_and_nothing_else() {
        let (letters, solids) = (letters(), solids());
        assert!(solids.len() < 60, "{}", solids.len());
        for (row, line) in letters.iter().enumerate() {
            for (column, letter) in line.iter().enumerate() {
                let inside = middle_of(column, row).with_y(0.1);
                let boxes = solids.iter().filter(|solid| solid.contains(inside)).count();
                let is_solid = matches!(letter, b'#' | b'c' | b'C');
                assert_eq!(boxes, usize::from(is_solid), "column {column}, row {row}");
            }
        }
    }
}
