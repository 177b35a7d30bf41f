//! `bots --compare`: the load profile of recorded people against that of recorded bots.
//!
//! Exit status 0: nothing differs by more than a tenth, as far as was played. 1: something does, and is named. 2: a recording cannot
//! be read, or not all of it replayed, or is of another game; or nothing is named, and so little was played that most cannot be said.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use throng::{
    recording::{About, RecordingFiles},
    replay::ReplayGame,
    text_table::{Cell, Column, TextTable},
};
use throng_game::Game;
use throng_history::Machine;
use throng_likeness::{
    Comparison, Fit, PlacesRow, Profiled, Row, Verdict as Found, Who, profile_in_turns, profile_sides,
};

use crate::{
    executable::Executable,
    outcome::{CommandResult, NOTHING_SAID, Verdict},
    output::{Reader, remark, say},
    recorded_game::{ReplayRecorder, game_of},
};

/// Measures that are told in words.
const LINES_MAX: usize = 20;

#[derive(Args)]
pub struct CompareArguments {
    /// Hold the load profile of a recording of people against that of one of bots: packets, what the game counts, times of
    /// subsystems, worlds and places. With one recording, the people in it who came by a browser against all others. Plays
    /// nothing.
    #[arg(long, value_name = "RECORDING", num_args = 1..=2, conflicts_with_all = ["connect", "inputs"])]
    compare: Vec<PathBuf>,
    /// Whom of the first recording: all, browser, others, or client ids as 7 or 1-500.
    #[arg(long, value_name = "WHO", requires = "compare")]
    players_a: Option<Who>,
    /// Whom of the second recording, or of the same.
    #[arg(long, value_name = "WHO", requires = "compare")]
    players_b: Option<Who>,
    /// Say what the bots of the second side are to be told to be like the players of the first.
    #[arg(long, requires = "compare")]
    fit: bool,
}

/// A recording with the game that it is of.
struct Opened<'p> {
    path: &'p Path,
    recording: RecordingFiles,
    game: ReplayGame,
}

impl<'p> Opened<'p> {
    fn new(path: &'p Path, executable: Executable, games: &[Game]) -> Result<Self, Box<dyn std::error::Error>> {
        let recording = RecordingFiles::open(path)?;
        let game = game_of(&recording, path, ReplayRecorder::Off, executable, games)?.game;
        game.check(recording.about()).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path, recording, game })
    }

    /// What it is called in what is said of it.
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn about(&self) -> &About {
        self.recording.about()
    }
}

impl CompareArguments {
    pub fn is_wanted(&self) -> bool {
        !self.compare.is_empty()
    }

