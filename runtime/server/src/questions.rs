//! Questions: what an operator's thread asks of the frame's thread and of worlds, and waits for.
//!
//! The frame's thread copies a few numbers for each world, or puts a question into a world's mailbox; the world is asked
//! in its next tick, before its systems. Whoever asks waits for so long and no longer. A question that nobody waits for
//! any more is not asked: what was not answered in time does not happen later, unless it had begun.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use throng_platform::time::Nanos;
use throng_world::{
    MailItem,
    console::{Ask, AskedWorld, CommandResult, PlayerRow, Question, Role, WorldCommand},
    ids::{WorldId, WorldKindId},
};

use crate::{
    lifecycle::{Answer, Pending, WorldError},
    server::{Command, Server, ServerControl},
};

pub use crate::{behind::Behind, world_row::WorldRow};

/// A command that worlds of some kinds carry out.
#[derive(Debug, Clone)]
pub struct HostedCommand {
    pub command: Arc<WorldCommand>,
    /// Kinds that have it. Those that have one of the same name have the same one.
    pub kinds: Vec<(WorldKindId, Arc<str>)>,
}

/// Worlds with players, and those players.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlayersFound {
    pub rows: Vec<(WorldId, PlayerRow)>,
    /// Worlds that have not answered in time.
    pub silent: Vec<WorldId>,
}

/// Whether the world is there goes in; what it is to be asked comes out, if it is.
type Deliver = Box<dyn FnOnce(Result<(), WorldError>) -> Option<Question> + Send>;

/// A question on its way to a world: it is told whether the world is there.
pub(crate) struct Asked {
    world: WorldId,
    /// Of the kinds that can answer; any, if there are none.
    kinds: Vec<WorldKindId>,
    deliver: Deliver,
}

impl ServerControl {
    /// All worlds, by id.
    pub fn worlds(&self) -> Pending<Vec<WorldRow>> {
        let (pending, answer) = Pending::new();
        self.push(Command::ListWorlds(answer));
        pending
    }

