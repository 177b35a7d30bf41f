//! Commands of a server: its worlds, its players, its tunables, and what its game's worlds carry out.
//!
//! What the frame's thread or a world has to answer is waited for on the asker's thread, for [`ANSWER_WITHIN`]; then the
//! answer says who is silent.

use std::{borrow::Cow, time::Duration};

use serde_json::json;
use throng::{
    Server,
    console::{Argument, ArgumentAbout, Cell, Column, PlayerRow, TextTable, optional, player, world},
    lifecycle::Pending,
    questions::{HostedCommand, WorldRow},
    server::ServerControl,
    tuning::{TunableRow, TunedChange},
};

use super::{Call, Command, Console, Outcome, help};
use crate::access::Role;

/// For the frame's thread and for worlds. They answer within a tick; `throng console` waits for twice as long.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// For the disk. `throng console` waits for longer.
const SAVED_WITHIN: Duration = Duration::from_secs(8);
/// Names longer than this are cut, so that one row stays one line.
const NAME_CHARACTERS_MAX: u32 = 24;

impl Console {
    /// Adds what can be asked of a server, and what its kinds of worlds carry out: after these are added to it.
    ///
    /// # Panics
    /// When a kind of world has a command of a name that is taken.
    #[must_use]
    pub fn with_server(self, server: &Server) -> Self {
        let control = server.control();
        let console = self.with_worlds(control.clone()).with_world_show(control.clone());
        let console = console.with_players(control.clone()).with_budgets(&control).with_perf(&control);
        let console = console.with_saves(control.clone()).with_tunables(control.clone()).with_recordings(&control);
        server.hosted_commands().iter().fold(console, |console, hosted| console.with_hosted(control.clone(), hosted))
    }

    fn with_worlds(self, control: ServerControl) -> Self {
        let help = "all worlds: kind, rate, players, what their next tick may cost, ticks missed";
        self.with_arguments("world.list", Role::Observe, (), help, move |call, ()| world_list(call, &control))
    }

    fn with_players(self, control: ServerControl) -> Self {
        let also = control.clone();
        self.with_arguments("player.list", Role::Observe, (), "who plays, and in which world", move |call, ()| {
            player_list(call, &control)
        })
        .with_arguments(
            "player.pos",
            Role::Observe,
            optional(player("player")),
            "where players stand, or one of them",
            move |call, player| player_pos(call, &also, player.map(|player| player.0)),
        )
    }

    fn with_saves(self, control: ServerControl) -> Self {
        let [also, admit] = [(); 2].map(|()| control.clone());
        self.with_arguments(
            "player.admit",
            Role::Operate,
            (player("player"),),
            "lets a player in whom a save was made without, with what was saved of them before",
            move |call, (player,)| {
                let silent = || format!("the server has not answered within {} s", ANSWER_WITHIN.as_secs());
                let answer = admit.admit_player(player).wait(ANSWER_WITHIN).ok_or_else(silent)?;
                answer.map_err(|error| error.to_string())?;
                let mut table = TextTable::new([Column::text("player", "player"), Column::text("is let in", "let_in")]);
                table.row(&[Cell::Text(&player.0.to_string()), Cell::Text("when they log in next")]);
                Ok(call.table(table))
            },
        )
        .with_arguments(
            "save.now",
            Role::Operate,
            (),
            "saves all worlds and players, and answers when they are on disk",
            move |call, ()| match control.save_now().wait(SAVED_WITHIN) {
                Some(Ok(saved)) if !saved.worlds_missing.is_empty() => {
                    let worlds: Vec<String> = saved.worlds_missing.iter().map(u32::to_string).collect();
                    Err(format!(
                        "all is on disk but these worlds, which hang, did not answer in time, cannot be saved or panicked \
                         meanwhile: {}; they are as at the save before",
                        worlds.join(", ")
                    ))
                }
                Some(Ok(saved)) => {
                    let mut table =
                        TextTable::new([Column::text("saved", "saved"), Column::integer("commits", "commits")]);
                    table.row(&[Cell::Text("all is on disk"), Cell::Integer(saved.commits as i64)]);
                    Ok(call.table(table))
                }
                Some(Err(error)) => Err(error.to_string()),
                None => Err(format!(
                    "not on disk after {} s, and still wanted: `saves.status` says how saving stands",
                    SAVED_WITHIN.as_secs()
                )),
            },
        )
        .with_arguments(
            "saves.status",
            Role::Observe,
            (),
            "whether saves reach the disk, and what waits",
            move |call, ()| saves_status(call, &also),
        )
    }

