//! R16 for a match, the promise: no byte about an enemy leaves for a client whose player could not see it within the grace,
//! be it a snapshot, an audit sample or a shot; how well a team is hears that team alone, and of the spike the attackers
//! until it is planted; and whoever is seen has been told of, a tick late at most.
//!
//! The whole server, eight bots and two who jump about, with a tap where packets leave: each one is opened and held against
//! brute force over walls and smoke, which knows nothing of cells, proofs and what the fog remembers. In every second match
//! the network loses, doubles and delays, so bodies leap when inputs come late: by up to nine steps in a tick, which is 62 ms
//! less of the grace that a client has before it sees who leaps. In every third match one buys.
//!
//! `THRONG_SEEDS` (`20` for the first ones, `17..18` for one of them) changes the full form.

mod findings;
mod hopper;
mod judge;
mod reader;
#[path = "../simulated/mod.rs"]
mod simulated;
mod truth;
mod witness;

use std::{ops::Range, time::Instant};

use duel::{BotGuide, DuelBot, DuelSettings, server::build_with, teams::SEATS};
use throng_net::transport::Impairment;
use throng_simulator::{Simulation, SimulationSettings};

use findings::{Findings, WAYS, Way};
use hopper::Hopper;
use judge::Judge;
use witness::{Chronicle, Filter, Witnessed};

/// Players who jump about.
const HOPPERS: usize = 2;
/// No round takes so many ticks.
const ROUND_TICKS_MAX: u64 = 128 * 90;

/// Matches that are mostly fights: rounds are short, and each third one has a phase to buy in.
fn matches(seed: u64) -> DuelSettings {
    let buy_s = if seed.is_multiple_of(3) { 3.0 } else { 0.0 };
    DuelSettings { rounds_to_win: 30, round_s: 60.0, buy_s, ..simulated::short() }
}

/// Has bots play so many rounds, or to the end of the match, and judges all that they are told.
fn judge(seed: u64, rounds: u64, filter: Filter) -> Findings {
    let is_network_bad = seed.is_multiple_of(2);
    let impairment = if is_network_bad { Impairment::bad(0.05) } else { Impairment::NONE };
    let workers_count = 1 + seed as usize / 2 % 2;
    let settings = SimulationSettings { tap: true, impairment, workers_count, ..simulated::settings(seed) };
    let chronicle = Chronicle::default();
    let (mut simulation, _) = Simulation::new(&settings, |server| {
        build_with(server, &matches(seed), |inner| Witnessed { inner, chronicle: chronicle.clone(), filter })
    })
    .expect("the game can be set up");
    let guide = BotGuide::load();
    for player in 0..SEATS {
        // The first two are of different teams.
        if player < HOPPERS {
            simulation.join(Box::new(Hopper::new(guide.clone())));
        } else {
            simulation.join(Box::new(DuelBot::new(guide.clone())));
        }
    }
    let mut judge = Judge::new(settings.schema.clone(), chronicle, SEATS, is_network_bad);
    let mut is_home = false;
    while judge.findings.rounds < rounds && !is_home {
        simulation.step();
        let is_tick = judge.turn_page();
        simulation.take_sent(|client, payload| judge.hear(client, payload));
        if is_tick {
            judge.end_tick();
        }
        is_home = judge.is_over();
        assert!(judge.findings.ticks < rounds * ROUND_TICKS_MAX, "rounds do not end: {:?}", judge.findings);
    }
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.protocol_errors), (SEATS as u64, 0), "{totals:#?}");
    judge.findings
}

