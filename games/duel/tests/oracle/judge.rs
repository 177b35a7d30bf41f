//! The judge: opens each packet that leaves the server and holds all that it says of players, of a team's vitals and of the
//! spike against the chronicle.
//!
//! What everybody may know it lets pass: clock, score with who lives, smoke, who killed whom, and where a flash went off.

use std::{
    collections::{BTreeMap, VecDeque},
    mem::discriminant,
    sync::Arc,
};

use duel::{
    components::{Condition, Phase, Spike},
    protocol::{Blinded, HitConfirmed, Kit, ShotFired, TICK_HZ},
    teams::{SEATS, TeamId},
};
use throng_net::{
    connection::{Chunk, parse},
    control::{AUDIT_SAMPLE, EVENT, MESSAGE, SNAPSHOT},
};
use throng_pack::unpack_body;
use throng_replication::{EventIn, Schema};

use crate::{
    findings::{Findings, Way},
    reader::{Record, Said, Sort, epoch_of, read_audit_sample, read_snapshot},
    truth::Truth,
    witness::{Chronicle, Page},
};

/// Kind of message, and which.
const MESSAGE_HEADER_BYTES: usize = 2;
/// A reliable message may be sent again for so long after what it tells of (ticks).
const RESENT_TICKS: u32 = 3 * TICK_HZ as u32;
/// So many changes of what a player has are remembered: more than there are while a message is sent again.
const KITS_MAX: usize = 128;
/// Steps of a pose are 1 cm (m).
const POSE_STEP_M: f32 = 0.01;

/// Whom or what an entity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Player(u8),
    Vitals(TeamId),
    Spike,
    Board,
}

impl Who {
    /// As a record says itself; updates mostly do not.
    fn of(said: &Said) -> Option<Self> {
        if let Some(player) = said.player {
            return Some(Self::Player(player.seat));
        }
        if let Some(vitals) = &said.vitals {
            return Some(Self::Vitals(vitals.team));
        }
        let is_board = said.clock.is_some() || said.score.is_some() || said.clouds.is_some();
        said.spike.map(|_| Self::Spike).or(is_board.then_some(Self::Board))
    }
}

/// What one client has been told in its stay.
#[derive(Default)]
struct Ear {
    next_packet: u16,
    epoch: Option<u8>,
    /// Whatever it was told of, by slot, and what of it it holds.
    known: BTreeMap<u32, Who>,
    held: BTreeMap<u32, Who>,
    enemies: [Enemy; SEATS],
}

/// What one client knows of an enemy.
#[derive(Debug, Clone, Copy, Default)]
struct Enemy {
    /// Since this tick it holds it.
    held_since: Option<u32>,
    has_been_seen: bool,
    /// For so many ticks it has seen it without holding it.
    late_ticks: u32,
}

impl Ear {
    /// It is told who has a slot; whether that is who had it before.
    fn learn(&mut self, slot: u32, who: Who) -> bool {
        *self.known.entry(slot).or_insert(who) == who
    }

    fn hold(&mut self, slot: u32, who: Who, tick: u32) {
        self.held.insert(slot, who);
        if let Who::Player(seat) = who {
            self.enemies[usize::from(seat)].held_since.get_or_insert(tick);
        }
    }

    fn let_go(&mut self, slot: u32) {
        if let Some(Who::Player(seat)) = self.held.remove(&slot) {
            self.enemies[usize::from(seat)] = Enemy::default();
        }
    }
}

/// What the judge notes of a player beside the chronicle's pages.
#[derive(Default)]
struct Noted {
    kits: VecDeque<Kit>,
    fired_at: Option<u32>,
}

pub struct Judge {
    schema: Arc<Schema>,
    chronicle: Chronicle,
    truth: Truth,
    ears: Vec<Ear>,
    players: [Noted; SEATS],
    last_tick: Option<u32>,
    is_network_bad: bool,
    records: Vec<Record>,
    pub findings: Findings,
}

