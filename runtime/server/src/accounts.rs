//! Accounts: what the server uses by its own word, beside what its control group and its host say of it.
//!
//! A thread of low priority reads both sides once a second ([`throng_platform::accounts`]) and leaves them where metrics,
//! status and report find them; into captures they go as counters. The frame's thread reads nothing of the host and waits
//! for nobody: it takes what was left last, which is a second old at most.
//!
//! A limit of processor time that is billed from outside shows as late ticks, and nowhere inside. So the log says at the
//! start when the limit is below what the workers may use, and later when the group was made to stand still.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use throng_metrics::LabelledGauges;
use throng_platform::{
    accounts::{Account, AccountReader, FIGURES, Rates},
    threads::{Priority, spawn_named},
    time::Nanos,
};
use throng_profiler::{
    Counter, is_recording, log_category, log_info, log_warn,
    thread::{self, ThreadClass},
};

use crate::{latest::Latest, metrics::PublishedMetrics};

log_category!(HOST = "server.host");

/// Time between two readings. Less often and a capture has none; more often and the files of a host with many threads
/// are a share of a core.
const PERIOD: Duration = Duration::from_secs(1);

/// A group that is throttled again and again is told of so often at most.
const TELL_PERIOD: Nanos = Nanos::from_secs(60);

/// What is told of a limit below the workers' number: the name of a gauge, and what it says.
pub(crate) const CAP: (&str, &str, &str) = (
    "outside.cap_below_workers",
    "1 if the control group's limit is below the number of workers, otherwise 0.",
    "Workers that all have work are made to stand still: raise the limit, or set `[server] workers` to what it holds.",
);

/// The accounts, read last.
#[derive(Debug, Clone)]
pub(crate) struct Accounts {
    pub account: Account,
    /// Since the reading before.
    pub rates: Rates,
    /// The limit is below the number of workers.
    pub is_cap_below_workers: bool,
}

/// Written by the thread that reads, read by anybody.
pub(crate) type LatestAccounts = Latest<Option<Accounts>>;

/// Reads until it is dropped.
pub(crate) struct Bookkeeper {
    /// Nothing is ever sent: its end is the order to stop.
    order: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bookkeeper {
    /// For a server with so many workers. Reads once before it returns: from then on there is something to compare with.
    pub fn start(published: Arc<PublishedMetrics>, workers_count: usize) -> io::Result<Self> {
        let (order, orders) = sync_channel(1);
        let mut reader = AccountReader::default();
        let mut before = reader.read();
        let mut teller = Teller::new(workers_count);
        teller.begin(&before);
        let is_cap_below_workers = teller.is_cap_below_workers(&before);
        let first = Accounts { account: before.clone(), rates: Rates::default(), is_cap_below_workers };
        published.accounts().publish(Some(first));
        let thread = spawn_named("accounts", Priority::Low, move || {
            while orders.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let account = reader.read();
                let rates = Rates::between(&before, &account);
                record(&rates);
                teller.tell(&before, &account);
                let is_cap_below_workers = teller.is_cap_below_workers(&account);
                before = account.clone();
                published.accounts().publish(Some(Accounts { account, rates, is_cap_below_workers }));
            }
        })?;
        Ok(Self { order: Some(order), thread: Some(thread) })
    }
}

