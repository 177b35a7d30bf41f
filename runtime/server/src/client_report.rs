//! Client report: what each client takes of the server, so that an operator sees who takes most.
//!
//! Worlds count what their clients send, ask for and are sent. Each world gives it up once a second, to the worker that
//! ticks it; the frame thread gathers the workers'. The time to open and to tell a client is an estimate: workers time
//! some batches of clients, and a client has as large a part of that time as of what was opened and told
//! ([`line_units`]). What it costs its world's systems is no time but work, by the prices of its messages
//! ([`ClientInput::price`](throng_world::prelude::ClientInput::price)).
//!
//! Cost: some 20 ns per client and second on the workers, where a world of 3,000 has them all in one tick; a copy of 90
//! bytes for each on the frame thread. Rows are put in order and named where they are read.

use serde::Serialize;
use throng_metrics::LabelledGauges;
use throng_platform::time::Nanos;
use throng_world::{
    client_cost::{ClientCost, Spent, line_units},
    ids::{WorldId, WorldKindId},
};

/// Of each figure as many clients are told as take most.
const TOLD_MAX: usize = 32;

/// One client, in the second that its world told of last.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClientRow {
    /// As its connect token says.
    pub client_id: u64,
    /// The world's kind and number, such as `hub 0`.
    pub world: String,
    /// Estimated time to open what it sends and to write what it is sent, in us per second.
    pub line_us_per_s: f64,
    /// Work that its messages ask of its world, in units of what an ordinary input costs.
    pub work_per_s: f64,
    pub messages_per_s: f64,
    /// Messages that were refused because it sends more than its allowance.
    pub refused_per_s: f64,
    pub packets_in_per_s: f64,
    pub bytes_in_per_s: f64,
    pub packets_out_per_s: f64,
    pub bytes_out_per_s: f64,
}

/// Name, help, and where the figure is.
type Figure = (&'static str, &'static str, fn(&ClientRow) -> f64);

/// What clients are compared by.
pub(crate) const FIGURES: [Figure; 6] = [
    (
        "client.line_us_per_s_max",
        "Estimated time to open and to tell the client that takes most of it, in us per second",
        |row| row.line_us_per_s,
    ),
    (
        "client.work_per_s_max",
        "Work that the client asks for that asks for most, by the prices of its messages",
        |row| row.work_per_s,
    ),
    ("client.messages_per_s_max", "Messages of the client that sends most, per second", |row| row.messages_per_s),
    ("client.refused_per_s_max", "Messages refused of the client that is refused most, per second", |row| {
        row.refused_per_s
    }),
    ("client.bytes_in_per_s_max", "Bytes of the client that sends most, per second", |row| row.bytes_in_per_s),
    ("client.bytes_out_per_s_max", "Bytes to the client that is sent most, per second", |row| row.bytes_out_per_s),
];

/// What a worker's worlds have told of their clients since the frame thread last took it.
#[derive(Debug)]
pub(crate) struct ClientCosts {
    rows: Vec<Row>,
    line_time: LineTime,
}

type Row = (WorldId, WorldKindId, ClientCost);

impl ClientCosts {
    /// Room for so many clients; what more are told of is left out, since it is a worker's tick that tells.
    pub fn new(clients_max: usize) -> Self {
        Self { rows: Vec::with_capacity(clients_max), line_time: LineTime::default() }
    }

    pub fn add(&mut self, world: WorldId, kind: WorldKindId, cost: ClientCost) {
        if self.rows.len() < self.rows.capacity() {
            self.rows.push((world, kind, cost));
        }
    }

    /// It took so long to open, or to tell, so many units.
    pub fn add_time(&mut self, is_opening: bool, units: u64, took: Nanos) {
        let timed = if is_opening { &mut self.line_time.opening } else { &mut self.line_time.telling };
        timed.units += units;
        timed.took_ns += took.0;
    }
}

