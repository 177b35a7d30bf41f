//! The table of peers as bars: what a server takes for a tick of the same world, with Throng and with others.
//!
//! Bars of a column have one scale, from zero; those of two columns have not, as the loads are not to be compared. The
//! shortest are drawn longer than they are, which the picture says.

use maud::{Markup, html};

use super::bench::Bench;
use super::error::PictureError;
use super::sheet::{self, INK, MARGIN, NEUTRAL, SOFT, Sheet, TOP, WIDTH};
use crate::charts::{RULE, TEAL, hex};
use crate::page;

const OURS: &str = "throng";

/// From top to bottom, and as they are called here. The last is no library.
const PEERS: [(&str, &str); 5] = [
    (OURS, "Throng"),
    ("bevy_replicon", "bevy_replicon"),
    ("lightyear", "lightyear"),
    ("naia", "naia"),
    ("floor", "hand-written floor"),
];

/// A load in the size in which all of them run.
struct Column {
    load: &'static str,
    clients: u32,
    title: &'static str,
    note: &'static str,
}

const COLUMNS: [Column; 3] = [
    Column { load: "W1", clients: 1_000, title: "1,000 players (W1)", note: "each hears of 50" },
    Column { load: "W2", clients: 400, title: "400 players (W2)", note: "all hear of all" },
    Column { load: "W3", clients: 200, title: "200 players (W3)", note: "hear of 2,000; 1 % change" },
];

const NAMES_WIDTH: u32 = 134;
const COLUMN_WIDTH: u32 = (WIDTH - 2 * MARGIN - NAMES_WIDTH) / 3;
/// Beside the longest bar its figures are written.
const BAR_WIDTH_MAX: f64 = 96.0;
/// A bar that is not seen would say zero.
const BAR_WIDTH_MIN: f64 = 1.5;
const BAR_HEIGHT: u32 = 14;
const HEADING_HEIGHT: u32 = 48;
const ROW_HEIGHT: u32 = 27;
const HEIGHT: u32 = HEADING_HEIGHT + ROW_HEIGHT * PEERS.len() as u32;

pub(super) fn draw(bench: &Bench) -> Result<String, PictureError> {
    let columns: Vec<Markup> = (0_u32..)
        .zip(&COLUMNS)
        .map(|(place, column)| draw_column(bench, column, MARGIN + NAMES_WIDTH + place * COLUMN_WIDTH))
        .collect::<Result<_, _>>()?;
    let picture = html! {
        @for (place, (peer, name)) in (0..).zip(PEERS) {
            text x=(MARGIN) y=(baseline(place)) font-size="13" font-weight=(weight(peer)) fill=(hex(INK)) { (name) }
        }
        @for column in columns { (column) }
    };
    let source = sheet::source(&bench.command, &bench.machine, &bench.commit);
    let sheet = Sheet {
        title: "The same worlds through other libraries",
        subtitle: "What the server's processor takes for a tick of one world, in memory. Less is better; a tick at 20 Hz has 50 ms.",
        source: &format!("{source} · bars under {BAR_WIDTH_MIN} px are drawn as wide as that"),
    };
    Ok(sheet.draw(HEIGHT, &picture))
}

fn draw_column(bench: &Bench, column: &Column, x: u32) -> Result<Markup, PictureError> {
    let Column { load, clients, title, note } = *column;
    let missing = || PictureError::Missing { what: format!("{OURS} in {load} with {clients} clients") };
    let ours_ms = bench.cpu_ms(load, clients, OURS).ok_or_else(missing)?;
    let measured = PEERS.map(|(peer, _)| (peer, bench.cpu_ms(load, clients, peer)));
    let longest_ms = measured.iter().filter_map(|(_, ms)| *ms).fold(ours_ms, f64::max);
    let rules_y = (TOP + HEADING_HEIGHT - 4, TOP + HEIGHT - 4);
    Ok(html! {
        text x=(x) y=(TOP + 13) font-size="13" font-weight="650" fill=(hex(INK)) { (title) }
        text x=(x) y=(TOP + 29) font-size="12" fill=(hex(SOFT)) { (note) }
        line x1=(x) y1=(rules_y.0) x2=(x) y2=(rules_y.1) stroke=(hex(RULE)) {}
        @for (place, (peer, ms)) in (0..).zip(measured) {
            @if let Some(ms) = ms {
                @let width = (ms / longest_ms * BAR_WIDTH_MAX).max(BAR_WIDTH_MIN);
                @let colour = if peer == OURS { TEAL } else { NEUTRAL };
                rect x=(x) y=(baseline(place) - 12) width=(format!("{width:.1}")) height=(BAR_HEIGHT) fill=(hex(colour)) {}
                text x=(format!("{:.1}", f64::from(x) + width + 7.0)) y=(baseline(place)) font-size="13" {
                    tspan font-weight=(weight(peer)) fill=(hex(INK)) { (page::number(ms)) " ms" }
                    @if peer != OURS {
                        tspan dx="7" fill=(hex(SOFT)) { (times(ms / ours_ms)) "×" }
                    }
                }
            } @else {
                text x=(x + 7) y=(baseline(place)) font-size="13" fill=(hex(SOFT)) { "not measured" }
            }
        }
    })
}

/// How many times ours.
fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

/// Of a row's texts; ours are bold.
fn weight(peer: &str) -> &'static str {
    if peer == OURS { "650" } else { "400" }
}

fn baseline(place: u32) -> u32 {
    TOP + HEADING_HEIGHT + place * ROW_HEIGHT + 16
}

#[cfg(test)]
mod tests {
    use super::super::bench::Row;
    use super::*;

    fn bench(peers: &[(&str, f64)]) -> Bench {
        let rows = COLUMNS.iter().flat_map(|column| {
            peers.iter().map(move |(peer, ms)| Row {
                load: column.load.to_owned(),
                peer: (*peer).to_owned(),
                clients: column.clients,
                cpu_ms: Some(*ms),
                ..Row::default()
            })
        });
        Bench { rows: rows.collect(), ..Bench::default() }
    }

    #[test]
    fn each_bar_has_its_time_and_how_many_times_ours_it_is() {
        let svg = draw(&bench(&[(OURS, 2.4), ("naia", 134.4), ("floor", 0.6)])).unwrap();
        let count = |part: &str| svg.matches(part).count();
        assert_eq!((count(">2.40 ms<"), count(">134 ms<"), count(">56×<"), count(">0.25×<")), (3, 3, 3, 3), "{svg}");
        assert_eq!(count(&format!("width=\"{BAR_WIDTH_MAX:.1}\"")), 3, "the longest of each column");
        assert_eq!(count("not measured"), 6, "two of the peers");
        assert_eq!((count("width=\"1.5\""), count("bars under 1.5 px")), (3, 1), "the floor's are 0.4 px");
    }

    #[test]
    fn without_our_own_there_is_nothing_to_hold_the_others_against() {
        let error = draw(&bench(&[("naia", 134.4)])).unwrap_err().to_string();
        assert!(error.starts_with("there are no figures of throng in W1 with 1000 clients; "), "{error}");
    }
}
