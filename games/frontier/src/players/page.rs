//! Tests: the page that plays predicts its player as the game moves it. Files in `web/tests/steps/` say how that is: they are
//! compared here, and the tests in `web/` hold the page to them. `UPDATE_EXPECT=1 cargo test -p frontier --lib players` writes
//! them anew.

use super::{step_m, step_to};
use crate::{
    land::{Cell, Ground, Growth, Map, Piece, PieceKind, Sector, cells::SECTOR_CELLS, ground::PIECE_HEALTH},
    landscape::within_edge,
    protocol::Input,
};

/// Promise: it takes the same steps, where nothing hinders it.
#[test]
fn the_page_is_held_to_these_steps() {
    let mut lines = Vec::new();
    for direction in [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.6, 0.8], [-0.7, 0.7], [0.3, -0.1]] {
        for (runs, tick_hz) in [(false, 20.0), (true, 20.0), (true, 10.0)] {
            let [x, z] = step_m(Input::new(direction, 0.0).running(runs), 1.0 / tick_hz);
            lines.push(format!(
                "{{\"direction\": {direction:?}, \"is_fast\": {runs}, \"tick_hz\": {tick_hz:?}, \"metres\": [{x:.5}, {z:.5}]}}"
            ));
        }
    }
    check_file("frontier.json", &array(&lines));
}

/// Promise: it lets its player go no farther than the land's edge.
#[test]
fn the_page_is_held_to_this_edge() {
    let near_edge = [
        ([3_999.75, 10.0], [1.0, 0.0]),
        ([-3_999.75, 3_999.75], [-0.6, 0.8]),
        ([7.0, -4_000.0], [0.6, -0.8]),
        ([4_000.0, 0.0], [-1.0, 0.0]),
    ];
    let lines = near_edge.map(|(from, direction): ([f32; 2], [f32; 2])| {
        let [x, z] = step_m(Input::new(direction, 0.0).running(true), 1.0 / 20.0);
        let [to_x, to_z] = [from[0] + x, from[1] + z].map(within_edge);
        format!("{{\"from\": {from:?}, \"metres\": [{x:.5}, {z:.5}], \"to\": [{to_x:.3}, {to_z:.3}]}}")
    });
    check_file("frontier_edge.json", &array(&lines));
}

/// Promise: it numbers cells as the game does, knows what grows there, and lets its player into no wall.
#[test]
fn the_page_is_held_to_this_land() {
    let cells = [[0.0, 0.0], [-1.5, 3.25], [63.99, 64.0], [3_999.5, -3_999.5], [-4_000.0, 1_234.5]].map(|at| {
        let (cell, [x, z]) = (Cell::at(at), Cell::at(at).middle());
        let (number, plot) = (cell.number(), cell.plot().corner().number());
        format!("{{\"at\": {at:?}, \"cell\": {number}, \"middle\": [{x:?}, {z:?}], \"plot\": {plot}}}")
    });
    let (seed, middle) = (0xfedc_ba98_7654_3210, [101.0, -299.0]);
    let sector = Sector::at(middle);
    let growing = |growth| {
        let all = (0..SECTOR_CELLS as u16).map(|index| sector.cell(index));
        numbers(all.filter(|cell| cell.untouched(seed).growth == growth))
    };
    let (trees, boulders) = (growing(Growth::Tree), growing(Growth::Boulder));
    // A house that is open to the north.
    let walls = [[-2.0, -2.0], [0.0, -2.0], [2.0, -2.0], [-2.0, 0.0], [2.0, 0.0], [-2.0, 2.0], [2.0, 2.0]]
        .map(|[x, z]| Cell::at([middle[0] + x, middle[1] + z]));
    let mut map = Map::new(seed, false);
    map.enter(sector, 0);
    for wall in walls {
        let piece = Some(Piece { kind: PieceKind::Wall, health: PIECE_HEALTH });
        assert!(map.change(wall, Ground { piece, ..Ground::BARE }));
    }
    // From its middle, from within a wall, and from before one.
    let begins = [(middle, false), (middle, true), ([99.3, -301.2], false), ([101.7, -304.1], false)];
    let walks: Vec<String> = begins
        .iter()
        .flat_map(|&begin| (0..8).map(move |eighth| (begin, eighth)))
        .map(|begin| walk(&map, begin))
        .collect();
    let [cells, walks] = [cells.join(",\n"), walks.join(",\n")];
    let text = format!(
        "{{\n\"cells\": [\n{cells}\n],\n\"seed\": \"{seed}\",\n\"sector\": {},\n\"trees\": [{trees}],\n\
         \"boulders\": [{boulders}],\n\"walls\": [{}],\n\"walks\": [\n{walks}\n]\n}}\n",
        sector.number(),
        numbers(walls),
    );
    check_file("frontier_land.json", &text);
}

/// Twelve steps in one of eight directions, and where they end.
fn walk(map: &Map, ((begin, is_snared), eighth): (([f32; 2], bool), u8)) -> String {
    let (x, z) = (f32::from(eighth) * std::f32::consts::FRAC_PI_4).sin_cos();
    let wish = Input::new([x, z], 0.0).running(true);
    let step = |at, _| step_to(map, at, wish, 1.0 / 20.0, is_snared).map_or(at, |to| to.map(within_edge));
    let [at_x, at_z] = (0..12).fold(begin, step);
    let [x, z] = wish.direction();
    format!(
        "{{\"begin\": {begin:?}, \"direction\": [{x:.5}, {z:.5}], \"is_snared\": {is_snared}, \"ticks\": 12, \
         \"at\": [{at_x:.3}, {at_z:.3}]}}"
    )
}

fn array(lines: &[String]) -> String {
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn numbers(cells: impl IntoIterator<Item = Cell>) -> String {
    let numbers: Vec<String> = cells.into_iter().map(|cell| cell.number().to_string()).collect();
    numbers.join(", ")
}

/// Holds a file of the page's tests to what the game makes of it.
#[track_caller]
fn check_file(file: &str, text: &str) {
    let path = format!("{}/../../web/tests/steps/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, text).expect("the file is writable");
    }
    let known = std::fs::read_to_string(&path).expect("the file of the page's tests");
    assert_eq!(known, text, "run the test with UPDATE_EXPECT=1, and the tests in web/");
}
