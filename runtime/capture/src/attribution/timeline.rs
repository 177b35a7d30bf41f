//! What a thread was at each moment: its state, and the world that it worked for. Read from the end to the beginning.

use std::collections::HashMap;

use super::walk::Window;
use crate::model::{Capture, Event, FrameThread, Switch, Thread};

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

/// Stretches of time by their beginnings, which rise; the first begins at 0. Reading drops what is later than asked
/// for.
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

    /// Beginning and value of the stretch that the time just before `end_ns` lies in. May not be asked for later times
    /// afterwards.
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

/// What the recorder noted about each thread in each frame. Sorted once: to look through a frame's threads for one of
/// them, thread by thread, takes the square of their number.
pub(super) struct Sums<'a> {
    /// Frames as stretches of time: rising, apart from each other, none empty.
    frames: &'a [Window],
    /// By thread: the frames that know it, as places in `frames`, rising.
    of_thread: Vec<Vec<(usize, &'a FrameThread)>>,
}

impl<'a> Sums<'a> {
    pub fn of(capture: &'a Capture, frames: &'a [Window]) -> Self {
        let mut of_thread: Vec<Vec<(usize, &FrameThread)>> = vec![Vec::new(); capture.threads.len()];
        for (place, frame) in frames.iter().enumerate() {
            for sums in frame.frame.iter().flat_map(|&frame| &capture.frames[frame].threads) {
                let Some(known) = of_thread.get_mut(sums.thread as usize) else { continue };
                // Of a thread that a frame names twice, the first counts.
                if known.last().is_none_or(|&(last, _)| last != place) {
                    known.push((place, sums));
                }
            }
        }
        Self { frames, of_thread }
    }

    /// Of a thread in a frame.
    pub fn get(&self, thread: usize, frame: &Window) -> Option<&'a FrameThread> {
        frame.frame?;
        let known = self.of_thread.get(thread)?;
        let found = known.binary_search_by_key(&frame.begin_ns, |&(place, _)| self.frames[place].begin_ns).ok()?;
        Some(known[found].1)
    }

    /// Of a thread, with the frames, in the order of time.
    fn of_thread(&self, thread: usize) -> impl Iterator<Item = (&'a Window, &'a FrameThread)> {
        let (frames, known) = (self.frames, self.of_thread.get(thread));
        known.into_iter().flatten().map(move |&(place, sums)| (&frames[place], sums))
    }
}

/// The states of a thread, with the waits for a core after wake-ups that its `sums` know of.
pub(super) fn states(capture: &Capture, sums: &Sums<'_>, thread: usize) -> Timeline<State> {
    let mut states = states_from_events(&capture.threads[thread]);
    let mut wakeups: Vec<(usize, u64)> = Vec::new();
    let mut first = 0;
    for (frame, sums) in sums.of_thread(thread) {
        while end_of(&states.stretches, first) <= frame.begin_ns {
            first += 1;
        }
        wait_after_wakeups(&states.stretches, first, frame, sums.waiting_ns, &mut wakeups);
    }
    if !wakeups.is_empty() {
        let mut wakeups = wakeups.into_iter().peekable();
        let mut stretches = Vec::with_capacity(states.stretches.len() + wakeups.len());
        for (index, stretch) in states.stretches.into_iter().enumerate() {
            stretches.push(stretch);
            stretches.extend(wakeups.next_if(|wakeup| wakeup.0 == index).map(|(_, at_ns)| (at_ns, State::Waiting)));
        }
        states.stretches = stretches;
    }
    states
}

/// The last one never ends.
fn end_of(stretches: &[(u64, State)], index: usize) -> u64 {
    stretches.get(index + 1).map_or(u64::MAX, |&(begin_ns, _)| begin_ns)
}

/// Adds to `wakeups` from when on sleeps that end in `frame` were waits, with the sleeps' indices, so that the thread
/// waited for `waiting_ns` in the frame, or as much of it as it slept. `first` is the stretch that the frame begins in.
fn wait_after_wakeups(
    stretches: &[(u64, State)],
    first: usize,
    frame: &Window,
    waiting_ns: u64,
    wakeups: &mut Vec<(usize, u64)>,
) {
    let in_frame = || {
        let within = stretches.iter().enumerate().skip(first).take_while(|(_, stretch)| stretch.0 < frame.end_ns);
        within.map(|(index, &(begin_ns, state))| {
            let end_ns = end_of(stretches, index);
            (index, state, end_ns, frame.overlap_ns(begin_ns, end_ns))
        })
    };
    let sleeps = || {
        in_frame().filter(|&(index, state, end_ns, ns)| {
            let runs_then = stretches.get(index + 1).is_some_and(|next| next.1 == State::Running);
            state == State::Blocked && runs_then && end_ns <= frame.end_ns && ns > 0
        })
    };
    let known_ns: u64 = in_frame().filter(|it| it.1 == State::Waiting).map(|it| it.3).sum();
    let slept_ns: u64 = sleeps().map(|it| it.3).sum();
    let missing_ns = waiting_ns.saturating_sub(known_ns).min(slept_ns);
    if missing_ns == 0 {
        return;
    }
    let (mut passed_ns, mut given_ns) = (0, 0);
    for (index, _, end_ns, ns) in sleeps() {
        passed_ns += ns;
        // What they should have got by now; the difference carries the rounding on to the next one, and is never more
        // than `ns`.
        let due_ns = (u128::from(missing_ns) * u128::from(passed_ns) / u128::from(slept_ns)) as u64;
        let wait_ns = due_ns - given_ns;
        given_ns = due_ns;
        if wait_ns > 0 {
            wakeups.push((index, end_ns - wait_ns));
        }
    }
}

fn states_from_events(thread: &Thread) -> Timeline<State> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Frame;

    /// The look-up against the search that it stands for: frames out of order, threads named twice, not at all, and
    /// beyond the list.
    #[test]
    fn sums_are_those_of_the_frame() {
        let part = |thread, waiting_ns| FrameThread { thread, waiting_ns, ..FrameThread::default() };
        let parts = [
            vec![part(2, 1), part(0, 2), part(2, 3)],
            vec![],
            vec![part(7, 4), part(1, 5)],
            vec![part(0, 6), part(1, 7), part(2, 8)],
        ];
        let frames = parts.map(|threads| Frame { threads, ..Frame::default() }).to_vec();
        let capture = Capture { frames, threads: vec![Thread::default(); 3], ..Capture::default() };
        let window = |frame, begin_ns| Window { frame: Some(frame), begin_ns, end_ns: begin_ns + 10 };
        let windows = [window(3, 0), window(0, 10), window(1, 30), window(2, 50)];
        let sums = Sums::of(&capture, &windows);
        for thread in 0..4 {
            let of_frame = |window: &Window| {
                let parts = &capture.frames[window.frame?].threads;
                parts.iter().find(|part| part.thread as usize == thread && thread < capture.threads.len())
            };
            for window in &windows {
                assert_eq!(sums.get(thread, window), of_frame(window), "thread {thread} in {window:?}");
            }
            let known: Vec<_> = sums.of_thread(thread).map(|(window, sums)| (window.frame, sums)).collect();
            let expect: Vec<_> = windows.iter().filter_map(|window| Some((window.frame, of_frame(window)?))).collect();
            assert_eq!(known, expect);
            assert_eq!(sums.get(thread, &Window { frame: None, ..windows[0] }), None, "a stretch that is no frame");
        }
    }
}
