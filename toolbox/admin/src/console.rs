//! The console: commands that an operator types at a running server, one line each.
//!
//! A command is a name, the role that it needs, a line of help and a function from words to text; whoever starts the
//! admin port adds those that it can carry out, and `help` tells them all. With `--json` anywhere in the line the answer
//! is one JSON object instead of text, so that every command can be used by scripts without knowing it beforehand.
//!
//! Commands run on a thread where waiting is allowed, never on the frame's: what they read is published, what they
//! change is handed over. Lines and answers are bounded by the port ([`bounds`](crate::bounds)).

use std::sync::Arc;

use serde_json::{Value, json};
use throng::rules::FollowedRules;

use crate::access::Role;

/// What was typed after a command's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The words, without `--json`.
    pub arguments: Vec<&'a str>,
    /// Whether the answer is to be a JSON object.
    pub as_json: bool,
}

impl Call<'_> {
    /// Refuses words that the command has no use for; for commands that know the words `known` only.
    pub fn check_arguments(&self, known: &[&str]) -> Result<(), String> {
        match self.arguments.iter().find(|word| !known.contains(word)) {
            None => Ok(()),
            Some(word) if known.is_empty() => Err(format!("it takes no `{word}`, only --json")),
            Some(word) => Err(format!("it takes no `{word}`; there are {} and --json", known.join(", "))),
        }
    }

    /// The answer in the form that was asked for: `text`, or `object` as one line.
    pub fn answer(&self, text: impl FnOnce() -> String, object: impl FnOnce() -> Value) -> String {
        if self.as_json { object().to_string() } else { text() }
    }
}

/// What a command answers: what is printed, or why there is nothing.
pub type Outcome = Result<String, String>;

