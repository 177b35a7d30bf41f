//! The body: what the leaves of the behaviour graph mean for an NPC of Precinct.
//!
//! Conditions read what the last look around and the last hit have left in [`Senses`]; actions begin an errand, a burst
//! or a pause and say each time they are asked whether it is over. Nothing here moves or fires: that is done tick by
//! tick by [`follow_paths`](super::paths::follow_paths) and [`fire`](super::combat::fire), at the pace that the errand or
//! burst was given.

use bevy_ecs::{prelude::*, query::QueryData};
use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::{TickInfo, WorldRng};
use throng_query::nav::NavPoint;

use super::{
    Brain, LoadLevel, Npc, Pace, PathFollow, Senses,
    brain::{Body, Memory, Status},
    graph::{Condition, Deed},
    path_queue::{PathQueue, Way},
};
use crate::{
    actors::Actors,
    arena::{Arena, ArenaParts},
    components::{HEALTH_MAX, Pose, Slot, Standing, Vitals},
    scene::Scene,
    weapons::{Weapon, endless, ticks_of},
};

/// Nodes of the graph that one thought may visit; a longer one goes on at the next.
pub const NODES_PER_THOUGHT_MAX: u32 = 96;
/// An enemy seen so recently still counts as in sight, so that a pillar does not end a fight. (ms)
const SIGHT_HOLD_MS: u32 = 1_500;
/// A burst or errand that takes longer has failed. (ms)
const BURST_MS_MAX: u32 = 3_000;
const ERRAND_MS_MAX: u32 = 25_000;
/// A hit is a reason to think again for so long. (ms)
const ALARM_MS: u32 = 1_000;
/// How far an enemy may get away from where it was until the way to it is asked for anew. (m)
const CHASE_SLACK_M: f32 = 4.0;
/// Of the weapon's range, how near an NPC wants to be at least.
const COMFORT: f32 = 0.7;

/// Of an NPC: what a thought reads and sets going.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct Thinker {
    slot: &'static Slot,
    npc: &'static Npc,
    pace: &'static Pace,
    standing: &'static Standing,
    senses: &'static Senses,
    brain: &'static mut Brain,
    vitals: &'static mut Vitals,
    pose: &'static mut Pose,
    weapon: &'static mut Weapon,
    path: &'static mut PathFollow,
}

/// Lets those think who have just looked around.
pub fn think(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    mut arena: ResMut<Arena>,
    mut rng: ResMut<WorldRng>,
    mut npcs: Query<Thinker>,
) {
    let ArenaParts { sight, actors, paths, .. } = &mut **arena;
    let rng = &mut rng.0;
    for &asker in &sight.askers {
        let Ok(npc) = npcs.get_mut(actors.entity(Slot(asker as u16))) else { continue };
        let ThinkerItem { slot, npc, pace, standing, senses, mut brain, vitals, pose, weapon, path } = npc;
        if !pace.thinks(tick.tick) {
            continue;
        }
        let stimuli = stimuli(senses, &vitals, &tick);
        let mut body = NpcBody {
            tick: &tick,
            scene: &scene,
            actors,
            queue: paths,
            rng,
            slot: *slot,
            npc,
            watched: pace.level == LoadLevel::Full,
            standing: standing.0,
            senses,
            vitals,
            pose,
            weapon,
            path,
        };
        let counts = brain.step(&scene.graph, stimuli, NODES_PER_THOUGHT_MAX, &mut body);
        throng::count!("thoughts");
        throng::count!("thought_nodes", u64::from(counts.nodes));
    }
}

/// What is reason enough to think again from the start when it changes.
fn stimuli(senses: &Senses, vitals: &Vitals, tick: &TickInfo) -> u8 {
    let hz = tick.rate.0;
    let sees = senses.seen.within(tick.tick, ticks_of(SIGHT_HOLD_MS, hz));
    let alarmed = !sees && senses.hurt.within(tick.tick, ticks_of(ALARM_MS, hz));
    u8::from(sees) | u8::from(alarmed) << 1 | u8::from(vitals.health < 20) << 2
}

