//! Relevant set: how what interest finds, and what dies or changes, becomes what a client holds and is owed.
//!
//! `attend` looks at what cannot wait, in every tick; `refresh` takes over what interest finds, when it is the view's
//! turn. An entity that changes rings is owed what waited for its turn in the ring before.

use crate::{
    source::{entities::Entities, rings::Rings},
    view::{
        client_view::{View, waiting},
        entry::{Entry, EntryCold, State},
        interest::{Found, Listening, is_small},
        scene::Scene,
        traffic::Cause,
    },
};

impl View {
    /// Looks at entities that died, are not to be heard of any more, or lost a component, since it looked last.
    pub(crate) fn attend(&mut self, entities: &Entities) {
        let missed = entities.disturbances().wrapping_sub(self.seen_disturbances) as usize;
        if missed == 0 {
            return;
        }
        self.seen_disturbances = entities.disturbances();
        if missed > entities.disturbed.len() || missed > self.list.entries.len() {
            for index in 0..self.list.entries.len() {
                let since = self.gathered_tick.map_or(0, |before| before + 1);
                self.attend_to(index, since, entities);
            }
            return;
        }
        let news = &entities.disturbed[entities.disturbed.len() - missed..];
        for slot in news {
            if let Some(index) = self.list.find(*slot) {
                self.attend_to(index, entities.tick, entities);
            } else if entities.slots[*slot as usize].team == self.team && self.team != 0 {
                self.refresh_now = true;
            }
        }
    }

    /// As `attend`, for one entry. `since`: a component that went before this tick has been seen to go.
    fn attend_to(&mut self, index: usize, since: u32, entities: &Entities) {
        let entry = &self.list.entries[index];
        if !entry.is_relevant() {
            return;
        }
        let id = entry.id();
        match entities.get(id) {
            None => self.leave(index, entities.tick, true),
            // Nothing more of it, not even a tombstone sample.
            Some(row) if !self.may_hear(id, row) => self.leave(index, entities.tick, false),
            Some(_) => {
                if entities.removed_at[id.slot as usize] >= since {
                    self.list.entries[index].existence = true;
                    self.list.refresh_key(index);
                }
                // It may have changed teams.
                self.refresh_now = true;
            }
        }
    }

    /// Looks at what cannot wait. Returns whether it is this view's turn to have its relevant set rebuilt.
    pub(crate) fn wants_refresh(&mut self, scene: &Scene) -> bool {
        let Scene { entities, settings, .. } = scene;
        self.attend(entities);
        if self.refresh_now {
            return true;
        }
        let centre = self.look_from(entities);
        let moved = self.refreshed.is_none_or(|(before, _)| before != centre);
        let period = if is_small(entities) { 1 } else { settings.period_ticks.max(1) * if moved { 1 } else { 2 } };
        self.refreshed != Some((centre, entities.arrangement))
            && self.turn.wrapping_add(entities.tick).is_multiple_of(period)
    }

    /// Rebuilds the relevant set, because it is this view's turn.
    pub(crate) fn refresh(&mut self, scene: &Scene, found: &mut Found) {
        let Scene { entities, finder, settings, rings, .. } = scene;
        let centre = self.look_from(entities);
        self.refresh_now = false;
        self.refreshed = Some((centre, entities.arrangement));
        let own = self.own.filter(|own| entities.get(*own).is_some()).map(|own| own.slot);
        let who = Listening { centre, own, team: self.team, allowed: &self.allowed };
        finder.find(entities, &who, settings, rings, found);
        self.set_relevant(found, entities);
        self.set_rings(found, entities, rings);
    }

    /// Rings are others than before: everything is sorted into them anew.
    pub(crate) fn forget_rings(&mut self, period_max: u32, entities: &Entities) {
        for index in 0..self.list.entries.len() {
            let entry = &self.list.entries[index];
            if entry.is_relevant() && entry.state != State::New {
                let slot = entry.slot as usize;
                let kinds = entities.changed_within(slot, entities.slots[slot].present, period_max);
                self.owe(index, kinds, Cause::Deferred);
            }
            self.list.entries[index].ring = 0;
            self.list.cold[index].ring_since = entities.tick;
            self.list.refresh_key(index);
        }
        self.refresh_now = true;
    }

    /// Takes over what was found. `attend` has run. Mostly nothing comes or goes, which a comparison of
    /// sets finds without a look at the entries.
    fn set_relevant(&mut self, found: &mut Found, entities: &Entities) {
        if !self.relevant.move_on(&mut found.near, &found.kept) {
            return;
        }
        self.counts.entries_visited += self.list.entries.len() as u64;
        // `near` now has what comes; what was relevant and is no longer, goes.
        for index in 0..self.list.entries.len() {
            let entry = &self.list.entries[index];
            let comes = found.near.take(entry.slot);
            if entry.is_relevant() {
                if !self.relevant.contains(entry.slot) {
                    self.leave(index, entities.tick, true);
                }
            } else if comes {
                let row = &entities.slots[entry.slot as usize];
                // A slot whose despawn was acknowledged is empty there.
                let held = entry.state == State::Leaving;
                let entry = Entry { held, ..Entry::new(entry.slot, row.generation, row.present) };
                self.list.replace(index, entry);
            }
        }
        self.list.drop_gone();
        self.list.insert(&found.near, entities, self.flights.unused_label());
    }

    /// Sorts what is relevant into the rings where it was found. Who changes rings is owed what it waited for.
    fn set_rings(&mut self, found: &Found, entities: &Entities, rings: &Rings) {
        if rings.count() == 1 {
            return;
        }
        for index in 0..self.list.entries.len() {
            let key = self.list.keys[index];
            let ring = found.ring(key.slot());
            if ring != key.ring() && self.list.entries[index].is_relevant() {
                self.change_ring(index, ring, entities, rings);
            }
        }
    }

    fn change_ring(&mut self, index: usize, ring: usize, entities: &Entities, rings: &Rings) {
        let entry = &mut self.list.entries[index];
        let before = std::mem::replace(&mut entry.ring, ring as u8) as usize;
        self.list.cold[index].ring_since = entities.tick;
        if entry.state != State::New {
            let slot = entry.slot as usize;
            entry.owed |= waiting(entities, rings, slot, before, entities.tick);
            entry.cause = Cause::Deferred;
        }
        self.list.refresh_key(index);
    }

    /// Whether the client has come so far that it is to be told at once all it waits for.
    pub(crate) fn is_catch_up_due(&mut self, entities: &Entities, rings: &Rings) -> bool {
        if rings.is_trivial() {
            return false;
        }
        let Some(centre) = self.look_from(entities) else { return false };
        let before = *self.caught_up_at.get_or_insert(centre);
        let due = (centre[0] - before[0]).powi(2) + (centre[1] - before[1]).powi(2) >= rings.catch_up_m2;
        if due {
            self.caught_up_at = Some(centre);
        }
        due
    }

    /// An entity is no longer relevant. `may_tell`: a tombstone sample may later name it. That takes a spawn of this
    /// very entity that has gone out: `held` alone may be about the slot's owner before it.
    pub(crate) fn leave(&mut self, index: usize, tick: u32, may_tell: bool) {
        let entry = &mut self.list.entries[index];
        self.relevant.take(entry.slot);
        if !entry.held {
            self.list.set_gone(index);
            return;
        }
        if may_tell && entry.state != State::New {
            self.audit.note_left(entry.id(), tick);
        }
        entry.state = State::Leaving;
        entry.owed = 0;
        entry.existence = true;
        self.list.cold[index] = EntryCold::default();
        self.list.refresh_key(index);
    }
}
