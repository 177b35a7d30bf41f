//! Missed ticks in words: how many there were, and which of them are the host's.
//!
//! The server tells them apart (`host_watch` there) and says of each second how many the host's were and how much of a
//! core it took, by steal or by a core that stood still for everybody: it does not say which. A second's status may be
//! lost, and the window begins and ends within one: the counts are the report's, and the seconds say when.

use std::fmt::Write;

use crate::load::LoadRun;

/// Seconds that are named; of more, their number is told.
const SECONDS_MAX: usize = 5;

impl LoadRun {
    /// `ticks_missed: 7, of these the host's: 5, since it took a core for 40 ms at second 17`; none if nothing was missed.
    pub fn missed_ticks(&self) -> Option<String> {
        let report = &self.report;
        if report.ticks_missed == 0 {
            return None;
        }
        let mut words =
            format!("ticks_missed: {}, of these the host's: {}", report.ticks_missed, report.ticks_missed_host);
        let of_window = self.seconds.get(self.window.clone()).unwrap_or_default();
        let mut seconds = of_window.iter().filter(|second| second.ticks_missed_host > 0);
        for (number, second) in seconds.by_ref().take(SECONDS_MAX).enumerate() {
            let lead = if number == 0 { ", since it took a core for" } else { "," };
            // Writing to a text does not fail.
            let _ = write!(words, "{lead} {:.0} ms at second {}", second.host_took_ms_max, second.second);
        }
        let further = seconds.count();
        if further > 0 {
            let _ = write!(words, ", and so in {further} seconds more");
        }
        Some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{load_report::LoadReport, seconds::Second};

    #[track_caller]
    fn check(ticks_missed: u64, ticks_missed_host: u64, seconds: &[(u64, f64)], expect: Option<&str>) {
        let second = |second| {
            let found = seconds.iter().find(|(at, _)| *at == second);
            let (ticks_missed_host, host_took_ms_max) = found.map_or((0, 0.0), |(_, took_ms)| (1, *took_ms));
            Second { second, ticks_missed_host, host_took_ms_max, ..Second::default() }
        };
        let run = LoadRun {
            report: LoadReport { ticks_missed, ticks_missed_host, ..LoadReport::default() },
            command: String::new(),
            seconds: (0..20).map(second).collect(),
            window: 5..18,
        };
        assert_eq!(run.missed_ticks().as_deref(), expect);
    }

    #[test]
    fn those_of_the_host_are_told_with_what_it_took_and_when() {
        check(0, 0, &[], None);
        check(7, 0, &[], Some("ticks_missed: 7, of these the host's: 0"));
        let once = "ticks_missed: 7, of these the host's: 5, since it took a core for 40 ms at second 17";
        check(7, 5, &[(17, 40.0)], Some(once));
        check(7, 5, &[(4, 90.0), (17, 40.0), (18, 80.0)], Some(once));
        check(7, 5, &[], Some("ticks_missed: 7, of these the host's: 5"));
    }

    #[test]
    fn of_many_seconds_the_first_are_named() {
        let seconds = [6, 7, 8, 9, 10, 11, 12].map(|second| (second, 30.0));
        let expect = "ticks_missed: 9, of these the host's: 9, since it took a core for 30 ms at second 6, 30 ms at \
                      second 7, 30 ms at second 8, 30 ms at second 9, 30 ms at second 10, and so in 2 seconds more";
        check(9, 9, &seconds, Some(expect));
    }
}
