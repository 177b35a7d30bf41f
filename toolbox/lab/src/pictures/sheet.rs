//! The sheet that a picture is drawn on: title, what is seen, the picture, and where its figures come from.
//!
//! It has a ground of its own, so that it can be read wherever it stands. For dark themes its style gives every colour
//! another one ([`dark`]). Texts are not measured here, as nobody knows the reader's fonts: what stands at the right is anchored there.

use maud::{Markup, PreEscaped, html};
use throng_history::Machine;

use crate::{
    charts::{self, Chart, hex},
    dark::{self, GROUND},
};

pub(super) use crate::dark::{GOOD, INK, NEUTRAL, SOFT};

/// As wide as GitHub shows a page's pictures, so that letters keep their size (px).
pub(super) const WIDTH: u32 = 800;
pub(super) const MARGIN: u32 = 24;
/// Where the picture begins, below title and subtitle (px).
pub(super) const TOP: u32 = 86;
/// Below the picture (px).
const FOOT: u32 = 52;
/// Of a chart's title and note, above it (px).
pub(super) const CAPTION: u32 = 36;

const LETTERS: &str = "text { font-family: system-ui, -apple-system, \"Segoe UI\", \"Helvetica Neue\", Arial, sans-serif; \
                       font-variant-numeric: tabular-nums; }\n.chart text { font-size: 12px; }\n";

/// What stands around a picture.
pub(super) struct Sheet<'a> {
    pub title: &'a str,
    pub subtitle: &'a str,
    pub source: &'a str,
}

impl Sheet<'_> {
    /// The whole, with a picture that begins at [`TOP`] and is so high (px).
    pub(super) fn draw(&self, height: u32, picture: &Markup) -> String {
        let height = TOP + height + FOOT;
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height) viewBox={ "0 0 " (WIDTH) " " (height) } {
                title { (self.title) }
                style { (PreEscaped(style())) }
                rect x="0.5" y="0.5" width=(WIDTH - 1) height=(height - 1) rx="8" fill=(hex(GROUND)) stroke=(hex(charts::RULE)) {}
                text x=(MARGIN) y="40" font-size="19" font-weight="650" fill=(hex(INK)) { (self.title) }
                text x=(MARGIN) y="62" font-size="13" fill=(hex(SOFT)) { (self.subtitle) }
                (picture)
                text x=(MARGIN) y=(height - 20) font-size="12" fill=(hex(SOFT)) { (self.source) }
            }
        };
        svg.into_string() + "\n"
    }
}

/// Where figures come from, in a line.
pub(super) fn source(command: &str, machine: &Machine, commit: &str) -> String {
    let build = if commit.is_empty() { "unknown" } else { commit };
    format!("{command} · {}, {} cores · commit {build}", machine.cpu, machine.cores)
}

/// A chart with its title and note above it, `width` px wide, from `x` and `y`.
pub(super) fn chart(chart: &Chart, x: u32, y: u32, width: u32) -> Markup {
    html! {
        text x=(x) y=(y + 13) font-size="13" font-weight="650" fill=(hex(INK)) { (chart.title) }
        text x=(x + width) y=(y + 13) font-size="12" text-anchor="end" {
            @for (place, (name, colour)) in (0..).zip(&chart.legend) {
                tspan dx=(if place == 0 { 0 } else { 12 }) fill=(colour) { (name) }
            }
        }
        text x=(x) y=(y + 29) font-size="12" fill=(hex(SOFT)) { (chart.note) }
        g.chart transform={ "translate(" (x) " " (y + CAPTION) ")" } { (PreEscaped(&chart.svg)) }
    }
}

fn style() -> String {
    format!("\n{LETTERS}@media (prefers-color-scheme: dark) {{\n{}}}\n", dark::rules())
}
