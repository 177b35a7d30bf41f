//! Inputs: what recorded players said, and when, to be said again.
//!
//! All of it is in memory, in the order in which each player said it. Its time goes by the ticks of the worlds that took it, from the
//! first thing that anybody said. A file is believed nothing: more than a gibibyte of it is refused, and reading takes
//! twice as much at most, since lists that grow double.

use std::collections::BTreeMap;

use throng::{
    recording::{FileFault, RecordingFiles},
    replay::OtherGame,
};
use throng_replication::{PackedId, Schema};
use throng_world::{
    ids::ClientKey,
    inbox::{InboxMessage, MessageKind},
    input_log::Entry,
};

use crate::{
    clock::WorldClocks,
    outline::{Outline, each_tick},
    who::Who,
};

/// What all players say as it is kept: messages of four bytes and their steps, 20 a second, are seven hours of a hundred players.
const KEPT_BYTES_MAX: usize = 1 << 30;
/// Besides its bytes each message has a step.
const _: () = assert!(size_of::<Step>() == 16);
/// A rate is that of so many inputs at least.
const INPUTS_MIN: u32 = 20;

/// A recording holds nothing for bots to say.
#[derive(Debug, thiserror::Error)]
pub enum InputsError {
    #[error(transparent)]
    OtherGame(#[from] OtherGame),
    #[error("nobody of the players `{0}` says anything in this recording; name others, or all")]
    Nobody(Who),
    #[error(
        "its players say more than bots can keep in memory ({} MiB); give one of its segments",
        KEPT_BYTES_MAX >> 20
    )]
    TooMuch,
}

/// What recorded players said.
#[derive(Debug, Default)]
pub struct RecordedInputs {
    players: Vec<Vec<Step>>,
    bytes: Vec<u8>,
    faults: Vec<FileFault>,
}

/// One thing that was said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Since the first thing that anybody said (ms); while they are read, since the recording's beginning.
    pub at_ms: u32,
    pub is_request: bool,
    pub kind: PackedId,
    begin: u32,
    length: u32,
}

impl RecordedInputs {
    /// What these players said. `game` and `schema` are those of the server on which it is to be said again.
    ///
    /// # Errors
    /// If the recording is of another game or schema, if nobody says anything in it, or too much.
    pub fn read(recording: &RecordingFiles, who: Who, game: &str, schema: &Schema) -> Result<Self, InputsError> {
        recording.about().check_game(game, schema)?;
        let outline = Outline::of(recording);
        let (mut clocks, mut inputs, mut is_too_much) = (WorldClocks::default(), Self::default(), false);
        let mut by_player: BTreeMap<PlayerId, Vec<Step>> = BTreeMap::new();
        let mut kept_bytes = 0;
        inputs.faults = each_tick(recording, |world, plan, tick| {
            // Rounded, so that a second of ticks is a second.
            let at_ms = (clocks.at(world, plan.rate_hz, tick.tick) * 1_000.0).round() as u32;
            for entry in tick.entries().map_while(Result::ok) {
                let Entry::Message(message) = entry else { continue };
                let client_id = outline.clients.get(&message.client).copied();
                if !who.includes(client_id) {
                    continue;
                }
                kept_bytes += size_of::<Step>() + message.bytes.len();
                if kept_bytes > KEPT_BYTES_MAX {
                    is_too_much = true;
                    return false;
                }
                let step = inputs.step(at_ms, &message);
                by_player.entry(PlayerId::of(client_id, message.client)).or_default().push(step);
            }
            true
        });
        if is_too_much {
            return Err(InputsError::TooMuch);
        }
        let begin_ms = by_player.values().flatten().map(|step| step.at_ms).min().unwrap_or_default();
        for mut steps in by_player.into_values() {
            // Worlds hand over about a second each, so what was said in two of them may stand the other way round.
            steps.sort_by_key(|step| step.at_ms);
            steps.iter_mut().for_each(|step| step.at_ms -= begin_ms);
            inputs.players.push(steps);
        }
        if inputs.players.is_empty() { Err(InputsError::Nobody(who)) } else { Ok(inputs) }
    }

