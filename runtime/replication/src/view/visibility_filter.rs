//! Visibility filter: which of the entities that a game's filter is asked about a client may hear of.
//!
//! The filter is the game's; here is whom to ask it about, and what its answers mean for what the client holds.

use crate::{
    source::entities::{Entities, Relevance, Slot},
    view::{client_view::View, entry::Entry, scene::Scene},
    wire::ids::NetId,
};

impl View {
    /// Calls `ask` with the visibility-filtered entities that the client would hear of if it may see them. In slot
    /// order. `slots` is scratch.
    pub(crate) fn each_filtered_near(&self, scene: &Scene, slots: &mut Vec<u32>, mut ask: impl FnMut(NetId)) {
        let Scene { entities, settings, finder, .. } = scene;
        let centre = self.look_from(entities);
        let leave2 = settings.leave_radius_m.powi(2);
        finder.filtered_near(centre, settings.leave_radius_m, slots);
        for &slot in &*slots {
            let row = &entities.slots[slot as usize];
            let id = NetId { slot, generation: row.generation };
            let is_near = |place: [f32; 2]| {
                let square = |centre: [f32; 2]| (place[0] - centre[0]).powi(2) + (place[1] - centre[1]).powi(2);
                centre.is_some_and(|centre| square(centre) <= leave2)
            };
            let is_candidate = match row.relevance {
                Relevance::Everywhere => true,
                Relevance::OwnerOnly => false,
                Relevance::At(place) => is_near(place) || (row.team != 0 && row.team == self.team),
            };
            if is_candidate && self.own != Some(id) {
                ask(id);
            }
        }
    }

    /// Whether it is owed the first sight of somebody whom the filter lets it see: one who came into view and was not told
    /// of, or was told of in a packet that was lost. That is to be told in this tick, however little the line takes. After
    /// `WorldReplication::refresh`.
    pub fn owes_sight(&self) -> bool {
        let is_unseen =
            |entry: &Entry| entry.is_relevant() && entry.existence && self.allowed.binary_search(&entry.slot).is_ok();
        let mut slow = self.list.keys.iter().zip(&self.list.entries).filter(|(key, _)| !key.is_plain());
        // Most worlds have no filter.
        !self.allowed.is_empty() && slow.any(|(_, entry)| is_unseen(entry))
    }

    /// Whether interest may let it hear of an entity at all, wherever that is.
    pub(crate) fn may_hear(&self, id: NetId, row: &Slot) -> bool {
        if self.own == Some(id) {
            return true;
        }
        row.relevance != Relevance::OwnerOnly && (!row.filtered || self.allowed.binary_search(&id.slot).is_ok())
    }

    /// Which visibility-filtered slots it may see from now on, in order. Who may not be seen any more leaves at once.
    pub(crate) fn set_allowed(&mut self, allowed: &[u32], entities: &Entities) {
        if self.allowed == allowed {
            return;
        }
        self.refresh_now = true;
        let mut before = std::mem::take(&mut self.allowed);
        // Whoever was allowed and is no longer; `may_hear` says no while the list is away.
        for slot in before.iter().filter(|slot| allowed.binary_search(slot).is_err()) {
            if let Some(index) = self.list.find(*slot) {
                let entry = &self.list.entries[index];
                let may_hear = entities.get(entry.id()).is_none_or(|row| self.may_hear(entry.id(), row));
                if entry.is_relevant() && !may_hear {
                    self.leave(index, entities.tick, false);
                }
            }
        }
        before.clear();
        before.extend_from_slice(allowed);
        self.allowed = before;
    }
}
