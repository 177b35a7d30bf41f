//! The reader: what a message says, read as `docs/spec/replication.md` draws it and not as a client's copies do.

use duel::components::{Arms, Clock, Clouds, Player, Pose, Score, Spike, TeamVitals};
use throng_replication::{Reader, Replicate};

/// Kind, epoch, tick, and the number of an input.
const SNAPSHOT_HEADER_BYTES: usize = 8;
/// Kind, epoch, tick, form.
const AUDIT_HEADER_BYTES: usize = 7;

/// What of an entity is said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    pub pose: Option<Pose>,
    pub player: Option<Player>,
    pub vitals: Option<TeamVitals>,
    pub arms: Option<Arms>,
    pub clock: Option<Clock>,
    pub score: Option<Score>,
    pub spike: Option<Spike>,
    pub clouds: Option<Clouds>,
}

impl Said {
    /// Reads what a mask names, in the order of the schema, each by `read`.
    fn read(mask: u8, from: &mut Reader<'_>, is_exact: bool) -> Self {
        fn one<T: Replicate>(mask: u8, kind: u8, from: &mut Reader<'_>, is_exact: bool) -> Option<T> {
            (mask >> kind & 1 == 1).then(|| {
                if is_exact {
                    from.varint().expect("an age");
                    T::decode_exact(from).expect("what the schema says")
                } else {
                    T::decode(from).expect("what the schema says")
                }
            })
        }
        Self {
            pose: one(mask, 0, from, is_exact),
            player: one(mask, 1, from, is_exact),
            vitals: one(mask, 2, from, is_exact),
            arms: one(mask, 3, from, is_exact),
            clock: one(mask, 4, from, is_exact),
            score: one(mask, 5, from, is_exact),
            spike: one(mask, 6, from, is_exact),
            clouds: one(mask, 7, from, is_exact),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Update,
    Spawn,
    Despawn,
    /// Of an audit sample.
    Presence,
    Absence,
}

/// What a message says of one entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub sort: Sort,
    pub slot: u32,
    pub said: Said,
}

/// The stay of which a snapshot or an audit sample is.
pub fn epoch_of(message: &[u8]) -> u8 {
    message[1]
}

/// All records of a snapshot, into `records`.
pub fn read_snapshot(message: &[u8], records: &mut Vec<Record>) {
    let mut from = Reader::new(&message[SNAPSHOT_HEADER_BYTES..]);
    let (mut slot, mut mask_before) = (0, 1);
    records.clear();
    while !from.is_at_end() {
        let head = from.varint().expect("a head");
        let (delta, sort, mask) = match head & 0b111 {
            0b111 => (head >> 3, Sort::Despawn, 0),
            0b011 => {
                from.u8().expect("a generation");
                (head >> 3, Sort::Spawn, from.u8().expect("a mask"))
            }
            _ if head & 1 == 1 => {
                mask_before = from.u8().expect("a mask");
                (head >> 2, Sort::Update, mask_before)
            }
            _ => (head >> 1, Sort::Update, mask_before),
        };
        slot += delta;
        records.push(Record { sort, slot, said: Said::read(mask, &mut from, false) });
    }
}

pub fn read_audit_sample(message: &[u8]) -> Record {
    let (form, mut from) = (message[AUDIT_HEADER_BYTES - 1], Reader::new(&message[AUDIT_HEADER_BYTES..]));
    let slot = from.varint().expect("a slot");
    from.u8().expect("a generation");
    if form == 0 {
        return Record { sort: Sort::Absence, slot, said: Said::default() };
    }
    let mask = from.u8().expect("a mask");
    let told = if form == 2 { from.u8().expect("a mask") } else { mask };
    Record { sort: Sort::Presence, slot, said: Said::read(told, &mut from, true) }
}
