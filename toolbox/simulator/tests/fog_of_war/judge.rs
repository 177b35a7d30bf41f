//! The judge: opens each packet that leaves the server, reads whom it tells of as the document draws it, and holds that
//! against brute force over the ticks in which it may have been found out.

use std::collections::{BTreeMap, HashMap};

use throng_net::connection::{Chunk, parse};
use throng_net::control::{AUDIT_SAMPLE, CONTROL, EVENT, SNAPSHOT};
use throng_query::testing::BruteForce;
use throng_replication::{EventIn, Reader, Replicate};

use crate::arena::{Chronicle, FIGHTERS, FOG, Fighter, Level, Shout};

/// Kind, epoch, tick, and the number of an input.
const SNAPSHOT_HEADER_BYTES: usize = 8;

#[derive(Debug, Default)]
pub struct Findings {
    pub packets: u64,
    /// Times that somebody other than the client's own was told of, by snapshots and audit samples, and by events.
    pub told: u64,
    pub heard: u64,
    /// Of these, times that it could not be seen within the grace.
    pub leaks: u64,
    /// Pairs and ticks, and those of them in which the one saw the other.
    pub pairs: u64,
    pub seen: u64,
    /// Longest time that somebody was seen of whom no byte had come (ticks).
    pub late_ticks_max: u32,
}

/// What one client has been told.
#[derive(Default)]
struct Ear {
    /// Whom it holds, by slot.
    held: BTreeMap<u32, u16>,
    late_ticks: [u32; FIGHTERS],
}

pub struct Judge {
    level: Level,
    chronicle: Chronicle,
    ears: Vec<Ear>,
    brute: BruteForce,
    /// By tick, client and number: whether it could be seen within the grace.
    known: HashMap<(u32, usize, u16), bool>,
    pub findings: Findings,
}

impl Judge {
    pub fn new(level: Level, chronicle: Chronicle, clients: usize) -> Self {
        let ears = (0..clients).map(|_| Ear::default()).collect();
        let (brute, known) = (BruteForce::default(), HashMap::new());
        Self { level, chronicle, ears, brute, known, findings: Findings::default() }
    }

    /// Judges a packet to a client, which has left in the last tick.
    pub fn hear(&mut self, client: usize, payload: &[u8]) {
        let (_, chunks) = parse(payload).expect("the server writes what the document draws");
        self.findings.packets += 1;
        for chunk in chunks {
            let (Chunk::Unreliable(message) | Chunk::Fragment { bytes: message, .. }) = chunk;
            match message[0] {
                SNAPSHOT => self.hear_snapshot(client, message),
                AUDIT_SAMPLE => {
                    if let Some(number) = number_in_audit_sample(message) {
                        self.tell(client, number);
                    }
                }
                EVENT => {
                    let shout: Shout = EventIn::split(message).expect("an event").decode().expect("a shout");
                    self.findings.heard += 1;
                    self.tell(client, shout.number);
                }
                CONTROL => {}
                kind => panic!("nobody sends messages of kind {kind} here"),
            }
        }
    }

    fn hear_snapshot(&mut self, client: usize, message: &[u8]) {
        let mut from = Reader::new(&message[SNAPSHOT_HEADER_BYTES..]);
        let (mut slot, mut mask_before) = (0, 1);
        while !from.is_at_end() {
            let head = from.varint().unwrap();
            let is_spawn = head & 0b111 == 0b011;
            let (delta, mask) = match head & 0b111 {
                0b111 => (head >> 3, 0),
                0b011 => {
                    from.u8().unwrap();
                    (head >> 3, from.u8().unwrap())
                }
                _ if head & 1 == 1 => {
                    mask_before = from.u8().unwrap();
                    (head >> 2, mask_before)
                }
                _ => (head >> 1, mask_before),
            };
            slot += delta;
            if mask == 0 {
                self.ears[client].held.remove(&slot);
                continue;
            }
            assert_eq!(mask, 1, "there is one component");
            let fighter = Fighter::decode(&mut from).unwrap();
            if is_spawn {
                self.ears[client].held.insert(slot, fighter.number);
            }
            assert_eq!(self.ears[client].held.get(&slot), Some(&fighter.number), "an update of somebody else");
            self.tell(client, fighter.number);
        }
    }

    /// A byte about somebody goes to a client, whose own has its number.
    fn tell(&mut self, client: usize, number: u16) {
        if usize::from(number) == client {
            return;
        }
        self.findings.told += 1;
        let Self { chronicle, level, brute, known, .. } = self;
        let pages = chronicle.pages();
        let may_see = pages.iter().rev().take(FOG.recheck_ticks as usize).any(|page| {
            let (viewer, body) = (&page.bodies[client], &page.bodies[usize::from(number)]);
            *known
                .entry((page.tick, client, number))
                .or_insert_with(|| brute.may_see_within(&level.walls, viewer, body, FOG.reach_s()))
        });
        self.findings.leaks += u64::from(!may_see);
    }

    /// A tick is over, and all that left in it has been heard: who is seen, and not held?
    pub fn end_tick(&mut self) {
        let Self { chronicle, level, ears, brute, known, findings } = self;
        let pages = chronicle.pages();
        let Some(page) = pages.back() else { return };
        for (client, ear) in ears.iter_mut().enumerate() {
            // Before it holds its own, it is not here.
            if !ear.held.values().any(|number| usize::from(*number) == client) {
                continue;
            }
            for number in (0..FIGHTERS).filter(|number| *number != client) {
                let is_seen = brute.sees(&level.walls, &page.bodies[client], &page.bodies[number]);
                let is_held = ear.held.values().any(|held| usize::from(*held) == number);
                findings.pairs += 1;
                findings.seen += u64::from(is_seen);
                let late = &mut ear.late_ticks[number];
                *late = if is_seen && !is_held { *late + 1 } else { 0 };
                findings.late_ticks_max = findings.late_ticks_max.max(*late);
            }
        }
        known.retain(|(tick, ..), _| tick + FOG.recheck_ticks >= page.tick);
    }
}

fn number_in_audit_sample(message: &[u8]) -> Option<u16> {
    let (form, mut from) = (message[6], Reader::new(&message[7..]));
    from.varint().unwrap();
    from.u8().unwrap();
    if form == 0 {
        return None;
    }
    let mask = from.u8().unwrap();
    let told = if form == 2 { from.u8().unwrap() } else { mask };
    (told & 1 != 0).then(|| {
        from.varint().unwrap();
        Fighter::decode_exact(&mut from).unwrap().number
    })
}