    /// Has `question` run in a world, before the systems of its next tick. Only in one of these kinds, unless there are
    /// none.
    pub fn ask_world<T: Send + 'static>(
        &self,
        world: WorldId,
        kinds: &[WorldKindId],
        question: impl FnOnce(&mut dyn AskedWorld) -> T + Send + 'static,
    ) -> Pending<T> {
        self.ask(world, kinds, Question::new, question)
    }

    /// As [`ask_world`](Self::ask_world), in a world of any kind; the question changes nothing there.
    pub fn look_at_world<T: Send + 'static>(
        &self,
        world: WorldId,
        question: impl FnOnce(&mut dyn AskedWorld) -> T + Send + 'static,
    ) -> Pending<T> {
        self.ask(world, &[], Question::that_looks, question)
    }

    fn ask<T: Send + 'static>(
        &self,
        world: WorldId,
        kinds: &[WorldKindId],
        as_question: fn(Ask) -> Question,
        question: impl FnOnce(&mut dyn AskedWorld) -> T + Send + 'static,
    ) -> Pending<T> {
        let (pending, answer) = Pending::new();
        let deliver = move |found: Result<(), WorldError>| {
            if let Err(error) = found {
                answer.give(Err(error));
                return None;
            }
            let answer = answer.or(WorldError::NoSuchWorld(world));
            Some(as_question(Box::new(move |world: &mut dyn AskedWorld| {
                if answer.is_wanted() {
                    let told = question(world);
                    answer.give(Ok(told));
                }
            })))
        };
        self.push(Command::Ask(Asked { world, kinds: kinds.to_vec(), deliver: Box::new(deliver) }));
        pending
    }

    /// Everybody who plays and where they are. Asks all worlds that have players at once, and waits for `at_most`.
    ///
    /// # Errors
    /// In words, if the frame's thread does not answer.
    pub fn players(&self, at_most: Duration) -> Result<PlayersFound, String> {
        let until = Instant::now() + at_most;
        let worlds = in_time(self.worlds(), at_most, "the server")?.map_err(|error| error.to_string())?;
        let ask = |row: &WorldRow| (row.id, self.ask(row.id, &[], Question::that_looks, |world| world.player_rows()));
        let asked: Vec<_> = worlds.iter().filter(|row| row.players > 0).map(ask).collect();
        let mut found = PlayersFound::default();
        for (world, pending) in asked {
            match pending.wait(until.saturating_duration_since(Instant::now())) {
                Some(Ok(rows)) => found.rows.extend(rows.into_iter().map(|row| (world, row))),
                // It has ended since, and its players are elsewhere or gone.
                Some(Err(_)) => {}
                None => found.silent.push(world),
            }
        }
        Ok(found)
    }

    /// Has a world carry out a command, and waits for `at_most`.
    ///
    /// # Errors
    /// In words for whoever asked: a wrong word, a world that is not there or of another kind, no answer in time, and
    /// what the command itself says.
    pub fn command(&self, hosted: &HostedCommand, world: WorldId, words: &[&str], at_most: Duration) -> CommandResult {
        let prepared = hosted.command.prepare(words)?;
        let kinds: Vec<_> = hosted.kinds.iter().map(|(kind, _)| *kind).collect();
        let as_question = if hosted.command.role == Role::Observe { Question::that_looks } else { Question::new };
        let pending = self.ask(world, &kinds, as_question, move |world| prepared(world.ecs_mut()));
        match in_time(pending, at_most, &format!("world {world}"))? {
            Ok(told) => told,
            Err(WorldError::OtherKind(_)) => {
                let names: Vec<&str> = hosted.kinds.iter().map(|(_, name)| &**name).collect();
                Err(format!("world {world} is of a kind that does not know it; worlds of {} do", names.join(", ")))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// What was answered; the error is that nothing was, in words.
fn in_time<T>(pending: Pending<T>, at_most: Duration, who: &str) -> Result<Result<T, WorldError>, String> {
    let silent = || {
        let has_begun = pending.withdraw();
        let then = if has_begun { "it has begun and may still end" } else { "it was not done and will not be" };
        format!("{who} has not answered within {} s: {then}", at_most.as_secs_f64())
    };
    pending.wait(at_most).ok_or_else(silent)
}

impl Server {
    /// The commands that kinds of worlds have, for a console.
    pub fn hosted_commands(&self) -> &[HostedCommand] {
        &self.hosted_commands
    }

    /// Takes a kind's commands up.
    ///
    /// # Panics
    /// If one has the name of another kind's and is not the same: the game's own mistake.
    pub(crate) fn host_commands(&mut self, kind: WorldKindId, name: &Arc<str>, commands: &[Arc<WorldCommand>]) {
        for command in commands {
            match self.hosted_commands.iter_mut().find(|hosted| hosted.command.name == command.name) {
                Some(hosted) => {
                    assert!(
                        hosted.command.is_like(command),
                        "two kinds of worlds mean different things by `{}`",
                        command.name
                    );
                    hosted.kinds.push((kind, name.clone()));
                }
                None => {
                    let kinds = vec![(kind, name.clone())];
                    self.hosted_commands.push(HostedCommand { command: command.clone(), kinds });
                }
            }
        }
    }

    pub(crate) fn list_worlds(&self, answer: Answer<Vec<WorldRow>>) {
        answer.give(Ok(self.world_rows(self.clock.now())));
    }

    /// Once a look: a few numbers of each world, and a search among them for each player.
    pub(crate) fn world_rows(&self, now: Nanos) -> Vec<WorldRow> {
        let mut rows: Vec<_> = (self.worlds.iter())
            .map(|slot| WorldRow {
                id: slot.id,
                kind: slot.name.clone(),
                rate: slot.rate,
                players: 0,
                is_dormant: slot.is_dormant,
                time_percent: slot.time_factor().percent(),
                tick_cost: slot.cost.estimate(),
                last_tick: slot.last_cost,
                longest_tick: slot.longest_tick.read(now),
                overload: slot.ladder.level(),
                in_tick_for: slot.running_for(now),
                ticks_missed: slot.ticks_missed,
                behind: slot.behind,
            })
            .collect();
        for world in self.addresses.worlds_of_players() {
            if let Ok(index) = rows.binary_search_by_key(&world, |row| row.id) {
                rows[index].players += 1;
            }
        }
        rows
    }

    pub(crate) fn deliver_question(&mut self, asked: Asked) {
        let Asked { world, kinds, deliver } = asked;
        let Some(slot) = self.worlds.get(world).filter(|slot| slot.ending.is_none()) else {
            deliver(Err(WorldError::NoSuchWorld(world)));
            return;
        };
        let is_of_them =
            |kind: &WorldKindId| self.kinds.get(usize::from(kind.0)).is_some_and(|row| row.name == slot.name);
        let found =
            if kinds.is_empty() || kinds.iter().any(is_of_them) { Ok(()) } else { Err(WorldError::OtherKind(world)) };
        if let Some(question) = deliver(found) {
            slot.mailbox.push(MailItem::Question(question));
        }
    }
}
