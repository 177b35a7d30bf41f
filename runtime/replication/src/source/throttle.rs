//! Throttle: changes of one component kind that come faster than its rule allows wait until they are due.
//!
//! An animation or a health bar that changes every tick is worth an update a second to those who look on. So a change
//! that comes less than a period after the last one that was told is put aside, encoded; a later one takes its place,
//! and when the period is over the newest goes as if it had happened then. Everything behind it (change marks,
//! snapshots, spawns, audit samples) sees only what was told: copies are right by the rule, and nothing is lost.
//!
//! ```text
//! value     A       B   C           D       D
//! tick      0   1   2   3   4   5   6   7   8   9   10        period 4
//! told      A       .   .   C       .       D                 B is overtaken by C; D waits for tick 8
//! ```
//!
//! What waits hangs in a wheel: a ring of lists, one for each tick of the period, linked through one number per slot.
//! Each tick looks at one list. The turn of an entity begins with its slot number, so that a crowd that was made in one
//! tick is not told of in one tick, too.
//!
//! Runs on the world's thread. Cost: 5 ns for each change put aside and each that falls due; nothing for the rest. Per
//! slot 10 B and the encoded value twice, quantised and exact, for throttled kinds only; allocated when a rule comes or
//! slots are added.

/// Ends a list of the wheel.
const END: u32 = u32::MAX;

/// A slot that is in no list.
const UNLISTED: u32 = u32::MAX - 1;

/// Nothing waits. Encoded values have at most 255 bytes.
const NOTHING: u16 = u16::MAX;

/// What waits of one component kind, by slot.
pub(crate) struct Throttle {
    /// Changes told are at least so far apart. [ticks, >= 1] 1: the rule has gone, all that waits is due.
    period: u32,
    stride: usize,
    exact_stride: usize,
    /// Tick of the change told last.
    told_at: Vec<u32>,
    /// Bytes of the encoded value that waits, or `NOTHING`.
    lens: Vec<u16>,
    bytes: Vec<u8>,
    exact_lens: Vec<u8>,
    exact: Vec<u8>,
    /// The next slot of the same list, or `END`; `UNLISTED` in none. A slot may be listed with nothing waiting: its
    /// list skips it.
    next: Vec<u32>,
    /// First slot of the list for each tick, by `tick % period`.
    heads: Vec<u32>,
    /// The tick whose list was emptied last.
    released_at: u32,
    /// The period is new: every slot is to be looked at once.
    is_new: bool,
}

/// A change that is due.
pub(crate) struct Due<'a> {
    pub slot: usize,
    pub encoded: &'a [u8],
    pub exact: &'a [u8],
}

impl Throttle {
    /// `stride` and `exact_stride`: most bytes of an encoded value and of an exact value. `told_at`: of each slot, the
    /// tick of its last change.
    pub fn new(stride: usize, exact_stride: usize, told_at: &[u32]) -> Self {
        let mut throttle = Self {
            period: 1,
            stride,
            exact_stride,
            told_at: Vec::new(),
            lens: Vec::new(),
            bytes: Vec::new(),
            exact_lens: Vec::new(),
            exact: Vec::new(),
            next: Vec::new(),
            heads: vec![END],
            released_at: 0,
            is_new: true,
        };
        throttle.grow(told_at.len());
        throttle.told_at.copy_from_slice(told_at);
        throttle
    }

    /// Makes room for slots below `count`.
    pub fn grow(&mut self, count: usize) {
        self.told_at.resize(count, 0);
        self.lens.resize(count, NOTHING);
        self.bytes.resize(count * self.stride, 0);
        self.exact_lens.resize(count, 0);
        self.exact.resize(count * self.exact_stride, 0);
        self.next.resize(count, UNLISTED);
    }

    /// What waits keeps its place and is due by the new period, which takes hold with the next `release`.
    pub fn set_period(&mut self, period: u32) {
        self.period = period.max(1);
        self.heads.clear();
        self.heads.resize(self.period as usize, END);
        self.next.fill(UNLISTED);
        self.is_new = true;
    }

    pub fn period(&self) -> u32 {
        self.period
    }

    /// The rule has gone and nothing waits any more.
    pub fn is_over(&self) -> bool {
        self.period == 1 && !self.is_new
    }

