//! Help and completion: what a console says of its own commands.

use serde_json::{Value, json};
use throng::{console::ArgumentAbout, settings::nearest_name};

use super::{COMPLETE, Call, Command, Console, HELP, Outcome};
use crate::access::Role;

/// Commands that every console has: name, words, help.
const OWN: [(&str, &str, &str); 2] = [
    (COMPLETE, "LINE", "how a line may go on that begins so"),
    (HELP, "[COMMAND]", "this list, or all about one command"),
];

/// Arguments as they are typed: `WORLD COUNT [NAME]`.
pub(super) fn usage_of(about: &[ArgumentAbout]) -> String {
    let word = |argument: &ArgumentAbout| {
        let name = argument.name.to_uppercase();
        if argument.is_optional { format!("[{name}]") } else { name }
    };
    about.iter().map(word).collect::<Vec<_>>().join(" ")
}

impl Console {
    pub(super) fn help(&self, call: &Call<'_>) -> Outcome {
        match call.arguments[..] {
            [] => Ok(call.answer(|| self.list(), || self.list_object())),
            [name] => self.help_of(call, name),
            [_, word, ..] => Err(format!("{HELP}: it takes no `{word}` after a command")),
        }
    }

    /// How a line may go on: names of commands, or what its last word may be. Where it may be anything, nothing.
    pub(super) fn complete(&self, call: &Call<'_>) -> String {
        let found: Vec<&str> = match call.arguments[..] {
            [] => self.names().collect(),
            [beginning] | [HELP, beginning] => self.names().filter(|name| name.starts_with(beginning)).collect(),
            [name, .., beginning] => {
                let argument = self.find(name).and_then(|command| command.about.get(call.arguments.len() - 2));
                let choices = argument.map_or(&[][..], |argument| &argument.choices);
                choices.iter().copied().filter(|choice| choice.starts_with(beginning)).collect()
            }
        };
        let text = || found.iter().map(|found| format!("{found}\n")).collect();
        call.answer(text, || json!({ "completions": found }))
    }

    pub(super) fn unknown(&self, name: &str) -> String {
        let all = self.names().collect::<Vec<_>>().join(", ");
        match nearest_name(name, self.names()) {
            Some(meant) => format!("no command is called `{name}`; did you mean `{meant}`? There are {all}"),
            None => format!("no command is called `{name}`; there are {all}"),
        }
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.commands.iter().map(|command| command.name).chain(OWN.map(|(name, ..)| name))
    }

    fn help_of(&self, call: &Call<'_>, name: &str) -> Outcome {
        if let Some((name, words, help)) = OWN.iter().find(|own| own.0 == name) {
            let object = || json!({ "name": name, "role": Role::Observe.name(), "arguments": words, "help": help });
            return Ok(call.answer(|| format!("{name} {words}\n{help}\n"), object));
        }
        let command = self.find(name).ok_or_else(|| self.unknown(name))?;
        Ok(call.answer(|| text_about(command), || object_about(command)))
    }

    fn list(&self) -> String {
        let own = OWN.map(|(name, words, help)| (format!("{name} {words}"), help.to_owned()));
        let rows = self.commands.iter().map(|command| (usage(command), help_line(command))).chain(own);
        let rows: Vec<(String, String)> = rows.collect();
        let width = rows.iter().map(|(usage, _)| usage.len()).max().unwrap_or_default();
        let lines = rows.iter().map(|(usage, help)| format!("{usage:<width$}  {help}\n"));
        lines.chain(["With --json a command answers with one JSON object.\n".to_owned()]).collect()
    }

    fn list_object(&self) -> Value {
        json!({ "commands": self.commands.iter().map(object_about).collect::<Vec<_>>() })
    }
}

fn usage(command: &Command) -> String {
    format!("{} {}", command.name, command.arguments).trim_end().to_owned()
}

fn help_line(command: &Command) -> String {
    let mark = if command.role == Role::Operate { " (needs a key)" } else { "" };
    format!("{}{mark}", command.help)
}

fn text_about(command: &Command) -> String {
    let width = command.about.iter().map(|argument| argument.name.len()).max().unwrap_or_default();
    let line = |argument: &ArgumentAbout| {
        let then = if argument.is_optional { "; may be left out" } else { "" };
        format!("{:<width$}  {}{then}\n", argument.name.to_uppercase(), argument.may_be)
    };
    let arguments: String = command.about.iter().map(line).collect();
    format!("{}\n{}\n{arguments}", usage(command), help_line(command))
}

fn object_about(command: &Command) -> Value {
    let argument = |argument: &ArgumentAbout| {
        let ArgumentAbout { name, may_be, choices, is_optional } = argument;
        json!({ "name": name, "may_be": may_be, "choices": choices, "is_optional": is_optional })
    };
    let Command { name, role, arguments, about, help, run: _ } = command;
    let about: Vec<Value> = about.iter().map(argument).collect();
    json!({ "name": name, "role": role.name(), "arguments": arguments, "about": about, "help": help })
}
