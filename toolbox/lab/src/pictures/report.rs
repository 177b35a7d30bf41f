//! The picture of a load run's report: how its page begins.

use maud::html;
use serde::Deserialize;
use serde_json::Value;
use throng_history::Machine;

use super::sheet::{self, CAPTION, GOOD, INK, MARGIN, SOFT, Sheet, TOP, WIDTH};
use crate::charts::{self, ChartError, RED, RULE, Sizes, hex};
use crate::load::LoadRun;
use crate::load_report::LoadReport;
use crate::page;
use crate::seconds::Second;

/// Between two charts (px).
const GAP: u32 = 24;
const INNER: u32 = WIDTH - 2 * MARGIN;
const HALF: u32 = (INNER - GAP) / 2;
const SIZES: Sizes = Sizes { wide: (INNER, 200), half: (HALF, 180) };
const TILES_HEIGHT: u32 = 72;
const TILES_COUNT: u32 = 6;
const VERDICT_WIDTH: u32 = 76;

/// A `report.json`, as far as it is drawn.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct ReportFile {
    run: LoadRun,
    machine: Machine,
}

/// What `report.json` has around the figures.
#[derive(Deserialize)]
struct Surroundings {
    command: String,
    machine: Machine,
    window: Window,
    by_second: Vec<Second>,
}

#[derive(Deserialize)]
struct Window {
    begin: usize,
    end: usize,
}

impl TryFrom<Value> for ReportFile {
    type Error = serde_json::Error;

    fn try_from(file: Value) -> Result<Self, Self::Error> {
        let report: LoadReport = serde_json::from_value(file.clone())?;
        let Surroundings { command, machine, window, by_second } = serde_json::from_value(file)?;
        let run = LoadRun { report, command, seconds: by_second, window: window.begin..window.end };
        Ok(Self { run, machine })
    }
}

pub(super) fn draw(file: &ReportFile) -> Result<String, ChartError> {
    let ReportFile { run, machine } = file;
    let [frame_times, distribution, players] = charts::draw_first(run, SIZES)?;
    let is_good = run.report.passed;
    let colour = hex(if is_good { GOOD } else { RED });
    let verdict_x = WIDTH - MARGIN - VERDICT_WIDTH;
    let wide_y = TOP + TILES_HEIGHT + GAP;
    let halves_y = wide_y + CAPTION + SIZES.wide.1 + GAP;
    let tile_x = |place: u32| MARGIN + place * INNER / TILES_COUNT;
    let picture = html! {
        rect x=(verdict_x) y="24" width=(VERDICT_WIDTH) height="24" rx="12" fill=(colour) {}
        text x=(verdict_x + VERDICT_WIDTH / 2) y="40" font-size="13" text-anchor="middle" fill="white" {
            (page::verdict(is_good))
        }
        rect x=(MARGIN) y=(TOP) width=(INNER) height=(TILES_HEIGHT) rx="6" fill="none" stroke=(hex(RULE)) {}
        @for (place, tile) in (0..).zip(page::first_figures(run)) {
            @let x = tile_x(place);
            @if place > 0 {
                line x1=(x) y1=(TOP) x2=(x) y2=(TOP + TILES_HEIGHT) stroke=(hex(RULE)) {}
            }
            text x=(x + 12) y=(TOP + 22) font-size="12" fill=(hex(SOFT)) { (tile.name) }
            text x=(x + 12) y=(TOP + 43) font-size="16" font-weight="600" fill=(hex(INK)) { (tile.value) }
            text x=(x + 12) y=(TOP + 61) font-size="12" fill=(hex(SOFT)) { (tile.note) }
        }
        (sheet::chart(&frame_times, MARGIN, wide_y, INNER))
        (sheet::chart(&distribution, MARGIN, halves_y, HALF))
        (sheet::chart(&players, MARGIN + HALF + GAP, halves_y, HALF))
    };
    let source = sheet::source(&run.command, machine, &run.report.commit);
    let sheet = Sheet { title: &page::title(run), subtitle: &page::subtitle(run), source: &source };
    Ok(sheet.draw(halves_y + CAPTION + SIZES.half.1 - TOP, &picture))
}