    /// The mistake of one who says whom to compare and not where they are recorded. clap lets that pass beside `--connect`,
    /// which it takes for the reason why `--compare` is not there.
    pub fn check_unused(&self) -> Result<(), &'static str> {
        let is_used = self.players_a.is_some() || self.players_b.is_some() || self.fit;
        if is_used { Err("--players-a, --players-b and --fit are of --compare: name the recordings") } else { Ok(()) }
    }

    /// As a table with what differs in words, or as JSON.
    pub fn run(&self, reader: Reader, executable: Executable, games: &[Game]) -> CommandResult {
        let opened = self.compare.iter().map(|path| Opened::new(path, executable, games));
        let opened = opened.collect::<Result<Vec<_>, _>>()?;
        let (comparison, about_game) = match &opened[..] {
            [one] => (self.of_one(one)?, &one.about().game),
            [a, b, ..] => (self.of_two(a, b)?, &a.about().game),
            [] => return Err("--compare: name a recording".into()),
        };
        let fits = self.fit.then(|| {
            let options = options(about_game, games);
            (comparison.fit(options.iter().copied()), comparison.unfitted(options))
        });
        let too_little = comparison.too_little();
        if reader != Reader::Person {
            let mut told = serde_json::to_value(&comparison)?;
            let (fit, unfitted) = fits.unzip();
            (told["fit"], told["fit_unclear"]) = (json!(fit), json!(unfitted));
            told["too_little"] = json!(too_little);
            told["machine"] = serde_json::to_value(Machine::here())?;
            say(told)?;
        } else {
            tell(&comparison)?;
            fits.iter().try_for_each(|(fits, unclear)| tell_fits(fits, unclear))?;
        }
        if let Some(too_little) = &too_little {
            remark(format_args!("note {too_little}; record for longer, or more players"));
        }
        if !comparison.lacking.is_empty() {
            let lacking: Vec<String> = comparison.lacking.iter().map(ToString::to_string).collect();
            return Err(lacking.join("; ").into());
        }
        Ok(match too_little {
            _ if !comparison.is_alike() => Verdict::Failed,
            Some(_) => Verdict::Status(NOTHING_SAID),
            None => Verdict::Fine,
        })
    }

    fn of_one(&self, opened: &Opened<'_>) -> Result<Comparison, Box<dyn std::error::Error>> {
        let sides = [self.players_a.unwrap_or(Who::Browser), self.players_b.unwrap_or(Who::Others)];
        let profiled = profile_sides(&opened.game, &opened.recording, sides)?;
        check_played(&opened.name(), &sides, &profiled)?;
        Ok(Comparison::of_sides(&opened.name(), &profiled))
    }

    fn of_two(&self, a: &Opened<'_>, b: &Opened<'_>) -> Result<Comparison, Box<dyn std::error::Error>> {
        let (about_a, about_b) = (a.about(), b.about());
        if about_a.game != about_b.game {
            let (path_a, path_b) = (a.path.display(), b.path.display());
            let (game_a, game_b) = (&about_a.game, &about_b.game);
            return Err(format!(
                "{path_a} is a recording of {game_a}, and {path_b} one of {game_b}: give two of one game"
            )
            .into());
        }
        let who = [self.players_a, self.players_b].map(|who| who.unwrap_or(Who::All));
        let profiled = profile_in_turns((&a.game, &a.recording, who[0]), (&b.game, &b.recording, who[1]))?;
        for ((opened, who), profiled) in [a, b].into_iter().zip(who).zip(&profiled) {
            check_played(&opened.name(), &[who], profiled)?;
        }
        let [profiled_a, profiled_b] = &profiled;
        Ok(Comparison::of_recordings([(&a.name(), profiled_a), (&b.name(), profiled_b)]))
    }
}

/// Options of the game's bots, with what they do more of.
fn options<'g>(game: &str, games: &'g [Game]) -> Vec<(&'g str, &'g str)> {
    let game = games.iter().find(|known| known.name() == game);
    let options = game.map_or(&[][..], Game::options).iter();
    options.filter_map(|option| Some((option.name(), option.fitted_measure()?))).collect()
}

fn tell_fits(fits: &[Fit], unclear: &[&str]) -> std::io::Result<()> {
    for Fit { option, measure, factor, value } in fits {
        match (value, factor) {
            (Some(value), _) => say(format_args!("fit: --{option} {value:.0}, for {measure}"))?,
            (None, Some(factor)) => say(format_args!("fit: --{option} {factor:.2} times what it was, for {measure}"))?,
            (None, None) => say(format_args!("fit: --{option} more than none, for {measure}"))?,
        }
    }
    if !unclear.is_empty() {
        say(format_args!("fit: of {} too little was played to say what the bots are to be told", unclear.join(", ")))?;
    } else if fits.is_empty() {
        say("fit: nothing that an option of the bots would change differs")?;
    }
    Ok(())
}

/// # Errors
/// If there is nothing to compare.
fn check_played<const SIDES: usize>(name: &str, who: &[Who; SIDES], profiled: &Profiled<SIDES>) -> Result<(), String> {
    let nobody = who.iter().zip(&profiled.profiles).find(|(_, profile)| profile.players.is_empty());
    let Some((who, _)) = nobody else { return Ok(()) };
    // There is no comparison that would hold them.
    profiled.remarks(name).iter().for_each(remark);
    let flags = "say whom with --players-a and --players-b: all, browser, others, or client ids";
    Err(format!("{name}: nobody of the players `{who}` plays in it; {flags}"))
}