    fn with_tunables(self, control: ServerControl) -> Self {
        let names: Vec<_> = control.tunables().iter().map(|row| row.name).collect();
        let name = || TunableName { names: names.clone() };
        let [list, get, set, reload] = [(); 4].map(|()| control.clone());
        self.with_arguments("tune.list", Role::Observe, (), "what can be changed while worlds run", move |call, ()| {
            Ok(tunables(call, &list.tunables()))
        })
        .with_arguments("tune.get", Role::Observe, (name(),), "one of these values", move |call, (name,)| {
            let rows = get.tunables().into_iter().filter(|row| row.name == name).collect::<Vec<_>>();
            Ok(tunables(call, &rows))
        })
        .with_arguments("tune.set", Role::Operate, (name(), NewValue), "changes one of them", move |call, given| {
            let (name, value) = given;
            let (change, pending) = set.tune(name, value, call.who).map_err(|error| error.to_string())?;
            Ok(changes(call, &[change], &pending))
        })
        .with_arguments(
            "settings.reload",
            Role::Operate,
            (),
            "reads [game] of the settings again: what can be changed live is, all else takes a restart",
            move |call, ()| {
                let reloaded = reload.reload_tunables(call.who).map_err(|error| error.to_string())?;
                let (_, changed, pending) = reloaded;
                Ok(changes(call, &changed, &pending))
            },
        )
    }

    fn with_hosted(mut self, control: ServerControl, hosted: &HostedCommand) -> Self {
        let command = &hosted.command;
        let mut about = vec![world("world").about()];
        about.extend(command.arguments.iter().cloned());
        let (name, role, help) = (command.name, command.role, command.help);
        let hosted = hosted.clone();
        let run = move |call: &Call<'_>| {
            let Some((first, words)) = call.arguments.split_first() else {
                return Err(format!("world is missing: {}", world("world").about().may_be));
            };
            let id = world("world").read(first).map_err(|wrong| format!("world: {wrong}"))?;
            control.command(&hosted, id, words, ANSWER_WITHIN).map(|table| call.table(table))
        };
        self.add(Command { name, role, arguments: help::usage_of(&about), about, help, run: Box::new(run) });
        self
    }
}

fn saves_status(call: &Call<'_>, control: &ServerControl) -> Outcome {
    let silent = || format!("the server has not answered within {} s: its frame is stuck", ANSWER_WITHIN.as_secs());
    let status = control.saves_status().wait(ANSWER_WITHIN).ok_or_else(silent)?.map_err(|error| error.to_string())?;
    let mut table = TextTable::new([
        Column::text("store", "store"),
        Column::integer("unsaved worlds", "worlds_unsaved"),
        Column::integer("bytes waiting", "waiting_bytes"),
        Column::integer("bytes being written", "queued_bytes"),
        Column::integer("players", "leases"),
        Column::integer("commits", "commits"),
        Column::integer("newest ms", "newest_batch_ms"),
        Column::integer("longest ms", "longest_batch_ms"),
    ]);
    table.row(&[
        Cell::Text(if status.is_down { "away" } else { "well" }),
        Cell::Integer(status.worlds_unsaved as i64),
        Cell::Integer(status.waiting_bytes as i64),
        Cell::Integer(status.queued_bytes as i64),
        Cell::Integer(status.leases as i64),
        Cell::Integer(status.commits as i64),
        Cell::Integer(status.newest_batch_ms as i64),
        Cell::Integer(status.longest_batch_ms as i64),
    ]);
    Ok(call.table(table))
}

