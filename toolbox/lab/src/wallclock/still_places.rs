//! Where a thread sleeps, told by a stack that may change while it is read.
//!
//! The kernel tells at one moment where a thread sleeps: system call, instruction, stack pointer. Its stack is read
//! after that, which takes some tens of microseconds, and it may wake up meanwhile. To read again until it holds still
//! would be wrong: short sleeps end while they are read, so what is found in the end is a long one, and a thread of many
//! short reads from a disk would seem to spend its time in its few naps.
//!
//! So a look stands for the moment at which the kernel told the place, whatever comes after it. If the thread woke up
//! meanwhile, its stack is the one that was last read whole at the same place. Only where none is known yet, the thread
//! is read again, to learn one; if that fails too, the first reading is taken as it is: its innermost frame is right, its
//! callers may be anything.
//!
//! ```text
//! place told   A        B      A       C              (B: woke up while its stack was read)
//! stack read   whole    torn   whole   torn, torn, torn
//! taken        A's      last whole of B, else B as it was read
//! ```

use std::collections::HashMap;
use std::io;

use super::ledger::StackId;
use super::process::{SchedStat, SleepCall};

/// Readings of a stack, for one look.
const ATTEMPTS: u32 = 3;

/// Places of one thread whose stacks are remembered. Beyond these, what is torn stays torn.
const PLACES_MAX: usize = 4_096;

/// What the kernel tells of a sleeping thread.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SleepPlace {
    pub(super) call: SleepCall,
    pub(super) instruction: u64,
    pub(super) stack: u64,
}

/// A place, and the bytes of the stack that were read after it.
#[derive(Copy, Clone)]
pub(super) struct Reading<Bytes> {
    pub(super) now_ns: u64,
    pub(super) place: SleepPlace,
    pub(super) bytes: Bytes,
    /// What the kernel had counted: of a whole reading after it, of a torn one before it.
    pub(super) stat: SchedStat,
    /// It was not put on a core meanwhile.
    pub(super) is_whole: bool,
}

/// The stack of one look.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) now_ns: u64,
    pub(super) stat: SchedStat,
    pub(super) stack: StackId,
    pub(super) is_torn: bool,
}

/// Of one thread.
#[derive(Default)]
pub(super) struct StillPlaces {
    stacks: HashMap<SleepPlace, StackId>,
}

impl StillPlaces {
    /// One look; `read` gives nothing while the thread runs, `unwind` makes a stack of what was read.
    pub(super) fn look<Bytes>(
        &mut self,
        mut read: impl FnMut() -> io::Result<Option<Reading<Bytes>>>,
        mut unwind: impl FnMut(SleepPlace, Bytes) -> StackId,
    ) -> io::Result<Option<Found>> {
        let Some(Reading { now_ns, place, bytes, stat, is_whole }) = read()? else { return Ok(None) };
        let found = |stack, is_torn| Ok(Some(Found { now_ns, stat, stack, is_torn }));
        if is_whole {
            let stack = unwind(place, bytes);
            self.learn(place, stack);
            return found(stack, false);
        }
        for _ in 1..ATTEMPTS {
            if let Some(stack) = self.stacks.get(&place) {
                return found(*stack, false);
            }
            // That it runs or has ended by now does not change where it was.
            let Ok(Some(again)) = read() else { break };
            if again.is_whole {
                let stack = unwind(again.place, again.bytes);
                self.learn(again.place, stack);
            }
        }
        match self.stacks.get(&place) {
            Some(stack) => found(*stack, false),
            None => found(unwind(place, bytes), true),
        }
    }

