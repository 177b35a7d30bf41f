//! Host findings: what the host did to a run, and of what it came.
//!
//! By what the report has already: ticks that were missed since the host took the core, the server's accounts by its own word and
//! by others', and captures that were saved since a frame's thread had no core. What a figure is about, and what to do, stands
//! in its definition (`throng_platform::accounts`).

use serde::Serialize;
use serde_json::Value;
use throng_platform::accounts::FIGURES;

use super::linked_captures::Captures;
use crate::load::LoadRun;

/// Cores' worth of time that the hypervisor may take with nothing amiss.
const STEAL_CORES: f64 = 0.05;
/// Seconds per second that threads may wait for a core.
const WAIT_CORES: f64 = 0.1;
/// Cores' worth of work of others.
const OTHERS_CORES: f64 = 0.1;
/// Captures that are told of.
const CAPTURES_MAX: usize = 3;

/// Something that the host did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HostFinding {
    pub what: String,
    /// Of what it came, as far as that is known.
    pub cause: String,
    /// What shows it, in the day's folder.
    pub capture: Option<String>,
}

impl HostFinding {
    fn new(what: String, cause: impl Into<String>) -> Self {
        Self { what, cause: cause.into(), capture: None }
    }
}

/// All there is to say of a run; nothing of a host that kept still.
pub(super) fn of(run: &LoadRun, captures: &Captures) -> Vec<HostFinding> {
    let account = |name: &str| run.report.more.get("accounts")?.get(name).and_then(Value::as_f64);
    let advice = |name: &str| FIGURES.iter().find(|figure| figure.name == name).map_or("", |figure| figure.advice);
    let mut found = Vec::new();
    if run.report.ticks_missed_host > 0
        && let Some(missed) = run.missed_ticks()
    {
        found.push(HostFinding::new(
            missed,
            "the host took the core: the hypervisor ran somebody else (steal), or the core stood still for everybody",
        ));
    }
    if let Some(share) = account("outside.group_throttled_share").filter(|share| *share > 0.0) {
        let limit = account("outside.group_quota_cores");
        let limit = limit.map_or_else(String::new, |cores| format!(" of {cores:.2} cores"));
        let what = format!("the server stood still in {:.1} % of its control group's periods", 100.0 * share);
        let advice = advice("outside.group_throttled_share");
        found.push(HostFinding::new(what, format!("the group's limit{limit}. {advice}")));
    }
    if let Some(cores) = account("outside.host_steal_cores").filter(|cores| *cores >= STEAL_CORES) {
        let what = format!("the hypervisor took {cores:.2} cores' worth of time");
        found.push(HostFinding::new(what, advice("outside.host_steal_cores")));
    }
    if let Some(waited) = account("inside.run_queue_wait_cores").filter(|waited| *waited >= WAIT_CORES) {
        let what = format!("the server's threads waited for a core, {waited:.2} s in each second, added up");
        found.push(HostFinding::new(what, who_had_the_cores(run, &account)));
    }
    found.extend(captures.of_run_queue(CAPTURES_MAX).into_iter().map(|capture| HostFinding {
        what: "a thread that a frame waited for was ready and had no core".to_owned(),
        cause: capture.verdict,
        capture: Some(capture.file),
    }));
    found
}

/// Of the host's cores.
fn who_had_the_cores(run: &LoadRun, account: &dyn Fn(&str) -> Option<f64>) -> String {
    let (server, bots) = (run.report.server_cpu_cores, run.report.bots_cpu_cores);
    let ours = format!("the server had {server:.2} cores and the bots {bots:.2}");
    let (Some(cores), Some(busy)) = (account("outside.host_cores"), account("outside.host_busy_cores")) else {
        return format!("{ours}; who had the others is not known here");
    };
    let others = (busy - server - bots).max(0.0);
    let cause = if others >= OTHERS_CORES {
        format!("others on this host had {others:.2}")
    } else if busy >= 0.9 * cores {
        "all of them are used by these two: more cores, or fewer players".to_owned()
    } else {
        "cores were free on the whole: several threads woke at once".to_owned()
    };
    format!("of {cores:.0} cores {busy:.2} were busy: {ours}; {cause}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::{load_report::LoadReport, seconds::Second};

    #[track_caller]
    fn check(accounts: Value, expect: &[(&str, &str)]) {
        let mut report = LoadReport { server_cpu_cores: 0.9, bots_cpu_cores: 0.6, ..LoadReport::default() };
        report.more.insert("accounts".to_owned(), accounts);
        let run = LoadRun { report, command: String::new(), seconds: Vec::new(), window: 0..0 };
        check_run(&run, expect);
    }

    #[track_caller]
    fn check_run(run: &LoadRun, expect: &[(&str, &str)]) {
        let found = of(run, &Captures::look(Path::new("day"), &[]));
        assert_eq!(found.len(), expect.len(), "{found:#?}");
        for (found, (what, cause)) in found.iter().zip(expect) {
            assert!(found.what.contains(what) && found.cause.contains(cause), "{found:#?}");
        }
    }

    #[test]
    fn each_finding_has_its_cause() {
        check(json!({}), &[]);
        check(json!({"outside.group_throttled_share": 0.0, "outside.host_steal_cores": 0.01}), &[]);
        check(
            json!({"outside.group_throttled_share": 0.125, "outside.group_quota_cores": 1.5}),
            &[("12.5 % of its control group's periods", "limit of 1.50 cores. Above 0 ticks are late")],
        );
        check(json!({"outside.host_steal_cores": 0.3}), &[("took 0.30 cores", "Only the provider can help")]);
        let waited = |busy: f64| json!({"inside.run_queue_wait_cores": 0.5, "outside.host_cores": 2.0, "outside.host_busy_cores": busy});
        check(waited(1.95), &[("0.50 s in each second", "others on this host had 0.45")]);
        check(waited(1.55), &[("waited for a core", "several threads woke at once")]);
        check(json!({"inside.run_queue_wait_cores": 0.5}), &[("waited", "is not known here")]);
    }

    #[test]
    fn ticks_that_the_host_took_are_told_with_when() {
        let second = Second { second: 3, ticks_missed_host: 2, host_took_ms_max: 40.0, ..Second::default() };
        let report = LoadReport { ticks_missed: 2, ticks_missed_host: 2, ..LoadReport::default() };
        let run = LoadRun { report, command: String::new(), seconds: vec![second], window: 0..1 };
        check_run(&run, &[("40 ms at second 3", "stood still for everybody")]);
    }
}