    fn step(&mut self, at_ms: u32, message: &InboxMessage<'_>) -> Step {
        let (is_request, kind) = match message.kind {
            MessageKind::Input { kind, .. } => (false, kind),
            MessageKind::Request { kind } => (true, kind),
        };
        let (begin, length) = (self.bytes.len() as u32, message.bytes.len() as u32);
        self.bytes.extend_from_slice(message.bytes);
        Step { at_ms, is_request, kind, begin, length }
    }

    /// How many players say something.
    pub fn players(&self) -> usize {
        self.players.len()
    }

    /// From the first thing that anybody said to the last (s).
    pub fn length_s(&self) -> u64 {
        let last = self.players.iter().filter_map(|steps| steps.last()).map(|step| step.at_ms).max();
        u64::from(last.unwrap_or(0)).div_ceil(1_000)
    }

    /// How often the busiest of them sends inputs while it sends any (Hz, 1 to 1,000): in nine of ten such seconds it sends so many at
    /// most. Bots that think as often send each in a packet of its own.
    pub fn inputs_hz(&self) -> u32 {
        let rate = |steps: &Vec<Step>| {
            let inputs = steps.iter().filter(|step| !step.is_request).map(|step| step.at_ms);
            let first = inputs.clone().next()?;
            let mut by_second: BTreeMap<u32, u32> = BTreeMap::new();
            inputs.for_each(|at_ms| *by_second.entry((at_ms - first) / 1_000).or_default() += 1);
            let mut counts: Vec<u32> = by_second.into_values().collect();
            counts.sort_unstable();
            let is_enough = counts.iter().sum::<u32>() >= INPUTS_MIN;
            is_enough.then(|| counts[(9 * counts.len()).div_ceil(10) - 1])
        };
        self.players.iter().filter_map(rate).max().unwrap_or(1).clamp(1, 1_000)
    }

    /// What was wrong with the recording's files.
    pub fn faults(&self) -> &[FileFault] {
        &self.faults
    }

    pub(crate) fn steps(&self, player: usize) -> &[Step] {
        self.players.get(player).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn bytes(&self, step: &Step) -> &[u8] {
        &self.bytes[step.begin as usize..][..step.length as usize]
    }
}

/// Whom a player is known by. Those who are known by their ids come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PlayerId {
    Client(u64),
    /// Nothing in the recording tells its id.
    Connection(u32),
}

impl PlayerId {
    fn of(client_id: Option<u64>, client: ClientKey) -> Self {
        client_id.map_or(Self::Connection(client.0), Self::Client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds of play at 20 Hz.
    fn ten_s(from_ms: u32) -> impl Iterator<Item = u32> {
        (0..200).map(move |input| from_ms + 50 * input)
    }

    #[track_caller]
    fn check(players: &[Vec<u32>], expect_hz: u32) {
        let step = |at_ms: &u32| Step { at_ms: *at_ms, is_request: false, kind: PackedId(0), begin: 0, length: 0 };
        let players = players.iter().map(|inputs| inputs.iter().map(step).collect()).collect();
        assert_eq!(RecordedInputs { players, ..RecordedInputs::default() }.inputs_hz(), expect_hz);
    }

    #[test]
    fn inputs_are_said_again_as_often_as_they_came_and_pauses_are_none() {
        check(&[ten_s(0).collect()], 20);
        // In a lobby, dead, or gone for coffee.
        let with_pauses: Vec<u32> = ten_s(130).chain(ten_s(17_000)).chain(ten_s(90_050)).collect();
        check(&[with_pauses.clone(), (0..60).map(|second| 1_000 * second).collect()], 20);
        // What stuck somewhere came all at once, and it is not how often that player sends.
        let stuck = with_pauses.iter().map(|at_ms| if (20_000..21_000).contains(at_ms) { 21_000 } else { *at_ms });
        check(&[stuck.collect()], 20);
        check(&[ten_s(0).collect(), (0..300).map(|input| 100 * input / 6).collect()], 60);
        check(&[(0..19).collect()], 1);
        check(&[], 1);
    }
}
