//! Situation: what a bot is told of its match, gathered once a thought.
//!
//! All of it comes from the client's replicas, so an enemy in the fog is not in it, and neither is the spike of the other
//! side. Others are where they are [shown](super::shown), and oneself is where one is predicted to be. Nothing is kept from
//! one thought to the next. Sketch of the cost: a pass over a dozen replicas, about 1 µs.

use glam::Vec3;
use throng_client::Client;

use crate::{
    components::{Arms, Clock, Clouds, Condition, HEALTH_MAX, Player, Pose, Score, Spike, TeamVitals},
    map::Map,
    protocol::Terms,
    teams::{SEATS, Side, TeamId, place_in_team},
};

/// Somebody, as far as it is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Body {
    pub feet: Vec3,
    pub is_alive: bool,
    pub arms: Arms,
}

/// A match, as one player is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Situation {
    /// The world's number on its server.
    pub match_id: u32,
    /// The newest tick heard of.
    pub tick: u32,
    pub tick_hz: u16,
    pub clock: Clock,
    pub score: Score,
    /// `None`: nobody has told us.
    pub spike: Option<Spike>,
    pub clouds: Clouds,
    /// One's own seat, team and side, and how well one is.
    pub seat: u8,
    pub team: TeamId,
    pub side: Side,
    pub condition: Condition,
    /// How long it takes to defuse the spike (s).
    pub defuse_s: f32,
    /// Of whom a shot was heard since one made up one's mind last, as bits by seat.
    pub shooters: u16,
    /// Who is told, by seat, oneself among them.
    pub bodies: [Option<Body>; SEATS],
}

impl Situation {
    /// `None` in the lobby, and before the match has told of itself and of the own player. `shown`: where everybody is
    /// drawn, by seat.
    pub fn of(client: &Client, shown: &[Option<Vec3>; SEATS], terms: &Terms) -> Option<Self> {
        let (world, replicas) = (client.world()?, client.replicas());
        let own = client.own_entity()?;
        let player = *replicas.get::<Player>(own)?;
        let (entity, clock) = replicas.iter::<Clock>().next()?;
        let score = *replicas.get::<Score>(entity)?;
        let (_, vitals) = replicas.iter::<TeamVitals>().find(|(_, vitals)| vitals.team == player.team)?;
        let mut situation = Self {
            match_id: world.id,
            tick: client.newest_tick(),
            tick_hz: world.tick_hz.into(),
            clock: *clock,
            score,
            // It has an entity of its own, which is hidden as a whole.
            spike: replicas.iter::<Spike>().next().map(|(_, spike)| *spike),
            clouds: replicas.get::<Clouds>(entity).cloned().unwrap_or_default(),
            seat: player.seat,
            team: player.team,
            side: Side::of(player.team, score.attackers),
            condition: vitals.of(player.seat),
            defuse_s: f32::from(terms.defuse_ms) / 1_000.0,
            shooters: 0,
            bodies: [None; SEATS],
        };
        for (id, player) in replicas.iter::<Player>() {
            let body = replicas.get::<Pose>(id).zip(replicas.get::<Arms>(id));
            let seat = usize::from(player.seat);
            let Some(((pose, arms), place)) = body.zip(situation.bodies.get_mut(seat)) else {
                continue;
            };
            let feet = shown[seat].unwrap_or(pose.feet());
            let is_alive = if player.team == vitals.team {
                vitals.of(player.seat).health > 0
            } else {
                score.alive >> player.seat & 1 == 1
            };
            *place = Some(Body { feet, is_alive, arms: *arms });
        }
        situation.own().is_some().then_some(situation)
    }

    fn own(&self) -> Option<&Body> {
        self.bodies.get(usize::from(self.seat))?.as_ref()
    }

    /// Oneself.
    pub fn me(&self) -> &Body {
        self.own().expect("there is no situation without oneself")
    }

    /// One is here, ahead of what is told.
    pub fn stand_at(&mut self, feet: Vec3) {
        if let Some(Some(body)) = self.bodies.get_mut(usize::from(self.seat)) {
            body.feet = feet;
        }
    }

    /// The own place in the team.
    pub fn place(&self) -> usize {
        place_in_team(self.seat)
    }

    pub fn is_alive(&self) -> bool {
        self.condition.health > 0
    }

    /// What is left of the phase, and while the spike is planted until it explodes (s).
    pub fn left_s(&self) -> f32 {
        self.clock.ends_tick.saturating_sub(self.tick) as f32 / f32::from(self.tick_hz.max(1))
    }

    /// Living players of a team, whether they are in sight or not.
    pub fn alive_of(&self, team: TeamId) -> usize {
        (self.score.alive & team.seats()).count_ones() as usize
    }

