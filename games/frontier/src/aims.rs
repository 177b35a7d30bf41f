//! Aims: where those were in the last ticks at whom players aim.
//!
//! A player strikes at its target and casts at it, and what it sees is a little old: the wolf that it strikes at has run
//! on, the bandit has stepped behind a crag. So whether a target is in reach and in line of sight of a player is asked of
//! where the player saw it ([`throng_rewind`]): 200 ms ago at most, no longer ago than its line explains, and never before
//! what was asked of last. NPCs see the present.
//!
//! Nobody else needs a past, so what is recorded is one place for each player who has a target, in a slot that is the
//! player's row in the [`Roster`]. Whoever has only just been made a target is where it is.
//!
//! Sketch of the cost, each tick: 5 ns for each player, and 15 ns more if it has a target: 40 µs if 2,000 fight. 230 bytes
//! a player. Allocates when there are more players than ever before.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use glam::{Quat, Vec3};
use throng::prelude::*;
use throng_pack::List;
use throng_rewind::{
    history::{Body, History, HistorySettings, SLOTS_MAX},
    rig::{Playing, Rig},
    saved::SavedHistory,
    view_limits::ViewLimits,
    view_time::ViewTime,
};

use crate::{
    actors::{Actors, Who},
    landscape::distance_m2,
    roster::Roster,
};

/// Players that there is room for from the start.
const PLAYERS_EXPECTED: u32 = 64;
/// Who is so far from where it was a tick before was taken there: the fastest run 0.4 m. (m)
const JUMP_M: f32 = 3.0;
/// The place of the one rig that there is. Nothing is cast at it.
const ANYBODY: u16 = 0;

/// A target, and where it was when it was recorded last.
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "frontier.followed")]
struct Followed {
    who: Who,
    place: [f32; 2],
}

/// The last places of players' targets.
#[derive(Resource)]
pub struct Aims {
    history: History,
    limits: ViewLimits,
    /// By players' rows.
    followed: Vec<Option<Followed>>,
}

/// Aims as they are packed.
#[derive(Debug, Clone, Pack)]
#[pack(name = "frontier.aims")]
pub struct SavedAims {
    history: SavedHistory,
    followed: List<Option<Followed>, { 1 << 17 }>,
}

impl Aims {
    pub fn save(&self) -> SavedAims {
        let followed = self.followed.clone().try_into().expect("a server takes fewer players");
        SavedAims { history: self.history.save(), followed }
    }

    /// As it was packed. If it does not fit, everybody is where it is.
    pub fn load(&mut self, saved: SavedAims) {
        self.followed = saved.followed.into_vec();
        if !self.history.restore(&saved.history) {
            self.followed.fill(None);
        }
    }

    /// No targets yet, in a world with so many ticks a second.
    pub fn new(ticks_per_s: u16) -> Self {
        let limits = ViewLimits::new(ticks_per_s);
        let rig = Arc::new(Rig::upright(0.5, 2.0).expect("it has a size"));
        let settings = HistorySettings { back: limits.back_max, ..HistorySettings::new(ticks_per_s, PLAYERS_EXPECTED) };
        let history = History::new(&settings, vec![rig]).expect("a rate, and no more than is ever kept");
        Self { history, limits, followed: vec![None; PLAYERS_EXPECTED as usize] }
    }

    /// How far back players are believed.
    pub fn limits(&self) -> &ViewLimits {
        &self.limits
    }

    /// Where a player's target was; `None` if it was not its target then.
    pub fn place_at(&self, player: u32, target: Who, at: ViewTime) -> Option<[f32; 2]> {
        let followed = self.followed.get(player as usize)?.filter(|followed| followed.who == target);
        let (place, _) = followed.and_then(|_| self.history.transform_at(player, at))?;
        Some([place.x, place.z])
    }

