//! Names and numbers of a capture's things for other tools, also where an index points nowhere.

use std::borrow::Cow;
use std::collections::HashSet;

use throng_redact::visible;

use super::spans::What;
use crate::model::{Capture, Counter, LiveBytes, Lock, Site, Thread};

pub(crate) fn site(capture: &Capture, index: u32) -> Option<&Site> {
    capture.sites.get(index as usize)
}

/// What a span is called.
pub(crate) fn span(capture: &Capture, what: What) -> Cow<'_, str> {
    match what {
        What::Scope { site: index } => {
            site(capture, index).map_or_else(|| format!("site {index}").into(), |site| visible(&site.name))
        }
        What::LockWait { lock: index, .. } => format!("wait for lock {}", lock(capture, index)).into(),
    }
}

pub(crate) fn lock(capture: &Capture, index: u32) -> Cow<'_, str> {
    let name = |lock: &'_ Lock| visible(&lock.name).into_owned();
    capture.locks.get(index as usize).map_or_else(|| index.to_string(), name).into()
}

pub(crate) fn counter(capture: &Capture, index: u32) -> Cow<'_, str> {
    let name = |counter: &'_ Counter| visible(&counter.name).into_owned();
    capture.counters.get(index as usize).map_or_else(|| format!("counter {index}"), name).into()
}

pub(crate) fn thread(capture: &Capture, index: u32) -> Cow<'_, str> {
    let name = |thread: &'_ Thread| visible(&thread.name).into_owned();
    capture.threads.get(index as usize).map_or_else(|| format!("thread {index}"), name).into()
}

/// A number per thread that no other has, for viewers that put tracks together by it: the kernel's where that will do.
/// A kernel gives a dead thread's number to a new one.
pub(crate) fn thread_numbers(capture: &Capture) -> Vec<u32> {
    /// Beyond `pid_max` of Linux, 2^22; and 1 is the process.
    const FIRST_MADE_UP: u32 = 1 << 23;
    let mut taken = HashSet::from([0, PROCESS_NUMBER]);
    let numbers = capture.threads.iter().zip(FIRST_MADE_UP..).map(|(thread, made_up)| {
        if thread.tid < FIRST_MADE_UP && taken.insert(thread.tid) { thread.tid } else { made_up }
    });
    numbers.collect()
}

/// The captured process; which one it was on its host is not known.
pub(crate) const PROCESS_NUMBER: u32 = 1;

/// What the process is called.
pub(crate) fn process(capture: &Capture) -> String {
    visible(format!("{} {}", capture.about.build, capture.about.game).trim()).into_owned()
}

/// What a counter of live bytes is called.
pub(crate) fn live_bytes(capture: &Capture, row: &LiveBytes) -> String {
    let owner = row.site.map_or(Cow::Borrowed("outside scopes"), |site| span(capture, What::Scope { site }));
    format!("live bytes: {owner}")
}
