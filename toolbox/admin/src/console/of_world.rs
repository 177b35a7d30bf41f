//! `world.show`: one world, looked into: what its scopes take, what it is made of, and its clients' lines.
//!
//! Scopes come from what the recorder remembers of the last second, and need no answer from anybody; a world that hangs
//! shows them. The rest the world says itself, in its next tick. One that sleeps is not woken for it.

use std::time::Duration;

use serde::Serialize;
use throng::{
    console::{Cell, ClientLine, Column, EntitySort, TextTable, world},
    ids::WorldId,
    lifecycle::WorldError,
    profiler::world_scopes::{WorldScope, WorldScopes, of_world},
    questions::WorldRow,
    server::ServerControl,
};

use super::{Call, Console, Outcome, of_server::state_of};
use crate::access::Role;

/// For the frame's thread and for the world.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// What its scopes are told of.
const SPAN: Duration = Duration::from_secs(1);
/// Rows of each list at most; the costliest scopes, the largest sorts of entities, the first clients.
const SCOPES_MAX: usize = 200;
const SORTS_MAX: usize = 60;
const CLIENTS_MAX: usize = 500;
/// Components that a row of the text names.
const NAME_CHARACTERS_MAX: u32 = 60;

/// What a world says of itself.
struct Said {
    ticks_done: u32,
    clients: Vec<ClientLine>,
    sorts: Vec<EntitySort>,
}

impl Console {
    pub(super) fn with_world_show(self, control: ServerControl) -> Self {
        let help = "one world: what its scopes take, its entities, and its clients' latency, loss and budgets";
        self.with_arguments("world.show", Role::Observe, (world("world"),), help, move |call, (id,)| {
            show(call, &control, id)
        })
    }
}

fn show(call: &Call<'_>, control: &ServerControl, id: WorldId) -> Outcome {
    let rows = control.worlds().wait(ANSWER_WITHIN);
    // With the frame's thread stuck nobody knows whether it is there; what it did is known all the same.
    let row = match rows {
        Some(Ok(rows)) => {
            let found = rows.into_iter().find(|row| row.id == id);
            Some(found.ok_or_else(|| WorldError::NoSuchWorld(id).to_string())?)
        }
        Some(Err(error)) => return Err(error.to_string()),
        None => None,
    };
    let said = match &row {
        Some(row) if !row.is_dormant => {
            let look = control.look_at_world(id, |world| Said {
                ticks_done: world.ticks_done(),
                clients: world.client_lines(),
                sorts: world.entity_sorts(),
            });
            look.wait(ANSWER_WITHIN).transpose().map_err(|error| error.to_string())?
        }
        _ => None,
    };
    let mut scopes = of_world(id.number(), SPAN);
    scopes.scopes.truncate(SCOPES_MAX);
    let state = match (&row, &said) {
        (None, _) => "the server's frame has not answered".into(),
        (Some(row), None) if !row.is_dormant => "has not answered".into(),
        (Some(row), _) => state_of(row),
    };
    Ok(call.answer(
        || text(id, &state, &scopes, said.as_ref()),
        || object(id, &state, row.as_ref(), &scopes, said.as_ref()),
    ))
}