    /// Notes whom a player aims at in the tick that was begun, and where that is.
    fn follow(&mut self, player: u32, target: Option<(Who, [f32; 2])>) {
        self.make_room(player as usize + 1);
        let now = target.map(|(who, place)| Followed { who, place });
        let before = std::mem::replace(&mut self.followed[player as usize], now);
        let Some(Followed { who, place }) = now else { return };
        let before = before.filter(|before| before.who == who);
        if before.is_none() {
            self.history.insert(player, ANYBODY);
        }
        let jumped = before.is_some_and(|before| distance_m2(before.place, place) > JUMP_M * JUMP_M);
        let at = Vec3::new(place[0], 0.0, place[1]);
        self.history.place(player, &Body { at, rotation: Quat::IDENTITY, jumped, playing: Playing::default() });
    }

    fn make_room(&mut self, players: usize) {
        if players > self.followed.len() {
            let wanted = players + players / 2;
            self.followed.resize(wanted, None);
            // Players beyond as many as there can be aim at the present.
            self.history.make_room(wanted.min(SLOTS_MAX as usize) as u32);
        }
    }
}

/// Records where everybody is at the end of this tick at whom a player aims, which is what clients are told.
pub fn record(tick: Res<TickInfo>, actors: Res<Actors>, roster: Res<Roster>, mut aims: ResMut<Aims>) {
    let aims = &mut *aims;
    aims.history.begin_tick(tick.tick);
    for index in roster.actors() {
        let row = &actors[index];
        let target = row.target.and_then(|who| Some((who, actors[actors.resolve(who)?].place)));
        aims.follow(row.player, target);
    }
    aims.history.end_tick();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::{Kind, Look};

    /// Two lives.
    fn targets() -> [Who; 2] {
        let mut actors = Actors::default();
        let look = Look { kind: Kind::Wolf, level: 1, variety: 0 };
        [(); 2].map(|()| {
            let index = actors.add(look, [0.0; 2], 0.0);
            actors.who(index)
        })
    }

    fn run(aims: &mut Aims, tick: u32, target: Option<(Who, [f32; 2])>) {
        aims.history.begin_tick(tick);
        aims.follow(100, target);
        aims.history.end_tick();
    }

    #[test]
    fn a_target_is_found_where_it_was_and_another_one_is_not() {
        let (mut aims, [one, other]) = (Aims::new(20), targets());
        (10..14).for_each(|tick| run(&mut aims, tick, Some((one, [tick as f32 * 0.25, 1.0]))));
        assert_eq!(aims.place_at(100, one, ViewTime::of_tick(11)), Some([2.75, 1.0]));
        assert_eq!(aims.place_at(100, one, ViewTime::new(11, 128)), Some([2.875, 1.0]));
        assert_eq!(aims.place_at(100, other, ViewTime::of_tick(11)), None);
        assert_eq!(aims.place_at(99, one, ViewTime::of_tick(11)), None);
        assert_eq!(aims.place_at(1_000_000, one, ViewTime::of_tick(11)), None);
        run(&mut aims, 14, Some((other, [0.0, 0.0])));
        assert_eq!(aims.place_at(100, other, ViewTime::of_tick(13)), None, "somebody else was the target then");
        assert_eq!(aims.place_at(100, other, ViewTime::of_tick(14)), Some([0.0, 0.0]));
        run(&mut aims, 15, None);
        assert_eq!(aims.place_at(100, other, ViewTime::of_tick(14)), None);
    }

    #[test]
    fn who_is_taken_elsewhere_is_nowhere_between() {
        let (mut aims, [one, _]) = (Aims::new(20), targets());
        run(&mut aims, 10, Some((one, [0.0, 0.0])));
        run(&mut aims, 11, Some((one, [500.0, 0.0])));
        assert_eq!(aims.place_at(100, one, ViewTime::new(10, 200)), Some([0.0, 0.0]));
        assert_eq!(aims.place_at(100, one, ViewTime::of_tick(11)), Some([500.0, 0.0]));
    }
}