struct NpcBody<'a, 'w> {
    tick: &'a TickInfo,
    scene: &'a Scene,
    actors: &'a Actors,
    queue: &'a mut PathQueue,
    rng: &'a mut Xoshiro256PlusPlus,
    slot: Slot,
    npc: &'a Npc,
    watched: bool,
    standing: NavPoint,
    senses: &'a Senses,
    vitals: Mut<'w, Vitals>,
    pose: Mut<'w, Pose>,
    weapon: Mut<'w, Weapon>,
    path: Mut<'w, PathFollow>,
}

impl Body for NpcBody<'_, '_> {
    fn ask(&mut self, condition: Condition, parameter: u16) -> bool {
        let metres = f32::from(parameter);
        match condition {
            Condition::SeesEnemy => self.happened_within(self.senses.seen, SIGHT_HOLD_MS),
            Condition::RemembersEnemy => self.happened_within(self.senses.seen, u32::from(parameter) * 100),
            Condition::EnemyWithin => self.enemy().is_some_and(|enemy| self.is_near(enemy, metres)),
            Condition::HealthBelow => u16::from(self.vitals.health) < parameter,
            Condition::HurtWithin => self.happened_within(self.senses.hurt, u32::from(parameter) * 100),
            Condition::OutnumberedBy => {
                u16::from(self.senses.enemies) >= u16::from(self.senses.friends) + 1 + parameter
            }
            Condition::FriendsNear => u16::from(self.senses.friends) >= parameter,
            Condition::RoundsBelow => u16::from(self.weapon.rounds) < parameter,
            Condition::Chance => self.rng.random_range(0..100) < parameter,
            Condition::Watched => self.watched,
        }
    }

    fn act(&mut self, deed: Deed, parameter: u16, entering: bool, memory: &mut Memory) -> Status {
        let metres = f32::from(parameter);
        match deed {
            Deed::Hold => self.pause(parameter, entering, memory),
            Deed::LookAround => {
                if entering && !self.face_enemy() {
                    self.pose.yaw = (self.pose.yaw + self.rng.random_range(0.5..2.0)) % std::f32::consts::TAU;
                }
                self.pause(parameter, entering, memory)
            }
            Deed::Burst => self.burst(parameter, entering, memory),
            Deed::Reload => {
                self.weapon.reload(self.tick.tick, self.tick.rate.0, endless);
                Status::Success
            }
            Deed::Recover => {
                self.vitals.health = HEALTH_MAX.min(self.vitals.health + parameter.min(100) as u8);
                Status::Success
            }
            Deed::Advance => self.approach(self.enemy_standing(), metres, entering, memory),
            Deed::Investigate => self.approach(self.senses.seen_at, metres, entering, memory),
            _ if !entering => self.errand(0.0, memory),
            Deed::Patrol => {
                let goal = self.scene.places.cover_around(self.npc.post, metres, self.rng);
                self.set_out(Some(goal), false, memory)
            }
            Deed::Wander => {
                let goal = self.aside_of(self.standing, metres);
                self.set_out(Some(goal), false, memory)
            }
            Deed::Flank => {
                let goal = self.senses.seen_at.map(|enemy| self.aside_of(enemy, metres));
                self.set_out(goal, true, memory)
            }
            Deed::TakeCover => {
                let goal = self.scene.places.cover_from(self.standing.position(), self.enemy(), metres);
                self.set_out(goal, true, memory)
            }
            Deed::Retreat => {
                let home = self.scene.places.spawn(self.npc.home);
                let goal = if self.is_near(home.position(), metres) { home } else { self.towards(home, metres) };
                self.set_out(Some(goal), true, memory)
            }
        }
    }

    fn interrupt(&mut self, _: &mut Memory) {
        self.path.stop();
        self.weapon.burst = 0;
    }
}

impl NpcBody<'_, '_> {
    fn happened_within(&self, moment: super::Moment, ms: u32) -> bool {
        moment.within(self.tick.tick, ticks_of(ms, self.tick.rate.0))
    }

    fn is_over(&self, memory: &Memory) -> bool {
        self.tick.tick >= memory.until_tick
    }

    fn set_limit(&self, ms: u32, memory: &mut Memory) {
        memory.until_tick = self.tick.tick + ticks_of(ms, self.tick.rate.0);
    }

    fn enemy(&self) -> Option<Vec3> {
        self.senses.target.and_then(|target| self.actors.feet(target))
    }

