//! Bars: what a load run must reach to pass.
//!
//! They are on ticks, on what players saw and on whether the bots kept up, not on frame times: a shared machine makes a frame slow now and then,
//! and a server that holds its ticks through that is a good server. Frame times are in the report to tell where the
//! time went.
//!
//! A server that slows a world's time misses no tick, and has not held its rate: so there is a bar on slowed ticks, too, and
//! who loads a server on purpose beyond what it holds reads the report and not the verdict.
//!
//! The bar on missed ticks is on our own (`ticks_missed_ours`: all but the host's). Those of the host, by the server's
//! word, are told beside it, see `missed_ticks`.

use serde::{Deserialize, Serialize};

use crate::load_report::LoadReport;

/// A tick may finish this long after its period before the run fails (ms), at rates up to [`LATENESS_MADE_FOR_HZ`]: one
/// tick at 20 Hz. At faster ones it is the same share of a period, one and a half: 11.7 ms at 128 Hz.
const TICK_LATENESS_MS_MAX: f64 = 50.0;
const LATENESS_MADE_FOR_HZ: f64 = 30.0;

/// Share of its bots' turns that a run may leave out, since the last of them was sent in, and still be the load that it
/// says.
const THINKS_SKIPPED_SHARE_MAX: f64 = 0.01;

/// One requirement, what was measured, and whether it held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Key of the report that it is on, with a dot where it is nested, or the name of what follows from several keys.
    pub key: String,
    pub measured: f64,
    pub requirement: Requirement,
    pub limit: f64,
    pub passed: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    #[default]
    Exactly,
    AtMost,
    AtLeast,
}

impl Bar {
    fn new(key: &str, measured: f64, requirement: Requirement, limit: f64) -> Self {
        // A NaN holds no bar.
        let passed = match requirement {
            Requirement::Exactly => measured == limit,
            Requirement::AtMost => measured <= limit,
            Requirement::AtLeast => measured >= limit,
        };
        Self { key: key.to_owned(), measured, requirement, limit, passed }
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let requirement = match self.requirement {
            Requirement::Exactly => "exactly",
            Requirement::AtMost => "at most",
            Requirement::AtLeast => "at least",
        };
        let verdict = if self.passed { "held" } else { "FAILED" };
        write!(out, "{}: {} ({requirement} {}) {verdict}", self.key, self.measured, self.limit)
    }
}

impl LoadReport {
    /// Judges the run, for `players` bots that should be playing.
    pub(crate) fn judge(&mut self, players: u32) {
        use Requirement::{AtLeast, AtMost, Exactly};
        let mut bars = vec![
            Bar::new("players_connected", self.players_connected as f64, Exactly, f64::from(players)),
            Bar::new("ticks", self.ticks as f64, AtLeast, 1.0),
            Bar::new("ticks_missed_ours", self.ticks_missed_ours() as f64, Exactly, 0.0),
        ];
        // A world that was slowed has not held its rate, though no tick of it is missed.
        if let Some(slowed) = self.of_server("ticks_slowed") {
            bars.push(Bar::new("ticks_slowed", slowed, Exactly, 0.0));
        }
        bars.extend(self.lateness_bars());
        bars.extend([
            Bar::new("disconnects", self.disconnects as f64, Exactly, 0.0),
            Bar::new("state_errors", self.state_errors as f64, Exactly, 0.0),
        ]);
        if let Some(not_filled) = &self.not_filled {
            let players_in = not_filled.players_in as f64;
            bars.push(Bar::new("not_filled.players_in", players_in, Exactly, f64::from(players)));
        }
        let of_bots = |key: &str| self.bots.get(key).and_then(serde_json::Value::as_f64);
        // No errors among no checks would prove nothing: each bot that asks for audit samples checks an entity a second,
        // joining and leaving included.
        if let (Some(checks), Some(bots), Some(seconds)) =
            (of_bots("state_checks"), of_bots("players_audited"), of_bots("seconds"))
        {
            let per_bot_per_s = checks / bots.max(1.0) / seconds.max(1.0);
            bars.push(Bar::new("state_checks_per_audited_bot_per_s", per_bot_per_s, AtLeast, 1.0));
        }
        if let Some(errors) = of_bots("protocol_errors") {
            bars.push(Bar::new("bots.protocol_errors", errors, Exactly, 0.0));
        }
        // Bots that hold still are no load.
        if let Some(share) = of_bots("thinks_skipped_share") {
            bars.push(Bar::new("bots.thinks_skipped_share", share, AtMost, THINKS_SKIPPED_SHARE_MAX));
        }
        // What a game's bots hold against its own rules, if they do.
        let violations = self.bots.get("counters").and_then(|counters| counters.get("violations"));
        if let Some(violations) = violations.and_then(serde_json::Value::as_f64) {
            bars.push(Bar::new("bots.counters.violations", violations, Exactly, 0.0));
        }
        if let Some(parked) = self.of_server("worlds_parked") {
            bars.push(Bar::new("worlds_parked", parked, Exactly, 0.0));
        }
        // Players would miss it in the next run.
        if let Some(is_missing) = self.more.get("saves_missing").and_then(serde_json::Value::as_bool) {
            bars.push(Bar::new("saves_missing", f64::from(u8::from(is_missing)), Exactly, 0.0));
        }
        let is_whole = self.not_filled.is_none() && self.ended_early.is_none() && !self.interrupted;
        self.passed = is_whole && bars.iter().all(|bar| bar.passed);
        self.bars = bars;
    }

