//! Profiling: recordings are replayed and watched, two of them in turns, and load profiles are made of that.

use std::thread;

use throng::{
    recording::RecordingFiles,
    replay::{OtherGame, ReplayGame, ReplayOptions, ReplayReport},
};
use throng_profiler::{is_recording, pool::PoolSettings, start_recording};

use crate::{
    gather::Gatherer,
    lacking::remarks_of,
    outline::Outline,
    profile::Profile,
    turns::{Turn, Turns},
    who::Who,
};

/// Each of two replays has its turn for so much of its recording (s).
const TURN_S: f64 = 2.0;
/// Nobody reads the scopes, only what they sum up to.
const SCOPES: PoolSettings = PoolSettings { blocks_max: 64, reserve: 16, history: 0 };

/// What came of one recording.
#[derive(Debug)]
pub struct Profiled<const SIDES: usize> {
    /// By side, in their order.
    pub profiles: [Profile; SIDES],
    /// What its server was started with, as words of a command line.
    pub arguments: Vec<String>,
    /// Beside figures: what of the recording was replayed, and what was wrong with that.
    pub replay: ReplayReport,
}

impl<const SIDES: usize> Profiled<SIDES> {
    /// What was wrong with its replay, as far as a comparison cares: for whoever has none that says it. `name`: what it is called there.
    pub fn remarks(&self, name: &str) -> Vec<String> {
        remarks_of(name, &self.replay)
    }
}

/// Profiles of these players of two recordings, which are replayed in turns, so that what the machine does meanwhile it does to both.
/// Takes as long as two replays, on two threads of which one works at a time.
///
/// # Errors
/// If a recording is not of its game: nothing was replayed then.
pub fn profile_in_turns(
    a: (&ReplayGame, &RecordingFiles, Who),
    b: (&ReplayGame, &RecordingFiles, Who),
) -> Result<[Profiled<1>; 2], OtherGame> {
    for (game, recording, _) in [a, b] {
        game.check(recording.about())?;
    }
    record_scopes();
    let turns = Turns::default();
    let profiled = |me: usize, (game, recording, who): (&ReplayGame, &RecordingFiles, Who)| {
        let turn = turns.begin(me);
        let mut pace = Pace { turn, next_s: TURN_S };
        profile(game, recording, [who], &mut |at_s| pace.note(at_s))
    };
    let [a, b] = thread::scope(|scope| {
        let [one, other] = [(0, a), (1, b)].map(|(me, side)| {
            let profiled = &profiled;
            scope.spawn(move || profiled(me, side))
        });
        [one, other].map(|thread| thread.join().expect("what a game's code does is caught"))
    });
    Ok([a?, b?])
}

/// Profiles of both sides of one recording, whose players played beside each other. Who is of both counts for the first. Takes as long
/// as one replay, on the calling thread.
///
/// # Errors
/// If it is not of this game.
pub fn profile_sides(game: &ReplayGame, recording: &RecordingFiles, sides: [Who; 2]) -> Result<Profiled<2>, OtherGame> {
    game.check(recording.about())?;
    record_scopes();
    profile(game, recording, sides, &mut |_| {})
}

fn profile<const SIDES: usize>(
    game: &ReplayGame,
    recording: &RecordingFiles,
    sides: [Who; SIDES],
    tell_at_s: &mut dyn FnMut(f64),
) -> Result<Profiled<SIDES>, OtherGame> {
    let outline = Outline::of(recording);
    let mut gatherer = Gatherer::new(&outline, &sides, game.schema(), tell_at_s);
    let replay = game.replay_watched(recording, &ReplayOptions::default(), &mut gatherer)?;
    let profiles = gatherer.finish().try_into().expect("there is a profile for each side");
    Ok(Profiled { profiles, arguments: recording.about().arguments.clone(), replay })
}

/// Without them no subsystem has a time.
fn record_scopes() {
    if !is_recording() {
        start_recording(SCOPES);
    }
}

/// Passes the turn on whenever the recording has gone on by as much as a turn.
struct Pace<'a> {
    turn: Turn<'a>,
    next_s: f64,
}

impl Pace<'_> {
    fn note(&mut self, at_s: f64) {
        if at_s >= self.next_s {
            self.next_s = (at_s / TURN_S).floor() * TURN_S + TURN_S;
            self.turn.pass();
        }
    }
}
