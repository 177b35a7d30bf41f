//! Bench: what small systems of plain Bevy cost a thousand small worlds, against the same work in one system.
//!
//! Twice a thousand worlds, with 20 walkers in each. Those of one style do their work in one system with one bundled
//! resource (`one_system`); those of the other do the same work in eight small systems with resources, conditions and
//! messages (`plain`). All worlds of a style tick one after the other, so that nothing of a world is in the cache when
//! its tick begins, and the styles take turns: one, the other, one, the other.
//!
//! Times are those of the thread, so what other processes take does not count. The ratio is taken within each pair of
//! turns; its median is the figure, and half of all pairs lie within its spread. Both must leave the same worlds: faster
//! but different is not faster. Worlds tick as a worker ticks them, recorded, with nobody connected. What a tick takes
//! beside its systems is in both.

mod one_system;
mod plain;
mod walkers;

use std::net::SocketAddr;

use clap::Parser;
use harness::{BenchArguments, quantile};
use serde_json::{Value, json};
use throng::{
    net::{
        protocol::PACKET_BYTES_MAX,
        transport::{DatagramSender, PacketSink, SendOutcome},
    },
    platform::{
        allocator::{CountingAllocator, keep_memory},
        process::thread_cpu_time,
        time::Nanos,
    },
    prelude::*,
    profiler::{pool::PoolSettings, start_recording},
    replication::InterestSettings,
    world::{Alone, GameWorld, InTick, Mail, Worker},
    world_builder::Kind,
};

use walkers::{Ground, Health, Place, WALKERS};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Of both kinds. (Hz)
const RATE: Hertz = Hertz(20);
const GROUND: Ground = Ground { half_m: 60.0 };
/// So much of the past as fits into the cache of no processor, like a server's.
const RECORDING: PoolSettings = PoolSettings { blocks_max: 2_048, reserve: 64, history: u64::MAX };

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArguments,
    /// So many worlds of each style instead of the planned number.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    worlds: Option<u32>,
}

/// How much is measured.
struct Plan {
    /// Of each style.
    worlds: u32,
    /// Before the first turn that counts: until then worlds still grow their buffers, and the recorder its own.
    ticks_before: u32,
    /// Pairs of turns.
    pairs: usize,
    ticks_per_turn: u32,
}

const REAL: Plan = Plan { worlds: 1_000, ticks_before: 200, pairs: 200, ticks_per_turn: 2 };
const SMALL: Plan = Plan { worlds: 200, ticks_before: 20, pairs: 5, ticks_per_turn: 2 };

/// How the work of a world is written.
#[derive(Clone, Copy)]
enum Style {
    OneSystem,
    Plain,
}

impl WorldKind for Style {
    fn name(&self) -> &str {
        match self {
            Self::OneSystem => "one_system",
            Self::Plain => "plain",
        }
    }

    fn tick_rate(&self) -> Hertz {
        RATE
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Place>().component::<Health>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Place>();
        walkers::spawn(world.world_mut(), &GROUND);
        match self {
            Self::OneSystem => one_system::add(world, GROUND),
            Self::Plain => plain::add(world, GROUND),
        }
    }
}

/// A network on which nobody is.
struct Nowhere([u8; PACKET_BYTES_MAX]);

impl PacketSink for Nowhere {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn commit(&mut self, _to: SocketAddr, _len: usize) {}
}

impl DatagramSender for Nowhere {
    fn flush(&mut self) -> SendOutcome {
        SendOutcome::default()
    }
}

/// All worlds of one style, and the one worker that ticks them.
struct Worlds {
    each: Vec<GameWorld>,
    worker: Worker,
    mail: Mail,
    now: Nanos,
}

impl Worlds {
    fn new(style: Style, count: u32) -> Result<Self, Box<dyn std::error::Error>> {
        let schema = style.protocol().schema();
        let mut kind = Kind::new(WorldKindId(style as u16), Box::new(style));
        let interest = InterestSettings::default();
        let built = (0..count)
            .map(|number| kind.build_world(WorldId::new(number, 0), number.into(), None, &schema, &interest))
            .collect::<Result<Vec<_>, _>>()?;
        let worker = Worker::new(0, Box::new(Nowhere([0; PACKET_BYTES_MAX])));
        Ok(Self { each: built, worker, mail: Mail::default(), now: Nanos::ZERO })
    }

