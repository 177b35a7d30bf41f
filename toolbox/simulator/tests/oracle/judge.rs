//! The judge: holds each record that leaves the server against the chronicle.
//!
//! A client may be told of a wanderer in a tick in which it lives and is not hidden from it, if it steers it, is of its
//! pack, or is within the leave radius; or was within it when its set was last rebuilt, which is the grace. Hiding,
//! dying and leaving a pack have none. A despawn and an absence are the other way round: they tell only who has been
//! told of the slot or of the id, and only soon after the client may last have known. So an end that happens out of
//! sight is never told.

use throng_net::connection::{Chunk, parse};
use throng_net::control::{AUDIT_SAMPLE, CONTROL, EVENT, EnterWorld, SNAPSHOT, SchemaHash};
use throng_replication::{EventIn, ReplicatedEvent};

use crate::reader::{AuditSample, Record, Sort, audit_sample, each_record, header};
use crate::wood::{CRY_RANGE_M, Call, Chronicle, Cry, LEAVE_M, Page, Pages, STALKER_SEEN_M, STEP_M, distance_m};

/// Sets are rebuilt once in 4 ticks, of a client that stands still once in 8: so long may what it found hold. (ticks)
const GRACE_TICKS: u32 = 8;
/// An absence is told so long after a client was told of the end, if at all. (ticks)
const ABSENCE_TICKS: u32 = 64;
/// On a bad network a despawn may have to wait while nothing is to be sent, and is told again while it may have been
/// lost. (ticks)
const WAITS_TICKS: u32 = 16;
const RESENT_TICKS: u32 = 100;
const LOOK_BACK_TICKS: u32 = 256;
/// Rounding of distances. (m)
const ROUNDING_M: f32 = 0.001;
/// A slot has at most so many more owners while an absence may be told of one.
const OWNERS_BEFORE: usize = 4;
const LEAKS_TOLD_MAX: usize = 8;
const NOT_EMPTIED: u32 = u32::MAX;

/// What can be told of an entity, and told wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Update,
    Spawn,
    Despawn,
    Presence,
    Absence,
    Cry,
    Call,
    /// The entity that a client is told to steer.
    Own,
}

pub const WAYS: [Way; 8] =
    [Way::Update, Way::Spawn, Way::Despawn, Way::Presence, Way::Absence, Way::Cry, Way::Call, Way::Own];

/// What a judge has seen.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    pub packets: u64,
    pub bytes: u64,
    pub snapshots: u64,
    /// By way.
    told: [u64; WAYS.len()],
    leaks: [u64; WAYS.len()],
    /// How long after a client may last have known the first despawn came, and how long after that it was told again.
    /// (ticks)
    pub despawn_late_max: u32,
    pub despawn_again_max: u32,
    /// The first leaks, in words.
    pub leaks_told: Vec<String>,
}

impl Findings {
    pub fn told(&self, way: Way) -> u64 {
        self.told[way as usize]
    }

    pub fn leaks(&self, way: Way) -> u64 {
        self.leaks[way as usize]
    }

    pub fn told_in_all(&self) -> u64 {
        self.told.iter().sum()
    }

    pub fn leaks_in_all(&self) -> u64 {
        self.leaks.iter().sum()
    }

    pub fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.snapshots += other.snapshots;
        self.despawn_late_max = self.despawn_late_max.max(other.despawn_late_max);
        self.despawn_again_max = self.despawn_again_max.max(other.despawn_again_max);
        for way in 0..WAYS.len() {
            self.told[way] += other.told[way];
            self.leaks[way] += other.leaks[way];
        }
    }
}

/// What a client has been told about a slot.
#[derive(Debug, Clone, Copy)]
struct Told {
    generation: u8,
    number: u16,
    /// By a spawn, and not by an audit sample or as its own alone.
    is_spawned: bool,
    /// The tick of the first despawn since.
    emptied_at: u32,
    /// Generation and number of the owners before this one, the last one first.
    before: [Option<(u8, u16)>; OWNERS_BEFORE],
}

/// What has been said to one client.
#[derive(Debug, Default)]
struct Ear {
    next_packet: u16,
    epoch: Option<u8>,
    slots: Vec<Option<Told>>,
}