fn world_list(call: &Call<'_>, control: &ServerControl) -> Outcome {
    let silent = || format!("the server has not answered within {} s: its frame is stuck", ANSWER_WITHIN.as_secs());
    let rows = control.worlds().wait(ANSWER_WITHIN).ok_or_else(silent)?.map_err(|error| error.to_string())?;
    let mut table = TextTable::new([
        Column::text("world", "world"),
        Column::text_at_most("kind", "kind", NAME_CHARACTERS_MAX),
        Column::integer("Hz", "rate_hz"),
        Column::integer("players", "players"),
        Column::text("state", "state"),
        Column::duration("tick", "tick_ns"),
        Column::integer("missed", "ticks_missed"),
    ]);
    for row in &rows {
        table.row(&[
            Cell::Text(&row.id.to_string()),
            Cell::Text(&row.kind),
            Cell::Integer(row.rate.0.into()),
            Cell::Integer(row.players as i64),
            Cell::Text(&state_of(row)),
            Cell::Duration(row.tick_cost.0),
            Cell::Integer(row.ticks_missed as i64),
        ]);
    }
    Ok(call.table(table))
}

/// What a world is at, in a word or two.
/// As tables and pages say it.
pub(super) fn state_of(row: &WorldRow) -> Cow<'static, str> {
    match (row.hangs_for(), row.is_dormant, row.time_percent) {
        (Some(since), ..) => format!("hangs for {:.1} s", since.as_secs_f64()).into(),
        (_, true, _) => "dormant".into(),
        (_, _, 100) => "awake".into(),
        (_, _, percent) => format!("slowed to {percent} %").into(),
    }
}

fn player_list(call: &Call<'_>, control: &ServerControl) -> Outcome {
    let found = control.players(ANSWER_WITHIN)?;
    let mut table = TextTable::new([Column::text("player", "player"), Column::text("world", "world")]);
    for (world, PlayerRow { client_id, .. }) in &found.rows {
        table.row(&[Cell::Text(&client_id.0.to_string()), Cell::Text(&world.to_string())]);
    }
    Ok(with_silent(call, call.table(table), found.silent.len()))
}

fn player_pos(call: &Call<'_>, control: &ServerControl, wanted: Option<u64>) -> Outcome {
    let mut found = control.players(ANSWER_WITHIN)?;
    if let Some(wanted) = wanted {
        found.rows.retain(|(_, row)| row.client_id.0 == wanted);
        if found.rows.is_empty() {
            let unless = if found.silent.is_empty() { "" } else { ", unless in a world that has not answered" };
            return Err(format!("player: nobody is called {wanted} here{unless}; `player.list` shows who is"));
        }
    }
    let mut table = TextTable::new([
        Column::text("player", "player"),
        Column::text("world", "world"),
        Column::float("x m", "x_m", 2),
        Column::float("z m", "z_m", 2),
    ]);
    for (world, PlayerRow { client_id, place_m }) in &found.rows {
        let [x, z] = place_m.map_or([Cell::Empty; 2], |place| place.map(|metres| Cell::Float(metres.into())));
        table.row(&[Cell::Text(&client_id.0.to_string()), Cell::Text(&world.to_string()), x, z]);
    }
    Ok(with_silent(call, call.table(table), found.silent.len()))
}

/// Says of how many worlds the players are not among these. In JSON whoever asks counts them.
fn with_silent(call: &Call<'_>, mut told: String, silent: usize) -> String {
    match silent {
        0 => {}
        _ if call.as_json => {
            let end = told.pop();
            debug_assert_eq!(end, Some('}'), "an object");
            told += &format!(",\"worlds_silent\":{silent}}}");
        }
        _ => told += &format!("and {silent} worlds that have not answered within {} s\n", ANSWER_WITHIN.as_secs()),
    }
    told
}

