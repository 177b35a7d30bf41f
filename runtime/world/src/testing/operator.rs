//! An operator in a test: commands that the world carries out, and tunables that are changed under it.

use std::sync::Arc;

use super::TestWorld;
use crate::{
    console::CommandResult,
    mail::MailItem,
    tunable::{Tunable, Tune, TunedValues, as_written},
};

impl TestWorld {
    /// Has the world carry out a command of its kind, as it would before the systems of its next tick: the name and the
    /// words after the world.
    ///
    /// # Errors
    /// What whoever typed it would be told.
    ///
    /// # Panics
    /// If the kind has no such command.
    pub fn command(&mut self, line: &str) -> CommandResult {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let command = self.console.commands().iter().find(|command| command.name == name).cloned();
        let command = command.unwrap_or_else(|| panic!("this kind of world has no command `{name}`"));
        command.prepare(&words.collect::<Vec<_>>())?(self.world.ecs_mut())
    }

    /// Changes a tunable: it holds from the next tick on.
    ///
    /// # Panics
    /// If the value is not in its range.
    pub fn tune<T: Tune>(&mut self, tunable: &Tunable<T>, value: T) {
        let mut values = TunedValues::clone(&self.tuned);
        values.set(tunable, as_written(value)).unwrap_or_else(|wrong| panic!("{wrong}"));
        self.tuned = Arc::new(values);
        self.mail.push(MailItem::Tuned(self.tuned.clone()));
    }
}
