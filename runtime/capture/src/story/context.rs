//! A capture with the frame that is looked at, and its names.

use std::collections::HashMap;

use super::{run::Run, words};
use crate::{
    attribution::{Attribution, FrameCost},
    model::{Capture, Event, ThreadClass},
};

pub struct Context<'capture> {
    pub capture: &'capture Capture,
    pub attribution: Attribution<'capture>,
    /// Index into the attribution's frames; `None` if it has none.
    frame: Option<usize>,
    /// The run of a scope that the trigger is about.
    pub run: Option<Run>,
    world_names: HashMap<u32, &'capture str>,
}

impl<'capture> Context<'capture> {
    pub fn new(
        capture: &'capture Capture,
        attribution: Attribution<'capture>,
        frame: Option<usize>,
        run: Option<Run>,
    ) -> Self {
        let world_names = capture.worlds.iter().map(|world| (world.id, world.name.as_str())).collect();
        Self { capture, attribution, frame, run, world_names }
    }

    /// The bad frame.
    pub fn frame(&self) -> Option<&FrameCost> {
        self.frame.map(|frame| &self.attribution.frames[frame])
    }

    /// Frames that the bad one may be held against: all but it and those that have a part of the trigger's run.
    pub fn other_frames(&self) -> impl Iterator<Item = &FrameCost> {
        self.attribution
            .frames
            .iter()
            .enumerate()
            .filter(|(index, frame)| Some(*index) != self.frame && !self.has_run(frame))
            .map(|(_, frame)| frame)
    }

    /// Whether the trigger's run goes through `frame`.
    pub fn has_run(&self, frame: &FrameCost) -> bool {
        self.run.is_some_and(|run| run.overlap_ns(frame) > 0)
    }

    /// The time that is looked at: the bad frame, or all of the capture where there is none.
    pub fn window_ns(&self) -> (u64, u64) {
        let about = &self.capture.about;
        self.frame().map_or((about.begin_ns, about.end_ns.max(about.begin_ns)), |frame| (frame.begin_ns, frame.end_ns))
    }

    pub fn site(&self, site: u32) -> String {
        words::name(self.capture.sites.get(site as usize).map_or("?", |site| &site.name))
    }

    pub fn thread(&self, thread: u32) -> String {
        words::name(self.capture.threads.get(thread as usize).map_or("?", |thread| &thread.name))
    }

    pub fn thread_named(&self, name: &str) -> Option<u32> {
        self.capture.threads.iter().position(|thread| thread.name == name).map(|thread| thread as u32)
    }

    pub fn class(&self, thread: u32) -> ThreadClass {
        self.capture.threads.get(thread as usize).map(|thread| thread.class).unwrap_or_default()
    }

    pub fn events(&self, thread: u32) -> &'capture [Event] {
        self.capture.threads.get(thread as usize).map(|thread| &thread.events[..]).unwrap_or_default()
    }

    pub fn lock(&self, lock: u32) -> String {
        words::name(self.capture.locks.get(lock as usize).map_or("?", |lock| &lock.name))
    }

    /// The name of a world's kind, if it is known.
    pub fn kind_of(&self, world: u32) -> Option<&'capture str> {
        self.world_names.get(&world).copied()
    }

    /// `17 (hideout)`.
    pub fn world(&self, world: u32) -> String {
        match self.world_names.get(&world) {
            Some(name) if !name.is_empty() => format!("{world} ({})", words::name(name)),
            _ => world.to_string(),
        }
    }
}

/// Whether a frame waits for this thread.
pub fn is_urgent(class: ThreadClass) -> bool {
    matches!(class, ThreadClass::Frame | ThreadClass::ShortTask)
}

/// The middle one; of an even number the lower of the two. 0 for none.
pub fn median(mut values: Vec<u64>) -> u64 {
    if values.is_empty() {
        return 0;
    }
    let middle = (values.len() - 1) / 2;
    *values.select_nth_unstable(middle).1
}