impl Ear {
    fn told(&self, slot: u32) -> Option<Told> {
        *self.slots.get(slot as usize)?
    }

    /// It is told who owns a slot.
    fn tell(&mut self, slot: u32, generation: u8, number: u16, by_spawn: bool) {
        let at = slot as usize;
        self.slots.resize(self.slots.len().max(at + 1), None);
        let (is_same, before) = match self.slots[at] {
            None => (false, [None; OWNERS_BEFORE]),
            Some(told) if told.generation == generation => (true, told.before),
            Some(told) => {
                let mut before = told.before;
                before.rotate_right(1);
                before[0] = Some((told.generation, told.number));
                (false, before)
            }
        };
        let was_spawned =
            is_same && self.slots[at].is_some_and(|told| told.is_spawned && told.emptied_at == NOT_EMPTIED);
        let is_spawned = by_spawn || was_spawned;
        self.slots[at] = Some(Told { generation, number, is_spawned, emptied_at: NOT_EMPTIED, before });
    }

    /// Whom an id means, if the client has been told of it.
    fn number_of(&self, slot: u32, generation: u8) -> Option<u16> {
        let told = self.told(slot)?;
        let mut owners = std::iter::once((told.generation, told.number)).chain(told.before.into_iter().flatten());
        owners.find(|(owner, _)| *owner == generation).map(|(_, number)| number)
    }
}

pub struct Judge {
    chronicle: Chronicle,
    /// Packets get lost, so despawns may be told more than once.
    is_poor: bool,
    ears: Vec<Ear>,
    pub findings: Findings,
}

impl Judge {
    pub fn new(chronicle: Chronicle, clients: usize, is_poor: bool) -> Self {
        let ears = (0..clients).map(|_| Ear::default()).collect();
        Self { chronicle, is_poor, ears, findings: Findings::default() }
    }

    /// Judges a packet to a client, which has left in the chronicle's last tick.
    pub fn hear(&mut self, client: usize, payload: &[u8]) {
        let (header, chunks) = parse(payload).expect("the server writes what the document draws");
        let ear = &mut self.ears[client];
        assert_eq!(header.sequence.0, ear.next_packet, "a packet to client {client} was missed");
        ear.next_packet = ear.next_packet.wrapping_add(1);
        self.findings.packets += 1;
        self.findings.bytes += payload.len() as u64;
        for chunk in chunks {
            let message = match chunk {
                Chunk::Unreliable(message) => message,
                Chunk::Fragment { last, bytes, .. } => {
                    assert!(last, "no message of the wood is longer than a fragment");
                    bytes
                }
            };
            self.hear_message(client, message);
        }
    }

    pub fn hear_message(&mut self, client: usize, message: &[u8]) {
        let Self { chronicle, is_poor, ears, findings } = self;
        let pages = chronicle.pages();
        let now = pages.last_tick().expect("nobody is told anything before the first tick");
        let mut court = Court { pages: &pages, now, client, is_poor: *is_poor, ear: &mut ears[client], findings };
        match message[0] {
            CONTROL if SchemaHash::decode(message).is_some() => {}
            CONTROL => court.judge_own(&EnterWorld::decode(message).expect("a control message")),
            SNAPSHOT => {
                court.check_header(message, true);
                court.findings.snapshots += 1;
                each_record(message, |record| court.judge_record(&record));
            }
            AUDIT_SAMPLE => {
                court.check_header(message, true);
                court.judge_audit_sample(&audit_sample(message));
            }
            EVENT => {
                court.check_header(message, false);
                court.judge_event(&EventIn::split(message).expect("an event"));
            }
            kind => panic!("nobody sends messages of kind {kind} here"),
        }
    }
}

/// A judge at work on one message.
struct Court<'a> {
    pages: &'a Pages,
    now: u32,
    client: usize,
    is_poor: bool,
    ear: &'a mut Ear,
    findings: &'a mut Findings,
}

