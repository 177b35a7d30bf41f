//! A thread's scopes and waits as spans that nest, outer ones first.
//!
//! Events stand in the order of their ends, which says of a scope only what is inside it. Sorted by begin, with the
//! longer one first and of equals the later one (it was recorded last, so it was outside), a stack gives each its
//! parent. Where times contradict that, a span is cut to end with its parent; a span that ends before it begins is
//! taken as empty.

use std::cmp::Reverse;

use crate::model::{Capture, Event, Holder, Thread};

/// A stretch of a thread's time, inside its parent and beside its siblings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    pub(crate) what: What,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    /// How many spans it is inside of.
    pub(crate) depth: u32,
    /// Index of the span around it.
    pub(crate) parent: Option<u32>,
    /// Whether it was still open when the capture ended.
    pub(crate) is_open: bool,
    pub(crate) allocations: Option<Allocations>,
    /// The world that the thread worked for, and its tick.
    pub(crate) world: Option<(u32, u32)>,
    recorded: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum What {
    Scope { site: u32 },
    LockWait { lock: u32, holder: Option<Holder> },
}

/// Of a scope by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Allocations {
    pub(crate) count: u32,
    pub(crate) frees: u32,
    pub(crate) bytes: u64,
}

impl Span {
    pub(crate) fn duration_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// The thread's spans by begin, each after the ones around it. Open scopes end with the capture, or where they begin if
/// that is later.
pub(crate) fn nested(capture: &Capture, thread: &Thread) -> Vec<Span> {
    let mut spans = recorded(capture, thread);
    spans.sort_by_key(|span| (span.begin_ns, Reverse(span.end_ns), Reverse(span.recorded)));
    let mut around: Vec<u32> = Vec::new();
    for index in 0..spans.len() {
        let begin_ns = spans[index].begin_ns;
        while around.last().is_some_and(|&outer| spans[outer as usize].end_ns <= begin_ns) {
            around.pop();
        }
        let parent = around.last().copied();
        let end_ns_max = parent.map_or(u64::MAX, |parent| spans[parent as usize].end_ns);
        let span = &mut spans[index];
        span.end_ns = span.end_ns.min(end_ns_max);
        span.parent = parent;
        span.depth = around.len() as u32;
        around.push(index as u32);
    }
    set_worlds(&mut spans, thread);
    spans
}

fn recorded(capture: &Capture, thread: &Thread) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let span = |what, begin_ns: u64, end_ns: u64, recorded| Span {
        what,
        begin_ns,
        end_ns: end_ns.max(begin_ns),
        depth: 0,
        parent: None,
        is_open: false,
        allocations: None,
        world: None,
        recorded,
    };
    let mut last_scope = None;
    for (event, recorded) in thread.events.iter().zip(0_u32..) {
        match *event {
            Event::Scope { site, begin_ns, end_ns } => {
                last_scope = Some(spans.len());
                spans.push(span(What::Scope { site }, begin_ns, end_ns, recorded));
            }
            Event::OpenScope { site, begin_ns } => {
                let open = span(What::Scope { site }, begin_ns, capture.about.end_ns, recorded);
                spans.push(Span { is_open: true, ..open });
            }
            Event::LockWait { lock, begin_ns, end_ns, holder } => {
                spans.push(span(What::LockWait { lock, holder }, begin_ns, end_ns, recorded));
            }
            Event::Allocations { count, frees, bytes } => {
                if let Some(scope) = last_scope {
                    spans[scope].allocations = Some(Allocations { count, frees, bytes });
                }
            }
            _ => {}
        }
    }
    spans
}

