//! The console at a terminal: lines are edited, remembered from one time to the next, and completed with Tab.
//!
//! What may be typed is the server's to say, once at the beginning: names of commands, and what each of their words may be,
//! where that is known. So a Tab costs no request, and a server that is stuck does not hold it up. A server that does not
//! say it is talked to without completion.
//!
//! Lines are kept in `$XDG_STATE_HOME/throng/console-history`, or `~/.local/state/...`: a thousand, of this user's own.
//! Where there is no such place they are remembered until the end.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use rustyline::{
    Config, Context, Editor, Helper,
    completion::{Completer, Pair},
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::Validator,
};
use serde::Deserialize;
use throng_capture::story::printable_text;

/// Lines that are remembered.
const HISTORY_LINES: usize = 1_000;

/// What a server says of its commands with `help --json`. Whatever else it says is not looked at.
#[derive(Deserialize, Default)]
pub struct Known {
    #[serde(default)]
    commands: Vec<KnownCommand>,
}

#[derive(Deserialize)]
struct KnownCommand {
    name: String,
    /// In the order in which they are typed.
    #[serde(default)]
    about: Vec<KnownWord>,
}

#[derive(Deserialize)]
struct KnownWord {
    #[serde(default)]
    choices: Vec<String>,
}

/// Commands of the console itself, which a server does not list.
const OWN: [&str; 1] = ["help"];

impl Known {
    /// How the last word of a line may go on that begins so, and where in the line that word begins.
    fn completions(&self, line: &str) -> (usize, Vec<&str>) {
        let start =
            line.rfind(char::is_whitespace).map_or(0, |at| at + line[at..].chars().next().map_or(1, char::len_utf8));
        let (before, beginning) = line.split_at(start);
        let names = || self.commands.iter().map(|command| command.name.as_str()).chain(OWN);
        let words: Vec<&str> = before.split_whitespace().collect();
        let all: Vec<&str> = match words.as_slice() {
            [] | ["help"] => names().collect(),
            [name, others @ ..] => {
                let command = self.commands.iter().find(|command| command.name == *name);
                let word = command.and_then(|command| command.about.get(others.len()));
                word.iter().flat_map(|word| &word.choices).map(String::as_str).collect()
            }
        };
        // What a stranger's answer has in it does not reach the terminal.
        let is_plain = |word: &&str| printable_text(word) == **word && !word.contains(char::is_whitespace);
        let fits = all.into_iter().filter(|word| word.starts_with(beginning)).filter(is_plain);
        (start, fits.collect())
    }
}

impl Completer for Known {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.completions(&line[..position]);
        // The word is whole when there is no other.
        let end = if words.len() == 1 { " " } else { "" };
        let pair = |word: &str| Pair { display: word.to_owned(), replacement: format!("{word}{end}") };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

impl Hinter for Known {
    type Hint = String;
}

impl Highlighter for Known {}

impl Validator for Known {}

impl Helper for Known {}

/// Asks for lines.
pub struct Terminal {
    editor: Editor<Known, FileHistory>,
    history: Option<PathBuf>,
    prompt: String,
}

impl Terminal {
    /// At the terminal of this process.
    pub fn open(server: &str, known: Known) -> io::Result<Self> {
        let config = Config::builder().max_history_size(HISTORY_LINES).and_then(|it| it.history_ignore_dups(true));
        let config = config.map_err(io::Error::other)?.completion_type(rustyline::CompletionType::List).build();
        let mut editor = Editor::with_config(config).map_err(io::Error::other)?;
        editor.set_helper(Some(known));
        let history = history_file(|name| env::var(name).ok()).filter(|path| prepare(path).is_ok());
        // It is not there before the first time, and one that is broken is begun anew.
        history.iter().for_each(|path| drop(editor.load_history(path)));
        Ok(Self { editor, history, prompt: format!("{}> ", printable_text(server)) })
    }

    /// The next line; `None`: there is none any more.
    pub fn line(&mut self) -> io::Result<Option<String>> {
        loop {
            match self.editor.readline(&self.prompt) {
                Ok(line) => {
                    // It cannot fail for a history in memory.
                    let _ = self.editor.add_history_entry(&line);
                    return Ok(Some(line));
                }
                // Ctrl-C throws the line away, as in a shell.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(ReadlineError::Io(error)) => return Err(error),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Without room for it the lines are forgotten.
        self.history.iter().for_each(|path| drop(self.editor.save_history(path)));
    }
}

fn history_file(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state")))?;
    Some(state.join("throng/console-history"))
}

fn prepare(history: &Path) -> io::Result<()> {
    history.parent().map_or(Ok(()), fs::create_dir_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let said = r#"{"commands": [
            {"name": "player.kick", "role": "operate", "about": [{"name": "player", "choices": []}, {"name": "how", "choices": ["now", "politely"]}]},
            {"name": "player.list"},
            {"name": "packets", "arguments": "[--by-world]", "about": []},
            {"name": "evil\u001b[2J"}
        ]}"#;
        serde_json::from_str(said).unwrap()
    }

    #[track_caller]
    fn check(line: &str, start: usize, expect: &[&str]) {
        assert_eq!(known().completions(line), (start, expect.to_vec()), "{line:?}");
    }

    #[test]
    fn the_last_word_of_a_line_is_completed() {
        check("", 0, &["player.kick", "player.list", "packets", "help"]);
        check("pla", 0, &["player.kick", "player.list"]);
        check("player.k", 0, &["player.kick"]);
        check("player.kick ", 12, &[]);
        check("player.kick 7 ", 14, &["now", "politely"]);
        check("player.kick 7 p", 14, &["politely"]);
        check("player.kick 7 now x", 18, &[]);
        check("help pa", 5, &["packets"]);
        check("nonsense x", 9, &[]);
        check("é\u{a0}p", 4, &[]);
        check("ev", 0, &[]);
    }

    #[test]
    fn a_server_that_says_nothing_that_is_known_is_completed_with_nothing() {
        let known: Known = serde_json::from_str(r#"{"greeting": "hello"}"#).unwrap();
        assert_eq!(known.completions("h"), (0, vec!["help"]));
    }

    #[test]
    fn lines_are_kept_where_the_user_keeps_state() {
        let file = |variables: &[(&str, &str)]| {
            history_file(|name| variables.iter().find(|known| known.0 == name).map(|known| known.1.to_owned()))
        };
        let expect = |path: &str| Some(PathBuf::from(path));
        assert_eq!(file(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]), expect("/s/throng/console-history"));
        assert_eq!(file(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]), expect("/h/.local/state/throng/console-history"));
        assert_eq!(file(&[]), None);
    }
}