    /// A place that is reached on several ways has the stack of the last of them.
    fn learn(&mut self, place: SleepPlace, stack: StackId) {
        if self.stacks.len() < PLACES_MAX || self.stacks.contains_key(&place) {
            self.stacks.insert(place, stack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const READ: StackId = StackId(1);
    const NAP: StackId = StackId(2);
    const TORN: StackId = StackId(9);
    const STAT: SchedStat = SchedStat { running_ns: 0, waiting_ns: 0, switches: 0 };

    fn place(instruction: u64) -> SleepPlace {
        SleepPlace { call: SleepCall::System(0), instruction, stack: 64 }
    }

    /// What is read of a made-up stack is the stack.
    fn reading(instruction: u64, stack: StackId, is_whole: bool) -> Reading<StackId> {
        Reading { now_ns: 5, place: place(instruction), bytes: stack, stat: STAT, is_whole }
    }

    /// Looks once, with what readings give one after the other; returns the stack, whether it is torn, and how often it
    /// was read.
    fn look(places: &mut StillPlaces, readings: &[Option<Reading<StackId>>]) -> (Option<(StackId, bool)>, usize) {
        let mut count = 0;
        let read = || {
            count += 1;
            Ok(readings[count - 1])
        };
        let found = places.look(read, |_, stack| stack);
        (found.unwrap().map(|found| (found.stack, found.is_torn)), count)
    }

    #[test]
    fn a_torn_stack_is_the_one_known_of_its_place_or_is_learned() {
        let mut places = StillPlaces::default();
        assert_eq!(look(&mut places, &[None]), (None, 1));
        assert_eq!(look(&mut places, &[Some(reading(1, READ, true))]), (Some((READ, false)), 1));
        assert_eq!(look(&mut places, &[Some(reading(1, TORN, false))]), (Some((READ, false)), 1));
        let elsewhere = [Some(reading(2, TORN, false)), Some(reading(3, READ, true)), Some(reading(2, NAP, true))];
        assert_eq!(look(&mut places, &elsewhere), (Some((NAP, false)), 3), "what is found later is not where it was");
        assert_eq!(look(&mut places, &[Some(reading(3, TORN, false))]), (Some((READ, false)), 1), "but is learned");
        let never = [Some(reading(4, TORN, false)), None];
        assert_eq!(look(&mut places, &never), (Some((TORN, true)), 2));
    }

    /// Rounds of eight reads of 80 us from a disk with 40 us of computation each, and a nap of 250 us, looked at every
    /// 10 ms; reading a stack takes 50 us, as on a busy host. Looks must find reads and naps as long as they took.
    #[test]
    fn short_sleeps_are_found_as_often_as_they_take_time() {
        let round: Vec<(Option<StackId>, u64)> =
            std::iter::repeat_n([(Some(READ), 80), (None, 40)], 8).flatten().chain([(Some(NAP), 250)]).collect();
        let round_us: u64 = round.iter().map(|(_, us)| us).sum();
        // Where it is at a moment, and until when.
        let at = |moment_us: u64| {
            let mut end_us = moment_us - moment_us % round_us;
            let found = round.iter().find(|(_, us)| {
                end_us += us;
                end_us > moment_us
            });
            (found.and_then(|(stack, _)| *stack), end_us)
        };
        let (mut rng, mut places) = (Xoshiro256PlusPlus::seed_from_u64(4), StillPlaces::default());
        let (mut reads, mut naps, mut torn) = (0_u32, 0_u32, 0_u32);
        for look in 0..50_000_u64 {
            let mut now_us = look * 10_000 + rng.random_range(0..10_000);
            let read = || {
                let (stack, end_us) = at(now_us);
                now_us += 50;
                let Some(stack) = stack else { return Ok(None) };
                let is_whole = now_us < end_us;
                Ok(Some(reading(stack.0.into(), if is_whole { stack } else { TORN }, is_whole)))
            };
            let found = places.look(read, |_, stack| stack);
            match found.unwrap().map(|found| found.stack) {
                Some(READ) => reads += 1,
                Some(NAP) => naps += 1,
                Some(_) => torn += 1,
                None => {}
            }
        }
        let (share, truth) = (f64::from(reads) / f64::from(reads + naps), 640.0 / 890.0);
        assert!((share - truth).abs() < 0.01, "{share:.4} of the sleep is reads, in truth {truth:.4}");
        assert!(torn < 10, "{torn}");
    }
}
