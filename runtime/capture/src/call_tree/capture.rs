//! From a capture to a call tree.
//!
//! Each thread is a root, and what no scope covers is spent by the root itself, so that every thread's wall time adds
//! up to the capture's length. A node's wall time without its children's is cut at the thread's context switches: what
//! lies between losing a core and getting one is waiting or blocked, the rest is CPU. Without switch records all of it
//! counts as CPU.

use throng_redact::visible;

use super::{
    ALLOCATED_BYTES, ALLOCATIONS, BLOCKED, CAPTURE_EVENTS, CPU, CallTree, NodeIndex, StackFrame, WAITING, WALL,
};
use crate::convert::names;
use crate::convert::spans::{self, Span, What};
use crate::model::{Capture, Event, Switch, Thread};

impl CallTree {
    /// The scopes and waits of all threads, with [`CAPTURE_EVENTS`] as costs. Cost: sorting each thread's scopes.
    pub fn from_capture(capture: &Capture) -> CallTree {
        let mut tree = CallTree::new(&CAPTURE_EVENTS);
        for (thread, index) in capture.threads.iter().zip(0..) {
            let name = names::thread(capture, index);
            let root = tree.child(None, StackFrame { function: &name, file: "", line: 0 });
            add_thread(&mut tree, capture, thread, root);
        }
        tree
    }
}

/// A stretch in which a thread had no core.
struct OffCore {
    begin_ns: u64,
    end_ns: u64,
    /// [`WAITING`] or [`BLOCKED`].
    cost: usize,
}

fn add_thread(tree: &mut CallTree, capture: &Capture, thread: &Thread, root: NodeIndex) {
    let spans = spans::nested(capture, thread);
    let off_core = off_core(capture, thread);
    let mut nodes: Vec<NodeIndex> = Vec::with_capacity(spans.len());
    for span in &spans {
        let parent = span.parent.map_or(root, |parent| nodes[parent as usize]);
        let node = child(tree, capture, parent, span.what);
        let mut costs = [0; CAPTURE_EVENTS.len()];
        if let Some(allocations) = span.allocations {
            costs[ALLOCATIONS] = allocations.count.into();
            costs[ALLOCATED_BYTES] = allocations.bytes;
        }
        tree.add(node, &costs, 1);
        nodes.push(node);
    }
    tree.add(root, &[], 1);

    // Walks the time line: between two begins or ends, one node is the innermost. Stretches without a core come in
    // order too.
    let mut walk = Walk { tree, off_core: &off_core, at_ns: capture.about.begin_ns };
    let mut open: Vec<(&Span, NodeIndex)> = Vec::new();
    for (span, &node) in spans.iter().zip(&nodes) {
        while open.len() > span.depth as usize {
            if let Some((closed, inner)) = open.pop() {
                walk.spend_until(closed.end_ns, inner);
            }
        }
        // What lies outside the capture is spent by scopes that reach there, but not by the thread without one.
        match open.last() {
            Some(&(_, innermost)) => walk.spend_until(span.begin_ns, innermost),
            None => walk.leave_until(span.begin_ns, root, capture.about.end_ns),
        }
        open.push((span, node));
    }
    while let Some((closed, inner)) = open.pop() {
        walk.spend_until(closed.end_ns, inner);
    }
    walk.leave_until(capture.about.end_ns, root, capture.about.end_ns);
}

fn child(tree: &mut CallTree, capture: &Capture, parent: NodeIndex, what: What) -> NodeIndex {
    let name = names::span(capture, what);
    let site = match what {
        What::Scope { site } => names::site(capture, site),
        What::LockWait { .. } => None,
    };
    let file = site.map(|site| visible(&site.file)).unwrap_or_default();
    tree.child(Some(parent), StackFrame { function: &name, file: &file, line: site.map_or(0, |site| site.line) })
}

struct Walk<'a> {
    tree: &'a mut CallTree,
    /// What of it may still matter.
    off_core: &'a [OffCore],
    at_ns: u64,
}

impl Walk<'_> {
    fn spend_until(&mut self, end_ns: u64, node: NodeIndex) {
        let begin_ns = self.at_ns;
        if end_ns <= begin_ns {
            return;
        }
        self.at_ns = end_ns;
        let mut costs = [0; CAPTURE_EVENTS.len()];
        costs[WALL] = end_ns - begin_ns;
        costs[CPU] = costs[WALL];
        while let Some(off) = self.off_core.first().filter(|off| off.begin_ns < end_ns) {
            let without_core_ns = off.end_ns.min(end_ns).saturating_sub(off.begin_ns.max(begin_ns));
            costs[off.cost] += without_core_ns;
            costs[CPU] -= without_core_ns;
            if off.end_ns > end_ns {
                break;
            }
            self.off_core = &self.off_core[1..];
        }
        self.tree.add(node, &costs, 0);
    }

    /// Goes on to a moment at which a scope begins, or the capture ends, outside every scope.
    fn leave_until(&mut self, at_ns: u64, root: NodeIndex, capture_end_ns: u64) {
        self.spend_until(at_ns.min(capture_end_ns), root);
        self.at_ns = self.at_ns.max(at_ns);
    }
}

