//! Watch sums: what subsystems took in each kind of world, added up from frame to frame while somebody watches.
//!
//! Owned by the frame's thread. 25 KB, which are there only while somebody watches; no allocation in between.

use throng_platform::time::Nanos;
use throng_profiler::{
    FrameFigures, Recorder,
    site::{self, SUBSYSTEMS_MAX},
    world_kind::{KIND_ROWS, KindNumber},
};

/// A subsystem in a second.
#[derive(Debug, Clone, PartialEq)]
pub struct SubsystemSecond {
    pub name: &'static str,
    /// Its heading.
    pub category: &'static str,
    /// What its scopes took on all threads, without others inside: in all frames, and in the costliest (ns).
    pub taken_ns: u64,
    pub frame_ns_max: u64,
    /// What it waited for locks in all frames (ns).
    pub lock_wait_ns: u64,
    /// Of that, what went by in worlds of each kind; kinds in which nothing did are left out.
    pub in_kinds: Vec<TakenInKind>,
}

/// What a subsystem took in the worlds of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TakenInKind {
    pub kind: &'static str,
    pub taken_ns: u64,
    pub frame_ns_max: u64,
}

/// Ticks of the worlds of one kind in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KindSecond {
    pub kind: &'static str,
    pub ticks: u64,
    /// How long they took by the clock, together and the longest (ns).
    pub taken_ns: u64,
    pub tick_ns_max: u64,
}

/// What is being added up; nothing while nobody watches.
#[derive(Default)]
pub(crate) struct WatchSums(Option<Box<Sums>>);

struct Sums {
    frames: u64,
    subsystems: [OfSubsystem; SUBSYSTEMS_MAX],
    in_kinds: [[Taken; SUBSYSTEMS_MAX]; KIND_ROWS],
    ticks: [Ticks; KIND_ROWS],
}

#[derive(Clone, Copy, Default)]
struct OfSubsystem {
    taken: Taken,
    lock_wait_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Taken {
    sum_ns: u64,
    frame_ns_max: u64,
}

#[derive(Clone, Copy, Default)]
struct Ticks {
    count: u64,
    taken_ns: u64,
    longest_ns: u64,
}

impl Taken {
    fn add(&mut self, ns: u64) {
        self.sum_ns += ns;
        self.frame_ns_max = self.frame_ns_max.max(ns);
    }
}

impl Sums {
    fn new() -> Self {
        Self {
            frames: 0,
            subsystems: [OfSubsystem::default(); SUBSYSTEMS_MAX],
            in_kinds: [[Taken::default(); SUBSYSTEMS_MAX]; KIND_ROWS],
            ticks: [Ticks::default(); KIND_ROWS],
        }
    }
}

impl WatchSums {
    /// Begins, or ends. Allocates and frees only when that changes.
    pub fn switch(&mut self, is_on: bool) {
        match is_on {
            true if self.0.is_none() => self.0 = Some(Box::new(Sums::new())),
            false if self.0.is_some() => self.0 = None,
            _ => {}
        }
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Adds the frame that has ended.
    pub fn add(&mut self, recorder: &Recorder, figures: &FrameFigures) {
        let Some(sums) = &mut self.0 else { return };
        sums.frames += 1;
        for (number, of) in sums.subsystems.iter_mut().enumerate() {
            of.taken.add(figures.subsystem_ns[number]);
            of.lock_wait_ns += figures.lock_wait_ns[number];
        }
        recorder.each_of_kinds(|kind, number, ns| sums.in_kinds[kind.row()][number].add(ns));
    }

    /// A tick of a world of this kind came home.
    pub fn tick(&mut self, kind: KindNumber, took: Nanos) {
        let Some(sums) = &mut self.0 else { return };
        let ticks = &mut sums.ticks[kind.row()];
        ticks.count += 1;
        ticks.taken_ns += took.0;
        ticks.longest_ns = ticks.longest_ns.max(took.0);
    }

    /// What was added up since the last time, with names: frames, subsystems and kinds. Allocates.
    pub fn take(&mut self) -> (u64, Vec<SubsystemSecond>, Vec<KindSecond>) {
        let Some(sums) = &mut self.0 else { return Default::default() };
        let sums = std::mem::replace(&mut **sums, Sums::new());
        let kinds: Vec<Option<&'static str>> = (0..KIND_ROWS).map(|row| KindNumber::of_row(row).name()).collect();
        let in_kind = |number: usize| {
            let rows = sums.in_kinds.iter().zip(&kinds);
            let told = |(row, kind): (&[Taken; SUBSYSTEMS_MAX], &Option<&'static str>)| {
                let Taken { sum_ns: taken_ns, frame_ns_max } = row[number];
                Some(TakenInKind { kind: (*kind)?, taken_ns, frame_ns_max }).filter(|taken| taken.taken_ns > 0)
            };
            rows.filter_map(told).collect()
        };
        let names = site::subsystems().into_iter().zip(site::subsystem_categories());
        let subsystem = |(number, (name, category))| {
            let OfSubsystem { taken, lock_wait_ns }: OfSubsystem = sums.subsystems[number];
            let Taken { sum_ns: taken_ns, frame_ns_max } = taken;
            SubsystemSecond { name, category, taken_ns, frame_ns_max, lock_wait_ns, in_kinds: in_kind(number) }
        };
        let subsystems = if sums.frames > 0 { names.enumerate().map(subsystem).collect() } else { Vec::new() };
        let of_kind = |(ticks, kind): (&Ticks, &Option<&'static str>)| {
            let Ticks { count: ticks, taken_ns, longest_ns: tick_ns_max } = *ticks;
            Some(KindSecond { kind: (*kind)?, ticks, taken_ns, tick_ns_max }).filter(|of| of.ticks > 0)
        };
        let kinds = sums.ticks.iter().zip(&kinds).filter_map(of_kind).collect();
        (sums.frames, subsystems, kinds)
    }
}
