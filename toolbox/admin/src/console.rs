//! The console: commands that an operator types at a running server, one line each.
//!
//! A command is a name, the role that it needs, a line of help and a function from words to text; whoever starts the
//! admin port adds those that it can carry out, and `help` tells them all. With `--json` anywhere in the line the answer
//! is one JSON object instead of text, so that every command can be used by scripts without knowing it beforehand.
//! `complete` tells how a line may go on, for whoever has a Tab key.
//!
//! ```text
//! on the admin thread      counters, perf.host, clients, tune.list   published, or behind a lock that no frame takes
//! asked of the frame       world.list, perf.worlds, tune.set         ([`of_server`])
//! asked of worlds          player.list, player.pos, the game's own   answered in their next tick, or said to be silent
//! ```
//!
//! Commands run on a thread where waiting is allowed, never on the frame's: what they read is published, what they
//! change is handed over. Lines and answers are bounded by the port ([`bounds`](crate::bounds)).

mod budgets;
mod help;
mod of_server;
mod of_world;
mod perf;
mod recordings;

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use throng::{
    console::{Argument, ArgumentAbout, Arguments, Cell, Column, TextTable, text},
    rules::{FollowedRules, RuleInForce},
};

use crate::access::Role;

/// What was typed after a command's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The words, without `--json`.
    pub arguments: Vec<&'a str>,
    /// Whether the answer is to be a JSON object.
    pub as_json: bool,
    /// The name of the asker's key; `nobody` without one.
    pub who: &'a str,
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
    pub fn answer<T: Serialize>(&self, text: impl FnOnce() -> String, object: impl FnOnce() -> T) -> String {
        if self.as_json { serde_json::to_string(&object()).expect("numbers and texts") } else { text() }
    }

    /// The answer in the form that was asked for: aligned rows, or an object with the list `rows`.
    pub fn table(&self, mut table: TextTable) -> String {
        if self.as_json { format!("{{\"rows\":{}}}", table.json()) } else { table.text().to_owned() }
    }
}

/// What a command answers: what is printed, or why there is nothing.
pub type Outcome = Result<String, String>;

