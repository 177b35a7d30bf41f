//! Figures: what was used between two readings, a number for each account, with its name and what it says.
//!
//! The names are the same in metrics, captures, reports and on the command line. Those that begin with `inside` are the
//! process's own word, those with `outside` others'.

use super::{Account, Host, Network};
use crate::control_groups::{GroupUse, Limit};
use crate::time::Nanos;

/// A number of [`Rates`].
#[derive(Debug)]
pub struct Figure {
    /// With its unit.
    pub name: &'static str,
    pub help: &'static str,
    /// What an operator does when it grows.
    pub advice: &'static str,
}

const fn figure(name: &'static str, help: &'static str, advice: &'static str) -> Figure {
    Figure { name, help, advice }
}

/// All figures: the inside first.
pub const FIGURES: [Figure; 18] = [
    figure(
        "inside.cpu_cores",
        "Cores' worth of processor time that the process used, by its own clock.",
        "Compare with `outside.group_cpu_cores`: less inside than outside is work that the process is billed for and does not see.",
    ),
    figure("inside.kernel_cores", "The kernel's part of it.", "System calls: packets, mostly."),
    figure(
        "inside.run_queue_wait_cores",
        "Seconds per second that its threads were ready to run and had no core, added up.",
        "Too few cores, or too small a share of them: see `outside.group_throttled_share` and `outside.host_busy_cores`.",
    ),
    figure(
        "inside.disk_read_bytes_per_s",
        "Bytes that a disk read for the process.",
        "A server that has started reads little.",
    ),
    figure("inside.disk_written_bytes_per_s", "Bytes that a disk wrote for the process.", "Captures, logs and saves."),
    figure(
        "outside.group_cpu_cores",
        "Cores' worth of processor time by the account of the process's control group, with all that is in it.",
        "This is what a container is billed for. More than inside: somebody else is in the group.",
    ),
    figure(
        "outside.group_quota_cores",
        "The limit of the group or of one around it.",
        "Give it at least a core for each worker, or start fewer workers.",
    ),
    figure(
        "outside.group_throttled_share",
        "Share of the limit's periods in which the group had to stand still.",
        "Above 0 ticks are late by it: raise the limit (`cpu.max`, a container's cpus), or start fewer workers.",
    ),
    figure("outside.group_throttled_ms_per_s", "For how long it stood still, added up over cores.", "As above."),
    figure("outside.host_cores", "Cores of the host.", "It does not change."),
    figure(
        "outside.host_busy_cores",
        "Cores' worth of work of everybody on the host.",
        "Near all of them: others take what the server needs.",
    ),
    figure(
        "outside.host_steal_cores",
        "Cores' worth of time in which the hypervisor ran somebody else while this host wanted to run.",
        "The host is not given what it was sold. Only the provider can help.",
    ),
    figure(
        "outside.host_softirq_cores",
        "Cores' worth of work after interrupts: packets, mostly.",
        "Work for the server's packets that no process is charged for.",
    ),
    figure(
        "outside.network_received_bytes_per_s",
        "Bytes that came in on all interfaces of the network namespace.",
        "Compare with `net.packets_in`: the rest is others', or a flood.",
    ),
    figure("outside.network_received_packets_per_s", "Packets that came in on them.", "As above."),
    figure("outside.network_sent_bytes_per_s", "Bytes that went out on them.", "As above, with `net.packets_out`."),
    figure(
        "outside.network_sent_packets_per_s",
        "Packets that went out on them.",
        "As above. Less than the server sent: datagrams go as trains.",
    ),
    figure(
        "outside.seconds",
        "Time between the two readings.",
        "More than a second: the thread that reads is kept from it.",
    ),
];

/// What was used between two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// In the order of [`FIGURES`]; `None` of what could not be read.
    values: [Option<f64>; FIGURES.len()],
}

