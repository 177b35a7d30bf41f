//! Ledger: how much gear came into being in a world and ceased to be, and how much came and went with players.
//!
//! At any time between two ticks this holds in each world, and so it does for all of them together, where what has
//! left and has not arrived is on its way or with players who left the server:
//!
//! ```text
//! in bags + in the chest + on the ground = created - destroyed + arrived - left
//! ```
//!
//! What a world is loaded with from a store has arrived, too.
//!
//! Kept by kind, as a store is told of what came into being and ceased to be with a save. The server's counters
//! (`gear_*`) say by which cause. Plain numbers; a steady tick touches none.

use throng::prelude::{Outbox, WorldId};
use throng_pack::Pack;

use crate::gear::{Gear, GearId, GearIds, GearKind, GearList};

const KINDS: usize = GearKind::ALL.len();

/// What a world has done with gear since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Pack)]
#[pack(name = "precinct.ledger")]
pub struct Ledger {
    ids: GearIds,
    created: [u64; KINDS],
    destroyed: [u64; KINDS],
    arrived: u64,
    left: u64,
}

impl Ledger {
    pub fn new(run: u64, world: WorldId) -> Self {
        Self { ids: GearIds::new(run, world), created: [0; KINDS], destroyed: [0; KINDS], arrived: 0, left: 0 }
    }

    /// A piece comes into being, of which the store is told. The caller puts it somewhere.
    #[must_use]
    pub fn create(&mut self, outbox: &mut Outbox, kind: impl FnOnce(GearId) -> GearKind) -> Gear {
        let id = self.ids.draw();
        let kind = kind(id);
        self.created[kind as usize] += 1;
        outbox.items_created(kind.item_kind(), 1);
        Gear { id, kind }
    }

    /// A piece that the caller has taken from where it was ceases to be, of which the store is told.
    pub fn destroy(&mut self, outbox: &mut Outbox, gear: Gear) {
        self.destroyed[gear.kind as usize] += 1;
        outbox.items_created(gear.kind.item_kind(), -1);
    }

    /// The world was made with so many pieces that were saved.
    pub fn load(&mut self, pieces: usize) {
        self.arrived += pieces as u64;
    }

    /// A player has come with this.
    pub fn arrive<const N: usize>(&mut self, gear: &GearList<N>) {
        self.arrived += gear.len() as u64;
    }

    /// A player has gone with this.
    pub fn leave<const N: usize>(&mut self, gear: &GearList<N>) {
        self.left += gear.len() as u64;
    }

    /// Whoever is not here any more has gone with all but so many pieces.
    pub fn leave_but(&mut self, pieces: usize) {
        self.left += (self.expected_here() - pieces as i64).max(0) as u64;
    }

    pub fn created(&self) -> u64 {
        self.created.iter().sum()
    }

    pub fn destroyed(&self) -> u64 {
        self.destroyed.iter().sum()
    }

    /// Arrived with players, and left with them.
    pub fn travelled(&self) -> (u64, u64) {
        (self.arrived, self.left)
    }

    /// Created less destroyed of each kind.
    pub fn balances(&self) -> impl Iterator<Item = (GearKind, i64)> {
        let balance = |kind: GearKind| self.created[kind as usize] as i64 - self.destroyed[kind as usize] as i64;
        GearKind::ALL.into_iter().map(move |kind| (kind, balance(kind)))
    }

    /// How much there must be in this world.
    pub fn expected_here(&self) -> i64 {
        (self.created() + self.arrived) as i64 - (self.destroyed() + self.left) as i64
    }
}
