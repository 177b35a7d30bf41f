//! Past: where everybody was in the last ticks, for the shots of players.
//!
//! A player sees the world as it was: what it is told was on its way, and is drawn a little later still. So its input says
//! which moment it was shown, and its shot is cast at everybody as they stood then ([`throng_rewind`]): 200 ms ago at most,
//! no longer ago than its line explains, and never before what it shot at last. An NPC's shot is the server's own, and is
//! cast at everybody as they stand now. Level and doors are for both as they are now.
//!
//! All who live are recorded at the end of a tick, as clients are told of them, each in the slot that it has among the
//! [`Actors`](crate::actors::Actors). Where no player is, or none may fire, nothing is.
//!
//! Sketch of the cost: a hideout of 20 NPCs and its owner takes 0.2 µs a tick, or 0.4 µs where all that it writes, 20 cache
//! lines, comes from memory. 212 bytes for each character at 20 Hz, 270 at 30 Hz. Allocates when there are more
//! characters than there is room for, which is then half as many more.

use std::sync::{Arc, OnceLock};

use glam::{Quat, Vec3};
use throng::prelude::SeenMoment;
use throng_pack::Pack;
use throng_rewind::{
    history::{Body, History, HistorySettings, SLOTS_MAX},
    rig::{Playing, Rig},
    saved::SavedHistory,
    shooter::Claim,
    view_limits::ViewLimits,
    view_time::ViewTime,
};

use crate::components::{BODY_HEIGHT_M, BODY_RADIUS_M, Slot};

/// The place of the one rig that there is.
const BODY: u16 = 0;

/// The past in a checkpoint.
#[derive(Debug, Clone, Pack)]
#[pack(name = "precinct.past")]
pub struct SavedPast {
    /// For how many there is room.
    #[pack(min = 1, max = SLOTS_MAX)]
    slots: u32,
    /// `None`: nothing was recorded.
    history: Option<SavedHistory>,
}

/// The last ticks of a world.
pub struct Past {
    history: History,
    limits: ViewLimits,
}

impl Past {
    /// Nobody yet. `limits`: how far back players are believed, and with that how much is kept. There is room for so many
    /// characters from the start.
    ///
    /// # Panics
    /// If the limits have a rate of 0, or go back by more than [`BACK_S_MAX`](throng_rewind::history::BACK_S_MAX).
    pub fn new(limits: ViewLimits, characters: usize) -> Self {
        let slots = characters.clamp(1, SLOTS_MAX as usize) as u32;
        let settings = HistorySettings { back: limits.back_max, ..HistorySettings::new(limits.ticks_per_s, slots) };
        let history = History::new(&settings, vec![body()]).expect("a rate, and no more than is ever kept");
        let mut past = Self { history, limits };
        past.take_in(0);
        past
    }

    /// How far back players are believed.
    pub fn limits(&self) -> &ViewLimits {
        &self.limits
    }

    /// What shots are cast at.
    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn save(&self) -> SavedPast {
        let history = self.history.ticks().is_some().then(|| self.history.save());
        SavedPast { slots: self.history.slots(), history }
    }

    pub fn load(&mut self, SavedPast { slots, history }: SavedPast) {
        let had = self.history.slots();
        self.history.make_room(slots);
        self.take_in(had);
        // What does not fit is of another build: nobody is hit where they were then.
        if !history.is_none_or(|history| self.history.restore(&history)) {
            self.take_in(0);
        }
    }

    /// Records where everybody stands at the end of a tick, by slots. Who is nowhere has no number for a place.
    pub fn record(&mut self, tick: u32, feet: &[Vec3]) {
        self.make_room(feet.len());
        self.history.begin_tick(tick);
        for (slot, at) in feet.iter().enumerate().filter(|(_, at)| at.is_finite()) {
            // An upright capsule looks the same from all sides. Nobody jumps: who stands up elsewhere was dead between.
            let body = Body { at: *at, rotation: Quat::IDENTITY, jumped: false, playing: Playing::default() };
            self.history.place(slot as u32, &body);
        }
        self.history.end_tick();
    }

    /// Whoever had this slot has gone, and is not hit any more; whoever has it next was nowhere before.
    pub fn forget(&mut self, slot: Slot) {
        self.history.insert(slot.0.into(), BODY);
    }

    fn make_room(&mut self, characters: usize) {
        let had = self.history.slots();
        if characters > had as usize {
            let wanted = (characters + characters / 2).min(SLOTS_MAX as usize);
            self.history.make_room(wanted as u32);
            self.take_in(had);
        }
    }

    /// Gives all slots from this one on their bodies.
    fn take_in(&mut self, first: u32) {
        for slot in first..self.history.slots() {
            self.history.insert(slot, BODY);
        }
    }
}

/// What a client says that its player was shown, as shots are judged by it.
pub fn claim_of(seen: SeenMoment) -> Claim {
    let SeenMoment { tick, part, acked_tick, round_trip, .. } = seen;
    Claim { at: ViewTime::new(tick, part), acked_tick, round_trip }
}

/// The body of everybody, in all worlds of the process.
fn body() -> Arc<Rig> {
    static RIG: OnceLock<Arc<Rig>> = OnceLock::new();
    let make = || Arc::new(Rig::upright(BODY_RADIUS_M, BODY_HEIGHT_M).expect("it has a size"));
    RIG.get_or_init(make).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a slot was, along x.
    fn x_at(past: &Past, slot: u32, tick: u32) -> Option<f32> {
        past.history.transform_at(slot, ViewTime::of_tick(tick)).map(|(at, _)| at.x)
    }

    #[test]
    fn whoever_comes_finds_room_and_who_was_there_keeps_its_past() {
        let mut past = Past::new(ViewLimits::new(20), 2);
        let mut feet = vec![Vec3::NAN, Vec3::X];
        for tick in 10..14 {
            feet[1].x = tick as f32;
            past.record(tick, &feet);
            feet.push(Vec3::X * 100.0);
        }
        assert_eq!([10, 13].map(|tick| x_at(&past, 1, tick)), [Some(10.0), Some(13.0)]);
        assert_eq!([12, 13].map(|tick| x_at(&past, 4, tick)), [None, Some(100.0)]);
        assert_eq!((x_at(&past, 0, 13), past.history.counts().refused), (None, 0));
        past.forget(Slot(1));
        assert_eq!([10, 13].map(|tick| x_at(&past, 1, tick)), [None, None]);
        past.record(14, &feet);
        assert_eq!(x_at(&past, 1, 14), Some(13.0), "somebody else");
    }

    #[test]
    fn it_goes_back_as_far_as_players_are_believed_and_no_further() {
        let mut past = Past::new(ViewLimits::new(20), 1);
        (0..30).for_each(|tick| past.record(tick, &[Vec3::X * tick as f32]));
        // The newest that anybody can have been told of is 29, and 200 ms are four ticks; one more to interpolate from.
        assert_eq!([25, 24, 23].map(|tick| x_at(&past, 0, tick)), [Some(25.0), Some(24.0), None]);
    }
}
