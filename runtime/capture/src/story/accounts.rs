//! Accounts: what the server used around the capture, by its own word and by that of its control group and its host.
//!
//! The server records both sides once a second as counters whose names say the side. Captures that are shorter than that
//! may have none.

use super::{context::Context, facts::AccountFacts, words};
use crate::model::Event;

/// Names of counters begin so, each on its side.
const SIDES: [&str; 2] = ["inside.", "outside."];

/// All figures that have a value, the inside first, each side in the order in which the server made them known.
pub fn facts(context: &Context, rows_max: usize) -> Vec<AccountFacts> {
    let capture = context.capture;
    let mut rows: Vec<(u64, AccountFacts)> = (capture.counters.iter())
        .map(|counter| (0, AccountFacts { name: words::name(&counter.name), ..AccountFacts::default() }))
        .collect();
    for event in capture.threads.iter().flat_map(|thread| &thread.events) {
        let Event::Count { at_ns, counter, value } = *event else { continue };
        let Some((last_ns, row)) = rows.get_mut(counter as usize).filter(|_| value.is_finite()) else { continue };
        let value = f64::from(value);
        row.most = if row.values == 0 { value } else { row.most.max(value) };
        if row.values == 0 || at_ns >= *last_ns {
            (*last_ns, row.last) = (at_ns, value);
        }
        row.values += 1;
    }
    let rows = rows.into_iter().map(|(_, row)| row).filter(|row| row.values > 0);
    let mut rows: Vec<_> = rows.filter(|row| SIDES.iter().any(|side| row.name.starts_with(side))).collect();
    rows.sort_by_key(|row| !row.name.starts_with(SIDES[0]));
    rows.truncate(rows_max);
    rows
}
