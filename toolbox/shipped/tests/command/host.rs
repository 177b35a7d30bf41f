//! `throng host measure`, and what a server says of a limit that it runs under.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::Value;
use throng_platform::testing::not_permitted;

use crate::{
    child::{Server, alone, executable, finish, throng, wait_until},
    lifecycle::{get, metric},
};

const WITHIN: Duration = Duration::from_secs(120);
const MEASURE: [&str; 7] = ["host", "measure", "--seconds", "2", "--threads", "1", "--json"];

fn load<'a>(report: &'a Value, name: &str) -> &'a Value {
    let loads = report["loads"].as_array().expect("a list");
    loads.iter().find(|load| load["load"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
}

fn account(load: &Value, name: &str) -> f64 {
    load["accounts"][name].as_f64().unwrap_or_else(|| panic!("no {name} in {load}"))
}

/// Promise: what the loops count themselves, the process and the host agree about, as far as somebody beside them lets
/// them.
#[test]
fn the_loads_are_seen_from_inside_and_from_outside() {
    let _alone = alone();
    let finished = finish(throng(&MEASURE), WITHIN);
    assert!(finished.status.success(), "{}", finished.stderr);
    let report = finished.json();
    let busy = load(&report, "busy");
    let own = busy["loop_cpu_cores"].as_f64().expect("a number");
    let inside = account(busy, "inside.cpu_cores");
    // Both are exact, and the process has little beside the loop.
    assert!(own > 0.0 && (own * 0.98..own * 1.2 + 0.1).contains(&inside), "{own} and {inside}: {report}");
    // A sum of samples of everybody.
    assert!(account(busy, "outside.host_busy_cores") > 0.5 * own, "{report}");
    assert!(inside > 4.0 * account(load(&report, "idle"), "inside.cpu_cores"), "{report}");
    let work = |name: &str, what: &str| load(&report, name)["work"][what].as_f64().unwrap_or_default();
    assert!(work("disk", "writes_per_s") > 0.0 && work("network", "received_packets_per_s") > 0.0, "{report}");
    // They go out and come in on the same interface.
    let network = load(&report, "network");
    let received = work("network", "received_packets_per_s");
    assert!(account(network, "outside.network_received_packets_per_s") > 0.5 * received, "{report}");
}

#[test]
fn mistakes_are_told() {
    finish(throng(&["host"]), WITHIN).check_refused(&["measure"]);
    finish(throng(&["host", "measure", "--seconds", "0"]), WITHIN).check_refused(&["--seconds"]);
    let nowhere = ["host", "measure", "--seconds", "1", "--folder", "/nowhere/at/all"];
    let refused = finish(throng(&nowhere), WITHIN);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("--folder"), "{}", refused.stderr);
}

/// Control groups with half a core for all that is in them, of either version; gone when this is dropped.
struct HalfACore(Vec<PathBuf>);

impl HalfACore {
    /// `None` where no groups can be made, which is said.
    fn new(name: &str) -> Option<Self> {
        let mut groups = Self(Vec::new());
        let made = match Path::new("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists() {
            true => groups
                .make("/sys/fs/cgroup/cpu", name, &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "50000")])
                .and_then(|()| match Path::new("/sys/fs/cgroup/cpuacct").join(name).exists() {
                    true => Ok(()),
                    false => groups.make("/sys/fs/cgroup/cpuacct", name, &[]),
                }),
            false => groups.make("/sys/fs/cgroup", name, &[("cpu.max", "50000 100000")]),
        };
        if let Err(error) = made {
            not_permitted(&format!(
                "a control group with a limit cannot be made under /sys/fs/cgroup ({error}), which takes root"
            ));
            return None;
        }
        Some(groups)
    }

    fn make(&mut self, tree: &str, name: &str, files: &[(&str, &str)]) -> std::io::Result<()> {
        let group = Path::new(tree).join(name);
        fs::create_dir(&group)?;
        self.0.push(group.clone());
        files.iter().try_for_each(|(file, text)| fs::write(group.join(file), text))
    }

    /// `program`, which goes into the groups before it begins.
    fn inside(&self, program: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let enter = self.0.iter().map(|group| format!("echo $$ > {}/cgroup.procs && ", group.display()));
        command.args(["-c", &format!("{}exec \"$@\"", enter.collect::<String>()), "sh"]);
        command.arg(executable()).args(program);
        command
    }
}

impl Drop for HalfACore {
    fn drop(&mut self) {
        // A group is empty a moment after its last process has been waited for.
        let _ = wait_until(Duration::from_secs(10), || {
            self.0.retain(|group| fs::remove_dir(group).is_err());
            self.0.is_empty().then_some(())
        });
    }
}

fn group_name(test: &str) -> String {
    format!("throng-{test}-{}", std::process::id())
}

/// Promise: whoever runs under a limit is told, and sees how often it stood still.
#[test]
fn a_limit_is_seen_that_makes_the_loads_stand_still() {
    let _alone = alone();
    let Some(groups) = HalfACore::new(&group_name("measure")) else { return };
    let finished = finish(groups.inside(&MEASURE), WITHIN);
    assert!(finished.status.success(), "{}", finished.stderr);
    let report = finished.json();
    let busy = load(&report, "busy");
    assert_eq!(account(busy, "outside.group_quota_cores"), 0.5, "{report}");
    assert!(account(busy, "inside.cpu_cores") < 0.75, "half a core, and a period more: {report}");
    assert!(account(busy, "outside.group_throttled_share") > 0.3, "{report}");
    // The process is alone in its group: both accounts are exact.
    let (inside, outside) = (account(busy, "inside.cpu_cores"), account(busy, "outside.group_cpu_cores"));
    assert!((outside - inside).abs() < 0.1 * inside + 0.05, "{inside} and {outside}: {report}");
    assert!(report["findings"].to_string().contains("stand still"), "{report}");
}

#[test]
fn a_server_says_that_its_limit_is_below_its_workers() {
    let Some(groups) = HalfACore::new(&group_name("serve")) else { return };
    let mut command = groups.inside(&["serve", "--players", "2", "--npcs", "8", "--all-awake", "--workers", "2"]);
    command.args(["--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--crashes", "off"]);
    let server = Server::start_command(command);
    assert_eq!(server.wait_for_status("group_quota_cores", |cores| cores > 0.0), 0.5);
    let (_, text) = get(server.admin_address, "/metrics");
    assert_eq!(metric(&text, "throng_outside_cap_below_workers"), 1.0);
    assert_eq!(metric(&text, "throng_outside_group_quota_cores"), 0.5);
    assert!(metric(&text, "throng_inside_cpu_cores") > 0.0);
    let ended = server.stop();
    assert!(ended.stderr.contains("limit is below what the workers may use"), "{}", ended.stderr);
    let accounts = &ended.report["accounts"];
    assert!(accounts["inside.cpu_cores"].as_f64().is_some_and(|cores| cores > 0.0), "{accounts}");
    assert!(accounts["outside.group_cpu_cores"].as_f64().is_some_and(|cores| cores > 0.0), "{accounts}");
}