fn tell(comparison: &Comparison) -> std::io::Result<()> {
    say(table(&comparison.rows).text())?;
    if let Some(places) = &comparison.places {
        tell_places(places)?;
    }
    for (name, side) in [("a", &comparison.a), ("b", &comparison.b)] {
        say(format_args!(
            "{name}: {} players, {:.0} s played, {:.1} at a time",
            side.players, side.played_s, side.players_at_a_time
        ))?;
    }
    comparison.remarks.iter().for_each(remark);
    let differ: Vec<&Row> = comparison.rows.iter().filter(|row| row.verdict.is_named()).collect();
    for row in differ.iter().take(LINES_MAX) {
        say(in_words(row))?;
    }
    if differ.len() > LINES_MAX {
        say(format_args!("and {} more, which the table has", differ.len() - LINES_MAX))?;
    }
    let verdicts: Vec<Found> = comparison.verdicts().collect();
    let count = |verdict: Found| verdicts.iter().filter(|found| **found == verdict).count();
    let (within, unclear) = (count(Found::Within), count(Found::Unclear));
    let (named, all) = (comparison.named.len(), verdicts.len());
    say(format_args!(
        "{named} of {all} measures differ by more than 10 %, {within} are within 10 %, of {unclear} too little was played to say"
    ))
}

fn in_words(row: &Row) -> String {
    let (name, verdict) = (&row.measure.name, row.verdict.name());
    match (row.difference_percent, row.low_percent, row.high_percent) {
        (Some(percent), Some(low), Some(high)) => {
            format!("{name} is {verdict} in b by {percent:+.1} % ({low:+.1} to {high:+.1})")
        }
        (Some(percent), Some(low), None) => format!("{name} is {verdict} in b by {percent:+.1} % ({low:+.1} or more)"),
        _ => format!("{name} is {verdict} in b: one of the two has none"),
    }
}

fn tell_places(places: &PlacesRow) -> std::io::Result<()> {
    say(format_args!(
        "places: {:.1} % of the time elsewhere, of which chance makes {:.1} %: {}",
        100.0 * places.elsewhere,
        100.0 * places.by_chance,
        places.verdict.name()
    ))?;
    if !places.verdict.is_named() {
        return Ok(());
    }
    let mut table = TextTable::new([
        Column::text("kind", "kind"),
        Column::integer("x m", "x_m"),
        Column::integer("z m", "z_m"),
        Column::float("a %", "a_percent", 2),
        Column::float("b %", "b_percent", 2),
    ]);
    for place in &places.most {
        table.row(&[
            Cell::Text(&place.cell.kind),
            Cell::Integer(place.cell.x_m.into()),
            Cell::Integer(place.cell.z_m.into()),
            Cell::Float(100.0 * place.a),
            Cell::Float(100.0 * place.b),
        ]);
    }
    say(table.text())
}

fn table(rows: &[Row]) -> TextTable {
    let mut table = TextTable::new([
        Column::text("measure", "measure"),
        Column::text("per", "per"),
        Column::float("a", "a", 4),
        Column::float("b", "b", 4),
        Column::float("differs %", "difference_percent", 1),
        Column::float("low %", "low_percent", 1),
        Column::float("high %", "high_percent", 1),
        Column::text("verdict", "verdict"),
    ]);
    let cell = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Float);
    for row in rows {
        table.row(&[
            Cell::Text(&row.measure.name),
            Cell::Text(row.measure.sort.unit()),
            cell(row.a),
            cell(row.b),
            cell(row.difference_percent),
            cell(row.low_percent),
            cell(row.high_percent),
            Cell::Text(row.verdict.name()),
        ]);
    }
    table
}