    /// Whether a change of `slot` may be told in this tick.
    #[inline]
    pub fn is_due(&self, slot: usize, tick: u32) -> bool {
        // Without a rule a second change in one tick is due, too: nobody would come back for it.
        self.period == 1 || tick.wrapping_sub(self.told_at[slot]) >= self.period
    }

    /// Whether the slot's value is another than what was told, rightly so: audit samples must not speak of it yet.
    pub fn waits(&self, slot: usize, tick: u32) -> bool {
        self.lens[slot] != NOTHING && !self.is_due(slot, tick)
    }

    /// A change was told. One that `begins` the component is no update, and opens the period at the slot's own turn.
    pub fn told(&mut self, slot: usize, tick: u32, begins: bool) {
        // One that is still listed must not become due before its list is looked at.
        let turn = if begins && self.next[slot] == UNLISTED { slot as u32 % self.period } else { 0 };
        self.told_at[slot] = tick.wrapping_sub(turn);
        self.lens[slot] = NOTHING;
    }

    /// Nothing is to wait for this slot.
    pub fn forget(&mut self, slot: usize) {
        self.lens[slot] = NOTHING;
    }

    /// Puts a change aside, in place of what waited before. Not to be called for what is due.
    pub fn postpone(&mut self, slot: usize, encoded: &[u8], exact: &[u8]) {
        self.bytes[slot * self.stride..][..encoded.len()].copy_from_slice(encoded);
        self.lens[slot] = encoded.len() as u16;
        self.exact[slot * self.exact_stride..][..exact.len()].copy_from_slice(exact);
        self.exact_lens[slot] = exact.len() as u8;
        if self.next[slot] == UNLISTED {
            self.list(slot);
        }
    }