    /// Everybody of the own team who lives, oneself among them: seats and bodies.
    pub fn team_alive(&self) -> impl Iterator<Item = (u8, &Body)> {
        self.alive_in(self.team)
    }

    /// Living enemies that one is told of.
    pub fn enemies(&self) -> impl Iterator<Item = (u8, &Body)> {
        self.alive_in(self.team.other())
    }

    fn alive_in(&self, team: TeamId) -> impl Iterator<Item = (u8, &Body)> {
        let bodies = self.bodies.iter().enumerate().map(|(seat, body)| (seat as u8, body.as_ref()));
        let of_team = bodies.filter(move |(seat, _)| TeamId::of_seat(*seat) == team);
        of_team.filter_map(|(seat, body)| Some((seat, body.filter(|body| body.is_alive)?)))
    }

    /// Whether nobody of the own team is nearer to it.
    pub fn is_nearest_to(&self, place: Vec3) -> bool {
        let own_m2 = self.me().feet.distance_squared(place);
        // Of two who are equally near it is the one with the lower seat.
        self.team_alive().all(|(seat, body)| (own_m2, self.seat) <= (body.feet.distance_squared(place), seat))
    }

    pub fn carries_spike(&self) -> bool {
        matches!(self.spike, Some(Spike::Carried { seat }) if seat == self.seat)
    }

    /// Where the spike lies that somebody has lost.
    pub fn dropped_at(&self) -> Option<Vec3> {
        match self.spike? {
            Spike::Dropped { x, z } => Some(Vec3::new(x, 0.0, z)),
            _ => None,
        }
    }

    /// Where the spike is planted.
    pub fn planted_at(&self) -> Option<Vec3> {
        match self.spike? {
            Spike::Planted { x, z, .. } => Some(Vec3::new(x, 0.0, z)),
            _ => None,
        }
    }

    /// How much of what is told cannot be: places outside of the map, healthier than healthy.
    pub fn violations(&self, map: &Map) -> u64 {
        let half_m = map.bounds.size_m() / 2.0;
        let is_outside = |body: &&Body| body.feet.x.abs() > half_m.x || body.feet.z.abs() > half_m.z;
        let outside = self.bodies.iter().flatten().filter(is_outside).count() as u64;
        outside + u64::from(self.condition.health > HEALTH_MAX)
    }
}

#[cfg(test)]
use crate::{
    components::{Doing, Phase},
    protocol::TICK_HZ,
    settings::DuelSettings,
    weapons::WeaponKind,
};

#[cfg(test)]
impl Situation {
    /// Of a round that is played, in which only these live and are told: seats and places, oneself first.
    pub fn with(bodies: &[(u8, Vec3)]) -> Self {
        let seat = bodies[0].0;
        let team = TeamId::of_seat(seat);
        let mut situation = Self {
            match_id: 1,
            tick: 0,
            tick_hz: TICK_HZ,
            clock: Clock { phase: Phase::Live, round: 0, ends_tick: 100 * u32::from(TICK_HZ) },
            score: Score { wins_one: 0, wins_two: 0, attackers: TeamId::One, last_end: None, alive: 0 },
            spike: None,
            clouds: Clouds::default(),
            seat,
            team,
            side: Side::of(team, TeamId::One),
            condition: Condition { health: HEALTH_MAX, armour: 0 },
            defuse_s: DuelSettings::default().defuse_s,
            shooters: 0,
            bodies: [None; SEATS],
        };
        for (seat, feet) in bodies {
            let arms = Arms { weapon: WeaponKind::Rifle, doing: Doing::Nothing };
            situation.bodies[usize::from(*seat)] = Some(Body { feet: *feet, is_alive: true, arms });
            situation.score.alive |= 1 << seat;
        }
        situation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_who_is_nearest_and_who_is_left() {
        let places = [(2, Vec3::X), (0, Vec3::X * 5.0), (7, Vec3::ZERO)];
        let mut situation = Situation::with(&places);
        assert!(situation.is_nearest_to(Vec3::ZERO), "enemies do not count");
        assert!(!situation.is_nearest_to(Vec3::X * 4.0));
        assert!(!situation.is_nearest_to(Vec3::X * 3.0), "of two the lower seat");
        assert_eq!([TeamId::One, TeamId::Two].map(|team| situation.alive_of(team)), [2, 1]);
        assert_eq!(situation.team_alive().map(|(seat, _)| seat).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(situation.violations(&Map::load()), 0);
        situation.bodies[7].as_mut().expect("it is told").feet.x = 1_000.0;
        situation.condition.health = HEALTH_MAX + 1;
        assert_eq!(situation.violations(&Map::load()), 2);
    }
}
