//! Held samples: the client's side of `view::audit_sample`, which finds out whether its copies are right.
//!
//! An audit sample for tick T says of each component its exact value and since which tick C it has been so. Between C
//! and T the value was the same, so every update labelled C to T must agree with it. Audit samples and snapshots
//! overtake one another, so the check waits for such an update:
//!
//! | within the grace | result |
//! | --- | --- |
//! | the copy is labelled C to T and agrees | checked |
//! | the copy is labelled C to T and does not agree | checked, error |
//! | the copy is labelled after T | superseded: what came between was not seen |
//! | none of it | checked, error: the update never came |
//! | held, but the server says it should not be | as long as nothing newer comes: checked, error |
//!
//! The look-up happens after each snapshot, so no label is missed. Grace counts ticks that were heard: a long
//! silence moves it, since after a black-out the server first has to find out what was lost. It does not count ticks in
//! which the server could not send all that it owed: each audit sample says how many there were, so a grace ends only with
//! one that is as new.

use std::collections::VecDeque;
use std::fmt;

use crate::{
    replicas::store::Replicas,
    wire::{
        bytes::{DecodeError, Reader},
        ids::{NetId, SLOTS_MAX},
        message_kinds::AUDIT_SAMPLE_KIND,
        schema::{KINDS_MAX, bits},
    },
};

/// Audit samples that wait to be checked; above it the oldest is dropped unchecked.
const HELD_MAX: usize = 64;

/// State errors kept for `take_state_error`.
const ERRORS_KEPT_MAX: usize = 8;

/// A copy that is not what the server says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StateError {
    pub id: NetId,
    /// Name of the component; `None` when the entity itself is missing, or is there and should not be.
    pub component: Option<&'static str>,
    /// The tick that the audit sample was about.
    pub tick: u32,
    pub wrong: Wrong,
}

/// In which way a copy is wrong.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The value is another.
    Value,
    /// The entity, or the component's last change, never came.
    Missing,
    /// The entity or the component should be gone.
    Remains,
}

/// Such as "pose of 12:3 at tick 400 is missing".
impl fmt::Display for StateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.component.unwrap_or("the entity");
        let how = match self.wrong {
            Wrong::Value => "has another value than on the server",
            Wrong::Missing => "is missing",
            Wrong::Remains => "should be gone",
        };
        write!(out, "{what} of {}:{} at tick {} {how}", self.id.slot, self.id.generation, self.tick)
    }
}

pub(crate) struct HeldSample {
    pub epoch: u8,
    pub tick: u32,
    id: NetId,
    present: bool,
    /// Components that are not checked yet: those that must be there, and those that must not.
    wanted: u16,
    unwanted: u16,
    changed_at: [u32; KINDS_MAX],
    exact: Vec<u8>,
    /// Where each component's exact bytes begin in `exact`.
    begins: [u16; KINDS_MAX],
    /// Short ticks of the stay when it was written.
    short_ticks: u32,
    deadline: u32,
}

pub(crate) struct HeldSamples {
    held: Vec<HeldSample>,
    grace: u32,
    /// Of the newest audit sample: its tick, and the short ticks of the stay by then.
    newest: (u32, u32),
    errors: VecDeque<StateError>,
}

impl HeldSamples {
    pub fn new(grace: u32) -> Self {
        Self { held: Vec::new(), grace, newest: (0, 0), errors: VecDeque::new() }
    }

    pub fn set_grace(&mut self, ticks: u32) {
        self.grace = ticks.max(1);
    }

    pub fn push(&mut self, mut sample: HeldSample) {
        if self.held.len() == HELD_MAX {
            self.held.remove(0);
        }
        sample.deadline = sample.tick.saturating_add(self.grace);
        if sample.tick >= self.newest.0 {
            self.newest = (sample.tick, sample.short_ticks);
        }
        self.held.push(sample);
    }

    /// The server was not heard for `ticks`. What of it is longer than half the grace does not count.
    pub fn excuse_silence(&mut self, ticks: u32) {
        let excused = ticks.saturating_sub(self.grace.div_ceil(2));
        if excused > 0 {
            self.held.iter_mut().for_each(|sample| sample.deadline = sample.deadline.saturating_add(excused));
        }
    }

    pub fn clear(&mut self) {
        self.held.clear();
        self.newest = (0, 0);
    }

    /// Whether all ticks of its grace are over, and how many of them were short is known.
    fn is_due(&self, sample: &HeldSample, newest_tick: u32) -> bool {
        let (sampled_tick, short_ticks) = self.newest;
        // One that came late was written before the newest was, and has no more of them.
        let excused = short_ticks.wrapping_sub(sample.short_ticks);
        newest_tick.min(sampled_tick) >= sample.deadline.saturating_add(excused)
    }

    pub fn take_error(&mut self) -> Option<StateError> {
        self.errors.pop_front()
    }

    fn note(&mut self, error: StateError) {
        if self.errors.len() == ERRORS_KEPT_MAX {
            self.errors.pop_front();
        }
        self.errors.push_back(error);
    }
}

impl HeldSample {
    fn error(&self, component: Option<&'static str>, wrong: Wrong) -> StateError {
        StateError { id: self.id, component, tick: self.tick, wrong }
    }

