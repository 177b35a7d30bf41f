//! Column: the latest encoded bytes of one component kind, for every entity slot of a world.
//!
//! A component is encoded once when it changes, whoever will hear of it; a packet is then a row of copies.
//! Each slot has a fixed stride, a multiple of 8, so that the usual encoded value of at most 8 bytes is copied as
//! one word:
//!
//! ```text
//! bytes      | slot 0: value ....00 | slot 1: value ..0000 | ...     stride = BYTES_MAX rounded up to 8
//! lens       | 7                    | 6                    |
//! changed_at | 12 [tick]            | 15                   |
//! exact      | exact bytes          | exact bytes          |         for audit samples
//! ```
//!
//! A kind with a throttle encodes at the same place, but what comes too early goes to `throttle` and is written here
//! when it is due: everything that reads a column sees only what the rules allow to be told.
//!
//! Cost: about 20 ns per changed component to encode; 3-5 ns per encoded value copied. Grows with the slots only.

use throng_platform::prefetch::FootprintDraft;

use crate::{
    source::throttle::{Due, Throttle},
    wire::{bytes::Writer, replicate::Replicate, schema::Kind},
};

pub(crate) struct Column {
    stride: usize,
    bytes: Vec<u8>,
    lens: Vec<u8>,
    /// Tick of the last change of the quantised bytes, per slot.
    changed_at: Vec<u32>,
    exact_stride: usize,
    exact: Vec<u8>,
    exact_lens: Vec<u8>,
    scratch: Vec<u8>,
    /// Keeps changes back that come too often; `None` for kinds without such a rule.
    throttle: Option<Box<Throttle>>,
}

/// What writing a value into a column found.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The bytes that are told have changed.
    pub changed: bool,
    /// A change came too early and waits.
    pub postponed: bool,
    pub poisoned: bool,
    pub clamped: bool,
}

impl Column {
    /// Notes what every tick reads, beside itself.
    pub fn note_lists(&self, footprint: &mut FootprintDraft) {
        // All by name: who adds a list says here whether every tick reads it.
        let Self { bytes, lens, changed_at, exact, exact_lens, scratch, throttle, stride: _, exact_stride: _ } = self;
        for bytes in [bytes, lens, exact, exact_lens, scratch] {
            footprint.note(&**bytes);
        }
        footprint.note(&**changed_at);
        if let Some(throttle) = throttle {
            footprint.note(&**throttle);
        }
    }

    pub fn new(kind: &Kind) -> Self {
        Self {
            stride: kind.bytes_max.next_multiple_of(8),
            bytes: Vec::new(),
            lens: Vec::new(),
            changed_at: Vec::new(),
            exact_stride: kind.exact_bytes_max,
            exact: Vec::new(),
            exact_lens: Vec::new(),
            scratch: vec![0; kind.bytes_max],
            throttle: None,
        }
    }

    /// Makes room for slots below `count`.
    pub fn grow(&mut self, count: usize) {
        self.bytes.resize(count * self.stride, 0);
        self.lens.resize(count, 0);
        self.changed_at.resize(count, 0);
        self.exact.resize(count * self.exact_stride, 0);
        self.exact_lens.resize(count, 0);
        if let Some(throttle) = &mut self.throttle {
            throttle.grow(count);
        }
    }

    /// Changes are told at most once in so many ticks [>= 1].
    pub fn period(&self) -> u32 {
        self.throttle.as_ref().map_or(1, |throttle| throttle.period())
    }

    /// From now on changes are told at most once in `ticks` [>= 1; 1: every tick's]. What waits is due by the new
    /// period. Allocates, and the next `release_due` looks at every slot once.
    pub fn set_period(&mut self, ticks: u32) {
        if self.throttle.is_none() && ticks <= 1 {
            return;
        }
        let (stride, exact_stride) = (self.stride, self.exact_stride);
        let new = || Box::new(Throttle::new(stride, exact_stride, &self.changed_at));
        let throttle = self.throttle.get_or_insert_with(new);
        if throttle.period() != ticks.max(1) {
            throttle.set_period(ticks);
        }
    }

    /// Writes what was postponed and is due by now, and appends its slots to `changed`. After the tick's changes.
    pub fn release_due(&mut self, tick: u32, changed: &mut Vec<u32>) {
        let Some(mut throttle) = self.throttle.take() else { return };
        throttle.release(tick, |due| {
            changed.push(due.slot as u32);
            self.take_over(due, tick);
        });
        if !throttle.is_over() {
            self.throttle = Some(throttle);
        }
    }

    /// Writes what waits for `slot`, early as it is. Returns whether anything did.
    pub fn hurry(&mut self, slot: usize, tick: u32) -> bool {
        let Some(mut throttle) = self.throttle.take() else { return false };
        let mut hurried = false;
        throttle.hurry(slot, tick, |due| {
            hurried = true;
            self.take_over(due, tick);
        });
        self.throttle = Some(throttle);
        hurried
    }