/// A span belongs to the world that the thread worked for when it began; if to none, to the one of its end: a scope may
/// begin with choosing its world.
fn set_worlds(spans: &mut [Span], thread: &Thread) {
    let worlds = thread.events.iter().filter_map(|event| match *event {
        Event::World { at_ns, world, tick } => Some((at_ns, world.map(|world| (world, tick)))),
        _ => None,
    });
    let mut worlds: Vec<(u64, Option<(u32, u32)>)> = worlds.collect();
    worlds.sort_by_key(|(at_ns, _)| *at_ns);
    let at = |at_ns: u64, is_included: bool| {
        let count = worlds.partition_point(|(since_ns, _)| *since_ns < at_ns || (is_included && *since_ns == at_ns));
        count.checked_sub(1).and_then(|index| worlds[index].1)
    };
    for span in spans {
        span.world = at(span.begin_ns, true).or_else(|| at(span.end_ns, false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// Spans as `depth name [begin, end)`, for a thread with these events in a capture that ends at 100.
    fn check(events: Vec<Event>, expected: &[&str]) {
        let mut capture = Capture::default();
        capture.about.end_ns = 100;
        let spans = nested(&capture, &Thread { events, ..Thread::default() });
        let told = spans.iter().map(|span| match span.what {
            What::Scope { site } => format!("{} {site} [{}, {})", span.depth, span.begin_ns, span.end_ns),
            What::LockWait { lock, .. } => format!("{} lock {lock} [{}, {})", span.depth, span.begin_ns, span.end_ns),
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
        for (span, index) in spans.iter().zip(0..) {
            assert!(span.parent.is_none_or(|parent| parent < index));
            assert_eq!(span.parent.is_none(), span.depth == 0);
        }
    }

    fn scope(site: u32, begin_ns: u64, end_ns: u64) -> Event {
        Event::Scope { site, begin_ns, end_ns }
    }

    #[test]
    fn inner_scopes_are_recorded_first_and_told_last() {
        check(vec![scope(2, 2, 3), scope(3, 3, 5), scope(1, 1, 9)], &["0 1 [1, 9)", "1 2 [2, 3)", "1 3 [3, 5)"]);
        let wait = Event::LockWait { lock: 4, begin_ns: 2, end_ns: 5, holder: None };
        check(vec![wait, scope(1, 1, 9)], &["0 1 [1, 9)", "1 lock 4 [2, 5)"]);
    }

    #[test]
    fn of_scopes_with_the_same_times_the_last_recorded_is_outside() {
        check(vec![scope(1, 2, 3), scope(2, 2, 3)], &["0 2 [2, 3)", "1 1 [2, 3)"]);
    }

    #[test]
    fn open_scopes_end_with_the_capture() {
        let open = |site, begin_ns| Event::OpenScope { site, begin_ns };
        check(vec![scope(3, 95, 98), open(1, 10), open(2, 90)], &["0 1 [10, 100)", "1 2 [90, 100)", "2 3 [95, 98)"]);
        check(vec![open(1, 200)], &["0 1 [200, 200)"]);
    }

    #[test]
    fn times_that_contradict_each_other_are_cut_to_nest() {
        check(vec![scope(1, 1, 5), scope(2, 3, 9)], &["0 1 [1, 5)", "1 2 [3, 5)"]);
        check(vec![scope(1, 9, 3)], &["0 1 [9, 9)"]);
        check(
            vec![scope(1, 0, u64::MAX), scope(2, u64::MAX, u64::MAX)],
            &[&format!("0 1 [0, {})", u64::MAX), &format!("0 2 [{}, {})", u64::MAX, u64::MAX)],
        );
    }

    #[test]
    fn spans_know_their_world_and_what_they_allocated() {
        let capture = sample::small();
        let spans = nested(&capture, &capture.threads[0]);
        let told: Vec<_> =
            spans.iter().map(|span| (span.what, span.world, span.allocations.map(|sum| sum.count))).collect();
        let scope = |site| What::Scope { site };
        let holder = Some(Holder { thread: 1, site: Some(sample::PATH), world: None });
        let world = Some((7, 42));
        assert_eq!(
            told,
            [
                (scope(sample::FRAME), None, Some(1)),
                (scope(sample::TICK), world, None),
                (scope(sample::INTEREST), world, Some(3)),
                (scope(sample::INTEREST), world, None),
                (What::LockWait { lock: 0, holder }, world, None),
            ]
        );
    }
}