type Run = Box<dyn Fn(&Call<'_>) -> Outcome + Send + Sync>;

struct Command {
    name: &'static str,
    role: Role,
    /// Its own words, as help shows them; may be empty.
    arguments: String,
    /// What each of them may be, where that is known.
    about: Vec<ArgumentAbout>,
    help: &'static str,
    run: Run,
}

/// Names of components and events are a game's.
const RULE_CHARACTERS_MAX: usize = 200;

/// The key of a rule, with its section before it.
struct RuleKey {
    keys: Vec<&'static str>,
}

impl Argument for RuleKey {
    type Value = String;

    fn about(&self) -> ArgumentAbout {
        let may_be = "section and key of the rules file, such as triggers.frame.cooldown_s or log.CATEGORY".to_owned();
        ArgumentAbout { name: "key", may_be, choices: self.keys.clone(), is_optional: false }
    }

    /// Levels of the log have keys that are not listed; what is none is told by whoever reads rules.
    fn read(&self, word: &str) -> Result<String, String> {
        let is_short = word.chars().count() <= RULE_CHARACTERS_MAX;
        is_short.then(|| word.to_owned()).ok_or_else(|| format!("has more than {RULE_CHARACTERS_MAX} characters"))
    }
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
        let arguments = arguments.to_owned();
        self.add(Command { name, role, arguments, about: Vec::new(), help, run: Box::new(run) });
        self
    }

    /// As [`with`](Self::with), for a command with typed arguments: `run` gets their values, and who types others is told
    /// what they may be.
    ///
    /// # Panics
    /// When the name is taken.
    #[must_use]
    pub fn with_arguments<A: Arguments>(
        mut self,
        name: &'static str,
        role: Role,
        arguments: A,
        help: &'static str,
        run: impl Fn(&Call<'_>, A::Values) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        let about = arguments.about();
        let run: Run = Box::new(move |call| run(call, arguments.read(&call.arguments)?));
        self.add(Command { name, role, arguments: help::usage_of(&about), about, help, run });
        self
    }

    fn add(&mut self, command: Command) {
        let name = command.name;
        let is_taken = [HELP, COMPLETE].contains(&name) || self.find(name).is_some();
        assert!(!is_taken, "two commands are called `{name}`");
        self.commands.push(command);
    }

    /// Adds `rules.list`, which tells all rules, `rules.reload`, which reads the server's rules file now and puts it into force,
    /// and `rules.set`, which says one of them otherwise until then; `None`: it has none, and the commands say where to name one.
    #[must_use]
    pub fn with_rules(self, rules: Option<Arc<FollowedRules>>) -> Self {
        const NO_FILE: &str = "this server has no rules file: name one in [recorder] rules of its settings";
        // Once, at the start of a server.
        let keys: Vec<&'static str> = rules.iter().flat_map(|rules| rules.keys()).map(|key| &*key.leak()).collect();
        let [list, set] = [(); 2].map(|()| rules.clone());
        let list_help = "all rules as they are now, each from the rules file, from the console since, or a default";
        self.with_arguments("rules.list", Role::Observe, (), list_help, move |call, ()| {
            Ok(call.table(rule_table(&list.as_ref().ok_or(NO_FILE)?.list())))
        })
        .with("rules.reload", Role::Operate, "", "reads the rules file now and puts it into force", move |call| {
            call.check_arguments(&[])?;
            let rules = rules.as_ref().ok_or(NO_FILE)?;
            let path = rules.reload().map_err(|error| error.to_string())?.display().to_string();
            Ok(call.answer(|| format!("{path} is in force\n"), || json!({ "rules": path })))
        })
        .with_arguments(
            "rules.set",
            Role::Operate,
            (RuleKey { keys }, text("value", RULE_CHARACTERS_MAX)),
            "changes one rule, by its section and key in the rules file, until the rules are read again",
            move |call, (key, value)| {
                let rules = set.as_ref().ok_or(NO_FILE)?;
                rules.set(&key, &value, call.who).map_err(|wrong| format!("{key}: {wrong}"))?;
                let mut table = TextTable::new([Column::text("rule", "rule"), Column::text("now", "now")]);
                table.row(&[Cell::Text(&key), Cell::Text(&value)]);
                Ok(call.table(table))
            },
        )
    }

    /// What somebody must be allowed who has this line carried out. A line that no command is asked by changes nothing.
    pub fn role_of(&self, line: &str) -> Role {
        let command = line.split_whitespace().next().and_then(|name| self.find(name));
        command.map_or(Role::Observe, |command| command.role)
    }

    /// Carries out one line for `who`, who may have it carried out.
    pub fn execute(&self, line: &str, who: &str) -> Outcome {
        let mut words = line.split_whitespace();
        let name = words.next().ok_or("nothing was typed; `help` tells what there is")?;
        let (flags, arguments): (Vec<_>, Vec<_>) = words.partition(|&word| word == "--json");
        let mut call = Call { arguments, as_json: !flags.is_empty(), who };
        match name {
            HELP => return self.help(&call),
            COMPLETE => {
                // The blank before the last word is typed, and nothing of the word yet.
                let typed = line.strip_suffix("--json").map_or(line, |typed| typed.strip_suffix(' ').unwrap_or(typed));
                if typed.ends_with(char::is_whitespace) {
                    call.arguments.push("");
                }
                return Ok(self.complete(&call));
            }
            _ => {}
        }
        let command = self.find(name).ok_or_else(|| self.unknown(name))?;
        (command.run)(&call).map_err(|reason| format!("{name}: {reason}"))
    }

    fn find(&self, name: &str) -> Option<&Command> {
        self.commands.iter().find(|command| command.name == name)
    }
}

fn rule_table(rules: &[RuleInForce]) -> TextTable {
    let titles = [("key", "key"), ("value", "value"), ("from", "from"), ("changed by", "changed_by"), ("note", "note")];
    let mut table = TextTable::new(titles.map(|(title, key)| Column::text(title, key)));
    for RuleInForce { key, value, fits_rate, from, changed_by } in rules {
        let note = match value {
            None if *changed_by == "budget.set" => Cell::Text("cleared"),
            _ if *fits_rate => Cell::Text("less at rates above 30 Hz"),
            _ => Cell::Empty,
        };
        let value = value.as_deref().map_or(Cell::Empty, Cell::Text);
        table.row(&[Cell::Text(key), value, Cell::Text(&from.to_string()), Cell::Text(changed_by), note]);
    }
    table
}

const HELP: &str = "help";
const COMPLETE: &str = "complete";

#[cfg(test)]
mod tests {
    use throng::console::{Cell, Column, one_of, optional, player};

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
            .with_arguments(
                "player.kick",
                Role::Operate,
                (player("player"), optional(one_of("how", &["now", "politely"]))),
                "sends a player away",
                |call, (player, how)| {
                    let mut table = TextTable::new([Column::text("player", "player"), Column::text("by", "by")]);
                    let player = format!("{}{}", player.0, how.unwrap_or_default());
                    table.row(&[Cell::Text(&player), Cell::Text(call.who)]);
                    Ok(call.table(table))
                },
            )
    }

    #[track_caller]
    fn check(line: &str, expect: Result<&str, &str>) {
        let outcome = console().execute(line, "anna");
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
        let known = "are players, rules.reload, player.kick, complete, help";
        let meant =
            |name: &str, meant: &str| format!("no command is called `{name}`; did you mean `{meant}`? There {known}");
        check("rules.relaod", Err(&meant("rules.relaod", "rules.reload")));
        check("palyers", Err(&meant("palyers", "players")));
        check("exit", Err("no command is called `exit`; there are players, rules.reload, player.kick, complete, help"));
    }

    #[test]
    fn typed_words_are_values_and_wrong_ones_are_told_with_what_they_may_be() {
        check("player.kick 7", Ok("player  by\n7       anna\n"));
        check("player.kick 7 now --json", Ok("{\"rows\":[{\"player\":\"7now\",\"by\":\"anna\"}]}"));
        check("player.kick", Err("player.kick: player is missing: a player as `player.list` shows it, a whole number"));
        check("player.kick 7 soon", Err("player.kick: how: there is no soon; it may be now, politely"));
        check("player.kick 7 now 8", Err("player.kick: it takes no `8` after player how"));
    }

    #[test]
    fn help_tells_every_command() {
        check(
            "help",
            Ok("players [--names]         who is there\n\
                rules.reload              reads the rules again (needs a key)\n\
                player.kick PLAYER [HOW]  sends a player away (needs a key)\n\
                complete LINE             how a line may go on that begins so\n\
                help [COMMAND]            this list, or all about one command\n\
                With --json a command answers with one JSON object.\n"),
        );
        let object: serde_json::Value = serde_json::from_str(&console().execute("help --json", "").unwrap()).unwrap();
        assert_eq!(object["commands"][1]["name"], "rules.reload");
        assert_eq!(
            (&object["commands"][0]["role"], &object["commands"][1]["role"]),
            (&"observe".into(), &"operate".into())
        );
        assert_eq!(object["commands"][2]["about"][1]["choices"], json!(["now", "politely"]));
    }

    #[test]
    fn help_of_one_command_tells_what_each_word_may_be() {
        check(
            "help player.kick",
            Ok("player.kick PLAYER [HOW]\n\
                sends a player away (needs a key)\n\
                PLAYER  a player as `player.list` shows it, a whole number\n\
                HOW     one of now, politely; may be left out\n"),
        );
        check("help players", Ok("players [--names]\nwho is there\n"));
        check("help help", Ok("help [COMMAND]\nthis list, or all about one command\n"));
        let unknown = "no command is called `kick`; there are players, rules.reload, player.kick, complete, help";
        check("help kick", Err(unknown));
    }

    #[test]
    fn a_line_that_has_begun_is_completed() {
        check("complete pl", Ok("players\nplayer.kick\n"));
        check("complete", Ok("players\nrules.reload\nplayer.kick\ncomplete\nhelp\n"));
        check("complete player.kick 7 po", Ok("politely\n"));
        check("complete player.kick 7", Ok(""));
        check("complete player.kick 7 ", Ok("now\npolitely\n"));
        check("complete player.kick  --json", Ok("{\"completions\":[]}"));
        check("complete player.kick --json", Ok("{\"completions\":[\"player.kick\"]}"));
        check("complete ", Ok("players\nrules.reload\nplayer.kick\ncomplete\nhelp\n"));
        check("complete help pl", Ok("players\nplayer.kick\n"));
        check("complete nonsense x", Ok(""));
        check("complete pl --json", Ok("{\"completions\":[\"players\",\"player.kick\"]}"));
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
