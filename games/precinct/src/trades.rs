//! Trades: what players have offered each other and nobody has accepted yet.
//!
//! A player offers one piece to another, for any piece of a kind or for nothing. The other accepts by naming both pieces,
//! so nobody can be given another thing than it saw; then both change hands in one go ([`crate::handling`]). An offer
//! holds for [`HOLDS_MS`], or until the player offers something else. It binds nothing: who has offered a piece may drop
//! it, and then the offer is void.
//!
//! At most [`OFFERS_MAX`] in a world; more are refused and counted (`gear_offers_refused`). Old ones are dropped when a
//! new one is made, so a tick without trades pays nothing.

use bevy_ecs::entity::Entity;
use throng_pack::{List, Pack};
use throng_replication::EntityLink;

use crate::{
    gear::{GearId, GearKind},
    weapons::ticks_of,
};

/// How near to each other both must stand. (m)
pub const REACH_M: f32 = 10.0;
/// How long an offer holds. (ms)
pub const HOLDS_MS: u32 = 10_000;
/// Offers in a world at the same time.
const OFFERS_MAX: usize = 256;

/// What somebody offers somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.standing_offer")]
pub struct StandingOffer {
    #[pack(via = EntityLink)]
    pub from: Entity,
    #[pack(via = EntityLink)]
    pub to: Entity,
    pub give: GearId,
    /// `None`: it is a gift.
    pub want: Option<GearKind>,
    until_tick: u32,
}

/// Trades in a checkpoint.
#[derive(Debug, Clone, Default, Pack)]
#[pack(name = "precinct.trades")]
pub struct SavedTrades {
    offers: List<StandingOffer, OFFERS_MAX>,
}

/// The offers that stand in a world.
#[derive(Default)]
pub struct Trades(Vec<StandingOffer>);

impl Trades {
    /// Makes an offer, in place of any that the same player has made before. False if there are too many.
    pub fn offer(
        &mut self,
        (from, to): (Entity, Entity),
        give: GearId,
        want: Option<GearKind>,
        (tick, tick_hz): (u32, u16),
    ) -> bool {
        self.0.retain(|standing| standing.from != from && standing.until_tick > tick);
        let has_room = self.0.len() < OFFERS_MAX;
        if has_room {
            let until_tick = tick.saturating_add(ticks_of(HOLDS_MS, tick_hz));
            self.0.push(StandingOffer { from, to, give, want, until_tick });
        }
        has_room
    }

    /// The offer of this piece, if it still stands.
    pub fn find(&self, (from, to): (Entity, Entity), give: GearId, tick: u32) -> Option<StandingOffer> {
        let is_it = |standing: &&StandingOffer| {
            (standing.from, standing.to, standing.give) == (from, to, give) && standing.until_tick > tick
        };
        self.0.iter().find(is_it).copied()
    }

    pub fn save(&self) -> SavedTrades {
        SavedTrades { offers: self.0.clone().try_into().expect("no more are made") }
    }

    pub fn load(&mut self, saved: SavedTrades) {
        self.0 = saved.offers.into_vec();
    }

    /// Keeps the offers of those who are there.
    pub fn retain(&mut self, is_there: impl Fn(Entity) -> bool) {
        self.0.retain(|standing| is_there(standing.from));
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// What a player has offered counts no more.
    pub fn withdraw(&mut self, from: Entity) {
        self.0.retain(|standing| standing.from != from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gear::piece;

    #[test]
    fn an_offer_holds_for_its_time_and_until_the_next() {
        let [one, other, third] = [1, 2, 3].map(|number| Entity::from_raw_u32(number).unwrap());
        let (first, second) = (piece(1).id, piece(2).id);
        let mut trades = Trades::default();
        assert!(trades.offer((one, other), first, None, (100, 20)));
        assert!(trades.offer((third, other), first, None, (100, 20)));
        assert!(trades.find((one, other), first, 299).is_some());
        assert_eq!(trades.find((one, other), first, 300), None, "too late");
        assert_eq!(trades.find((one, third), first, 100), None, "made to somebody else");
        assert_eq!(trades.find((one, other), second, 100), None, "of another thing");
        assert!(trades.offer((one, other), second, None, (100, 20)));
        assert_eq!(trades.find((one, other), first, 100), None, "something else is offered");
        assert!(trades.find((third, other), first, 100).is_some());
        trades.withdraw(third);
        assert_eq!(trades.find((third, other), first, 100), None);
    }

    #[test]
    fn old_offers_make_room_and_too_many_are_refused() {
        let player = |number: usize| Entity::from_raw_u32(number as u32 + 1).unwrap();
        let mut trades = Trades::default();
        let gear = piece(1).id;
        let made =
            (0..OFFERS_MAX + 5).filter(|number| trades.offer((player(*number), player(900)), gear, None, (7, 20)));
        assert_eq!(made.count(), OFFERS_MAX);
        assert!(trades.offer((player(800), player(900)), gear, None, (7 + 200, 20)));
        assert_eq!(trades.0.len(), 1);
    }
}