impl Judge {
    pub fn new(schema: Arc<Schema>, chronicle: Chronicle, clients: usize, is_network_bad: bool) -> Self {
        Self {
            schema,
            chronicle,
            truth: Truth::new(),
            ears: (0..clients).map(|_| Ear::default()).collect(),
            players: Default::default(),
            last_tick: None,
            is_network_bad,
            records: Vec::new(),
            findings: Findings::default(),
        }
    }

    /// A frame is over. True, if it was a tick of the match: then what was sent in it is to be heard, and the tick ended.
    pub fn turn_page(&mut self) -> bool {
        let pages = self.chronicle.pages();
        let Some(page) = pages.back().filter(|page| Some(page.tick) != self.last_tick) else { return false };
        self.last_tick = Some(page.tick);
        self.findings.ticks += 1;
        self.findings.smoke_ticks += u64::from(!page.clouds.is_empty());
        let before = pages.len().checked_sub(2).map(|at| &pages[at]);
        let was_over = before.is_none_or(|before| !before.phase.is_live());
        self.findings.rounds += u64::from(page.phase == Phase::Over && !was_over);
        for (seat, noted) in self.players.iter_mut().enumerate() {
            let now = &page.people[seat];
            if noted.kits.back() != Some(&now.kit) {
                noted.kits.push_back(now.kit);
                if noted.kits.len() > KITS_MAX {
                    noted.kits.pop_front();
                }
            }
            let Some(before) = before.map(|before| &before.people[seat]) else { continue };
            let (kit, kit_before) = (now.kit, before.kit);
            if kit.weapon == kit_before.weapon && kit.rounds < kit_before.rounds {
                noted.fired_at = Some(page.tick);
            }
        }
        true
    }

    /// Whether everybody goes home.
    pub fn is_over(&self) -> bool {
        self.chronicle.pages().back().is_some_and(|page| page.phase == Phase::MatchOver)
    }

    /// Judges a packet to a client, which has left in the tick of the last page.
    pub fn hear(&mut self, client: usize, payload: &[u8]) {
        let (header, chunks) = parse(payload).expect("the server writes what the document draws");
        let ear = &mut self.ears[client];
        assert_eq!(header.sequence.0, ear.next_packet, "a packet to client {client} was missed");
        ear.next_packet = ear.next_packet.wrapping_add(1);
        self.findings.packets += 1;
        let messages = chunks.map(|chunk| match chunk {
            Chunk::Unreliable(message) => message,
            Chunk::Fragment { last, bytes, .. } => {
                assert!(last, "no message of a match is longer than a fragment");
                bytes
            }
        });
        for message in messages {
            match message[0] {
                SNAPSHOT | AUDIT_SAMPLE => self.hear_records(client, message),
                EVENT => self.hear_event(client, &EventIn::split(message).expect("an event")),
                MESSAGE => self.hear_own(client, message),
                // Which world it is in, and which slot its own player has.
                _ => {}
            }
        }
    }

    fn hear_records(&mut self, client: usize, message: &[u8]) {
        let (epoch, ear) = (epoch_of(message), &mut self.ears[client]);
        if ear.epoch != Some(epoch) {
            *ear = Ear { next_packet: ear.next_packet, epoch: Some(epoch), ..Ear::default() };
        }
        let mut records = std::mem::take(&mut self.records);
        if message[0] == SNAPSHOT {
            read_snapshot(message, &mut records);
        } else {
            records.clear();
            records.push(read_audit_sample(message));
        }
        records.iter().for_each(|record| self.judge_record(client, record));
        self.records = records;
    }