    /// Ticks each world once, one after the other.
    fn tick(&mut self) {
        let Self { each, worker, mail, now } = self;
        *now += Nanos(1_000_000_000 / u64::from(RATE.0));
        let _in_tick = InTick::begin();
        for world in each {
            let report = world.tick(*now, mail, worker, &Alone);
            assert!(report.failed.is_empty(), "every system runs");
        }
    }

    fn ticks(&mut self, count: u32) {
        (0..count).for_each(|_| self.tick());
    }

    /// What a world's tick takes in this turn. (ns)
    fn turn(&mut self, ticks: u32) -> f64 {
        let begin = thread_cpu_time();
        self.ticks(ticks);
        let taken = thread_cpu_time().saturating_sub(begin);
        taken.0 as f64 / f64::from(ticks) / self.each.len() as f64
    }

    /// One number for the state of all worlds, after one tick more.
    fn hash(&mut self) -> u64 {
        self.each.iter_mut().for_each(|world| world.want_hash(true));
        self.tick();
        let hashes = self.each.iter_mut().map(|world| world.report_mut().state_hash.expect("it is wanted"));
        hashes.fold(0, |sum: u64, hash| sum.rotate_left(7) ^ hash)
    }

    /// How many walkers are hurt.
    fn hurt_count(&mut self) -> usize {
        let of_world = |world: &mut GameWorld| {
            let ecs = world.ecs_mut();
            let mut walkers = ecs.query::<&Health>();
            walkers.iter(ecs).filter(|health| !health.is_full()).count()
        };
        self.each.iter_mut().map(of_world).sum()
    }
}

fn run(plan: &Plan) -> Result<Value, Box<dyn std::error::Error>> {
    start_recording(RECORDING);
    let mut one_system = Worlds::new(Style::OneSystem, plan.worlds)?;
    let mut plain = Worlds::new(Style::Plain, plan.worlds)?;
    one_system.ticks(plan.ticks_before);
    plain.ticks(plan.ticks_before);
    let (mut one_system_ns, mut plain_ns, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.pairs {
        let (one, other) = (one_system.turn(plan.ticks_per_turn), plain.turn(plan.ticks_per_turn));
        one_system_ns.push(one);
        plain_ns.push(other);
        ratios.push(other / one);
    }
    let (hash, other_hash) = (one_system.hash(), plain.hash());
    if hash != other_hash {
        return Err(format!("the styles did other work: {hash:016x} and {other_hash:016x}").into());
    }
    Ok(json!({
        "worlds": plan.worlds,
        "entities_each": WALKERS,
        "pairs_of_turns": plan.pairs,
        "one_system_ns_per_world_and_tick": quantile(&mut one_system_ns, 0.5),
        "plain_ns_per_world_and_tick": quantile(&mut plain_ns, 0.5),
        "ratio": quantile(&mut ratios, 0.5),
        "ratio_spread": [quantile(&mut ratios, 0.25), quantile(&mut ratios, 0.75)],
        "walkers_hurt": plain.hurt_count(),
        "hash": format!("{hash:016x}"),
    }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    keep_memory();
    let planned = if arguments.bench.small { SMALL } else { REAL };
    let plan = Plan { worlds: arguments.worlds.unwrap_or(planned.worlds), ..planned };
    arguments.bench.print("systems", run(&plan)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles_leave_the_same_worlds_at_every_tick() {
        let [mut one_system, mut plain] = [Style::OneSystem, Style::Plain].map(|style| Worlds::new(style, 5).unwrap());
        for tick in 0..200 {
            assert_eq!(one_system.hash(), plain.hash(), "tick {tick}");
        }
        assert!(plain.hurt_count() > 0, "somebody was bitten");
    }
}