/// What was timed of the work for clients.
#[derive(Debug, Clone, Copy, Default)]
struct LineTime {
    opening: Timed,
    telling: Timed,
}

#[derive(Debug, Clone, Copy, Default)]
struct Timed {
    units: u64,
    took_ns: u64,
}

impl Timed {
    fn add(&mut self, other: Self) {
        self.units += other.units;
        self.took_ns += other.took_ns;
    }

    fn ns_of(&self, units: u64) -> f64 {
        self.took_ns as f64 / self.units.max(1) as f64 * units as f64
    }
}

/// All clients of the last second, without any text.
#[derive(Debug, Default)]
pub(crate) struct ClientsCounted {
    rows: Vec<Row>,
    line_time: LineTime,
}

impl ClientsCounted {
    /// With room for so many, so that a worker that finishes meanwhile does not wait for more to be found.
    pub fn for_clients(count: usize) -> Self {
        Self { rows: Vec::with_capacity(count), line_time: LineTime::default() }
    }

    /// Takes what a worker was told; the worker keeps its memory.
    pub fn absorb(&mut self, costs: &mut ClientCosts) {
        self.rows.append(&mut costs.rows);
        let LineTime { opening, telling } = std::mem::take(&mut costs.line_time);
        self.line_time.opening.add(opening);
        self.line_time.telling.add(telling);
    }

    /// Those who take most of anything, who asks for most work first; `name` gives the names of kinds of worlds.
    pub fn rows(&self, name: impl Fn(WorldKindId) -> String) -> Vec<ClientRow> {
        // Worlds are named when it is known who is told.
        let mut rows: Vec<_> = self.rows.iter().map(|row| self.told(row)).collect();
        let mut is_told = vec![false; rows.len()];
        let mut order: Vec<_> = (0..rows.len()).collect();
        for (_, _, figure) in FIGURES {
            let by_figure = |a: &usize, b: &usize| figure(&rows[*b]).total_cmp(&figure(&rows[*a])).then(a.cmp(b));
            order.sort_by(by_figure);
            let most = order.iter().take(TOLD_MAX).filter(|&&index| figure(&rows[index]) > 0.0);
            most.for_each(|&index| is_told[index] = true);
        }
        for ((row, (world, kind, _)), is_told) in rows.iter_mut().zip(&self.rows).zip(&is_told) {
            if *is_told {
                row.world = format!("{} {world}", name(*kind));
            }
        }
        let mut told = is_told.into_iter();
        rows.retain(|_| told.next() == Some(true));
        // Equal ones by their id, so that the order does not jump from second to second.
        rows.sort_by(|a, b| b.work_per_s.total_cmp(&a.work_per_s).then_with(|| a.client_id.cmp(&b.client_id)));
        rows
    }

    /// Without its world's name.
    fn told(&self, (_, _, cost): &Row) -> ClientRow {
        let ClientCost { client_id, elapsed, spent, .. } = cost;
        let Spent { packets_in, bytes_in, messages, work, refused, packets_out, bytes_out } = *spent;
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let per_s = |count: u64| count as f64 / seconds;
        let line_ns = self.line_time.opening.ns_of(line_units(packets_in, bytes_in))
            + self.line_time.telling.ns_of(line_units(packets_out, bytes_out));
        ClientRow {
            client_id: client_id.0,
            world: String::new(),
            line_us_per_s: line_ns / 1e3 / seconds,
            work_per_s: per_s(work),
            messages_per_s: per_s(messages),
            refused_per_s: per_s(refused),
            packets_in_per_s: per_s(packets_in),
            bytes_in_per_s: per_s(bytes_in),
            packets_out_per_s: per_s(packets_out),
            bytes_out_per_s: per_s(bytes_out),
        }
    }
}