    fn judge_record(&mut self, client: usize, record: &Record) {
        let Self { chronicle, truth, ears, findings, .. } = self;
        let (pages, ear) = (chronicle.pages(), &mut ears[client]);
        let page = pages.back().expect("the lobby has nothing to tell");
        let known = ear.known.get(&record.slot).copied();
        let who = Who::of(&record.said).or(known);
        let viewer = seat_of(page, client);
        let is_right = match (record.sort, who, viewer) {
            // That it is gone is told to whom it was told of.
            (Sort::Despawn | Sort::Absence, ..) => known.is_some(),
            (_, Some(who), Some(viewer)) => {
                let is_held = record.sort != Sort::Update || ear.held.contains_key(&record.slot);
                let is_same = ear.learn(record.slot, who);
                let is_so = is_so(page, who, &record.said);
                is_held && is_same && is_so && may_know(truth, &pages, viewer, who, &record.said)
            }
            _ => false,
        };
        match (record.sort, who) {
            (Sort::Spawn, Some(who)) => ear.hold(record.slot, who, page.tick),
            (Sort::Despawn, _) => ear.let_go(record.slot),
            _ => {}
        }
        let tell = || format!("tick {}, seat {viewer:?}: {record:?} of {who:?}", page.tick);
        let is_friend = |seat: u8| viewer.is_some_and(|viewer| TeamId::of_seat(viewer) == TeamId::of_seat(seat));
        let way = match (who, record.sort) {
            (Some(Who::Player(seat)), _) if is_friend(seat) && is_right => return,
            (Some(Who::Board), _) if is_right => return,
            (Some(Who::Vitals(_)), _) => Way::Vitals,
            (Some(Who::Spike), _) => Way::Spike,
            (_, Sort::Update) => Way::Update,
            (_, Sort::Spawn) => Way::Spawn,
            (_, Sort::Despawn) => Way::Despawn,
            (_, Sort::Presence) => Way::Presence,
            (_, Sort::Absence) => Way::Absence,
        };
        findings.settle(way, is_right, tell);
    }

    fn hear_event(&mut self, client: usize, event: &EventIn<'_>) {
        let Self { schema, chronicle, truth, players, findings, .. } = self;
        let pages = chronicle.pages();
        let viewer = pages.back().and_then(|page| seat_of(page, client));
        let tick = pages.back().map_or(0, |page| page.tick);
        if schema.event_of::<ShotFired>() == Some(event.id) {
            let shot: ShotFired = event.decode().expect("a shot");
            let is_friend = viewer.is_some_and(|viewer| TeamId::of_seat(viewer) == TeamId::of_seat(shot.seat));
            if !is_friend {
                let may_hear = viewer.is_some_and(|viewer| truth.may_be_told(&pages, viewer, shot.seat));
                findings.settle(Way::Shot, may_hear, || format!("tick {tick}, seat {viewer:?}: {shot:?}"));
            }
        } else if schema.event_of::<HitConfirmed>() == Some(event.id) {
            let fired_at = viewer.and_then(|viewer| players[usize::from(viewer)].fired_at);
            let is_own = fired_at.is_some_and(|fired_at| tick - fired_at <= RESENT_TICKS);
            findings.settle(Way::Hit, is_own, || format!("tick {tick}, seat {viewer:?}"));
        }
    }

    /// What is told to a player about itself.
    fn hear_own(&mut self, client: usize, message: &[u8]) {
        let Self { schema, chronicle, players, findings, .. } = self;
        let pages = chronicle.pages();
        let viewer = pages.back().and_then(|page| seat_of(page, client));
        let body = &message[MESSAGE_HEADER_BYTES..];
        let is = |kind: Option<u8>| kind == Some(message[1]);
        if is(schema.message_of::<Kit>().map(|kind| kind.0)) {
            let kit: Kit = unpack_body(body).expect("a kit");
            let is_own = viewer.is_some_and(|viewer| players[usize::from(viewer)].kits.contains(&kit));
            findings.settle(Way::Kit, is_own, || format!("seat {viewer:?}: {kit:?}"));
        } else if is(schema.message_of::<Blinded>().map(|kind| kind.0)) {
            let until_tick = |page: &Page, viewer: u8| page.people[usize::from(viewer)].blind_until_tick;
            let was_blind = |page: &Page, viewer: u8| until_tick(page, viewer) + RESENT_TICKS > page.tick;
            let is_own = pages.back().zip(viewer).is_some_and(|(page, viewer)| was_blind(page, viewer));
            findings.settle(Way::Blinded, is_own, || format!("seat {viewer:?}"));
        }
    }