    /// What the server alone reports, if it does.
    pub(crate) fn of_server(&self, key: &str) -> Option<f64> {
        self.more.get(key).and_then(serde_json::Value::as_f64)
    }

    /// On all ticks, by the rate of the slowest kind of world, and on those of each kind that ticks faster, by its own.
    /// A server that does not tell how late each kind was is held to its fastest.
    fn lateness_bars(&self) -> Vec<Bar> {
        let figures = |key: &str| {
            let table = self.more.get(key).and_then(serde_json::Value::as_object).into_iter().flatten();
            table.filter_map(|(kind, figure)| Some((kind.as_str(), figure.as_f64()?))).collect::<Vec<_>>()
        };
        let (rates, late) = (figures("tick_hz_by_kind"), figures("tick_lateness_ms_max_by_kind"));
        let of_kinds = rates.iter().filter_map(|&(kind, hz)| {
            let (_, measured) = late.iter().find(|(other, _)| *other == kind)?;
            Some((kind, *measured, lateness_ms_max(hz)))
        });
        let of_kinds: Vec<(&str, f64, f64)> = of_kinds.collect();
        let of_all = of_kinds.iter().map(|(.., limit)| *limit).reduce(f64::max);
        let of_all = of_all.unwrap_or_else(|| lateness_ms_max(self.tick_hz));
        let mut bars = vec![Bar::new("tick_lateness_ms.max", self.tick_lateness_ms.max, Requirement::AtMost, of_all)];
        bars.extend(of_kinds.into_iter().filter(|(.., limit)| *limit < of_all).map(|(kind, measured, limit)| {
            Bar::new(&format!("tick_lateness_ms_max_by_kind.{kind}"), measured, Requirement::AtMost, limit)
        }));
        bars
    }
}