/// The stretches without a core, in order and apart from each other. A thread that first gets a core was blocked
/// before; one that last lost it stays without to the end of the capture.
fn off_core(capture: &Capture, thread: &Thread) -> Vec<OffCore> {
    if !capture.about.switches.has_each_switch() {
        return Vec::new();
    }
    let switches = thread.events.iter().filter_map(|event| match *event {
        Event::Switch { at_ns, change } => Some((at_ns, change)),
        _ => None,
    });
    let mut switches: Vec<(u64, Switch)> = switches.collect();
    switches.sort_by_key(|(at_ns, _)| *at_ns);
    let mut lost = match switches.first() {
        Some((_, Switch::Running { .. })) => Some((capture.about.begin_ns, BLOCKED)),
        _ => None,
    };
    let mut stretches = Vec::new();
    for (at_ns, change) in switches {
        match change {
            Switch::Running { .. } => {
                let stretch = lost.take().map(|(begin_ns, cost)| OffCore { begin_ns, end_ns: at_ns, cost });
                stretches.extend(stretch.filter(|stretch| stretch.begin_ns < stretch.end_ns));
            }
            // A record may be missing between two losses: the first one says since when.
            Switch::Preempted => lost = lost.or(Some((at_ns, WAITING))),
            Switch::Blocked => lost = lost.or(Some((at_ns, BLOCKED))),
        }
    }
    stretches.extend(lost.map(|(begin_ns, cost)| OffCore { begin_ns, end_ns: u64::MAX, cost }));
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SwitchSource;
    use crate::sample;

    #[test]
    fn every_nanosecond_of_a_thread_is_spent_once() {
        let capture = sample::small();
        let tree = CallTree::from_capture(&capture);
        let check =
            |stack: &[&str], expected: [u64; 6]| assert_eq!(tree.costs_of(stack), Some(&expected[..]), "{stack:?}");
        // [wall, cpu, waiting, blocked, allocations, bytes]
        check(&["frame"], [100_000, 100_000, 0, 0, 0, 0]);
        check(&["frame", "frame"], [360_000, 360_000, 0, 0, 1, 64]);
        // From 1,060 to 1,600 µs, without two scopes and a wait.
        check(&["frame", "frame", "world.tick"], [170_000, 170_000, 0, 0, 0, 0]);
        check(&["frame", "frame", "world.tick", "replication.interest"], [150_000, 150_000, 0, 0, 3, 4_096]);
        check(&["frame", "frame", "world.tick", "wait for lock levels"], [220_000, 20_000, 0, 200_000, 0, 0]);
        check(&["long 0"], [100_000, 100_000, 0, 0, 0, 0]);
        check(&["long 0", "query.path"], [900_000, 800_000, 100_000, 0, 0, 0]);
        assert_eq!(tree.totals(), [2_000_000, 1_700_000, 100_000, 200_000, 4, 4_160]);
    }

    #[test]
    fn without_switch_records_all_time_is_cpu() {
        let mut capture = sample::small();
        capture.about.switches = SwitchSource::Schedstat;
        assert_eq!(CallTree::from_capture(&capture).totals()[..4], [2_000_000, 2_000_000, 0, 0]);
    }

    #[test]
    fn before_its_first_and_after_its_last_switch_a_thread_is_without_a_core() {
        let mut capture = sample::small();
        let switch = |at_ns, change| Event::Switch { at_ns, change };
        capture.threads.truncate(1);
        capture.threads[0].events = vec![
            switch(1_200_000, Switch::Running { core: 0 }),
            // What gave the core up was lost, and is not counted twice.
            switch(1_300_000, Switch::Running { core: 1 }),
            switch(1_400_000, Switch::Preempted),
            switch(1_500_000, Switch::Blocked),
        ];
        assert_eq!(CallTree::from_capture(&capture).totals()[..4], [1_000_000, 200_000, 600_000, 200_000]);
    }

    #[test]
    fn contradictory_times_still_add_up() {
        let totals = CallTree::from_capture(&sample::hostile()).totals();
        assert_eq!(totals[WALL], totals[CPU] + totals[WAITING] + totals[BLOCKED]);
        let busy = sample::busy(5_000, 3);
        let totals = CallTree::from_capture(&busy).totals();
        assert_eq!(totals[WALL], 4 * busy.about.end_ns);
    }
}