    /// A tick is over, and all that left in it has been heard: who is seen, and not held?
    pub fn end_tick(&mut self) {
        let Self { chronicle, truth, ears, is_network_bad, findings, .. } = self;
        let pages = chronicle.pages();
        let Some(page) = pages.back() else { return };
        let is_alive = |seat: u8| page.people[usize::from(seat)].body.life != 0;
        for (client, ear) in ears.iter_mut().enumerate() {
            let Some(viewer) = seat_of(page, client).filter(|viewer| is_alive(*viewer)) else { continue };
            // Before it holds its own player, it is not here.
            if !ear.held.values().any(|who| *who == Who::Player(viewer)) {
                continue;
            }
            let team = TeamId::of_seat(viewer);
            for other in (0..SEATS as u8).filter(|seat| TeamId::of_seat(*seat) != team && is_alive(*seat)) {
                let enemy = &mut ear.enemies[usize::from(other)];
                findings.pairs += 1;
                findings.held += u64::from(enemy.held_since.is_some());
                if enemy.held_since.is_some() && enemy.has_been_seen {
                    continue;
                }
                let is_seen = truth.sees(page, viewer, other);
                match enemy.held_since {
                    Some(since) if is_seen => {
                        enemy.has_been_seen = true;
                        findings.notices[usize::from(*is_network_bad)].count(page.tick - since);
                        enemy.late_ticks = 0;
                    }
                    Some(_) => enemy.late_ticks = 0,
                    None => {
                        enemy.late_ticks = if is_seen { enemy.late_ticks + 1 } else { 0 };
                        findings.late += u64::from(enemy.late_ticks == 2);
                        findings.late_ticks_max = findings.late_ticks_max.max(enemy.late_ticks);
                    }
                }
            }
        }
    }
}

/// Which seat a client has.
fn seat_of(page: &Page, client: usize) -> Option<u8> {
    page.clients.iter().position(|other| *other == Some(client)).map(|seat| seat as u8)
}

/// Whether what is said of somebody is what is so: nobody's state comes under another's name.
fn is_so(page: &Page, who: Who, said: &Said) -> bool {
    match who {
        Who::Player(seat) => {
            let person = &page.people[usize::from(seat)];
            let is_near = said.pose.is_none_or(|pose| pose.feet().distance(person.pose.feet()) <= 2.0 * POSE_STEP_M);
            is_near && said.arms.is_none_or(|arms| arms == person.arms)
        }
        Who::Vitals(team) => said.vitals.as_ref().is_none_or(|vitals| {
            let seats = (0..SEATS as u8).filter(|seat| TeamId::of_seat(*seat) == team);
            let is_of = |seat: u8| vitals.of(seat) == Condition::from(&page.people[usize::from(seat)].vitals);
            vitals.team == team && seats.into_iter().all(is_of)
        }),
        Who::Spike => said.spike.is_none_or(|spike| discriminant(&spike) == discriminant(&page.spike)),
        Who::Board => true,
    }
}

fn may_know(truth: &mut Truth, pages: &VecDeque<Page>, viewer: u8, who: Who, said: &Said) -> bool {
    let team = TeamId::of_seat(viewer);
    match who {
        Who::Board => true,
        Who::Vitals(of) => of == team,
        Who::Spike => {
            let is_attacker = pages.back().is_some_and(|page| page.attackers == team);
            is_attacker || matches!(said.spike, Some(Spike::Planted { .. } | Spike::Gone))
        }
        Who::Player(seat) => TeamId::of_seat(seat) == team || truth.may_be_told(pages, viewer, seat),
    }
}
