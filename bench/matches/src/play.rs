//! Plays matches, and takes the time of the server's half of each frame.

use duel::{BotGuide, DuelBot, DuelSettings, protocol::TICK_HZ, teams::SEATS};
use throng::{report::ServerReport, settings::Settings};
use throng_platform::process;
use throng_simulator::{Simulation, SimulationSettings};

/// What is played.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub matches: u32,
    pub buys: bool,
    /// Over so long the matches' beginnings are spread (s).
    pub spread_s: u32,
    /// And so long is measured, when all have begun (s).
    pub window_s: u32,
}

impl Plan {
    /// The spread is about what a round takes with all its phases.
    pub const FULL: Self = Self { matches: 60, buys: true, spread_s: 100, window_s: 60 };
    pub const SMALL: Self = Self { matches: 2, buys: true, spread_s: 4, window_s: 4 };
}

/// What became of it.
pub struct Outcome {
    /// Of the window.
    pub report: ServerReport,
    /// Processor time of the server in each frame of it. (ns)
    pub frames_ns: Vec<u64>,
}

impl Outcome {
    /// How often the game counted something in the window.
    pub fn counted(&self, name: &str) -> f64 {
        self.report.game_per_s.get(name).copied().unwrap_or_default() * self.report.seconds
    }
}

/// From the first bot until it stands in a match of which everybody is there (s).
const WARM_UP_S: f64 = 4.0;

pub fn play(plan: &Plan) -> Result<Outcome, Box<dyn std::error::Error>> {
    let mut settings = SimulationSettings { think_hz: TICK_HZ.into(), ..SimulationSettings::new(duel::schema(), 1) };
    settings.server.server.audit_samples = false;
    let buys = DuelSettings::default();
    let matches = DuelSettings {
        warm_up_s: WARM_UP_S as f32,
        stagger_s: plan.spread_s as f32,
        buy_s: if plan.buys { buys.buy_s.min(plan.spread_s as f32 / 3.0) } else { 0.0 },
        ..buys
    };
    let (mut simulation, started) = Simulation::new(&settings, |server| {
        duel::build(server, &matches)?;
        Ok(server.start_recorder(&Settings::default(), None, "bench".to_owned()))
    })?;
    started?;
    let guide = BotGuide::load();
    for _ in 0..plan.matches * SEATS as u32 {
        simulation.join(Box::new(DuelBot::new(guide.clone())));
    }
    simulation.run_for(2.0 * WARM_UP_S + f64::from(plan.spread_s));
    let control = simulation.server_mut().control();
    control.measure_begin();
    let frames_ns = run_timed(&mut simulation, plan.window_s);
    control.measure_end();
    simulation.step();
    let totals = simulation.totals();
    if (totals.playing, totals.counter("violations")) != (u64::from(plan.matches) * SEATS as u64, 0) {
        return Err(format!("not everybody plays as it should: {totals:?}").into());
    }
    Ok(Outcome { report: simulation.server_mut().report(), frames_ns })
}

/// Plays for so many seconds; the server's processor time in each frame. (ns)
fn run_timed(simulation: &mut Simulation, seconds: u32) -> Vec<u64> {
    let frames = u64::from(seconds) * u64::from(TICK_HZ);
    let mut once = || {
        simulation.step_players();
        let before = process::cpu_time();
        simulation.step_server();
        process::cpu_time().saturating_sub(before).0
    };
    (0..frames).map(|_| once()).collect()
}