fn tell(what: &str, findings: &Findings) {
    let Findings { rounds, ticks, packets, pairs, held, late, late_ticks_max, notices, smoke_ticks, .. } = findings;
    let ways: Vec<String> = WAYS.map(|way| format!("{way:?} {}", findings.told(way))).to_vec();
    println!(
        "{what}: {rounds} rounds, {ticks} ticks ({smoke_ticks} with smoke), {packets} packets; told {}; {} leaks {:?}; \
         {held} of {pairs} pairs held; {late} late, {late_ticks_max} ticks at most",
        ways.join(", "),
        findings.leaks_in_all(),
        WAYS.map(|way| findings.leaks(way)),
    );
    for (name, notices) in ["perfect", "bad"].iter().zip(notices).filter(|(_, notices)| notices.all() > 0) {
        let shares = [1, 50, 88, 150].map(|ms| format!("{:.2} % for {ms} ms", notices.share_with(ms) * 100.0));
        println!("  {} came into view on a {name} network, known before: {}", notices.all(), shares.join(", "));
    }
    findings.leaks_told.iter().for_each(|leak| println!("  {leak}"));
}

#[track_caller]
fn check(what: &str, findings: &Findings) {
    tell(what, findings);
    assert_eq!((findings.leaks_in_all(), findings.late), (0, 0), "{what}: {findings:?}");
    // There was something to judge.
    let shares =
        [(Way::Update, 300), (Way::Spawn, 5), (Way::Despawn, 5), (Way::Vitals, 5), (Way::Shot, 5), (Way::Kit, 20)];
    let is_enough = |(way, of_round): (Way, u64)| findings.told(way) >= findings.rounds * of_round;
    assert!(shares.into_iter().all(is_enough), "{what}: {findings:?}");
    assert!(findings.held * 2 < findings.pairs, "{what}: most are hidden: {findings:?}");
}

#[test]
fn r16_no_client_is_told_of_an_enemy_whom_it_could_not_see_and_none_late() {
    for seed in 0..3 {
        let findings = judge(seed, 4, Filter::AsItShips);
        assert_eq!(findings.rounds, 4);
        check(&format!("seed {seed}"), &findings);
    }
}

/// Promise: who comes into view is told of in time on a line, too, that takes so little that packets are saved up for.
#[test]
fn r16_a_narrow_line_tells_nobody_late() {
    for seed in [20, 2] {
        let findings = judge(seed, 2, Filter::AsItShips);
        check(&format!("seed {seed}"), &findings);
    }
}

#[test]
fn r16_an_open_filter_is_found_out() {
    let findings = judge(1, 1, Filter::Open);
    tell("open", &findings);
    for way in [Way::Update, Way::Spawn, Way::Presence, Way::Vitals, Way::Spike, Way::Shot] {
        assert!(findings.leaks(way) > 0, "{way:?}: {findings:?}");
    }
}

#[test]
fn r16_a_filter_that_sees_too_far_is_found_out() {
    let findings = judge(1, 1, Filter::TooFar);
    tell("too far", &findings);
    assert!(findings.leaks(Way::Update) > 0 && findings.leaks(Way::Spawn) > 0, "{findings:?}");
    assert_eq!(findings.leaks(Way::Vitals) + findings.leaks(Way::Spike), 0, "{findings:?}");
}

#[test]
fn r16_a_filter_that_hesitates_is_found_out() {
    let findings = judge(1, 1, Filter::Hesitant);
    tell("hesitant", &findings);
    assert!(findings.late > 0 && findings.late_ticks_max >= 3, "{findings:?}");
}

fn seeds(usual: u64) -> Range<u64> {
    let wanted = std::env::var("THRONG_SEEDS").unwrap_or_default();
    let (first, end) = wanted.split_once("..").unwrap_or(("0", &wanted));
    first.parse().unwrap_or(0)..end.parse().unwrap_or(usual)
}

/// The large form: 40 matches of 25 rounds each.
#[test]
#[ignore = "a thousand rounds take half an hour"]
fn r16_a_thousand_rounds_tell_nobody_of_whom_it_could_not_see() {
    let mut sum = Findings::default();
    for seed in seeds(40) {
        let begin = Instant::now();
        let findings = judge(seed, 25, Filter::AsItShips);
        tell(&format!("seed {seed}, {:.0} s", begin.elapsed().as_secs_f64()), &findings);
        sum.add(&findings);
    }
    check("all seeds", &sum);
}
