//! The spike: who carries it, where it lies, how it is planted and defused, and what it does when it explodes.
//!
//! One attacker begins with it. Where the carrier dies it lies, and the first attacker who walks over it has it. To
//! plant it takes four seconds of standing still on a site, to defuse it seven beside it; who lets go after half of
//! that may go on from there. Both are the work of one player at a time, who does nothing else meanwhile: neither shoots
//! nor throws nor loads, and one that loads begins when it is done.
//!
//! The spike is where it is in the plane: what lies on a crate is reached from beside it.

use bevy_ecs::query::QueryData;
use glam::{Vec2, Vec3Swizzles};
use throng::prelude::*;
use throng_replication::table_resource;

use crate::{
    components::{Phase, Player, RoundEnd, Spike, Vitals},
    controls::Controls,
    economy::{OF_PLANT, Purse},
    map::layout::SQUARE_M,
    movement::{BODY_HALF_M, Motion},
    protocol::Killed,
    rounds::{Change, Rounds},
    scene::{RoundChange, Scene},
    seats::Seats,
    settings::MatchRules,
    weapons::{BodyPart, Weapon},
};

/// An attacker who comes so near takes it up (m, along the ground).
const PICK_UP_M: f32 = 1.5;
/// A defender reaches so far (m, along the ground).
pub const REACH_M: f32 = 1.6;
/// From beside a crate both reach its middle.
const _: () = assert!(SQUARE_M / 2.0 + BODY_HALF_M < PICK_UP_M && PICK_UP_M < REACH_M);
/// Faster one is not standing still (m/s).
const STILL_M_PER_S: f32 = 0.5;
/// Everybody within this is killed by it (m, along the ground).
pub const BLAST_M: f32 = 15.0;

/// The spike, and what is being done to it.
#[derive(Pack, Debug)]
#[pack(name = "duel.spike_state")]
pub struct SpikeState {
    pub spike: Spike,
    /// Set once it is defused.
    pub is_defused: bool,
    /// Who works at it, by seat.
    worker: Option<u8>,
    /// Ticks of work done, and those that stay done when the worker lets go.
    done_ticks: u32,
    kept_ticks: u32,
}

table_resource!(SpikeState);

impl StateHash for SpikeState {
    fn hash_state(&self, hasher: &mut StateHasher) {
        let Self { spike, is_defused, worker, done_ticks, kept_ticks } = *self;
        let mut write_at = |kind: u64, x: f32, z: f32, tick: u32| {
            hasher.write_u64(kind << 32 | u64::from(tick));
            hasher.write_f32(x);
            hasher.write_f32(z);
        };
        match spike {
            Spike::Gone => write_at(0, 0.0, 0.0, 0),
            Spike::Carried { seat } => write_at(1, 0.0, 0.0, seat.into()),
            Spike::Dropped { x, z } => write_at(2, x, z, 0),
            Spike::Planted { x, z, explodes_tick } => write_at(3, x, z, explodes_tick),
        }
        hasher.write_u64(u64::from(is_defused) << 8 | worker.map_or(u64::from(u8::MAX), u64::from));
        hasher.write_u64(u64::from(done_ticks) << 32 | u64::from(kept_ticks));
    }
}

impl Default for SpikeState {
    fn default() -> Self {
        Self { spike: Spike::Gone, is_defused: false, worker: None, done_ticks: 0, kept_ticks: 0 }
    }
}

impl SpikeState {
    /// Another round, in which this attacker has it.
    pub fn begin(&mut self, carrier: Option<u8>) {
        let spike = carrier.map_or(Spike::Gone, |seat| Spike::Carried { seat });
        *self = Self { spike, ..Self::default() };
    }

    /// Whether somebody has its hands at it.
    pub fn is_worked_by(&self, seat: u8) -> bool {
        self.worker == Some(seat)
    }

    /// A tick of work by somebody; whether all of it, so many ticks, is done.
    fn work(&mut self, seat: u8, of_ticks: u32) -> bool {
        self.worker = Some(seat);
        self.done_ticks += 1;
        self.done_ticks >= of_ticks
    }

    /// Nobody works at it any more.
    fn let_go(&mut self) {
        (self.worker, self.done_ticks) = (None, self.kept_ticks);
    }
}

/// Whether somebody is so near to a place, whatever the height of either.
fn is_within(motion: &Motion, [x, z]: [f32; 2], far_m: f32) -> bool {
    motion.at.xz().distance_squared(Vec2::new(x, z)) <= far_m * far_m
}

