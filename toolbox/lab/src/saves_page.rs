//! The page's section about what saving cost.

use maud::{Markup, html};

use crate::load::LoadRun;
use crate::page::{grouped, number};

/// The page's section; nothing of a server that saves nothing.
pub(crate) fn saves(run: &LoadRun) -> Markup {
    let Some(cost) = &run.report.saves else { return html! {} };
    let per_s = |count: u64| number(count as f64 / run.report.seconds.max(f64::MIN_POSITIVE));
    let rows = [
        ("Commits on disk", grouped(cost.commits as f64), format!("{} a second", per_s(cost.commits))),
        ("Bytes", grouped(cost.bytes as f64), format!("{} a second", per_s(cost.bytes))),
        ("Transactions", grouped(cost.transactions as f64), format!("{} a second", per_s(cost.transactions))),
        ("The longest transaction", format!("{} ms", number(cost.transaction_ms_max)), "with its fsyncs".to_owned()),
        (
            "The thread that saves",
            format!("{} s", number(cost.thread_cpu_s)),
            format!("{:.2} % of the server's processor time", cost.cpu_share * 100.0),
        ),
        ("Refused", grouped(cost.refused as f64), "handed in again".to_owned()),
        ("Put off", grouped(cost.put_off as f64), "frames in which the store took nothing".to_owned()),
    ];
    html! {
        section {
            h2 { "Saves" }
            p { "What it cost to keep players and worlds, in the steady window. What ticks take to pack them is under their own time." }
            table {
                @for (name, value, note) in rows {
                    tr { td { (name) } td.n { (value) } td { (note) } }
                }
            }
        }
    }
}
