//! Saves: a world says what of it is to be kept ([`crate::saving`] says why so).
//!
//! At the very end of a tick, when who leaves has been let go: what the host or the game asked for, and whoever travelled,
//! bring about a cut; who has left may wait for one. On the world's own thread; nothing where the kind saves nothing, or the
//! host keeps no saves.

use std::collections::BTreeSet;

use bevy_ecs::prelude::*;
use throng_net::protocol::ClientId;
use throng_platform::time::Nanos;
use throng_scheduler::Hertz;

use super::GameWorld;
use crate::{
    checkpoint::PlayerEntities,
    client::Client,
    ids::ClientKey,
    inbox::Inbox,
    report::Leaving,
    saving::{
        CellToSave, Cut, CutMark, LEAVERS_WAIT, LeftOut, Packed, PlayerToSave, SaveAnswer, SaveAnswers, SaveReport,
        SaveStore, SaveWishes, SavesLeft, TickSaves, WorldHook, add_items,
    },
    tick_resources::Outbox,
    transfer::Transfer,
};

impl GameWorld {
    /// Says whether the host keeps saves of the world's players, and of the world itself. Before its first tick.
    pub fn keep_saves(&mut self, of_players: bool, of_world: bool) {
        let saving = &mut self.saving;
        saving.saves_world = of_world && saving.hooks.world.is_some();
        saving.is_on = (of_players && saving.says_players()) || saving.saves_world;
    }

    /// Whether cuts are taken of it.
    pub fn is_saved(&self) -> bool {
        self.saving.is_on
    }

    /// Whether its kind can save the world itself.
    pub fn can_save_world(&self) -> bool {
        self.saving.hooks.world.is_some()
    }

    /// Whether it begins as it was built, and not with what was saved of one.
    pub fn is_as_built(&self) -> bool {
        self.is_as_built
    }