fn tunables(call: &Call<'_>, rows: &[TunableRow]) -> String {
    let text = || {
        let mut table = TextTable::new([
            Column::text("name", "name"),
            Column::text("value", "value"),
            Column::text("default", "default"),
            Column::text("range", "range"),
            Column::text("what it is", "help"),
        ]);
        for TunableRow { name, value, default, low, high, unit, help } in rows {
            let range = format!("{low} to {high} {unit}");
            let [value, default] = [value, default].map(f64::to_string);
            table.row(&[name, &*value, &*default, range.trim_end(), help].map(Cell::Text));
        }
        table.text().to_owned()
    };
    let object = |row: &TunableRow| {
        let TunableRow { name, value, default, low, high, unit, help } = row;
        json!({ "name": name, "value": value, "default": default, "low": low, "high": high, "unit": unit, "help": help })
    };
    call.answer(text, || json!({ "rows": rows.iter().map(object).collect::<Vec<_>>() }))
}

/// What was changed, once it is on its way into all worlds.
fn changes(call: &Call<'_>, changes: &[TunedChange], pending: &Pending<()>) -> String {
    let is_in_force = matches!(pending.wait(ANSWER_WITHIN), Some(Ok(())));
    let text = || {
        let mut table = TextTable::new(["name", "old", "new", "unit"].map(|title| Column::text(title, title)));
        for TunedChange { name, unit, old, new } in changes {
            let [old, new] = [old, new].map(f64::to_string);
            table.row(&[name, &*old, &*new, unit].map(Cell::Text));
        }
        let late = "the server's frame has not taken it yet; worlds have it as soon as it does\n";
        format!("{}{}", table.text(), if is_in_force { "" } else { late })
    };
    let object = |change: &TunedChange| {
        let TunedChange { name, unit, old, new } = change;
        json!({ "name": name, "old": old, "new": new, "unit": unit })
    };
    call.answer(text, || json!({ "rows": changes.iter().map(object).collect::<Vec<_>>(), "in_force": is_in_force }))
}

/// The name of a tunable.
struct TunableName {
    names: Vec<&'static str>,
}

impl Argument for TunableName {
    type Value = &'static str;

    fn about(&self) -> ArgumentAbout {
        let (may_be, choices) = ("what `tune.list` shows".to_owned(), self.names.clone());
        ArgumentAbout { name: "name", may_be, choices, is_optional: false }
    }

    fn read(&self, word: &str) -> Result<&'static str, String> {
        let known = self.names.iter().find(|name| **name == word).copied();
        known.ok_or_else(|| match self.names[..] {
            [] => "this game has nothing that can be tuned".to_owned(),
            _ => format!("there is no {word}; it may be {}", self.names.join(", ")),
        })
    }
}

/// A number, which the tunable's own range judges.
struct NewValue;

impl Argument for NewValue {
    type Value = f64;

    fn about(&self) -> ArgumentAbout {
        let may_be = "a number in its range, which `tune.list` shows".to_owned();
        ArgumentAbout { name: "value", may_be, choices: Vec::new(), is_optional: false }
    }

    fn read(&self, word: &str) -> Result<f64, String> {
        word.parse().map_err(|_| format!("{word} is not a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_that_do_not_answer_are_told_beside_the_rows() {
        let check = |as_json: bool, told: &str, silent: usize, expect: &str| {
            let call = Call { arguments: Vec::new(), as_json, who: "" };
            assert_eq!(with_silent(&call, told.to_owned(), silent), expect);
        };
        check(false, "player\n", 0, "player\n");
        check(false, "player\n", 2, "player\nand 2 worlds that have not answered within 5 s\n");
        check(true, "{\"rows\":[]}", 0, "{\"rows\":[]}");
        check(true, "{\"rows\":[]}", 2, "{\"rows\":[],\"worlds_silent\":2}");
    }
}