    fn enemy_standing(&self) -> Option<NavPoint> {
        self.senses.target.and_then(|target| self.actors.standing(target))
    }

    fn is_near(&self, place: Vec3, metres: f32) -> bool {
        self.standing.position().distance_squared(place) <= metres * metres
    }

    /// Turns to the enemy if there is one in sight.
    fn face_enemy(&mut self) -> bool {
        let Some(enemy) = self.enemy().filter(|_| self.senses.visible) else { return false };
        let way = enemy - self.standing.position();
        self.pose.yaw = way.x.atan2(way.z);
        true
    }

    fn pause(&mut self, tenths: u16, entering: bool, memory: &mut Memory) -> Status {
        if entering {
            self.set_limit(u32::from(tenths) * 100, memory);
        }
        if self.is_over(memory) { Status::Success } else { Status::Running }
    }

    fn burst(&mut self, rounds: u16, entering: bool, memory: &mut Memory) -> Status {
        if !entering {
            let done = self.weapon.burst == 0;
            return if done || self.is_over(memory) { Status::Success } else { Status::Running };
        }
        let range_m = self.weapon.kind.traits().range_m;
        let in_range = self.enemy().is_some_and(|enemy| self.is_near(enemy, range_m));
        if !(in_range && self.face_enemy()) {
            return Status::Failure;
        }
        self.weapon.burst = rounds.min(50) as u8;
        self.set_limit(BURST_MS_MAX, memory);
        Status::Running
    }

    /// Goes to where an enemy is or was, until `stop_m` are left or the weapon reaches it comfortably.
    fn approach(&mut self, enemy: Option<NavPoint>, stop_m: f32, entering: bool, memory: &mut Memory) -> Status {
        let Some(enemy) = enemy else { return Status::Failure };
        let stop_m = stop_m.min(self.weapon.kind.traits().range_m * COMFORT);
        if self.is_near(enemy.position(), stop_m) {
            self.path.stop();
            return Status::Success;
        }
        let moved_away = enemy.position().distance_squared(memory.goal) > CHASE_SLACK_M * CHASE_SLACK_M;
        if entering || (moved_away && self.path.way() != Way::Asked) {
            return self.set_out(Some(enemy), true, memory);
        }
        self.errand(stop_m, memory)
    }

    fn set_out(&mut self, goal: Option<NavPoint>, running: bool, memory: &mut Memory) -> Status {
        let Some(goal) = goal else { return Status::Failure };
        memory.goal = goal.position();
        self.set_limit(ERRAND_MS_MAX, memory);
        self.path.ask(self.slot, goal, running, self.queue).into_running()
    }

    /// How an errand is going.
    fn errand(&mut self, stop_m: f32, memory: &mut Memory) -> Status {
        if self.is_over(memory) || self.is_near(memory.goal, stop_m) {
            self.path.stop();
            return if self.is_over(memory) { Status::Failure } else { Status::Success };
        }
        match self.path.way() {
            Way::Asked | Way::Walking => Status::Running,
            Way::Arrived => Status::Success,
            Way::Cut => self.path.ask_on(self.slot, self.queue).into_running(),
            Way::Idle | Way::Blocked => Status::Failure,
        }
    }

    /// As far as one can go straight from `centre` in some direction.
    fn aside_of(&mut self, centre: NavPoint, metres: f32) -> NavPoint {
        let (sin, cos) = self.rng.random_range(0.0..std::f32::consts::TAU).sin_cos();
        self.scene.level.navmesh.walk_straight(centre, centre.position() + Vec3::new(sin, 0.0, cos) * metres).end
    }

    /// As far as one can go straight towards a place, at most `metres`.
    fn towards(&self, place: NavPoint, metres: f32) -> NavPoint {
        let from = self.standing.position();
        let way = (place.position() - from).normalize_or_zero() * metres;
        self.scene.level.navmesh.walk_sliding(self.standing, from + way).end
    }
}

/// Reads "taken" as "goes on".
trait IntoRunning {
    fn into_running(self) -> Status;
}

impl IntoRunning for bool {
    fn into_running(self) -> Status {
        if self { Status::Running } else { Status::Failure }
    }
}
