//! What a thread was at each moment: its state, and the world that it worked for. Read from the end to the beginning.

use std::collections::HashMap;

use crate::model::{Capture, Event, Switch, Thread};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Waiting,
    Blocked,
    /// To be split by the sums of the frame.
    Unknown,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AtWork {
    /// The world's number in [`WorldNumbers`].
    pub number: u32,
    pub tick: u32,
}

/// Worlds as small numbers; 0 is no world.
pub(super) struct WorldNumbers {
    numbers: HashMap<u32, u32>,
    pub worlds: Vec<Option<u32>>,
}

impl WorldNumbers {
    pub fn of(capture: &Capture) -> Self {
        let mut numbers = HashMap::new();
        let mut worlds = vec![None];
        for event in capture.threads.iter().flat_map(|thread| &thread.events) {
            let Event::World { world: Some(id), .. } = event else { continue };
            numbers.entry(*id).or_insert_with(|| {
                worlds.push(Some(*id));
                worlds.len() as u32 - 1
            });
        }
        Self { numbers, worlds }
    }
}

/// Stretches of time by their beginnings, which rise; the first begins at 0. Reading drops what is later than asked for.
pub(super) struct Timeline<T> {
    stretches: Vec<(u64, T)>,
}

impl<T: Copy> Timeline<T> {
    fn new(first: T) -> Self {
        Self { stretches: vec![(0, first)] }
    }

    fn push(&mut self, at_ns: u64, value: T) {
        let latest = self.stretches.last().map_or(0, |&(begin_ns, _)| begin_ns);
        self.stretches.push((at_ns.max(latest), value));
    }

    /// Beginning and value of the stretch that the time just before `end_ns` lies in. May not be asked for later times afterwards.
    pub fn before(&mut self, end_ns: u64) -> (u64, T) {
        while self.stretches.len() > 1 && self.last().0 >= end_ns {
            self.stretches.pop();
        }
        self.last()
    }

    /// The value at a moment. May not be asked for later times afterwards.
    pub fn at(&mut self, at_ns: u64) -> T {
        self.before(at_ns.saturating_add(1)).1
    }

    fn last(&self) -> (u64, T) {
        // The first stretch is never dropped.
        self.stretches[self.stretches.len() - 1]
    }
}

/// The states of a thread.
pub(super) fn states(thread: &Thread) -> Timeline<State> {
    let mut switches = thread.events.iter().filter_map(|event| match event {
        Event::Switch { at_ns, change } => Some((*at_ns, *change)),
        _ => None,
    });
    let Some(first) = switches.next() else { return states_from_lock_waits(thread) };
    // It gets a core only when it had none, and loses only one that it had. Why it had none is not known.
    let before = match first.1 {
        Switch::Running { .. } => State::Blocked,
        Switch::Preempted | Switch::Blocked => State::Running,
    };
    let mut states = Timeline::new(before);
    for (at_ns, change) in std::iter::once(first).chain(switches) {
        states.push(
            at_ns,
            match change {
                Switch::Running { .. } => State::Running,
                Switch::Preempted => State::Waiting,
                Switch::Blocked => State::Blocked,
            },
        );
    }
    states
}

fn states_from_lock_waits(thread: &Thread) -> Timeline<State> {
    let mut states = Timeline::new(State::Unknown);
    for event in &thread.events {
        if let Event::LockWait { begin_ns, end_ns, .. } = event {
            states.push(*begin_ns, State::Blocked);
            states.push(*end_ns, State::Unknown);
        }
    }
    states
}

/// The worlds that a thread worked for.
pub(super) fn worlds(thread: &Thread, known: &WorldNumbers) -> Timeline<AtWork> {
    let mut worlds = Timeline::new(AtWork::default());
    for event in &thread.events {
        if let Event::World { at_ns, world, tick } = event {
            let number = world.map_or(0, |id| known.numbers[&id]);
            worlds.push(*at_ns, AtWork { number, tick: *tick });
        }
    }
    worlds
}