/// The most of each figure; without names, since players come and go and a series for each would stay.
pub(crate) fn gauges(rows: &[ClientRow]) -> Vec<LabelledGauges> {
    let most = |read: fn(&ClientRow) -> f64| rows.iter().map(read).fold(0.0, f64::max);
    let gauge =
        |&(name, help, read): &Figure| LabelledGauges { name, help, keys: &[], rows: vec![(Vec::new(), most(read))] };
    FIGURES.iter().map(gauge).collect()
}

#[cfg(test)]
mod tests {
    use throng_net::protocol::ClientId;

    use super::*;

    fn cost(client: u32, elapsed_s: u64, spent: Spent) -> ClientCost {
        ClientCost { client_id: ClientId(client.into()), elapsed: Nanos::from_secs(elapsed_s), spent }
    }

    fn counted(costs: &mut ClientCosts) -> ClientsCounted {
        let mut counted = ClientsCounted::default();
        counted.absorb(costs);
        counted
    }

    #[test]
    fn whoever_takes_most_of_anything_is_told_and_no_crowd() {
        let mut costs = ClientCosts::new(1_000);
        for client in 0..500 {
            let spent = Spent { messages: 20, work: 20, bytes_in: 1_000, ..Spent::default() };
            costs.add(WorldId::new(3, 0), WorldKindId(0), cost(client, 1, spent));
        }
        let dear = Spent { messages: 20, work: 900, ..Spent::default() };
        costs.add(WorldId::new(4, 0), WorldKindId(0), cost(600, 1, dear));
        let refused = Spent { messages: 3_000, work: 20, refused: 2_980, ..Spent::default() };
        costs.add(WorldId::new(5, 0), WorldKindId(0), cost(700, 2, refused));
        let rows = counted(&mut costs).rows(|_| "hub".into());
        assert!(rows.len() <= FIGURES.len() * TOLD_MAX, "{}", rows.len());
        assert_eq!((rows[0].client_id, rows[0].work_per_s, rows[0].world.as_str()), (600, 900.0, "hub 4"));
        let flooder = rows.iter().find(|row| row.client_id == 700).expect("it is refused most");
        assert_eq!((flooder.refused_per_s, flooder.work_per_s), (1_490.0, 10.0));
        assert!(counted(&mut costs).rows(|_| "hub".into()).is_empty(), "it is told once");
    }

    #[test]
    fn the_time_that_was_measured_is_spread_by_what_was_opened_and_told() {
        let mut costs = ClientCosts::new(2);
        let [small, large] = [(10, 1_000), (30, 3_000)];
        let units = |(packets, bytes): (u64, u64)| line_units(packets, bytes);
        // One tick in eight was timed: what counts is the time for each unit.
        costs.add_time(true, (units(small) + units(large)) / 8, Nanos(80_000 / 8));
        costs.add_time(false, 0, Nanos(500));
        for (client, (packets, bytes)) in (0..).zip([small, large, large]) {
            let spent = Spent { packets_in: packets, bytes_in: bytes, ..Spent::default() };
            costs.add(WorldId::new(0, 0), WorldKindId(0), cost(client, 1, spent));
        }
        let rows = counted(&mut costs).rows(|_| "hub".into());
        let us: Vec<_> = rows.iter().map(|row| (row.client_id, row.line_us_per_s.round())).collect();
        assert_eq!(us, [(0, 20.0), (1, 60.0)], "the third found no room");
    }

    #[test]
    fn metrics_say_the_most_of_each_figure() {
        let mut costs = ClientCosts::new(10);
        for (client, work) in [(1, 5), (2, 70), (3, 6)] {
            costs.add(WorldId::new(0, 0), WorldKindId(0), cost(client, 1, Spent { work, ..Spent::default() }));
        }
        let rows = counted(&mut costs).rows(|_| "hub".into());
        let snapshot = throng_metrics::Registry::with_prefix("throng").snapshot();
        let text =
            snapshot.to_prometheus_text_with(throng_metrics::Beside { gauges: gauges(&rows), ..Default::default() });
        assert!(text.lines().any(|line| line == "throng_client_work_per_s_max 70.0"), "{text}");
    }
}
