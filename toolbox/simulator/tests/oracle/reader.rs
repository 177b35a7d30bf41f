//! The reader: what a message says, read as `docs/spec/replication.md` draws it and not as `Replicas` does.

use throng_replication::{Reader, Replicate};

use crate::wood::{Wanderer, Wound};

/// Kind, epoch, tick; and the number of an input in snapshots.
const SNAPSHOT_HEADER_BYTES: usize = 8;

/// What stands before everything else in snapshots and audit samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Header {
    pub epoch: u8,
    pub tick: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sort {
    Update,
    Spawn { generation: u8 },
    Despawn,
}

/// One record of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record {
    pub sort: Sort,
    pub slot: u32,
    pub wanderer: Option<Wanderer>,
    pub wound: Option<Wound>,
}

impl Record {
    /// Whom it is about, as it says itself.
    pub fn number(&self) -> Option<u16> {
        self.wanderer.map(|wanderer| wanderer.number).or(self.wound.map(|wound| wound.number))
    }
}

/// What an audit sample says of one entity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuditSample {
    pub is_present: bool,
    pub slot: u32,
    pub generation: u8,
    pub wanderer: Option<Wanderer>,
    pub wound: Option<Wound>,
}

pub fn header(message: &[u8]) -> Header {
    Header { epoch: message[1], tick: u32::from_le_bytes([message[2], message[3], message[4], message[5]]) }
}

pub fn each_record(message: &[u8], mut each: impl FnMut(Record)) {
    let mut from = Reader::new(&message[SNAPSHOT_HEADER_BYTES..]);
    let (mut slot, mut mask_before) = (0, 1);
    while !from.is_at_end() {
        let head = from.varint().unwrap();
        let (delta, sort, mask) = match head & 0b111 {
            0b111 => (head >> 3, Sort::Despawn, 0),
            0b011 => (head >> 3, Sort::Spawn { generation: from.u8().unwrap() }, from.u8().unwrap()),
            _ if head & 1 == 1 => {
                mask_before = from.u8().unwrap();
                (head >> 2, Sort::Update, mask_before)
            }
            _ => (head >> 1, Sort::Update, mask_before),
        };
        slot += delta;
        assert!(mask & !0b11 == 0, "a component that is not in the schema");
        let wanderer = (mask & 0b01 != 0).then(|| Wanderer::decode(&mut from).unwrap());
        let wound = (mask & 0b10 != 0).then(|| Wound::decode(&mut from).unwrap());
        each(Record { sort, slot, wanderer, wound });
    }
}

pub fn audit_sample(message: &[u8]) -> AuditSample {
    let (form, mut from) = (message[6], Reader::new(&message[7..]));
    let (slot, generation) = (from.varint().unwrap(), from.u8().unwrap());
    let mut audit_sample = AuditSample { is_present: form != 0, slot, generation, wanderer: None, wound: None };
    if audit_sample.is_present {
        let mask = from.u8().unwrap();
        let told = if form == 2 { from.u8().unwrap() } else { mask };
        assert!(form <= 2 && told & !mask == 0 && mask & !0b11 == 0);
        if told & 0b01 != 0 {
            from.varint().unwrap();
            audit_sample.wanderer = Some(Wanderer::decode_exact(&mut from).unwrap());
        }
        if told & 0b10 != 0 {
            from.varint().unwrap();
            audit_sample.wound = Some(Wound::decode_exact(&mut from).unwrap());
        }
    }
    // Short ticks, which say nothing of anybody.
    from.varint().unwrap();
    assert!(from.is_at_end(), "bytes after an audit sample");
    audit_sample
}
