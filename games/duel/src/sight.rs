//! Sight: who may be told of whom, in each tick.
//!
//! A player is told of its team. Of an enemy it is told when it can see it, or will within the grace if one of them
//! runs for the corner ([`FogOfWar`]); not through smoke, nor past the walls and the smoke that hide it together, not while a
//! flash blinds it, and the dead see no enemy. Smoke and blindness that will be over within the grace hide nobody.
//! Defenders hear of the spike when it is planted, and how well the players of a team are hears that team alone. Everything
//! else of a match is everybody's.
//!
//! Asked once in a tick for each client, about all that it is near, after the systems of the tick. Keeps what it has
//! found from tick to tick, which follows from the questions and the world alone. Allocates nothing once it is made.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use glam::Vec3;
use throng::prelude::*;
use throng_query::occlusion::{Body, FogOfWar, FogSettings};
use throng_replication::table_resource;

use crate::{
    components::{CLOUDS_MAX, Cloud, Player, Spike, TeamVitals, Vitals},
    map::Map,
    movement::{BODY_HALF_M, BODY_HEIGHT_M, EYE_M, Motion, RUN_M_PER_S},
    protocol::TICK_HZ,
    rounds::Rounds,
    seats::Senses,
    smoke::{Smoke, is_hidden_by},
    teams::SEATS,
    weapons::ticks_of,
};

/// How the fog is set: an enemy is told of 150 ms before it can come into view. A jump lifts a crown by 0.7 m in the
/// time that a look holds for.
pub const FOG: FogSettings =
    FogSettings { ticks_per_s: TICK_HZ as f32, grace_ms: 150.0, recheck_ticks: 4, rise_m: 0.7 };

/// The grace in ticks: what hides somebody now and will be gone by then, smoke or blindness, hides nobody.
pub const GRACE_TICKS: u32 = ticks_of(FOG.grace_ms as u32, TICK_HZ);

/// Where everybody is, by seat, and who is blind and stays so for the grace, as bits. Written at the end of each tick, read by the filter.
#[derive(Debug, Default)]
pub struct Bodies {
    pub bodies: [Body; SEATS],
    pub blind: u16,
}

table_resource!(Bodies);

/// The last look at everybody in a tick.
pub fn note(tick: Res<TickInfo>, players: Query<(&Player, &Vitals, &Motion, &Senses)>, mut bodies: ResMut<Bodies>) {
    let bodies = &mut *bodies;
    bodies.blind = 0;
    for (player, vitals, motion, senses) in &players {
        let life = if vitals.is_alive { senses.life } else { 0 };
        bodies.bodies[usize::from(player.seat)] = body(life, motion);
        bodies.blind |= u16::from(tick.tick + GRACE_TICKS < senses.blind_until_tick) << player.seat;
    }
}

/// Somebody as the fog sees him; nobody with a life of 0.
pub fn body(life: u32, motion: &Motion) -> Body {
    Body {
        life,
        feet: motion.at,
        eye_m: EYE_M,
        height_m: BODY_HEIGHT_M,
        radius_m: BODY_HALF_M,
        speed_m_per_s_max: RUN_M_PER_S,
    }
}

/// Answers the questions of one match.
pub struct Sight {
    map: Arc<Map>,
    fog: FogOfWar,
    begun: Option<u32>,
    seats: Vec<u32>,
    seen: Vec<u64>,
}

/// As a number of somebody: of nobody whom the fog knows.
const NOBODY: u32 = u32::MAX;

impl Sight {
    /// # Panics
    /// With settings that are out of their ranges.
    pub fn new(map: Arc<Map>, settings: FogSettings) -> Self {
        let fog = FogOfWar::new(settings, SEATS, SEATS).expect("the fog's settings are within their ranges");
        Self { map, fog, begun: None, seats: Vec::with_capacity(SEATS + 1), seen: Vec::with_capacity(1) }
    }

    /// Lets a client see what it may of these.
    pub fn ask(&mut self, world: &World, viewer: Viewer, entities: &[Entity], may_see: &mut MaySee<'_>) {
        let Some(own) = viewer.player.and_then(|player| world.get::<Player>(player)) else { return };
        let (tick, facts) = (world.resource::<TickInfo>().tick, world.resource::<Bodies>());
        self.seats.clear();
        for (at, entity) in entities.iter().enumerate() {
            let player = world.get::<Player>(*entity);
            let is_enemy = player.is_some_and(|player| player.team != own.team);
            self.seats.push(player.filter(|_| is_enemy).map_or(NOBODY, |player| player.seat.into()));
            if !is_enemy && (player.is_some() || may_hear_of(world, own, *entity)) {
                may_see.allow(at);
            }
        }
        if facts.blind >> own.seat & 1 == 0 {
            let clouds = &world.resource::<Smoke>().clouds;
            self.look(tick, &facts.bodies, clouds, own.seat, |at| may_see.allow(at));
        }
    }

    /// Finds those of `self.seats` whom a seat may be told of in this tick.
    fn look(&mut self, tick: u32, bodies: &[Body], clouds: &[Cloud], seat: u8, allow: impl FnMut(usize)) {
        let Self { map, fog, begun, seats, seen } = self;
        if begun.replace(tick) != Some(tick) {
            fog.begin_tick(tick, bodies);
        }
        seen.clear();
        seen.resize(seats.len().div_ceil(64), 0);
        let lasting: ArrayVec<Cloud, CLOUDS_MAX> =
            clouds.iter().filter(|cloud| tick + GRACE_TICKS < cloud.until_tick).copied().collect();
        let veil = |eye: Vec3, point: Vec3| is_hidden_by(&lasting, eye, point);
        fog.look_past(&map.geometry, veil, Some(&map.cells), seat.into(), seats, seen);
        (0..seats.len()).filter(|at| seen[at / 64] >> (at % 64) & 1 == 1).for_each(allow);
    }
}

