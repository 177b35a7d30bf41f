//! The curve of one world against its players: what its server takes for a tick, and what each player is told.

use maud::html;

use super::bench::Bench;
use super::error::PictureError;
use super::sheet::{self, CAPTION, MARGIN, Sheet, TOP, WIDTH};
use crate::charts::{self, BLUE, CurveLine, TEAL};
use crate::page;

/// The load of `docs/peers.md` in which everybody moves and hears those within 50 m.
const LOAD: &str = "W1";
const TIME_SIZE: (u32, u32) = (448, 220);
const GAP: u32 = 24;
const BYTES_SIZE: (u32, u32) = (WIDTH - 2 * MARGIN - GAP - TIME_SIZE.0, TIME_SIZE.1);

pub(super) fn draw(bench: &Bench) -> Result<String, PictureError> {
    let time = |peer: &str, name: &str, colour| -> Result<CurveLine, PictureError> {
        let points = bench.by_clients(LOAD, peer, |row| row.cpu_ms)?;
        Ok(CurveLine { label: format!("{} ms {name}", page::number(last(&points))), colour, points })
    };
    let lines = [time("throng, UDP", "over UDP", BLUE)?, time("throng", "in memory", TEAL)?];
    let note = "ms of processor time per tick, by players";
    let times = charts::draw_curve("What a tick takes", note, TIME_SIZE, &lines)?;

    let points = bench.by_clients(LOAD, "throng", |row| Some(row.bytes_per_client_s? / 1e3))?;
    let line = CurveLine { label: format!("{} kB", page::number(last(&points))), colour: TEAL, points };
    let bytes = charts::draw_curve("What one player is told", "kB per second, by players", BYTES_SIZE, &[line])?;

    let picture = html! {
        (sheet::chart(&times, MARGIN, TOP, TIME_SIZE.0))
        (sheet::chart(&bytes, MARGIN + TIME_SIZE.0 + GAP, TOP, BYTES_SIZE.0))
    };
    let sheet = Sheet {
        title: "One world, more and more players",
        subtitle: "Everybody moves, and is told of the 50 or so within 50 m, 20 times a second. One core; a tick has 50 ms.",
        source: &sheet::source(&bench.command, &bench.machine, &bench.commit),
    };
    Ok(sheet.draw(CAPTION + TIME_SIZE.1, &picture))
}

/// Of the largest size.
fn last(points: &[(f64, f64)]) -> f64 {
    points.last().map_or(0.0, |(_, figure)| *figure)
}