    /// Hands over what is due at `tick`, after all changes of it have come in. What is handed over counts as told.
    pub fn release(&mut self, tick: u32, mut tell: impl FnMut(Due<'_>)) {
        let passed = tick.wrapping_sub(self.released_at).min(self.period);
        self.released_at = tick;
        if std::mem::take(&mut self.is_new) {
            for slot in 0..self.lens.len() {
                self.leave_list(slot, tick, &mut tell);
            }
        }
        for back in 0..passed {
            // After a whole period every list; not by ticks, of which those round the end of their 32 bits leave one
            // out.
            let list = if passed == self.period { back } else { tick.wrapping_sub(back) % self.period };
            let mut slot = std::mem::replace(&mut self.heads[list as usize], END);
            while slot != END {
                let index = slot as usize;
                slot = std::mem::replace(&mut self.next[index], UNLISTED);
                self.leave_list(index, tick, &mut tell);
            }
        }
    }

    /// Hands over what waits for one slot, due or not.
    pub fn hurry(&mut self, slot: usize, tick: u32, mut tell: impl FnMut(Due<'_>)) {
        if self.lens[slot] != NOTHING {
            self.hand_over(slot, tick, &mut tell);
        }
    }

    pub fn heap_bytes(&self) -> usize {
        (self.told_at.capacity() + self.next.capacity() + self.heads.capacity()) * 4
            + self.lens.capacity() * 2
            + self.bytes.capacity()
            + self.exact_lens.capacity()
            + self.exact.capacity()
    }

    /// A slot that is taken off its list: over and done with, or listed again because its owner is another by now.
    fn leave_list(&mut self, slot: usize, tick: u32, tell: &mut impl FnMut(Due<'_>)) {
        if self.lens[slot] == NOTHING {
            return;
        }
        if self.is_due(slot, tick) {
            self.hand_over(slot, tick, tell);
        } else if self.next[slot] == UNLISTED {
            self.list(slot);
        }
    }

    fn hand_over(&mut self, slot: usize, tick: u32, tell: &mut impl FnMut(Due<'_>)) {
        let encoded = &self.bytes[slot * self.stride..][..self.lens[slot].into()];
        let exact = &self.exact[slot * self.exact_stride..][..self.exact_lens[slot].into()];
        tell(Due { slot, encoded, exact });
        self.told(slot, tick, false);
    }

    fn list(&mut self, slot: usize) {
        let due = self.told_at[slot].wrapping_add(self.period);
        let head = &mut self.heads[(due % self.period) as usize];
        self.next[slot] = std::mem::replace(head, slot as u32);
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn throttle(period: u32) -> Throttle {
        let mut throttle = Throttle::new(1, 1, &[0; 8]);
        throttle.set_period(period);
        throttle
    }

    /// As a column does it: tells at once what is due, puts aside the rest.
    fn change(throttle: &mut Throttle, slot: usize, tick: u32, value: u8) -> Option<u8> {
        if throttle.is_due(slot, tick) {
            throttle.told(slot, tick, false);
            return Some(value);
        }
        throttle.postpone(slot, &[value], &[value]);
        None
    }

    fn released(throttle: &mut Throttle, tick: u32) -> Vec<(usize, u8)> {
        let mut told = Vec::new();
        throttle.release(tick, |due| told.push((due.slot, due.encoded[0])));
        told
    }

    #[test]
    fn the_drawing_is_right() {
        let mut throttle = throttle(4);
        throttle.told(0, 0, false);
        let mut told = Vec::new();
        for tick in 0..=10 {
            let value = match tick {
                2 => Some(b'B'),
                3 => Some(b'C'),
                6 => Some(b'D'),
                _ => None,
            };
            told.extend(value.and_then(|value| change(&mut throttle, 0, tick, value)).map(|value| (tick, value)));
            told.extend(released(&mut throttle, tick).into_iter().map(|(_, value)| (tick, value)));
        }
        assert_eq!(told, [(4, b'C'), (8, b'D')]);
    }

    /// Against a model that looks at every slot in every tick.
    #[test]
    fn the_wheel_tells_what_looking_at_everything_tells() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        for round in 0..40 {
            let mut period = rng.random_range(1..30);
            let mut throttle = throttle(period);
            let mut waiting = [None; 8];
            // Round the corner of the ticks' 32 bits, too.
            let mut tick = if round % 2 == 0 { 100 } else { u32::MAX - 200 };
            let mut told_at = [tick; 8];
            (0..8).for_each(|slot| throttle.told(slot, tick, false));
            throttle.release(tick, |_| {});
            for _ in 0..400 {
                tick = tick.wrapping_add(if rng.random_bool(0.05) { rng.random_range(1..60) } else { 1 });
                if rng.random_bool(0.01) {
                    period = rng.random_range(1..30);
                    throttle.set_period(period);
                }
                let mut expect = Vec::new();
                for slot in 0..8 {
                    if rng.random_bool(0.3) {
                        let value = rng.random();
                        let at_once = change(&mut throttle, slot, tick, value).is_some();
                        assert_eq!(at_once, tick.wrapping_sub(told_at[slot]) >= period);
                        if at_once {
                            (told_at[slot], waiting[slot]) = (tick, None);
                        } else {
                            waiting[slot] = Some(value);
                        }
                    } else if rng.random_bool(0.02) {
                        throttle.forget(slot);
                        waiting[slot] = None;
                    } else if rng.random_bool(0.02) {
                        throttle.told(slot, tick, true);
                        (told_at[slot], waiting[slot]) = (throttle.told_at[slot], None);
                        assert!(tick.wrapping_sub(told_at[slot]) < period);
                    }
                    if let Some(value) = waiting[slot].filter(|_| tick.wrapping_sub(told_at[slot]) >= period) {
                        (told_at[slot], waiting[slot]) = (tick, None);
                        expect.push((slot, value));
                    }
                    assert_eq!(throttle.waits(slot, tick), waiting[slot].is_some());
                }
                let mut found = released(&mut throttle, tick);
                found.sort_unstable();
                assert_eq!(found, expect, "round {round}, tick {tick}, period {period}");
                assert_eq!(released(&mut throttle, tick), [], "once per tick");
            }
        }
    }

    #[test]
    fn a_crowd_made_in_one_tick_is_told_of_in_many() {
        let mut throttle = Throttle::new(1, 1, &[0; 1000]);
        throttle.set_period(20);
        for slot in 0..1000 {
            throttle.told(slot, 500, true);
        }
        throttle.release(500, |_| {});
        for tick in 501..=520 {
            let at_once = (0..1000).filter(|slot| change(&mut throttle, *slot, tick, 7).is_some()).count();
            assert_eq!(at_once + released(&mut throttle, tick).len(), 50);
        }
    }

    #[test]
    fn a_rule_that_goes_lets_all_go() {
        let mut throttle = throttle(1000);
        (0..8).for_each(|slot| throttle.told(slot, 10, false));
        assert_eq!(change(&mut throttle, 3, 11, 9), None);
        throttle.set_period(1);
        assert!(!throttle.is_over());
        assert_eq!(released(&mut throttle, 12), [(3, 9)]);
        assert!(throttle.is_over());
    }
}