    /// The component is gone from `slot`, and so is what waited.
    pub fn forget(&mut self, slot: usize) {
        if let Some(throttle) = &mut self.throttle {
            throttle.forget(slot);
        }
    }

    /// Brings the exact value of `slot` up to date, for audit samples. Not while a change waits: the value to tell is
    /// then the one before.
    pub fn refresh_exact<T: Replicate>(&mut self, slot: usize, value: &T, tick: u32) {
        if self.throttle.as_ref().is_none_or(|throttle| !throttle.waits(slot, tick)) {
            self.write_exact(slot, value);
        }
    }

    /// Encodes `value` for `slot`. The same bytes as before are no change, unless the component is `new` there. A
    /// change that comes too early by the kind's rule is put aside.
    pub fn write<T: Replicate>(&mut self, slot: usize, value: &T, tick: u32, new: bool) -> Written {
        let mut out = Writer::new(&mut self.scratch);
        value.encode(&mut out);
        debug_assert!(!out.overflowed(), "`{}` wrote more than BYTES_MAX", T::NAME);
        let (len, poisoned, clamped) = (out.len(), out.poisoned(), out.clamped());
        let begin = slot * self.stride;
        let held = &mut self.bytes[begin..begin + len];
        let changed = new || usize::from(self.lens[slot]) != len || held != &self.scratch[..len];
        if let Some(throttle) = &mut self.throttle {
            if changed && !new && !throttle.is_due(slot, tick) {
                let mut exact = [0; 255];
                let mut out = Writer::new(&mut exact);
                value.encode_exact(&mut out);
                let exact_len = out.len();
                throttle.postpone(slot, &self.scratch[..len], &exact[..exact_len]);
                return Written { changed: false, postponed: true, poisoned, clamped };
            }
            if changed {
                throttle.told(slot, tick, new);
            } else {
                // It is again what it was when it was told.
                throttle.forget(slot);
            }
        }
        if changed {
            held.copy_from_slice(&self.scratch[..len]);
            self.lens[slot] = len as u8;
            self.changed_at[slot] = tick;
        }
        self.write_exact(slot, value);
        Written { changed, postponed: false, poisoned, clamped }
    }

    #[inline]
    pub fn len(&self, slot: usize) -> usize {
        self.lens[slot].into()
    }

    /// The encoded value of `slot`.
    #[inline]
    pub fn encoded(&self, slot: usize) -> &[u8] {
        let begin = slot * self.stride;
        &self.bytes[begin..begin + usize::from(self.lens[slot])]
    }

    #[inline]
    pub fn changed_at(&self, slot: usize) -> u32 {
        self.changed_at[slot]
    }

    pub fn exact(&self, slot: usize) -> &[u8] {
        let begin = slot * self.exact_stride;
        &self.exact[begin..begin + usize::from(self.exact_lens[slot])]
    }

    /// Copies the encoded value of `slot` to `out[at..]` and returns where it ends. Up to 7 bytes after the encoded
    /// value may be overwritten, always inside `out`. The caller has made room for the encoded value itself.
    #[inline]
    pub fn copy_encoded(&self, slot: usize, out: &mut [u8], at: usize) -> usize {
        let len = usize::from(self.lens[slot]);
        let begin = slot * self.stride;
        if self.stride == 8 && at + 8 <= out.len() {
            let word: &[u8; 8] = self.bytes[begin..begin + 8].try_into().expect("8 bytes");
            out[at..at + 8].copy_from_slice(word);
        } else {
            out[at..at + len].copy_from_slice(&self.bytes[begin..begin + len]);
        }
        at + len
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.lens.capacity()
            + self.changed_at.capacity() * 4
            + self.exact.capacity()
            + self.exact_lens.capacity()
            + self.scratch.capacity()
            + self.throttle.as_ref().map_or(0, |throttle| size_of::<Throttle>() + throttle.heap_bytes())
    }

    fn write_exact<T: Replicate>(&mut self, slot: usize, value: &T) {
        let begin = slot * self.exact_stride;
        let mut out = Writer::new(&mut self.exact[begin..begin + self.exact_stride]);
        value.encode_exact(&mut out);
        debug_assert!(!out.overflowed(), "`{}` wrote more than EXACT_BYTES_MAX", T::NAME);
        self.exact_lens[slot] = out.len() as u8;
    }

    /// A postponed change is told now.
    fn take_over(&mut self, due: Due<'_>, tick: u32) {
        let slot = due.slot;
        self.bytes[slot * self.stride..][..due.encoded.len()].copy_from_slice(due.encoded);
        self.lens[slot] = due.encoded.len() as u8;
        self.exact[slot * self.exact_stride..][..due.exact.len()].copy_from_slice(due.exact);
        self.exact_lens[slot] = due.exact.len() as u8;
        self.changed_at[slot] = tick;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Pose, pose, schema};

    fn column() -> Column {
        let mut column = Column::new(&schema().kinds()[0]);
        column.grow(3);
        column
    }

