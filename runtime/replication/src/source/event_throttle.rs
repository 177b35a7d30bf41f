//! Event throttle: no source may fill its neighbours' lines with one kind of event.
//!
//! An event happens once, so what comes too early is not put off, as a component's change is, but dropped and counted;
//! a rule for it is the game's or the operator's word that so many are enough. Remembered is only when each source told
//! each ruled kind last, in a table of fixed size: with more sources in one period than it holds, the one that told
//! longest ago is forgotten, and may tell early.
//!
//! Runs on the world's thread. Cost: 5 ns per event of a ruled kind, nothing for others. 64 KB, allocated when the
//! first rule is met.

use crate::wire::event::EventId;

/// Sources and kinds that are remembered: `SETS` times `WAYS`.
const SETS: usize = 1024;
const WAYS: usize = 4;

/// Who told what, and when.
#[derive(Copy, Clone, Debug, Default)]
struct Teller {
    source: u64,
    tick: u32,
    /// Kind + 1; 0: empty.
    kind: u8,
}

/// When which source told what last, in one world.
#[derive(Debug, Default)]
pub struct EventThrottle {
    sets: Vec<[Teller; WAYS]>,
}

impl EventThrottle {
    /// Whether `source` (any number that names it, such as an entity's bits) may tell an event of this kind in this
    /// tick, and if so, notes that it did. `period_ticks`: of `ResolvedRules::event_period_ticks`; at 1 all are let
    /// pass.
    pub fn allows(&mut self, kind: EventId, source: u64, tick: u32, period_ticks: u32) -> bool {
        if period_ticks <= 1 {
            return true;
        }
        if self.sets.is_empty() {
            self.sets = vec![Default::default(); SETS];
        }
        let kind = kind.index() as u8 + 1;
        // Fibonacci hashing: the upper bits of the product are well mixed.
        let hash = (source ^ u64::from(kind) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let set = &mut self.sets[(hash >> 54) as usize % SETS];
        if let Some(teller) = set.iter_mut().find(|teller| teller.kind == kind && teller.source == source) {
            if tick.wrapping_sub(teller.tick) < period_ticks {
                return false;
            }
            teller.tick = tick;
            return true;
        }
        let age = |teller: &Teller| if teller.kind == 0 { u32::MAX } else { tick.wrapping_sub(teller.tick) };
        if let Some(oldest) = set.iter_mut().max_by_key(|teller| age(teller)) {
            *oldest = Teller { source, tick, kind };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_tells_each_kind_once_in_a_period() {
        let mut throttle = EventThrottle::default();
        let (say, shout) = (EventId(0), EventId(1));
        let told: Vec<_> = (10..20).filter(|tick| throttle.allows(say, 7, *tick, 4)).collect();
        assert_eq!(told, [10, 14, 18]);
        assert!(throttle.allows(shout, 7, 19, 4));
        assert!(throttle.allows(say, 8, 19, 4));
        assert!((0..100).all(|_| throttle.allows(say, 7, 19, 1)), "no rule, no limit");
    }

    #[test]
    fn a_crowd_is_remembered_and_a_multitude_does_no_harm() {
        let mut throttle = EventThrottle::default();
        let early = |throttle: &mut EventThrottle, sources: u64| {
            for source in 0..sources {
                throttle.allows(EventId(0), source, 100, 20);
            }
            (0..sources).filter(|source| throttle.allows(EventId(0), *source, 101, 20)).count()
        };
        assert_eq!(early(&mut throttle, 500), 0);
        early(&mut throttle, 100_000);
        assert_eq!(throttle.sets.len(), SETS);
    }
}