impl Court<'_> {
    /// One stay, and nothing of another tick in what is true for one.
    fn check_header(&mut self, message: &[u8], has_tick: bool) {
        let epoch = message[1];
        assert_eq!(*self.ear.epoch.get_or_insert(epoch), epoch, "a message of another stay");
        assert!(!has_tick || header(message).tick == self.now, "a snapshot or an audit sample waited for its packet");
    }

    fn judge_record(&mut self, record: &Record) {
        match record.sort {
            Sort::Despawn => self.judge_despawn(record.slot),
            Sort::Update => {
                let told = self.ear.told(record.slot);
                let known = told.filter(|told| told.is_spawned && told.emptied_at == NOT_EMPTIED);
                // Whoever it says it is about, it is about the one that the client holds there.
                let is_known = known.is_some_and(|told| record.number() == Some(told.number));
                self.settle(Way::Update, is_known && self.is_right(record), record);
            }
            Sort::Spawn { generation } => {
                let is_named = self.names(record.slot, generation, record.number());
                let is_right = is_named && self.is_right(record);
                if let Some(number) = record.number().filter(|_| is_named) {
                    self.ear.tell(record.slot, generation, number, true);
                }
                self.settle(Way::Spawn, is_right, record);
            }
        }
    }

    /// Whether an id means this wanderer, if the client has been told of the id before.
    fn names(&self, slot: u32, generation: u8, number: Option<u16>) -> bool {
        self.ear.number_of(slot, generation).is_none_or(|told| Some(told) == number)
    }

    /// Whether all that a record says may be told, and is so.
    fn is_right(&self, record: &Record) -> bool {
        let Some(number) = record.number() else { return false };
        let says_one = record.wound.is_none_or(|wound| wound.number == number);
        let is_there = record.wanderer.is_none_or(|wanderer| {
            let page = self.pages.page(self.now);
            page.and_then(|page| page.trace(number)).is_some_and(|trace| distance_m(trace.at, wanderer.at) <= STEP_M)
        });
        says_one && is_there && self.may_know(number)
    }

    fn judge_despawn(&mut self, slot: u32) {
        let told = self.ear.told(slot);
        let is_right = match told {
            None => false,
            Some(told) if told.emptied_at == NOT_EMPTIED => {
                let late_max = if self.is_poor { GRACE_TICKS + WAITS_TICKS } else { GRACE_TICKS };
                let late = self.ticks_since_it_knew(told.number).unwrap_or(u32::MAX);
                self.findings.despawn_late_max = self.findings.despawn_late_max.max(late);
                late <= late_max
            }
            Some(told) => {
                let again = self.now - told.emptied_at;
                self.findings.despawn_again_max = self.findings.despawn_again_max.max(again);
                self.is_poor && again <= RESENT_TICKS
            }
        };
        if let Some(Some(told)) = self.ear.slots.get_mut(slot as usize) {
            told.emptied_at = told.emptied_at.min(self.now);
        }
        self.settle(Way::Despawn, is_right, &(slot, told));
    }

    fn judge_audit_sample(&mut self, audit_sample: &AuditSample) {
        let AuditSample { slot, generation, .. } = *audit_sample;
        if !audit_sample.is_present {
            let number = self.ear.number_of(slot, generation);
            let late = number.and_then(|number| self.ticks_since_it_knew(number));
            let is_hidden = |number| self.page_now().is_some_and(|page| is_hidden(page, self.client, number));
            let is_right =
                late.is_some_and(|ticks| ticks <= GRACE_TICKS + ABSENCE_TICKS) && !number.is_some_and(is_hidden);
            return self.settle(Way::Absence, is_right, &(audit_sample, number, late, self.ear.told(slot)));
        }
        let record = Record { sort: Sort::Update, slot, wanderer: audit_sample.wanderer, wound: audit_sample.wound };
        let is_named = self.names(slot, generation, record.number());
        let is_right = is_named && self.is_right(&record);
        if let Some(number) = record.number().filter(|_| is_named) {
            self.ear.tell(slot, generation, number, false);
        }
        self.settle(Way::Presence, is_right, audit_sample);
    }

    /// A reliable event may be sent again; so the tick counts in which it was told.
    fn judge_event(&mut self, event: &EventIn<'_>) {
        let pages = self.pages;
        let client = self.client;
        if event.id.index() == 0 {
            let Cry { number, tick } = decode(event);
            let own = |page: &Page| page.trace(page.watcher(client).own?).copied();
            let is_right = pages.page(tick.into()).filter(|_| u32::from(tick) == self.now).is_some_and(|page| {
                let (Some(from), Some(to)) = (own(page), page.trace(number)) else { return false };
                !is_hidden(page, client, number) && distance_m(from.at, to.at) <= CRY_RANGE_M + ROUNDING_M
            });
            self.settle(Way::Cry, is_right, &(number, tick));
        } else {
            let Call { number, tick } = decode(event);
            let is_right = pages.page(tick.into()).is_some_and(|page| is_kin(page, client, number));
            self.settle(Way::Call, is_right, &(number, tick));
        }
    }

    fn judge_own(&mut self, entered: &EnterWorld<'_>) {
        let Some((slot, generation)) = entered.own_entity else { return };
        let own = self.pages.page(entered.tick).and_then(|page| page.watcher(self.client).own);
        let is_right = own.is_some() && self.names(slot, generation, own);
        if let Some(number) = own.filter(|_| is_right && entered.tick == self.now) {
            self.ear.tell(slot, generation, number, false);
        }
        self.settle(Way::Own, is_right, entered);
    }

    fn settle(&mut self, way: Way, is_right: bool, what: &dyn std::fmt::Debug) {
        self.findings.told[way as usize] += 1;
        if is_right {
            return;
        }
        self.findings.leaks[way as usize] += 1;
        if self.findings.leaks_told.len() < LEAKS_TOLD_MAX {
            let Self { now, client, .. } = self;
            self.findings.leaks_told.push(format!("tick {now}, client {client}: {way:?} {what:?}"));
        }
    }

    fn page_now(&self) -> Option<&Page> {
        self.pages.page(self.now)
    }

    /// Whether the client may be told anything of a wanderer now.
    fn may_know(&self, number: u16) -> bool {
        let client = self.client;
        let Some(page) = self.page_now() else { return false };
        if page.trace(number).is_none() || is_hidden(page, client, number) {
            return false;
        }
        let had_in_reach = |tick| self.pages.page(tick).is_some_and(|page| has_in_reach(page, client, number));
        let since = self.now.saturating_sub(GRACE_TICKS - 1);
        knows(page, client, number) || (since..self.now).rev().any(had_in_reach)
    }

    /// Ticks since the client may last have known of a wanderer, as far as the chronicle goes back.
    fn ticks_since_it_knew(&self, number: u16) -> Option<u32> {
        let knew = |ticks: &u32| {
            let page = self.now.checked_sub(*ticks).and_then(|tick| self.pages.page(tick));
            page.is_some_and(|page| knows(page, self.client, number))
        };
        (0..LOOK_BACK_TICKS).find(knew)
    }
}