/// Drops it where its carrier has died, and gives it to who walks over it.
pub fn carry(rounds: Res<Rounds>, mut spike_state: ResMut<SpikeState>, players: Query<(&Player, &Vitals, &Motion)>) {
    let attackers = || players.iter().filter(|(player, ..)| player.team == rounds.attackers);
    match spike_state.spike {
        Spike::Carried { seat } => {
            let fallen = attackers().find(|(player, vitals, _)| player.seat == seat && !vitals.is_alive);
            if let Some((.., motion)) = fallen {
                spike_state.spike = Spike::Dropped { x: motion.at.x, z: motion.at.z };
                spike_state.let_go();
            }
        }
        Spike::Dropped { x, z } if rounds.phase() == Phase::Live => {
            let taker = attackers().find(|(_, vitals, motion)| vitals.is_alive && is_within(motion, [x, z], PICK_UP_M));
            if let Some((player, ..)) = taker {
                spike_state.spike = Spike::Carried { seat: player.seat };
            }
        }
        _ => {}
    }
}

/// Of a player: what work at the spike reads.
#[derive(QueryData)]
pub struct Worker {
    player: &'static Player,
    vitals: &'static Vitals,
    motion: &'static Motion,
    controls: &'static Controls,
    weapon: &'static Weapon,
}

impl WorkerItem<'_, '_> {
    /// Whether it holds a hand at the spike, has it free, and stands still.
    fn is_at_work(&self, tick: u32) -> bool {
        let uses = self.controls.input().is_some_and(|input| input.uses());
        let stands = self.motion.is_on_ground && self.motion.speed_m_per_s() < STILL_M_PER_S;
        uses && stands && self.vitals.is_alive && !self.weapon.is_loading(tick)
    }
}

/// A tick of planting. For the phase in which it is not planted.
pub fn plant(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    rules: Res<MatchRules>,
    mut rounds: ResMut<Rounds>,
    mut spike_state: ResMut<SpikeState>,
    players: Query<Worker>,
    mut purses: Query<(&Player, &mut Purse)>,
) {
    let Spike::Carried { seat } = spike_state.spike else { return };
    if rounds.phase() != Phase::Live {
        return;
    }
    let carrier = players.iter().find(|one| one.player.seat == seat);
    let planter = carrier.filter(|one| one.is_at_work(tick.tick) && scene.map.site_at(one.motion.at).is_some());
    let Some(WorkerItem { motion, .. }) = planter else { return spike_state.let_go() };
    if !spike_state.work(seat, rules.plant_ticks) {
        return;
    }
    rounds.plant(tick.tick, &rules);
    *spike_state = SpikeState::default();
    spike_state.spike = Spike::Planted { x: motion.at.x, z: motion.at.z, explodes_tick: rounds.clock.ends_tick };
    for (player, mut purse) in &mut purses {
        if player.team == rounds.attackers {
            purse.earn(OF_PLANT);
        }
    }
    count!("spikes.planted");
}

/// A tick of defusing. For the phase in which it is planted.
pub fn defuse(
    tick: Res<TickInfo>,
    rules: Res<MatchRules>,
    rounds: Res<Rounds>,
    mut spike_state: ResMut<SpikeState>,
    players: Query<Worker>,
) {
    let Spike::Planted { x, z, .. } = spike_state.spike else { return };
    if rounds.phase() != Phase::Planted {
        return;
    }
    let is_able = |one: &WorkerItem<'_, '_>| {
        let is_defender = one.player.team != rounds.attackers;
        is_defender && is_within(one.motion, [x, z], REACH_M) && one.is_at_work(tick.tick)
    };
    // Whoever is at it goes on; otherwise the one with the lowest seat begins.
    let worker = spike_state.worker;
    let able = || players.iter().filter(is_able).map(|one| one.player.seat);
    let next = able().find(|seat| Some(*seat) == worker).or_else(|| able().min());
    if worker.is_some() && next != worker {
        spike_state.let_go();
    }
    let Some(seat) = next else { return };
    let is_done = spike_state.work(seat, rules.defuse_ticks);
    if spike_state.done_ticks >= rules.defuse_ticks / 2 {
        spike_state.kept_ticks = rules.defuse_ticks / 2;
    }
    if is_done {
        spike_state.is_defused = true;
        count!("spikes.defused");
    }
}

/// Whether it explodes in this tick.
pub fn explodes(round_change: Res<RoundChange>) -> bool {
    round_change.0 == Some(Change::RoundEnds(RoundEnd::SpikeExploded))
}

/// Kills everybody who is near.
pub fn explode(
    spike_state: Res<SpikeState>,
    mut seats: ResMut<Seats>,
    mut events: ResMut<Events>,
    mut players: Query<(&Player, &Motion, &mut Vitals)>,
) {
    let Spike::Planted { x, z, .. } = spike_state.spike else { return };
    for (player, motion, mut vitals) in &mut players {
        if vitals.is_alive && is_within(motion, [x, z], BLAST_M) {
            *vitals = Vitals::DEAD;
            seats.passports[usize::from(player.seat)].deaths += 1;
            let killed = Killed { seat: player.seat, by: None, weapon: None, part: BodyPart::Body };
            events.send(&killed, Audience::Everyone, "duel.spike");
        }
    }
}

/// When a round is over, so is the spike's part in it.
pub fn put_away(mut spike_state: ResMut<SpikeState>) {
    spike_state.spike = Spike::Gone;
    spike_state.let_go();
}