    fn exact(&self, kind: usize) -> &[u8] {
        &self.exact[self.begins[kind].into()..]
    }
}

impl Replicas {
    pub(crate) fn read_audit_sample(&self, message: &[u8]) -> Result<HeldSample, DecodeError> {
        let mut from = Reader::new(message);
        if from.u8()? != AUDIT_SAMPLE_KIND {
            return Err(DecodeError::WrongKind);
        }
        let (epoch, tick) = (from.u8()?, from.u32()?);
        let (present, tells_all) = match from.u8()? {
            0 => (false, true),
            1 => (true, true),
            2 => (true, false),
            _ => return Err(DecodeError::OutOfRange),
        };
        let slot = from.varint()?;
        if slot >= SLOTS_MAX {
            return Err(DecodeError::SlotLimit);
        }
        let id = NetId { slot, generation: from.u8()? };
        let mut sample = HeldSample {
            epoch,
            tick,
            id,
            present,
            wanted: 0,
            unwanted: 0,
            changed_at: [0; KINDS_MAX],
            exact: Vec::new(),
            begins: [0; KINDS_MAX],
            short_ticks: 0,
            deadline: 0,
        };
        if present {
            sample.wanted = self.read_mask(&mut from)?;
            sample.unwanted = self.schema.every_kind() & !sample.wanted;
            if !tells_all {
                let told = self.read_mask(&mut from)?;
                if told & !sample.wanted != 0 {
                    return Err(DecodeError::UnknownComponent);
                }
                sample.wanted = told;
            }
            for kind in bits(sample.wanted) {
                let age = from.varint()?;
                sample.changed_at[kind] = tick.checked_sub(age).ok_or(DecodeError::OutOfRange)?;
                sample.begins[kind] = sample.exact.len() as u16;
                let before = from.remaining();
                self.columns[kind].skip_exact(&mut from)?;
                let taken = before.len() - from.remaining().len();
                sample.exact.extend_from_slice(&before[..taken]);
            }
        }
        sample.short_ticks = from.varint()?;
        if from.is_at_end() { Ok(sample) } else { Err(DecodeError::TrailingBytes) }
    }

    /// Checks what can be checked against the replicas as they are now.
    pub(crate) fn check_held_samples(&mut self) {
        let mut held = std::mem::take(&mut self.samples.held);
        held.retain_mut(|sample| !self.check_held_sample(sample));
        self.samples.held = held;
    }

    /// Counts what could not be checked by its deadline as errors.
    pub(crate) fn expire_held_samples(&mut self, newest_tick: u32) {
        let mut held = std::mem::take(&mut self.samples.held);
        held.retain(|sample| {
            let due = self.samples.is_due(sample, newest_tick);
            if due {
                self.expire(sample);
            }
            !due
        });
        self.samples.held = held;
    }

    /// Returns whether nothing of the audit sample is left to check.
    fn check_held_sample(&mut self, sample: &mut HeldSample) -> bool {
        let row = self.row(sample.id.slot).map(|(index, replica)| (index, *replica));
        let held = row.filter(|(_, replica)| replica.alive && replica.generation == sample.id.generation);
        if !sample.present {
            return match held {
                None => {
                    self.counts.state_checks += 1;
                    true
                }
                Some((_, replica)) if replica.since > sample.tick => {
                    self.counts.superseded += 1;
                    true
                }
                Some(_) => false,
            };
        }
        let Some((index, replica)) = held else {
            let overtaken = row.is_some_and(|(_, replica)| replica.since > sample.tick);
            self.counts.superseded += u64::from(overtaken);
            return overtaken;
        };
        let begin = index * self.stride();
        for kind in bits(sample.wanted) {
            let label = self.labels[begin + kind];
            if label > sample.tick {
                self.counts.superseded += 1;
            } else if replica.present >> kind & 1 == 1 && label >= sample.changed_at[kind] {
                self.counts.state_checks += 1;
                if self.columns[kind].agrees(index, sample.exact(kind)) != Some(true) {
                    let name = self.schema.kinds()[kind].name;
                    self.state_error(sample.error(Some(name), Wrong::Value));
                }
            } else {
                continue;
            }
            sample.wanted &= !(1 << kind);
        }
        for kind in bits(sample.unwanted) {
            if replica.present >> kind & 1 == 0 {
                self.counts.state_checks += 1;
            } else if self.labels[begin + kind] > sample.tick {
                self.counts.superseded += 1;
            } else {
                continue;
            }
            sample.unwanted &= !(1 << kind);
        }
        sample.wanted | sample.unwanted == 0
    }

    fn expire(&mut self, sample: &HeldSample) {
        let held = self.contains(sample.id);
        if !sample.present || !held {
            let wrong = if sample.present { Wrong::Missing } else { Wrong::Remains };
            self.counts.state_checks += 1;
            self.state_error(sample.error(None, wrong));
            return;
        }
        for kind in bits(sample.wanted | sample.unwanted) {
            let wrong = if sample.wanted >> kind & 1 == 1 { Wrong::Missing } else { Wrong::Remains };
            self.counts.state_checks += 1;
            self.state_error(sample.error(Some(self.schema.kinds()[kind].name), wrong));
        }
    }

    fn state_error(&mut self, error: StateError) {
        self.counts.state_errors += 1;
        self.samples.note(error);
    }
}