impl Rates {
    pub fn between(before: &Account, after: &Account) -> Rates {
        let seconds = (after.at.saturating_sub(before.at)).as_secs_f64().max(1e-9);
        let cores = |before: Nanos, after: Nanos| after.saturating_sub(before).as_secs_f64() / seconds;
        let per_s = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
        let (inside, outside) = ((&before.inside, &after.inside), (&before.outside, &after.outside));

        let disk = inside.0.disk.zip(inside.1.disk);
        let host = outside.0.host.zip(outside.1.host);
        let network = outside.0.network.zip(outside.1.network);
        // A process that was moved has another group's sums.
        let group = (outside.0.group.as_ref().zip(outside.1.group.as_ref()))
            .filter(|(before, after)| (before.version, &before.name) == (after.version, &after.name));
        let limit = group.and_then(|(before, after)| before.limit.zip(after.limit));

        let of_group = |value: fn(&GroupUse) -> Nanos| group.map(|(before, after)| cores(value(before), value(after)));
        let of_host = |value: fn(&Host) -> Nanos| host.map(|(before, after)| cores(value(&before), value(&after)));
        let of_network =
            |value: fn(&Network) -> u64| network.map(|(before, after)| per_s(value(&before), value(&after)));
        let of_disk = |value: fn(&super::Disk) -> u64| disk.map(|(before, after)| per_s(value(&before), value(&after)));
        let throttled_share = |(before, after): (Limit, Limit)| {
            let periods = after.periods.saturating_sub(before.periods);
            let throttled = after.throttled_periods.saturating_sub(before.throttled_periods);
            if periods == 0 { 0.0 } else { throttled as f64 / periods as f64 }
        };
        let values = [
            Some(cores(inside.0.cpu, inside.1.cpu)),
            Some(cores(inside.0.kernel, inside.1.kernel)),
            inside.0.run_queue_wait.zip(inside.1.run_queue_wait).map(|(before, after)| cores(before, after)),
            of_disk(|disk| disk.read_bytes),
            of_disk(|disk| disk.written_bytes),
            of_group(|group| group.used),
            limit.map(|(_, after)| after.quota_cores),
            limit.map(throttled_share),
            limit.map(|(before, after)| cores(before.throttled, after.throttled) * 1e3),
            host.map(|(_, after)| after.cores.into()),
            of_host(|host| host.busy),
            of_host(|host| host.steal),
            of_host(|host| host.softirq),
            of_network(|network| network.received_bytes),
            of_network(|network| network.received_packets),
            of_network(|network| network.sent_bytes),
            of_network(|network| network.sent_packets),
            Some(seconds),
        ];
        Rates { values }
    }

    /// All figures with what is known of them.
    pub fn figures(&self) -> impl Iterator<Item = (&'static Figure, Option<f64>)> {
        FIGURES.iter().zip(self.values)
    }

    /// One of them by name; `None` if it is not known.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.figures().find(|(figure, _)| figure.name == name)?.1
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Disk, Inside, Outside};
    use super::*;

    fn account(at_ms: u64, share: u64) -> Account {
        let ms = |ms: u64| Nanos::from_millis(ms * share);
        let limit = Limit { quota_cores: 1.5, periods: 20 * share, throttled_periods: 5 * share, throttled: ms(300) };
        let group =
            GroupUse { version: 2, name: "/a".into(), is_whole_host: false, used: ms(1_400), limit: Some(limit) };
        Account {
            at: Nanos::from_millis(at_ms),
            inside: Inside {
                cpu: ms(1_200),
                kernel: ms(100),
                run_queue_wait: Some(ms(50)),
                disk: Some(Disk { read_bytes: 0, written_bytes: 4_096 * share }),
            },
            outside: Outside {
                group: Some(group),
                host: Some(Host { cores: 4, busy: ms(3_000), softirq: ms(200), steal: ms(100) }),
                network: Some(Network { received_packets: 100 * share, ..Network::default() }),
            },
        }
    }

    #[test]
    fn rates_are_what_both_sides_used_in_a_second() {
        // Two seconds in which twice as much was used as the names of the fields say for one.
        let rates = Rates::between(&account(1_000, 1), &account(3_000, 3));
        let near = |name: &str, expect: f64| {
            let found = rates.get(name).unwrap();
            assert!((found - expect).abs() < 1e-9, "{name}: {found}");
        };
        near("inside.cpu_cores", 1.2);
        near("outside.group_cpu_cores", 1.4);
        near("outside.group_throttled_share", 0.25);
        near("outside.group_throttled_ms_per_s", 300.0);
        near("outside.group_quota_cores", 1.5);
        near("outside.host_busy_cores", 3.0);
        near("outside.host_steal_cores", 0.1);
        near("inside.run_queue_wait_cores", 0.05);
        near("inside.disk_written_bytes_per_s", 4_096.0);
        near("outside.network_received_packets_per_s", 100.0);
        near("outside.seconds", 2.0);
    }

    #[test]
    fn what_one_reading_lacks_is_not_told() {
        let (mut before, after) = (account(0, 1), account(1_000, 2));
        before.outside.group.as_mut().unwrap().name = "/elsewhere".into();
        before.outside.host = None;
        let rates = Rates::between(&before, &after);
        for name in ["outside.group_cpu_cores", "outside.group_quota_cores", "outside.host_busy_cores"] {
            assert_eq!(rates.get(name), None, "{name}");
        }
        assert!(rates.get("inside.cpu_cores").is_some());
    }

    #[test]
    fn names_say_their_side_and_are_one_each() {
        for (place, figure) in FIGURES.iter().enumerate() {
            assert!(figure.name.starts_with("inside.") || figure.name.starts_with("outside."), "{}", figure.name);
            assert!(!FIGURES[..place].iter().any(|other| other.name == figure.name), "{}", figure.name);
        }
    }
}
