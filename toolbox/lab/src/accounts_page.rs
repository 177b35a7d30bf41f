//! The page's section about what the server used: by its own word, and by that of its control group and its host.

use maud::{Markup, html};

use crate::load::LoadRun;
use crate::page::number;

/// Nothing of a server that told nothing.
pub(crate) fn accounts(run: &LoadRun) -> Markup {
    let of_side = |side: &str| -> Vec<(String, f64)> {
        let accounts = run.report.more.get("accounts").and_then(|accounts| accounts.as_object());
        let rows = accounts.into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_f64()?)));
        rows.filter_map(|(name, value)| Some((name.strip_prefix(side)?.to_owned(), value))).collect()
    };
    let sides = [("By its own word", of_side("inside.")), ("By others", of_side("outside."))];
    let missing = run.report.more.get("accounts_missing").and_then(|missing| missing.as_array());
    html! {
        @if sides.iter().any(|(_, rows)| !rows.is_empty()) {
            section {
                h2 { "Inside and outside" }
                p { "What the server used in the steady window. Others' accounts have all that is in them: the control group, the host, the network." }
                @for (title, rows) in &sides {
                    table {
                        tr { th { (title) } th.n { "" } }
                        @for (name, value) in rows {
                            tr { td { code { (name) } } td.n { (number(*value)) } }
                        }
                    }
                }
                @for missing in missing.into_iter().flatten().filter_map(|text| text.as_str()) {
                    p { "Not known: " (missing) "." }
                }
            }
        }
    }
}
