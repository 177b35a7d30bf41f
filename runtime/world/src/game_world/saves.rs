//! Saves: a world says what of it is to be kept ([`crate::saving`] says why so).
//!
//! At the very end of a tick, when who leaves has been let go: what the host or the game asked for, and whoever left,
//! bring about a cut. On the world's own thread; nothing where the kind saves nothing, or the host keeps no saves.

use bevy_ecs::prelude::*;
use throng_net::protocol::ClientId;

use super::GameWorld;
use crate::{
    client::Client,
    inbox::Inbox,
    saving::{Cut, PlayerToSave, SaveAnswer, SaveAnswers, SaveWishes, add_items},
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

    /// Puts what was saved into it, before its first tick.
    ///
    /// # Errors
    /// In words, if it cannot be read; the world is of no use then.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        match &self.saving.hooks.world {
            Some(state) => state.load(&mut self.ecs, bytes),
            None => Err("worlds of this kind say nothing of how they are loaded (`WorldBuilder::save_world`)".into()),
        }
    }

    /// A cut is to be taken at the end of the next tick, or of this one.
    pub(crate) fn want_cut(&mut self) {
        self.saving.is_wanted = self.saving.is_on;
    }

    /// The game reads these in the next run of its systems.
    pub(crate) fn note_save_answers(&mut self, answers: &[SaveAnswer]) {
        // Only kinds that save something have it.
        let Some(mut there) = self.ecs.get_resource_mut::<SaveAnswers>().filter(|_| !answers.is_empty()) else {
            return;
        };
        there.0.extend_from_slice(answers);
        self.saving.answers_are_there = true;
    }

    /// A client's connection has ended with this tick. `carried` is what it was to travel with in the same tick.
    pub(crate) fn note_gone(&mut self, client: &Client, carried: Option<Transfer>) {
        let saving = &mut self.saving;
        if !saving.is_on {
            return;
        }
        saving.gone.push((client.key, client.client_id()));
        saving.is_wanted = true;
        let is_one = saving.hooks.player.as_ref().map(|hook| hook.is_one);
        if let Some(carried) = carried.filter(|carried| is_one.is_some_and(|is_one| is_one(carried))) {
            saving.have_instead.push((client.client_id(), carried));
        }
    }

    /// A client travels with this tick's end.
    pub(crate) fn note_traveller(&mut self, client: ClientId, transfer: &Transfer) {
        let saving = &mut self.saving;
        if !saving.is_on {
            return;
        }
        saving.is_wanted = true;
        match &saving.hooks.player {
            Some(hook) if (hook.is_one)(transfer) => saving.travellers.push((client, transfer.clone())),
            _ => self.report.saves.strangers.push(client),
        }
    }

    /// Takes a cut, if there is reason to, at the very end of a tick.
    pub(crate) fn finish_saves(&mut self) {
        if std::mem::take(&mut self.saving.answers_are_there) {
            self.ecs.resource_mut::<SaveAnswers>().0.clear();
        }
        if !self.saving.wishes.is_empty() {
            self.take_wishes();
        }
        if !self.saving.is_on {
            return;
        }
        if std::mem::take(&mut self.saving.is_wanted) {
            match self.cut() {
                Ok(cut) => self.report.saves.cut = Some(Box::new(cut)),
                Err(why) => self.report.saves.failed = Some(why),
            }
        }
        let saving = &mut self.saving;
        self.report.saves.departed.extend(saving.seen.drain(..).map(|(_, client_id)| client_id));
        std::mem::swap(&mut saving.seen, &mut saving.gone);
    }

    /// What the game said of saves in this tick.
    fn take_wishes(&mut self) {
        let SaveWishes { requests, items, left_with, newest: _ } = std::mem::take(&mut self.saving.wishes);
        if !self.saving.is_on {
            let refused = requests.iter().map(|&request| SaveAnswer { request, is_on_disk: false });
            let refused: Vec<_> = refused.collect();
            return self.note_save_answers(&refused);
        }
        let saving = &mut self.saving;
        saving.is_wanted |= !requests.is_empty() || !left_with.is_empty();
        saving.requests.extend(requests);
        for (kind, count) in items {
            add_items(&mut saving.items, kind, count);
        }
        for (client, transfer) in left_with {
            // Of anybody else the game has told already, or tells by what is here.
            if let Some(&(_, client_id)) = saving.seen.iter().find(|(key, _)| *key == client) {
                saving.have_instead.push((client_id, transfer));
            }
        }
    }

    fn cut(&mut self) -> Result<Cut, String> {
        let mut cut = Cut { tick: self.tick, ..Cut::default() };
        let here = self.clients.as_slice().iter().map(|client| (client.key, client.client_id()));
        let all: Vec<_> =
            here.chain(self.saving.gone.iter().copied()).chain(self.saving.seen.iter().copied()).collect();
        let inbox = self.ecs.resource::<Inbox>();
        let of = |(client, client_id)| PlayerToSave { client, client_id, entity: inbox.players.entity(client) };
        let players: Vec<PlayerToSave> = all.into_iter().map(of).collect();
        let saving = &mut self.saving;
        if let Some(hook) = &saving.hooks.player {
            for player in &players {
                match (hook.pack)(&mut self.ecs, *player) {
                    Some(Ok(transfer)) => cut.players.push((player.client_id, transfer)),
                    Some(Err(error)) => {
                        return Err(format!("client {} has what cannot be saved: {error}", player.client_id.0));
                    }
                    None => {}
                }
            }
        }
        if saving.saves_world
            && let Some(state) = &saving.hooks.world
        {
            let entities: Vec<Entity> = players.iter().filter_map(|player| player.entity).collect();
            cut.world = Some(state.save(&mut self.ecs, &entities)?);
        }
        cut.travellers.extend(saving.travellers.iter().map(|(client_id, _)| *client_id));
        for (client_id, transfer) in saving.travellers.drain(..).chain(saving.have_instead.drain(..)) {
            cut.players.retain(|(other, _)| *other != client_id);
            cut.players.push((client_id, transfer));
        }
        cut.items = std::mem::take(&mut saving.items);
        cut.requests = std::mem::take(&mut saving.requests);
        Ok(cut)
    }
}