fn decode<T: ReplicatedEvent>(event: &EventIn<'_>) -> T {
    event.decode().expect("the server writes what the schema says")
}

fn is_kin(page: &Page, client: usize, number: u16) -> bool {
    let pack = page.watcher(client).pack;
    pack != 0 && page.trace(number).is_some_and(|trace| trace.pack == pack)
}

/// How far a wanderer is from the client's own, if both live.
fn distance_from_own_m(page: &Page, client: usize, number: u16) -> Option<f32> {
    let own = page.trace(page.watcher(client).own?)?;
    Some(distance_m(own.at, page.trace(number)?.at))
}

/// Whether it lives and must not be told of. The dead see no stalkers.
fn is_hidden(page: &Page, client: usize, number: u16) -> bool {
    if page.trace(number).is_none_or(|trace| !trace.is_stalker) {
        return false;
    }
    if page.watcher(client).own == Some(number) {
        return false;
    }
    match distance_from_own_m(page, client, number) {
        None => true,
        Some(distance_m) => !is_kin(page, client, number) && distance_m > STALKER_SEEN_M,
    }
}

fn has_in_reach(page: &Page, client: usize, number: u16) -> bool {
    let is_near = |distance_m| distance_m <= LEAVE_M + ROUNDING_M;
    distance_from_own_m(page, client, number).is_some_and(is_near) && !is_hidden(page, client, number)
}

/// Whether what is so in this tick lets a client know of a wanderer.
fn knows(page: &Page, client: usize, number: u16) -> bool {
    has_in_reach(page, client, number) || (is_kin(page, client, number) && !is_hidden(page, client, number))
}