    /// Puts what was saved into it, before its first tick.
    ///
    /// # Errors
    /// In words, if it cannot be read; the world is of no use then.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.is_as_built = false;
        match &self.saving.hooks.world {
            Some(WorldHook::State(state)) => {
                state.load(&mut self.ecs, bytes)?;
                // What the build says of items is in what was saved.
                self.ecs.resource_mut::<Outbox>().saves = SaveWishes::default();
                Ok(())
            }
            Some(WorldHook::Checkpoint) => {
                self.load_checkpoint(bytes, PlayerEntities::LeftOut).map_err(|error| error.to_string())
            }
            None => Err("worlds of this kind say nothing of how they are loaded (`WorldBuilder::save_world`)".into()),
        }
    }

    /// A cut is to be taken at the end of the next tick, or of this one.
    pub(crate) fn want_cut(&mut self) {
        self.saving.is_wanted = self.saving.is_on;
    }

    /// The game reads these in the next run of its systems.
    pub fn note_save_answers(&mut self, answers: &[SaveAnswer]) {
        // Only kinds that save something have it.
        let Some(mut there) = self.ecs.get_resource_mut::<SaveAnswers>().filter(|_| !answers.is_empty()) else {
            return;
        };
        there.0.extend_from_slice(answers);
        self.saving.answers_are_there = true;
    }

    /// The host says before a tick whether the store of the saves is away. That it has turned is a reason to tick.
    pub fn set_saves_away(&mut self, is_away: bool) {
        if self.saving.store.is_away != is_away {
            self.note_save_store(SaveStore { is_away, has_turned: true });
        }
    }

    /// The game sees it so in the next run of its systems.
    pub(super) fn note_save_store(&mut self, store: SaveStore) {
        self.saving.store = store;
        // Only kinds that save something have it.
        let Some(mut there) = self.ecs.get_resource_mut::<SaveStore>() else { return };
        *there = store;
        if let Some(mut log) = self.log() {
            log.save_store(store);
        }
    }

    /// The cells of an earlier tick's cut are on disk.
    pub(crate) fn note_cells_saved(&mut self, tick: u32) {
        if let Some(WorldHook::State(state)) = &self.saving.hooks.world {
            state.cells_saved(&mut self.ecs, tick);
        }
    }

    /// A client's connection has ended with this tick. `carried` is what it was to travel with in the same tick.
    pub(crate) fn note_gone(&mut self, client: &Client, carried: Option<Transfer>) {
        let saving = &mut self.saving;
        if !saving.is_on {
            return;
        }
        saving.of_tick.gone.push((client.key, client.client_id()));
        let is_one = saving.hooks.player.as_ref().map(|hook| hook.is_one);
        if let Some(carried) = carried.filter(|carried| is_one.is_some_and(|is_one| is_one(carried))) {
            saving.of_tick.left_with.push((client.client_id(), carried));
        }
    }

    /// A client travels with this tick's end.
    pub(crate) fn note_traveller(&mut self, client: ClientId, transfer: &Transfer) {
        let saving = &mut self.saving;
        if !saving.is_on {
            return;
        }
        saving.is_wanted = true;
        saving.left_out.retain(|other| *other != client);
        match &saving.hooks.player {
            Some(hook) if (hook.is_one)(transfer) => saving.of_tick.travellers.push((client, transfer.clone())),
            _ => self.report.saves.strangers.push(client),
        }
    }

    /// Takes a cut, if there is reason to, at the very end of a tick. What the game is asked for comes first: where it
    /// panics, nothing of this tick has counted.
    pub(crate) fn finish_saves(&mut self) {
        if std::mem::take(&mut self.saving.answers_are_there) {
            self.ecs.resource_mut::<SaveAnswers>().0.clear();
        }
        if std::mem::take(&mut self.saving.store.has_turned)
            && let Some(mut store) = self.ecs.get_resource_mut::<SaveStore>()
        {
            store.has_turned = false;
        }
        if !self.saving.wishes.is_empty() {
            self.take_wishes();
        }
        if !self.saving.is_on || self.saving.is_replaying {
            return;
        }
        let is_over = self.saving.cut_within.as_mut().is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        });
        if self.saving.is_wanted || is_over {
            let players = self.players_to_save();
            let packed = self.pack(&players, self.tick.wrapping_add(1));
            self.saving.is_wanted = false;
            self.note_left_unsaved();
            self.end_with_cut(&players, packed);
        } else if !self.saving.of_tick.gone.is_empty() {
            let leavers = self.pack_leavers();
            self.note_left_unsaved();
            self.end_with_leavers(leavers);
        }
        let saving = &mut self.saving;
        let TickSaves { gone, left_with, items, requests, travellers: _ } = &mut saving.of_tick;
        if !left_with.is_empty() {
            saving.cut_within.get_or_insert(leavers_wait_ticks(self.rate));
        }
        for (client, has) in left_with.drain(..) {
            saving.left_with.retain(|(other, _)| *other != client);
            saving.left_with.push((client, has));
        }
        items.drain(..).for_each(|(kind, count)| add_items(&mut saving.items, kind, count));
        saving.requests.append(requests);
        saving.departed.extend(saving.seen.drain(..).map(|(_, client_id)| client_id));
        std::mem::swap(&mut saving.seen, gone);
        let left_with = &saving.left_with;
        let is_done = |client: &mut ClientId| !left_with.iter().any(|(waits, _)| waits == client);
        for client in saving.departed.extract_if(.., is_done) {
            saving.left_out.retain(|other| *other != client);
            let is_unsaved = saving.left_unsaved.extract_if(.., |other| *other == client).count() > 0;
            let SaveReport { departed, departed_unsaved, .. } = &mut self.report.saves;
            if is_unsaved { departed_unsaved.push(client) } else { departed.push(client) }
        }
    }

    /// Somebody who has left waits for a cut.
    pub(super) fn owes_saves(&self) -> bool {
        self.saving.cut_within.is_some()
    }

    /// Whether the game has yet to see somebody go, or what it made of that is in no cut.
    pub fn has_leavers(&self) -> bool {
        !self.saving.seen.is_empty() || self.owes_saves()
    }

    /// Whether one of these players is here, was in the tick that it comes home from, or has left and is not saved yet.
    pub fn owes_any_of(&self, players: &BTreeSet<ClientId>) -> bool {
        let here = self.clients.as_slice().iter().map(|client| client.client_id());
        let gone = self.saving.seen.iter().map(|(_, client)| *client);
        let left = self.saving.left_with.iter().map(|(client, _)| *client);
        let cut = self.report.saves.cut.iter().flat_map(|cut| cut.players.iter().map(|(client, _)| *client));
        let travels = self.report.leaving.iter().filter_map(|leaving| match leaving {
            Leaving::Travel { client, .. } => Some(client.client_id()),
            _ => None,
        });
        here.chain(gone).chain(left).chain(cut).chain(travels).any(|client| players.contains(&client))
    }

    /// What the game said of saves in this tick.
    fn take_wishes(&mut self) {
        let mut wishes = std::mem::take(&mut self.saving.wishes);
        let SaveWishes { requests, items, left_with, newest: _ } = &mut wishes;
        if self.saving.is_replaying {
            requests.clear();
            items.clear();
            left_with.clear();
        }
        if !self.saving.is_on {
            let refused = requests.iter().map(|&request| SaveAnswer { request, is_on_disk: false });
            let refused: Vec<_> = refused.collect();
            self.note_save_answers(&refused);
            requests.clear();
            items.clear();
            left_with.clear();
        }
        let saving = &mut self.saving;
        saving.is_wanted |= !requests.is_empty();
        saving.of_tick.requests.append(requests);
        for (kind, count) in items.drain(..) {
            add_items(&mut saving.of_tick.items, kind, count);
        }
        for (client, transfer) in left_with.drain(..) {
            // Of anybody else the game has told already, or tells by what is here.
            if let Some(&(_, client_id)) = saving.seen.iter().find(|(key, _)| *key == client) {
                saving.left_unsaved.retain(|other| *other != client_id);
                saving.of_tick.left_with.push((client_id, transfer));
            }
        }
        saving.wishes = wishes;
    }

    /// Everybody who is here, and those whose end the game has not seen or sees in this tick.
    fn players_to_save(&self) -> Vec<(ClientKey, ClientId)> {
        let here = self.clients.as_slice().iter().map(|client| (client.key, client.client_id()));
        here.chain(self.saving.of_tick.gone.iter().copied()).chain(self.saving.seen.iter().copied()).collect()
    }

    fn player_to_save(&self, (client, client_id): (ClientKey, ClientId)) -> PlayerToSave {
        PlayerToSave { client, client_id, entity: self.ecs.resource::<Inbox>().players.entity(client) }
    }

    /// These players, and the world after so many ticks, as the game packs them.
    fn pack(&mut self, players: &[(ClientKey, ClientId)], ticks: u32) -> Result<Packed, String> {
        let (players_packed, left_out) = self.pack_players(players);
        let mut packed = Packed { players: players_packed, left_out, ..Packed::default() };
        if self.saving.saves_world {
            match &self.saving.hooks.world {
                None => {}
                Some(WorldHook::State(state)) => {
                    let entities = players.iter().filter_map(|player| self.player_to_save(*player).entity);
                    let entities: Vec<Entity> = entities.collect();
                    let bytes = state.save(&mut self.ecs, &entities)?;
                    packed.world_crc = crc32fast::hash(&bytes);
                    packed.world = Some(bytes);
                }
                Some(WorldHook::Checkpoint) => {
                    let mut bytes = Vec::new();
                    let taken = self.checkpoint_after(ticks, PlayerEntities::LeftOut, &mut bytes);
                    packed.world_crc = taken.map_err(|error| error.to_string())?;
                    packed.world = Some(bytes);
                }
            }
        }
        Ok(packed)
    }

    /// Whoever cannot be packed is left out: one player's state must not be the end of everybody's saves. What they are packed as,
    /// and who was left out.
    fn pack_players(&mut self, players: &[(ClientKey, ClientId)]) -> (Vec<(ClientId, Transfer)>, Vec<ClientId>) {
        let players: Vec<PlayerToSave> = players.iter().map(|player| self.player_to_save(*player)).collect();
        let Some(hook) = &self.saving.hooks.player else { return Default::default() };
        let mut packed = Vec::with_capacity(players.len());
        let mut left_out = Vec::new();
        for player in players {
            match (hook.pack)(&mut self.ecs, player) {
                Some(Ok(transfer)) => packed.push((player.client_id, transfer)),
                Some(Err(error)) => left_out.push((player.client_id, error)),
                None => {}
            }
        }
        let saving = &mut self.saving;
        if !saving.left_out.is_empty() {
            saving.left_out.retain(|client| !packed.iter().any(|(other, _)| other == client));
        }
        let all_left_out = left_out.iter().map(|(client, _)| *client).collect();
        // What a replay does not pack was told of when it happened.
        for (client, error) in left_out.into_iter().filter(|_| !saving.is_replaying) {
            let is_told = saving.left_out.contains(&client);
            let why = (!is_told).then(|| error.to_string());
            saving.left_out.extend((!is_told).then_some(client));
            self.report.saves.left_out.push(LeftOut { client, why });
        }
        (packed, all_left_out)
    }

    /// What those have whose connections ended in this tick, and who carry nothing.
    fn pack_leavers(&mut self) -> Vec<(ClientId, Transfer)> {
        let TickSaves { gone, left_with, .. } = &self.saving.of_tick;
        let carries = |client: &ClientId| left_with.iter().any(|(carrier, _)| carrier == client);
        let leavers: Vec<_> = gone.iter().filter(|(_, client)| !carries(client)).copied().collect();
        self.pack_players(&leavers).0
    }

    fn end_with_leavers(&mut self, leavers: Vec<(ClientId, Transfer)>) {
        let (saving, wait) = (&mut self.saving, leavers_wait_ticks(self.rate));
        saving.cut_within.get_or_insert(wait);
        saving.of_tick.left_with.extend(leavers);
    }

    /// Who has left and was left out: unless the game says what they left with, that is gone.
    fn note_left_unsaved(&mut self) {
        let saving = &mut self.saving;
        if saving.left_out.is_empty() {
            return;
        }
        let gone = saving.of_tick.gone.iter().chain(&saving.seen).map(|(_, client)| *client);
        let is_kept = |client: &ClientId| {
            let all = saving.of_tick.left_with.iter().chain(&saving.left_with);
            all.map(|(other, _)| other).any(|other| other == client)
        };
        let unsaved = gone.filter(|client| saving.left_out.contains(client) && !is_kept(client));
        let unsaved: Vec<ClientId> = unsaved.filter(|client| !saving.left_unsaved.contains(client)).collect();
        saving.left_unsaved.extend(unsaved);
    }

    /// The cells that have changed since the last cut.
    fn take_cells(&mut self) -> Result<Vec<CellToSave>, String> {
        match &self.saving.hooks.world {
            Some(WorldHook::State(state)) if self.saving.saves_world => state.take_cells(&mut self.ecs, self.tick),
            _ => Ok(Vec::new()),
        }
    }

    /// The cut is taken, with all that is owed. Or it was not, and nothing has happened: what is owed waits for the next one,
    /// those who have left included, since nothing is given to them or taken from them meanwhile; and the host sends back who
    /// travels.
    fn end_with_cut(&mut self, players: &[(ClientKey, ClientId)], packed: Result<Packed, String>) {
        let packed = packed.and_then(|packed| Ok((packed, self.take_cells()?)));
        let saving = &mut self.saving;
        saving.cut_within = None;
        let travellers = std::mem::take(&mut saving.of_tick.travellers);
        let (packed, cells) = match packed {
            Ok(packed) => packed,
            Err(why) => {
                self.report.saves.failed = Some(why);
                return;
            }
        };
        let left_with = saving.left_with.drain(..).chain(saving.of_tick.left_with.drain(..));
        saving.mark = Some(CutMark { tick: self.tick, players: players.to_vec(), crc: packed.crc() });
        let mut cut = Cut { tick: self.tick, world: packed.world, players: packed.players, cells, ..Cut::default() };
        cut.travellers.extend(travellers.iter().map(|(client_id, _)| *client_id));
        for (client_id, transfer) in travellers.into_iter().chain(left_with) {
            cut.players.retain(|(other, _)| *other != client_id);
            cut.players.push((client_id, transfer));
        }
        cut.left_out = packed.left_out;
        cut.left_out.retain(|client| !cut.players.iter().any(|(other, _)| other == client));
        cut.items.append(&mut saving.items);
        saving.of_tick.items.drain(..).for_each(|(kind, count)| add_items(&mut cut.items, kind, count));
        cut.requests = std::mem::take(&mut saving.requests);
        cut.requests.append(&mut saving.of_tick.requests);
        self.report.saves.cut = Some(Box::new(cut));
    }

    /// What a world that panicked in a tick owed its saves before it: for the world that is made in its place.
    pub fn leave_saves(&mut self) -> SavesLeft {
        let saving = &mut self.saving;
        let mut seen = std::mem::take(&mut saving.seen);
        // Those who went in the tick that failed are gone, whatever else is undone.
        seen.append(&mut saving.of_tick.gone);
        SavesLeft {
            mark: saving.mark.take(),
            seen,
            left_with: std::mem::take(&mut saving.left_with),
            departed: std::mem::take(&mut saving.departed),
            left_unsaved: std::mem::take(&mut saving.left_unsaved),
            items: std::mem::take(&mut saving.items),
            requests: std::mem::take(&mut saving.requests),
        }
    }

    /// The last tick of a replay is over: whether the world is the one that was cut in it.
    pub(super) fn is_as_cut(&mut self, mark: &CutMark) -> bool {
        self.pack(&mark.players, self.tick).is_ok_and(|packed| packed.crc() == mark.crc)
    }

    /// Takes up what a world has left that it is made again from: between two ticks, before its clients are put back. The
    /// cut is to be saved at once: with those who went when it panicked, and with all that it owed.
    ///
    /// # Errors
    /// In words, if there is no cut of it.
    pub fn take_up_saves(&mut self, left: SavesLeft, here: &[(ClientKey, ClientId)]) -> Result<Box<Cut>, String> {
        let SavesLeft { mark: _, seen, left_with, departed, left_unsaved, items, requests } = left;
        let is_known =
            |(client, _): &(ClientKey, ClientId)| self.ecs.resource::<Inbox>().players.row(*client).is_some();
        let players: Vec<_> = here.iter().chain(&seen).filter(|player| is_known(player)).copied().collect();
        let packed = Ok(self.pack(&players, self.tick)?);
        let saving = &mut self.saving;
        (saving.left_with, saving.departed, saving.left_unsaved) = (left_with, departed, left_unsaved);
        (saving.seen, saving.items, saving.requests) = (seen, items, requests);
        self.end_with_cut(&players, packed);
        // It is of the tick before the one that comes.
        self.saving.mark.iter_mut().for_each(|mark| mark.tick = self.tick.wrapping_sub(1));
        self.report.saves.cut.take().ok_or_else(|| "there is no cut of it".into())
    }
}

fn leavers_wait_ticks(rate: Hertz) -> u32 {
    (LEAVERS_WAIT.0 * u64::from(rate.0) / Nanos::from_secs(1).0).max(1) as u32
}
