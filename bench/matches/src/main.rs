//! Bench: what matches of Duel cost their server, in memory: how many of them one core holds at 128 ticks a second.
//!
//! The whole server that ships, recorder included, with ten bots for each match, on a virtual clock and a network in memory.
//! Bots and server take turns, so what the processor does in the server's half of a frame is the server's alone. Matches
//! began at any time, as on a server that has run for hours: about a third of them buy. With `--no-buy` none does.
//!
//! - `us_per_tick`: processor time of the server for one tick of one match, all that is done between matches included. Not
//!   included: what the recorder's own thread does during the bots' half.
//! - `matches_per_core`: so many of these fit into nine tenths of a core.
//! - `core_share`: of one core, of these matches.
//! - `frame_us`: processor time of frames, in each of which every match ticks once; `frames_over_period`: those that take
//!   longer than a tick's period, on one core.
//! - `alive_and_moving`, `buying`: the share of players, and of matches. What matches cost says little without these.
//! - `subsystems_us`, `categories_us`: what scopes took of a tick, by the clock: more than the processor did where the host
//!   takes it away.

mod play;

use clap::Parser;
use harness::BenchArguments;
use throng_platform::allocator::{self, CountingAllocator};

use self::play::{Outcome, Plan};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArguments,
    /// So many matches.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=400))]
    matches: Option<u32>,
    /// Nobody buys: every match is played all the time.
    #[arg(long)]
    no_buy: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Arguments { bench, matches, no_buy } = Arguments::parse();
    allocator::keep_memory();
    let mut plan = if bench.small { Plan::SMALL } else { Plan::FULL };
    plan.matches = matches.unwrap_or(plan.matches);
    plan.buys = !no_buy;
    let outcome = play::play(&plan)?;
    bench.print("matches", figures(&plan, &outcome));
    Ok(())
}

fn figures(plan: &Plan, outcome: &Outcome) -> serde_json::Value {
    let Outcome { report, frames_ns, .. } = outcome;
    let mut frames_us: Vec<f64> = frames_ns.iter().map(|ns| *ns as f64 / 1e3).collect();
    let cpu_us: f64 = frames_us.iter().sum();
    let us_per_tick = cpu_us / outcome.counted("matches.ticks");
    let period_us = 1e6 / f64::from(report.tick_hz);
    serde_json::json!({
        "matches": plan.matches,
        "buys": plan.buys,
        "seconds": report.seconds,
        "ticks": outcome.counted("matches.ticks"),
        "ticks_missed": report.ticks_missed,
        "us_per_tick": us_per_tick,
        "matches_per_core": 0.9 * period_us / us_per_tick,
        "core_share": cpu_us / 1e6 / report.seconds,
        "frame_us": {
            "mean": cpu_us / frames_us.len().max(1) as f64,
            "p50": harness::quantile(&mut frames_us, 0.5),
            "p99": harness::quantile(&mut frames_us, 0.99),
            "max": harness::quantile(&mut frames_us, 1.0),
        },
        "frames_over_period": frames_us.iter().filter(|us| **us > period_us).count(),
        "alive_and_moving": outcome.counted("players.ticks.moving") / outcome.counted("players.ticks"),
        "alive": outcome.counted("players.ticks.alive") / outcome.counted("players.ticks"),
        "buying": outcome.counted("matches.ticks.buying") / outcome.counted("matches.ticks"),
        "shots_per_s": report.game_per_s.get("shots"),
        "subsystems_us": report.scopes_us_per_tick,
        "categories_us": report.categories_us_per_tick,
        "server_rss_mb_with_bots": report.server_rss_mb,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_size_runs_and_says_what_was_played() {
        let plan = Plan { matches: 1, ..Plan::SMALL };
        let outcome = play::play(&plan).unwrap();
        let figures = figures(&plan, &outcome);
        let of = |key: &str| figures[key].as_f64().unwrap_or_else(|| panic!("{key}: {figures}"));
        let ticks = f64::from(plan.window_s) * 128.0;
        assert!((of("ticks") - ticks).abs() <= 1.0 && of("ticks_missed") == 0.0, "{figures}");
        assert!(of("us_per_tick") > 0.0 && of("matches_per_core") > 0.0, "{figures}");
        assert!(of("alive_and_moving") > 0.0 && of("alive_and_moving") < 1.0, "{figures}");
        assert!(figures["subsystems_us"]["replication"].as_f64().is_some_and(|us| us > 0.0), "{figures}");
    }
}