    #[test]
    fn the_same_bytes_are_no_change() {
        let mut column = column();
        assert!(column.write(1, &pose(1.0), 5, true).changed);
        assert!(!column.write(1, &pose(1.001), 6, false).changed);
        assert_eq!(column.changed_at(1), 5);
        assert!(column.write(1, &pose(1.5), 7, false).changed);
        assert_eq!(column.changed_at(1), 7);
    }

    #[test]
    fn a_new_component_is_a_change_even_with_the_bytes_of_the_slots_last_owner() {
        let mut column = column();
        column.write(1, &pose(1.0), 5, true);
        assert!(column.write(1, &pose(1.0), 9, true).changed);
    }

    #[test]
    fn encoded_values_are_copied_whole_at_the_very_end_of_a_packet() {
        let mut column = column();
        column.write(2, &pose(-3.0), 5, true);
        let (mut roomy, mut tight) = ([0; 16], [0; Pose::BYTES_MAX]);
        assert_eq!(column.copy_encoded(2, &mut roomy, 1), 1 + Pose::BYTES_MAX);
        assert_eq!(column.copy_encoded(2, &mut tight, 0), Pose::BYTES_MAX);
        assert_eq!(roomy[1..=Pose::BYTES_MAX], tight);
    }

    #[test]
    fn poison_is_found_when_it_is_encoded() {
        let written = column().write(0, &pose(f32::NAN), 1, true);
        assert!(written.poisoned && written.changed);
    }

    #[test]
    fn health_as_a_percentage_changes_when_its_percentage_does() {
        #[derive(Clone, crate::Replicate)]
        struct Vitals {
            #[replicate(min = 0.0, max = 100.0, step = 1.0)]
            health_percent: f32,
        }
        let schema = crate::SchemaBuilder::new().component::<Vitals>().build();
        let mut column = Column::new(&schema.kinds()[0]);
        column.grow(1);
        column.write(0, &Vitals { health_percent: 100.0 }, 0, true);
        // 10,000 blows of a thousandth of a percent each.
        let after = |blows: u32| Vitals { health_percent: 100.0 - blows as f32 / 1000.0 };
        let changed = (1..=10_000).filter(|blows| column.write(0, &after(*blows), *blows, false).changed);
        assert_eq!(changed.count(), 10);
    }

    /// Ticks in which what is told changes, with a period of 5 ticks from tick 10 on, and what is told in the end.
    #[track_caller]
    fn check(changes: &[(u32, f32)], expect: &[u32], value: f32) {
        let mut column = column();
        column.set_period(5);
        column.write(0, &pose(0.0), 10, true);
        let mut told = Vec::new();
        for tick in 11..=40 {
            let new = changes.iter().find(|(at, _)| *at == tick);
            let changed = new.is_some_and(|(_, value)| column.write(0, &pose(*value), tick, false).changed);
            let mut due = Vec::new();
            column.release_due(tick, &mut due);
            assert!(due.len() + usize::from(changed) <= 1);
            if changed || !due.is_empty() {
                told.push(tick);
                assert_eq!(column.changed_at(0), tick);
            }
        }
        let mut last = self::column();
        last.write(0, &pose(value), 0, true);
        assert_eq!(told, expect);
        assert_eq!((&column.bytes[..8], column.exact(0)), (&last.bytes[..8], last.exact(0)));
    }

    #[test]
    fn throttled_changes_wait_and_the_newest_is_told() {
        check(&[], &[], 0.0);
        check(&[(20, 1.0)], &[20], 1.0);
        check(&[(11, 1.0), (12, 2.0)], &[15], 2.0);
        check(&[(12, 1.0), (15, 2.0)], &[15], 2.0);
        check(&[(20, 1.0), (21, 2.0), (22, 3.0), (27, 4.0)], &[20, 25, 30], 4.0);
        // There and back again is no change.
        check(&[(20, 1.0), (21, 2.0), (22, 1.0)], &[20], 1.0);
        check(&[(20, 1.0), (21, 2.0), (25, 1.0)], &[20], 1.0);
    }

    #[test]
    fn while_a_change_waits_audit_samples_keep_to_what_was_told() {
        let mut column = column();
        column.set_period(5);
        column.write(0, &pose(0.0), 10, true);
        let before = column.exact(0).to_vec();
        assert!(column.write(0, &pose(1.0), 12, false).postponed);
        column.refresh_exact(0, &pose(1.0), 12);
        assert_eq!(column.exact(0), before);
        // A change that is due and was never told would show.
        column.refresh_exact(0, &pose(1.0), 15);
        assert_ne!(column.exact(0), before);
    }

    #[test]
    fn a_throttle_goes_once_its_last_change_has_gone() {
        let mut column = column();
        column.set_period(50);
        column.write(0, &pose(0.0), 10, true);
        column.write(0, &pose(1.0), 11, false);
        column.set_period(1);
        let mut due = Vec::new();
        column.release_due(12, &mut due);
        assert_eq!((due, column.throttle.is_none()), (vec![0], true));
        assert!(column.write(0, &pose(2.0), 13, false).changed);
    }
}