fn text(id: WorldId, state: &str, scopes: &WorldScopes, said: Option<&Said>) -> String {
    let ticks = said.map_or_else(String::new, |said| format!(", {} ticks done", said.ticks_done));
    let mut told = format!("world {id}: {state}{ticks}\n\n");
    let mut table = TextTable::new([
        Column::text("scope", "scope"),
        Column::integer("times", "count"),
        Column::duration("by itself", "own_ns"),
        Column::duration("longest", "longest_ns"),
    ]);
    for WorldScope { name, count, own_ns, longest_ns, .. } in &scopes.scopes {
        table.row(&[
            Cell::Text(name),
            Cell::Integer(count.cast_signed()),
            Cell::Duration(*own_ns),
            Cell::Duration(*longest_ns),
        ]);
    }
    told += table.text();
    let Some(said) = said else { return told };
    let mut table = TextTable::new([
        Column::integer("entities", "count"),
        Column::text_at_most("told to clients", "replicated", NAME_CHARACTERS_MAX),
        Column::text_at_most("beside that", "others", NAME_CHARACTERS_MAX),
    ]);
    for EntitySort { count, replicated, others } in said.sorts.iter().take(SORTS_MAX) {
        table.row(&[Cell::Integer(*count as i64), Cell::Text(&replicated.join(", ")), Cell::Text(&others.join(", "))]);
    }
    told += "\n";
    told += table.text();
    let mut table = TextTable::new([
        Column::text("client", "client"),
        Column::float("rtt ms", "rtt_ms", 1),
        Column::float("lost %", "lost_percent", 2),
        Column::float("budget kB/s", "budget_kb_per_s", 1),
        Column::integer("packets", "packets_sent"),
    ]);
    for line in said.clients.iter().take(CLIENTS_MAX) {
        let budget = line.budget_bytes_per_s.map_or(Cell::Empty, |budget| Cell::Float(f64::from(budget) / 1e3));
        table.row(&[
            Cell::Text(&line.client_id.0.to_string()),
            Cell::Float(line.round_trip.as_millis_f64()),
            Cell::Float(100.0 * lost_share(line)),
            budget,
            Cell::Integer(line.packets_sent.cast_signed()),
        ]);
    }
    told += "\n";
    told + table.text()
}

/// Of packets whose fate is known.
fn lost_share(line: &ClientLine) -> f64 {
    let known = line.packets_acked + line.packets_lost;
    if known == 0 { 0.0 } else { line.packets_lost as f64 / known as f64 }
}

/// A world as an object. A page asks once a second, so it is written from where it lies.
#[derive(Serialize)]
struct Object<'a> {
    world: String,
    kind: Option<&'a str>,
    rate_hz: Option<u16>,
    players: Option<usize>,
    state: &'a str,
    ticks_done: Option<u32>,
    span_s: f64,
    scopes: Vec<Scope<'a>>,
    entities: Option<Vec<Sort<'a>>>,
    clients: Option<Vec<Client>>,
    clients_left_out: Option<usize>,
}

#[derive(Serialize)]
struct Scope<'a> {
    name: &'a str,
    subsystem: &'a str,
    count: u64,
    own_ns: u64,
    whole_ns: u64,
    longest_ns: u64,
}

#[derive(Serialize)]
struct Sort<'a> {
    count: usize,
    replicated: &'a [&'static str],
    others: &'a [String],
}

#[derive(Serialize)]
struct Client {
    client: String,
    rtt_ms: f64,
    lost_share: f64,
    usual_loss: f32,
    budget_bytes_per_s: Option<f32>,
    packets_sent: u64,
    bytes_sent: u64,
    bytes_received: u64,
}

fn object<'a>(
    id: WorldId,
    state: &'a str,
    row: Option<&'a WorldRow>,
    scopes: &'a WorldScopes,
    said: Option<&'a Said>,
) -> Object<'a> {
    let scope = |&WorldScope { name, subsystem, count, own_ns, whole_ns, longest_ns }: &WorldScope| Scope {
        name,
        subsystem,
        count,
        own_ns,
        whole_ns,
        longest_ns,
    };
    let sort = |sort: &'a EntitySort| Sort { count: sort.count, replicated: &sort.replicated, others: &sort.others };
    let client = |line: &ClientLine| Client {
        client: line.client_id.0.to_string(),
        rtt_ms: line.round_trip.as_millis_f64(),
        lost_share: lost_share(line),
        usual_loss: line.usual_loss,
        budget_bytes_per_s: line.budget_bytes_per_s,
        packets_sent: line.packets_sent,
        bytes_sent: line.bytes_sent,
        bytes_received: line.bytes_received,
    };
    Object {
        world: id.to_string(),
        kind: row.map(|row| &*row.kind),
        rate_hz: row.map(|row| row.rate.0),
        players: row.map(|row| row.players),
        state,
        ticks_done: said.map(|said| said.ticks_done),
        span_s: scopes.span.as_secs_f64(),
        scopes: scopes.scopes.iter().map(scope).collect(),
        entities: said.map(|said| said.sorts.iter().take(SORTS_MAX).map(sort).collect()),
        clients: said.map(|said| said.clients.iter().take(CLIENTS_MAX).map(client).collect()),
        clients_left_out: said.map(|said| said.clients.len().saturating_sub(CLIENTS_MAX)),
    }
}
