//! Costs of the frame that a walk is in, by a small number such as the site's; emptied at the end of each frame.

use super::{Cost, Costs, Spent, timeline::State};
use crate::model::FrameThread;

/// A cost that may hold time of unknown state.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Raw {
    pub cost: Cost,
    pub unknown_ns: u64,
    is_touched: bool,
}

impl Raw {
    pub fn spend(&mut self, state: State, ns: u64) {
        match state {
            State::Running => self.cost.exclusive.running_ns += ns,
            State::Waiting => self.cost.exclusive.waiting_ns += ns,
            State::Blocked => self.cost.exclusive.blocked_ns += ns,
            State::Unknown => self.unknown_ns += ns,
        }
    }
}

/// Costs by key; clearing costs only what was touched.
#[derive(Default)]
pub(super) struct Table {
    entries: Vec<Raw>,
    touched: Vec<u32>,
}

impl Table {
    pub fn new(len: usize) -> Self {
        Self { entries: vec![Raw::default(); len], touched: Vec::new() }
    }

    pub fn entry(&mut self, key: u32) -> &mut Raw {
        let entry = &mut self.entries[key as usize];
        if !entry.is_touched {
            entry.is_touched = true;
            self.touched.push(key);
        }
        entry
    }

    /// Empties it, by rising key.
    pub fn drain(&mut self) -> Vec<(u32, Raw)> {
        self.touched.sort_unstable();
        let entries = &mut self.entries;
        self.touched.drain(..).map(|key| (key, std::mem::take(&mut entries[key as usize]))).collect()
    }
}

/// Sums of costs by key.
pub(super) struct Merge {
    table: Table,
}

impl Merge {
    /// For keys below `len`.
    pub fn new(len: usize) -> Self {
        Self { table: Table::new(len) }
    }

    pub fn sum<'a>(&mut self, parts: impl Iterator<Item = &'a Costs>) -> Costs {
        for &(key, ref cost) in parts.flatten() {
            self.table.entry(key).cost.add(cost);
        }
        self.table.drain().into_iter().map(|(key, raw)| (key, raw.cost)).collect()
    }
}

/// Splits time of unknown state as the frame's sums say, piece by piece, so that the pieces together get the sums.
pub(super) struct Spread {
    shares: Option<Shares>,
    given: Spent,
    passed_ns: u64,
}

struct Shares {
    running_ns: u64,
    waiting_ns: u64,
    sum_ns: u64,
}

impl Spread {
    /// For a thread with these sums, of which `blocked_ns` are placed already.
    pub fn new(sums: Option<&FrameThread>, blocked_ns: u64) -> Self {
        let shares = sums.and_then(|sums| {
            let blocked_ns = sums.blocked_ns.saturating_sub(blocked_ns);
            let sum_ns = sums.running_ns.saturating_add(sums.waiting_ns).saturating_add(blocked_ns);
            (sum_ns > 0).then_some(Shares { running_ns: sums.running_ns, waiting_ns: sums.waiting_ns, sum_ns })
        });
        Self { shares, given: Spent::default(), passed_ns: 0 }
    }

    /// Splits `ns`; the parts add up to it. `is_in_scope` decides where there are no sums.
    pub fn split(&mut self, ns: u64, is_in_scope: bool) -> Spent {
        let Some(shares) = &self.shares else {
            let (running_ns, blocked_ns) = if is_in_scope { (ns, 0) } else { (0, ns) };
            return Spent { running_ns, waiting_ns: 0, blocked_ns };
        };
        self.passed_ns += ns;
        // What it should have got by now; the difference to what it has got carries the rounding on to the next piece.
        let due = |share: u64| (u128::from(share) * u128::from(self.passed_ns) / u128::from(shares.sum_ns)) as u64;
        let running_ns = due(shares.running_ns).saturating_sub(self.given.running_ns).min(ns);
        let waiting_ns = due(shares.waiting_ns).saturating_sub(self.given.waiting_ns).min(ns - running_ns);
        let spent = Spent { running_ns, waiting_ns, blocked_ns: ns - running_ns - waiting_ns };
        self.given.add(&spent);
        spent
    }
}