impl Drop for Bookkeeper {
    fn drop(&mut self) {
        drop(self.order.take());
        // It ends with the process, whatever it died of.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Says in the log what nobody would see from inside.
struct Teller {
    workers_count: usize,
    /// The last line about throttling, and the sums that it was about.
    told_at: Option<Nanos>,
    told: (u64, Nanos),
}

impl Teller {
    fn new(workers_count: usize) -> Self {
        Self { workers_count, told_at: None, told: (0, Nanos::ZERO) }
    }

    fn begin(&mut self, account: &Account) {
        self.told = throttled(account);
        for missing in account.missing() {
            log_info!(HOST, missing, "an account of what the server uses is not to be had");
        }
        if let Some(group) = account.outside.group.as_ref()
            && let Some(limit) = group.limit.filter(|_| self.is_cap_below_workers(account))
        {
            log_warn!(
                HOST,
                group = %group.name,
                quota_cores = limit.quota_cores,
                workers = self.workers_count,
                "the control group's limit is below what the workers may use: it makes them stand still when all have work; raise \
                 the limit, or set [server] workers to what it holds"
            );
        }
    }

    fn is_cap_below_workers(&self, account: &Account) -> bool {
        let limit = account.outside.group.as_ref().and_then(|group| group.limit);
        limit.is_some_and(|limit| limit.quota_cores < self.workers_count as f64)
    }

    fn tell(&mut self, before: &Account, now: &Account) {
        let is_throttled = throttled(now).0 > throttled(before).0;
        let is_told = self.told_at.is_some_and(|told_at| now.at < told_at + TELL_PERIOD);
        if !is_throttled || is_told {
            return;
        }
        let (periods, stood) = throttled(now);
        let (periods_told, stood_told) = std::mem::replace(&mut self.told, (periods, stood));
        self.told_at = Some(now.at);
        let group = now.outside.group.as_ref();
        log_warn!(
            HOST,
            group = group.map_or("", |group| &group.name),
            quota_cores = group.and_then(|group| group.limit).map(|limit| limit.quota_cores),
            throttled_periods = periods.saturating_sub(periods_told),
            throttled_ms = stood.saturating_sub(stood_told).as_millis_f64(),
            "the control group's limit made the server stand still, and ticks with it"
        );
    }
}

/// Periods in which the group had to stand still, and for how long it did.
fn throttled(account: &Account) -> (u64, Nanos) {
    let limit = account.outside.group.as_ref().and_then(|group| group.limit);
    limit.map_or((0, Nanos::ZERO), |limit| (limit.throttled_periods, limit.throttled))
}

static COUNTERS: [Counter; FIGURES.len()] = {
    let mut counters = [const { Counter::new("") }; FIGURES.len()];
    let mut place = 0;
    while place < FIGURES.len() {
        counters[place] = Counter::new(FIGURES[place].name);
        place += 1;
    }
    counters
};

/// For captures.
fn record(rates: &Rates) {
    if !is_recording() {
        return;
    }
    thread::register(ThreadClass::Other);
    for (counter, (_, value)) in COUNTERS.iter().zip(rates.figures()) {
        value.into_iter().for_each(|value| counter.set(value as f32));
    }
}

/// Without values where there are none.
pub(crate) fn gauges(accounts: Option<&Accounts>) -> Vec<LabelledGauges> {
    let row = |value: Option<f64>| value.into_iter().map(|value| (Vec::new(), value)).collect();
    let mut gauges: Vec<_> = FIGURES
        .iter()
        .map(|figure| {
            let value = accounts.and_then(|accounts| accounts.rates.get(figure.name));
            LabelledGauges { name: figure.name, help: figure.help.trim_end_matches('.'), keys: &[], rows: row(value) }
        })
        .collect();
    let (name, help, _) = CAP;
    let cap = accounts.map(|accounts| f64::from(u8::from(accounts.is_cap_below_workers)));
    gauges.push(LabelledGauges { name, help: help.trim_end_matches('.'), keys: &[], rows: row(cap) });
    gauges
}

#[cfg(test)]
mod tests {
    use throng_platform::{
        accounts::{Inside, Outside},
        control_groups::{GroupUse, Limit},
    };

    use super::*;

    fn account(at_s: u64, quota_cores: f64, throttled_periods: u64) -> Account {
        let limit = Limit { quota_cores, periods: 100, throttled_periods, throttled: Nanos::from_millis(50) };
        let group = GroupUse {
            version: 2,
            name: "/game.service".into(),
            is_whole_host: false,
            used: Nanos::ZERO,
            limit: Some(limit),
        };
        Account {
            at: Nanos::from_secs(at_s),
            inside: Inside { cpu: Nanos::ZERO, kernel: Nanos::ZERO, run_queue_wait: None, disk: None },
            outside: Outside { group: Some(group), host: None, network: None },
        }
    }

    #[test]
    fn a_cap_is_one_below_the_workers() {
        let teller = Teller::new(2);
        for (quota_cores, expect) in [(0.5, true), (1.9, true), (2.0, false), (8.0, false)] {
            assert_eq!(teller.is_cap_below_workers(&account(0, quota_cores, 0)), expect, "{quota_cores}");
        }
        let mut free = account(0, 1.0, 0);
        free.outside.group = None;
        assert!(!teller.is_cap_below_workers(&free));
    }

    #[test]
    fn throttling_is_told_once_a_minute_with_all_that_came_since() {
        let mut teller = Teller::new(2);
        teller.begin(&account(0, 2.0, 7));
        let mut told = Vec::new();
        for second in 1..=130 {
            // From the 10th second on it is throttled in each.
            let periods = |second: u64| 7 + second.saturating_sub(9);
            teller.tell(&account(second - 1, 2.0, periods(second - 1)), &account(second, 2.0, periods(second)));
            if told.last() != Some(&teller.told.0) && teller.told_at == Some(Nanos::from_secs(second)) {
                told.push(teller.told.0);
            }
        }
        assert_eq!(told, [8, 68, 128]);
    }

    #[test]
    fn gauges_are_named_whether_or_not_they_are_known() {
        let names = |accounts| gauges(accounts).into_iter().map(|gauge| gauge.name).collect::<Vec<_>>();
        let accounts = Accounts {
            rates: Rates::between(&account(0, 1.0, 0), &account(1, 1.0, 3)),
            account: account(1, 1.0, 3),
            is_cap_below_workers: true,
        };
        assert_eq!(names(None), names(Some(&accounts)));
        let value = |name| {
            let gauge = gauges(Some(&accounts)).into_iter().find(|gauge| gauge.name == name).unwrap();
            gauge.rows.first().map(|(_, value)| *value)
        };
        assert_eq!((value("outside.group_quota_cores"), value(CAP.0)), (Some(1.0), Some(1.0)));
        assert_eq!(value("outside.host_busy_cores"), None);
    }
}