/// How late a tick of this rate may be (ms).
fn lateness_ms_max(hz: f64) -> f64 {
    TICK_LATENESS_MS_MAX * LATENESS_MADE_FOR_HZ / hz.max(LATENESS_MADE_FOR_HZ)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_report::LatenessMs;

    fn good() -> LoadReport {
        let mut report = LoadReport { players_connected: 10, ticks: 1200, ..LoadReport::default() };
        report.bots.insert("state_checks".to_owned(), 4.into());
        report.bots.insert("players_audited".to_owned(), 2.into());
        report.bots.insert("seconds".to_owned(), 2.into());
        report.bots.insert("protocol_errors".to_owned(), 0.into());
        report.bots.insert("thinks_skipped_share".to_owned(), 0.01.into());
        report.bots.insert("counters".to_owned(), serde_json::json!({"violations": 0}));
        report.tick_lateness_ms = LatenessMs { p50: 0.0, p99: 1.0, max: 50.0 };
        report
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut LoadReport), failed: &[&str]) {
        let mut report = good();
        change(&mut report);
        report.judge(10);
        let found: Vec<&str> = report.bars.iter().filter(|bar| !bar.passed).map(|bar| bar.key.as_str()).collect();
        assert_eq!(found, failed);
        assert_eq!(report.passed, failed.is_empty());
    }

    #[test]
    fn each_bar_fails_on_its_own() {
        check(|_| {}, &[]);
        check(|report| report.players_connected = 9, &["players_connected"]);
        check(|report| report.ticks = 0, &["ticks"]);
        check(|report| _ = report.more.insert("ticks_slowed".to_owned(), 0.into()), &[]);
        check(|report| _ = report.more.insert("ticks_slowed".to_owned(), 3.into()), &["ticks_slowed"]);
        check(|report| report.ticks_missed = 1, &["ticks_missed_ours"]);
        check(|report| (report.ticks_missed, report.ticks_missed_host) = (3, 2), &["ticks_missed_ours"]);
        check(|report| (report.ticks_missed, report.ticks_missed_host) = (3, 3), &[]);
        check(|report| report.tick_lateness_ms.max = 50.1, &["tick_lateness_ms.max"]);
        check(|report| report.tick_lateness_ms.max = f64::NAN, &["tick_lateness_ms.max"]);
        check(|report| report.disconnects = 1, &["disconnects"]);
        check(|report| report.state_errors = 1, &["state_errors"]);
        let unchecked = |report: &mut LoadReport| drop(report.bots.insert("state_checks".to_owned(), 3.into()));
        check(unchecked, &["state_checks_per_audited_bot_per_s"]);
        let unasked = |report: &mut LoadReport| drop(report.bots.insert("players_audited".to_owned(), 0.into()));
        check(unasked, &[]);
        check(|report| drop(report.bots.insert("protocol_errors".to_owned(), 1.into())), &["bots.protocol_errors"]);
        let idle = |report: &mut LoadReport| drop(report.bots.insert("thinks_skipped_share".to_owned(), 0.011.into()));
        check(idle, &["bots.thinks_skipped_share"]);
        let violated = serde_json::json!({"violations": 1});
        check(|report| drop(report.bots.insert("counters".to_owned(), violated)), &["bots.counters.violations"]);
        check(|report| drop(report.bots.remove("counters")), &[]);
        check(|report| drop(report.more.insert("worlds_parked".to_owned(), 1.into())), &["worlds_parked"]);
        check(|report| drop(report.more.insert("saves_missing".to_owned(), false.into())), &[]);
        check(|report| drop(report.more.insert("saves_missing".to_owned(), true.into())), &["saves_missing"]);
    }

    /// Promise: 50 ms are a tick at 20 Hz; at 128 Hz, where they are six, less is allowed, and a slow kind beside a fast one
    /// keeps its own.
    #[test]
    fn lateness_is_held_to_the_rate_of_the_kind_that_was_late() {
        let late = |hz: [u16; 2], ms: [f64; 2]| {
            move |report: &mut LoadReport| {
                report.tick_hz = f64::from(hz[0].max(hz[1]));
                report.tick_lateness_ms.max = ms[0].max(ms[1]);
                let table = |hub: f64, duel: f64| serde_json::json!({"hub": hub, "duel": duel});
                let rates = table(f64::from(hz[0]), f64::from(hz[1]));
                report.more.insert("tick_hz_by_kind".to_owned(), rates);
                report.more.insert("tick_lateness_ms_max_by_kind".to_owned(), table(ms[0], ms[1]));
            }
        };
        check(late([20, 30], [49.0, 49.0]), &[]);
        check(late([20, 30], [0.0, 51.0]), &["tick_lateness_ms.max"]);
        check(late([20, 128], [49.0, 11.0]), &[]);
        check(late([20, 128], [0.0, 12.0]), &["tick_lateness_ms_max_by_kind.duel"]);
        check(late([128, 128], [0.0, 12.0]), &["tick_lateness_ms.max"]);
        // Older servers, and those that are not ours.
        check(|report| (report.tick_hz, report.tick_lateness_ms.max) = (128.0, 12.0), &["tick_lateness_ms.max"]);
        check(|report| (report.tick_hz, report.tick_lateness_ms.max) = (128.0, 11.0), &[]);
    }

    #[test]
    fn a_bar_reads_as_a_sentence() {
        let bar = Bar::new("tick_lateness_ms.max", 61.5, Requirement::AtMost, 50.0);
        assert_eq!(bar.to_string(), "tick_lateness_ms.max: 61.5 (at most 50) FAILED");
    }
}