/// Whether a player may be told of what is no player: a team's vitals, or the spike.
fn may_hear_of(world: &World, own: &Player, entity: Entity) -> bool {
    if let Some(vitals) = world.get::<TeamVitals>(entity) {
        return vitals.team == own.team;
    }
    let is_attacker = world.resource::<Rounds>().attackers == own.team;
    is_attacker || matches!(world.get::<Spike>(entity), Some(Spike::Planted { .. } | Spike::Gone))
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use throng_query::testing::BruteForce;

    use super::*;
    use crate::{
        map::layout::middle_of,
        movement::{Wish, step},
    };

    /// Ten who run about on the map, without jumping: what may be seen over crates by a jump is told besides.
    struct Runners {
        map: Arc<Map>,
        motions: Vec<Motion>,
        wishes: Vec<Wish>,
        rng: Xoshiro256PlusPlus,
    }

    impl Runners {
        fn new(seed: u64) -> Self {
            let map = Map::load();
            let ways = map.sites.iter().flat_map(|site| &site.ways);
            let ways: Vec<Vec3> = ways.flat_map(|way| way.waypoints.clone()).collect();
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let motions = (0..SEATS).map(|_| Motion::standing(ways[rng.random_range(0..ways.len())])).collect();
            Self { map, motions, wishes: vec![Wish::default(); SEATS], rng }
        }

        fn run(&mut self) -> Vec<Body> {
            for (motion, wish) in self.motions.iter_mut().zip(&mut self.wishes) {
                if self.rng.random_range(0..60) == 0 {
                    let angle: f32 = self.rng.random_range(0.0..6.3);
                    *wish = Wish { direction: [angle.sin(), angle.cos()], ..Wish::default() };
                }
                step(motion, wish, None, &self.map, 1.0 / f32::from(TICK_HZ));
            }
            (1..).zip(&self.motions).map(|(life, motion)| body(life, motion)).collect()
        }
    }

    /// Whether somebody could have been seen in one of the last ticks, within the grace.
    fn is_fair(map: &Map, pages: &[Vec<Body>], viewer: usize, other: usize) -> bool {
        let mut brute = BruteForce::default();
        pages.iter().any(|page| brute.may_see_within(&map.geometry, &page[viewer], &page[other], FOG.reach_s()))
    }

    /// Promise: nobody is told of an enemy whom it could not see within the grace, found out in the last ticks; and
    /// whoever is seen is told of in the same tick.
    #[test]
    fn r16_nobody_is_told_of_an_enemy_behind_walls_and_nobody_late() {
        let (mut told, mut pairs) = (0, 0);
        for seed in 0..4 {
            let mut runners = Runners::new(seed);
            let map = runners.map.clone();
            // Nobody jumps here.
            let mut sight = Sight::new(map.clone(), FogSettings { rise_m: 0.0, ..FOG });
            let (mut brute, mut pages) = (BruteForce::default(), Vec::new());
            for tick in 0..400 {
                pages.insert(0, runners.run());
                pages.truncate(FOG.recheck_ticks as usize);
                for viewer in 0..SEATS {
                    sight.seats.clear();
                    sight.seats.extend(0..SEATS as u32);
                    let mut allowed = [false; SEATS];
                    sight.look(tick, &pages[0], &[], viewer as u8, |at| allowed[at] = true);
                    for other in (0..SEATS).filter(|other| *other != viewer) {
                        let is_seen = brute.sees(&map.geometry, &pages[0][viewer], &pages[0][other]);
                        assert!(allowed[other] || !is_seen, "seed {seed}, tick {tick}: {viewer} sees {other} late");
                        let is_fair = !allowed[other] || is_fair(&map, &pages, viewer, other);
                        assert!(is_fair, "seed {seed}, tick {tick}: {viewer} is told of {other}");
                        (told, pairs) = (told + u32::from(allowed[other]), pairs + 1);
                    }
                }
            }
        }
        assert!(told > 2_000 && told < pairs * 2 / 3, "{told} of {pairs}: most are hidden");
    }

    #[test]
    fn smoke_hides_whom_nothing_else_does() {
        let map = Map::load();
        let [from, to] = [[2, 4], [20, 4]].map(|[column, row]| middle_of(column, row));
        let bodies = [body(1, &Motion::standing(from)), body(2, &Motion::standing(to))];
        let cloud = |until_tick| Cloud { x: (from.x + to.x) / 2.0, z: from.z, until_tick };
        let (lasting, ending) = ([cloud(GRACE_TICKS + 1)], [cloud(GRACE_TICKS)]);
        for (clouds, expect) in [(&[][..], true), (&lasting[..], false), (&ending[..], true)] {
            let mut sight = Sight::new(map.clone(), FOG);
            sight.seats.push(1);
            let mut is_told = false;
            sight.look(0, &bodies, clouds, 0, |_| is_told = true);
            assert_eq!(is_told, expect);
        }
    }
}
