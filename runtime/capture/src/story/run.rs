//! The run of a scope that a trigger is about, which may span frames.

use std::cmp::Reverse;

use crate::{
    attribution::{Attribution, FrameCost},
    model::{Capture, Event, TriggerKind},
};

/// One run of a scope.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub thread: u32,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub world: Option<u32>,
}

impl Run {
    /// How much of it lies in `frame`. (ns)
    pub fn overlap_ns(&self, frame: &FrameCost) -> u64 {
        self.end_ns.min(frame.end_ns).saturating_sub(self.begin_ns.max(frame.begin_ns))
    }

    /// Index of the frame that has most of it; `None` if no frame has any.
    pub fn frame(&self, attribution: &Attribution) -> Option<usize> {
        let frames = attribution.frames.iter().enumerate();
        let most = frames.max_by_key(|(index, frame)| (self.overlap_ns(frame), Reverse(*index)))?;
        (self.overlap_ns(most.1) > 0).then_some(most.0)
    }
}

/// The run of the trigger's scope whose length is nearest to what the trigger measured, of those that touch `window`;
/// for a late tick, the world's last run before the trigger, wherever it is. `None` for triggers that are not about a
/// scope's time.
pub fn of_trigger(capture: &Capture, window: (u64, u64)) -> Option<Run> {
    let trigger = &capture.about.trigger;
    if !matches!(trigger.kind, TriggerKind::Scope | TriggerKind::Tick) {
        return None;
    }
    // A late tick may have come to its end between two frames.
    let window = if trigger.kind == TriggerKind::Tick { (0, u64::MAX) } else { window };
    // Several places in the code may share a name.
    let is_wanted = |site: u32| capture.sites.get(site as usize).is_some_and(|site| site.name == trigger.name);
    let mut found: Option<(u64, Run)> = None;
    for (thread, it) in (0u32..).zip(&capture.threads) {
        let mut world = None;
        for event in &it.events {
            match *event {
                // Work for no world follows on work for one before the scope around both ends; the last world is the
                // better guess.
                Event::World { world: of, .. } => world = of.or(world),
                Event::Scope { site, begin_ns, end_ns }
                    if is_wanted(site) && end_ns > window.0 && begin_ns < window.1 =>
                {
                    let distance = match trigger.kind {
                        TriggerKind::Tick if world != trigger.world || end_ns > trigger.at_ns => continue,
                        TriggerKind::Tick => trigger.at_ns.saturating_sub(end_ns),
                        _ => end_ns.saturating_sub(begin_ns).abs_diff(trigger.measured),
                    };
                    if found.as_ref().is_none_or(|(nearest, _)| distance < *nearest) {
                        found = Some((distance, Run { thread, begin_ns, end_ns, world }));
                    }
                }
                _ => {}
            }
        }
    }
    found.map(|(_, run)| run)
}
