//! Console: what a kind of world answers an operator, and what of it he may change while it runs.
//!
//! A command is one line: its name, what it says of itself, its arguments with their ranges, and a system. The system
//! runs in the world that is asked, before the systems of its next tick, with the arguments as typed values; it answers
//! with a table. A tunable is one line, too ([`tunable`](crate::tunable)).
//!
//! ```
//! use bevy_ecs::prelude::*;
//! use throng_world::{console::{Cell, Column, CommandResult, TextTable, WorldConsole, integer}, tunable::Tunable};
//!
//! static HUNGER: Tunable<f32> = Tunable::new("hunger", 1.0, 0.0..=10.0, "per s", "how quickly wolves grow hungry");
//!
//! #[derive(Resource)]
//! struct Wolves(i64);
//!
//! fn release(In(count): In<i64>, mut wolves: ResMut<Wolves>) -> CommandResult {
//!     wolves.0 += count;
//!     let mut table = TextTable::new([Column::integer("wolves", "wolves")]);
//!     table.row(&[Cell::Integer(wolves.0)]);
//!     Ok(table)
//! }
//!
//! /// What a kind's `WorldKind::console` returns.
//! fn console() -> WorldConsole {
//!     WorldConsole::new()
//!         .operate("wolves.release", "lets so many wolves into the forest", integer("count", 1..=100), release)
//!         .tunable(&HUNGER)
//! }
//! # assert_eq!(console().commands().len(), 1);
//! ```
//!
//! Words become values on the asker's thread, and a table becomes text there; the world's thread runs the system and
//! nothing else. Costs nothing while nobody asks.

mod argument;
mod question;
mod role;

use std::{fmt, sync::Arc};

use bevy_ecs::{
    prelude::*,
    system::{RunSystemOnce, SystemIn},
};

pub use argument::{
    Argument, ArgumentAbout, Arguments, Integer, Number, OneOf, OptionalArgument, PlayerArgument, TextArgument,
    WorldArgument, integer, number, one_of, optional, player, text, world,
};
pub use question::{Ask, AskedWorld, ClientLine, EntitySort, PlayerRow, Question};
pub use role::Role;
pub use throng_metrics::text_table::{Cell, Column, TextTable};

use crate::tunable::AnyTunable;

/// What a command answers: rows, or why there are none, in words for whoever asked.
pub type CommandResult = Result<TextTable, String>;

/// A command whose words have been understood, to be run in a world.
pub type Prepared = Box<dyn FnOnce(&mut World) -> CommandResult + Send>;

/// Words to values, and values to what is run.
type Prepare = Box<dyn Fn(&[&str]) -> Result<Prepared, String> + Send + Sync>;

/// A command that worlds of a kind carry out.
pub struct WorldCommand {
    pub name: &'static str,
    /// [`Role::Operate`] for one that changes anything.
    pub role: Role,
    pub help: &'static str,
    /// What stands after the world.
    pub arguments: Vec<ArgumentAbout>,
    prepare: Prepare,
}

impl WorldCommand {
    fn new<A, S, M>(name: &'static str, role: Role, help: &'static str, arguments: A, system: S) -> Self
    where
        A: Arguments,
        S: IntoSystem<In<A::Values>, CommandResult, M> + Clone + Send + Sync + 'static,
        M: 'static,
    {
        let about = arguments.about();
        let prepare = move |words: &[&str]| -> Result<Prepared, String> {
            let (values, system) = (arguments.read(words)?, system.clone());
            Ok(Box::new(move |world: &mut World| run(world, system, values)))
        };
        Self { name, role, help, arguments: about, prepare: Box::new(prepare) }
    }

    /// Whether another kind's command of this name is the same, as far as can be told.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.role, self.help, &self.arguments) == (other.role, other.help, &other.arguments)
    }

    /// Reads the words after the world. An error names the argument and what it may be.
    pub fn prepare(&self, words: &[&str]) -> Result<Prepared, String> {
        (self.prepare)(words)
    }
}

impl fmt::Debug for WorldCommand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WorldCommand").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Its state is made for this one run: commands are rare, and a world keeps nothing for those that nobody gives.
fn run<V, S, M>(world: &mut World, system: S, values: V) -> CommandResult
where
    V: Send + 'static,
    S: IntoSystem<In<V>, CommandResult, M>,
{
    let values: SystemIn<'_, S::System> = values;
    let ran = world.run_system_once_with(system, values);
    ran.unwrap_or_else(|error| Err(format!("its system could not run: {error}")))
}

/// What worlds of a kind answer, and what of them can be tuned.
#[derive(Default)]
pub struct WorldConsole {
    commands: Vec<Arc<WorldCommand>>,
    tunables: Vec<&'static dyn AnyTunable>,
}

impl WorldConsole {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a command that changes nothing. `name` is dotted, what it is about first: `wolves.count`. `help` says in a
    /// line what it does. The system has the arguments' values as its input: of one argument the value, of several a
    /// tuple, of `()` nothing.
    ///
    /// # Panics
    /// When the kind has a command of this name, or the name or an argument is not as names are.
    #[must_use]
    pub fn observe<A, S, M>(self, name: &'static str, help: &'static str, arguments: A, system: S) -> Self
    where
        A: Arguments,
        S: IntoSystem<In<A::Values>, CommandResult, M> + Clone + Send + Sync + 'static,
        M: 'static,
    {
        self.add(WorldCommand::new(name, Role::Observe, help, arguments, system))
    }

    /// Adds a command that changes something: it needs a key, and leaves a line in the log.
    ///
    /// # Panics
    /// As [`observe`](Self::observe).
    #[must_use]
    pub fn operate<A, S, M>(self, name: &'static str, help: &'static str, arguments: A, system: S) -> Self
    where
        A: Arguments,
        S: IntoSystem<In<A::Values>, CommandResult, M> + Clone + Send + Sync + 'static,
        M: 'static,
    {
        self.add(WorldCommand::new(name, Role::Operate, help, arguments, system))
    }

    fn add(mut self, command: WorldCommand) -> Self {
        let name = command.name;
        assert!(is_command_name(name), "`{name}` is no name for a command: a-z, 0-9, `_` and `.`, a letter first");
        assert!(self.commands.iter().all(|other| other.name != name), "two commands are called `{name}`");
        argument::check_order(name, &command.arguments);
        self.commands.push(Arc::new(command));
        self
    }

    /// Lets an operator change a value that the systems of this kind read.
    #[must_use]
    pub fn tunable(mut self, tunable: &'static dyn AnyTunable) -> Self {
        self.tunables.push(tunable);
        self
    }

    /// In the order in which they were added.
    pub fn commands(&self) -> &[Arc<WorldCommand>] {
        &self.commands
    }

    /// In the order in which they were added.
    pub fn tunables(&self) -> &[&'static dyn AnyTunable] {
        &self.tunables
    }
}

/// Whether a command may be called so: what can be typed without a mistake, and looks the same everywhere.
pub fn is_command_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.'))
}

#[cfg(test)]
mod tests;