type Run = Box<dyn Fn(&Call<'_>) -> Outcome + Send + Sync>;

struct Command {
    name: &'static str,
    role: Role,
    /// Its own words, as help shows them; may be empty.
    arguments: &'static str,
    help: &'static str,
    run: Run,
}

/// The commands of one server.
#[derive(Default)]
pub struct Console {
    commands: Vec<Command>,
}

impl Console {
    /// A console that knows `help` only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a command. `name` is dotted where it belongs to a subsystem, such as `rules.reload`; `role` is
    /// [`Role::Operate`] for one that changes anything or writes to disk, whatever its words; `arguments` and `help` are
    /// what `help` shows. `run` may wait, and its error is told to whoever typed.
    ///
    /// # Panics
    /// When the name is taken.
    #[must_use]
    pub fn with(
        mut self,
        name: &'static str,
        role: Role,
        arguments: &'static str,
        help: &'static str,
        run: impl Fn(&Call<'_>) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        assert!(name != HELP && self.find(name).is_none(), "two commands are called `{name}`");
        self.commands.push(Command { name, role, arguments, help, run: Box::new(run) });
        self
    }

    /// Adds `rules.reload`, which reads the server's rules file now and puts it into force; `None`: it has none, and the
    /// command says where to name one.
    #[must_use]
    pub fn with_rules(self, rules: Option<Arc<FollowedRules>>) -> Self {
        self.with("rules.reload", Role::Operate, "", "reads the rules file now and puts it into force", move |call| {
            call.check_arguments(&[])?;
            let rules =
                rules.as_ref().ok_or("this server has no rules file: name one in [recorder] rules of its settings")?;
            let path = rules.reload().map_err(|error| error.to_string())?.display().to_string();
            Ok(call.answer(|| format!("{path} is in force\n"), || json!({ "rules": path })))
        })
    }

    /// What somebody must be allowed who has this line carried out. A line that no command is asked by changes nothing.
    pub fn role_of(&self, line: &str) -> Role {
        let command = line.split_whitespace().next().and_then(|name| self.find(name));
        command.map_or(Role::Observe, |command| command.role)
    }

    /// Carries out one line, for somebody who may have it carried out.
    pub fn execute(&self, line: &str) -> Outcome {
        let mut words = line.split_whitespace();
        let name = words.next().ok_or("nothing was typed; `help` tells what there is")?;
        let (flags, arguments): (Vec<_>, Vec<_>) = words.partition(|&word| word == "--json");
        let call = Call { arguments, as_json: !flags.is_empty() };
        if name == HELP {
            return Ok(call.answer(|| self.help_text(), || self.help_object()));
        }
        let command = self.find(name).ok_or_else(|| self.unknown(name))?;
        (command.run)(&call).map_err(|reason| format!("{name}: {reason}"))
    }

    fn find(&self, name: &str) -> Option<&Command> {
        self.commands.iter().find(|command| command.name == name)
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.commands.iter().map(|command| command.name).chain([HELP]).collect();
        format!("no command is called `{name}`; there are {}", names.join(", "))
    }

    fn help_text(&self) -> String {
        let usage = |command: &Command| format!("{} {}", command.name, command.arguments).trim_end().to_owned();
        let width = self.commands.iter().map(|command| usage(command).len()).max().unwrap_or_default().max(HELP.len());
        let line = |command: &Command| {
            let mark = if command.role == Role::Operate { " (needs a key)" } else { "" };
            format!("{:<width$}  {}{mark}", usage(command), command.help)
        };
        let mut lines: Vec<String> = self.commands.iter().map(line).collect();
        lines.push(format!("{HELP:<width$}  this list"));
        lines.push("With --json a command answers with one JSON object.".to_owned());
        lines.join("\n") + "\n"
    }

    fn help_object(&self) -> Value {
        let about = |command: &Command| {
            let Command { name, role, arguments, help, run: _ } = command;
            json!({ "name": name, "role": role.name(), "arguments": arguments, "help": help })
        };
        json!({ "commands": self.commands.iter().map(about).collect::<Vec<_>>() })
    }
}

const HELP: &str = "help";

#[cfg(test)]
mod tests {
    use super::*;

    fn console() -> Console {
        Console::new()
            .with("players", Role::Observe, "[--names]", "who is there", |call| {
                call.check_arguments(&["--names"])?;
                Ok(call.answer(|| format!("{:?}\n", call.arguments), || json!({ "players": 7 })))
            })
            .with("rules.reload", Role::Operate, "", "reads the rules again", |call| {
                call.check_arguments(&[])?;
                Err("the file is gone".to_owned())
            })
    }

    #[track_caller]
    fn check(line: &str, expect: Result<&str, &str>) {
        let outcome = console().execute(line);
        assert_eq!(outcome.as_deref().map_err(String::as_str), expect, "{line:?}");
    }

    #[test]
    fn a_line_is_a_name_and_words() {
        check("players", Ok("[]\n"));
        check("  players   --names ", Ok("[\"--names\"]\n"));
        check("players --json", Ok("{\"players\":7}"));
        check("players --json --names", Ok("{\"players\":7}"));
        check("players all", Err("players: it takes no `all`; there are --names and --json"));
        check("rules.reload now", Err("rules.reload: it takes no `now`, only --json"));
        check("rules.reload", Err("rules.reload: the file is gone"));
        check("", Err("nothing was typed; `help` tells what there is"));
        check("exit", Err("no command is called `exit`; there are players, rules.reload, help"));
    }

    #[test]
    fn help_tells_every_command() {
        check(
            "help",
            Ok("players [--names]  who is there\n\
                rules.reload       reads the rules again (needs a key)\n\
                help               this list\n\
                With --json a command answers with one JSON object.\n"),
        );
        let object: Value = serde_json::from_str(&console().execute("help --json").unwrap()).unwrap();
        assert_eq!(object["commands"][1]["name"], "rules.reload");
        assert_eq!(
            (&object["commands"][0]["role"], &object["commands"][1]["role"]),
            (&"observe".into(), &"operate".into())
        );
    }

    #[test]
    fn the_line_that_is_carried_out_is_the_line_that_is_judged() {
        let role = |line: &str| console().role_of(line);
        for line in ["rules.reload", "  rules.reload --json", "rules.reload\u{a0}x", "\u{2003}rules.reload\n"] {
            assert_eq!(role(line), Role::Operate, "{line:?}");
        }
        for line in ["", "players", "players rules.reload", "help rules.reload", "rules.reloaded", "Rules.reload"] {
            assert_eq!(role(line), Role::Observe, "{line:?}");
        }
    }
}
