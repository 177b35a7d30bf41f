//! Inputs: what recorded players said, and when, to be said again.
//!
//! All of it is in memory, in the order in which each player said it. Its time goes by the ticks of the worlds that took it, from the
//! first thing that anybody said. A file is believed nothing: what is longer than bots could keep is refused before there is no
//! memory left.

use std::collections::BTreeMap;

use throng::{
    recording::{RecordingFiles, RecordingTail},
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

/// What all players say, in bytes and in messages: ten hours of a hundred.
const BYTES_MAX: usize = 1 << 30;
const STEPS_MAX: usize = 1 << 26;
/// A rate is that of so many inputs at least.
const INPUTS_MIN: usize = 20;

/// A recording holds nothing for bots to say.
#[derive(Debug, thiserror::Error)]
pub enum InputsError {
    #[error(transparent)]
    OtherGame(#[from] OtherGame),
    #[error("nobody of the players `{0}` says anything in this recording; name others, or all")]
    Nobody(Who),
    #[error(
        "its players say more than bots can keep in memory ({} MiB or {STEPS_MAX} messages); give one of its segments",
        BYTES_MAX >> 20
    )]
    TooMuch,
}

/// What recorded players said.
#[derive(Debug, Default)]
pub struct RecordedInputs {
    players: Vec<Vec<Step>>,
    bytes: Vec<u8>,
    tails: Vec<RecordingTail>,
}

/// One thing that was said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Since the first thing that anybody said (ms).
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
        check(recording, game, schema)?;
        let outline = Outline::of(recording);
        let (mut clocks, mut inputs, mut is_too_much) = (WorldClocks::default(), Self::default(), false);
        // By client id, or by connection where nothing tells that.
        let mut by_player: BTreeMap<(bool, u64), Vec<(f64, Step)>> = BTreeMap::new();
        let mut steps = 0;
        inputs.tails = each_tick(recording, |world, plan, tick| {
            let at_s = clocks.at(world, plan.rate_hz, tick.tick);
            for entry in tick.entries().map_while(Result::ok) {
                let Entry::Message(message) = entry else { continue };
                let client_id = outline.clients.get(&message.client).copied();
                if !who.includes(client_id) {
                    continue;
                }
                steps += 1;
                if steps > STEPS_MAX || inputs.bytes.len() + message.bytes.len() > BYTES_MAX {
                    is_too_much = true;
                    return false;
                }
                let step = inputs.step(&message);
                by_player.entry(player_of(client_id, message.client)).or_default().push((at_s, step));
            }
            true
        });
        if is_too_much {
            return Err(InputsError::TooMuch);
        }
        let begin_s = by_player.values().flatten().map(|(at_s, _)| *at_s).fold(f64::INFINITY, f64::min);
        for mut said in by_player.into_values() {
            // Worlds hand over about a second each, so what was said in two of them may stand the other way round.
            said.sort_by(|one, other| one.0.total_cmp(&other.0));
            let at_ms = |at_s: f64| ((at_s - begin_s) * 1_000.0) as u32;
            inputs.players.push(said.into_iter().map(|(at_s, step)| Step { at_ms: at_ms(at_s), ..step }).collect());
        }
        if inputs.players.is_empty() { Err(InputsError::Nobody(who)) } else { Ok(inputs) }
    }

    fn step(&mut self, message: &InboxMessage<'_>) -> Step {
        let (is_request, kind) = match message.kind {
            MessageKind::Input { kind, .. } => (false, kind),
            MessageKind::Request { kind } => (true, kind),
        };
        let (begin, length) = (self.bytes.len() as u32, message.bytes.len() as u32);
        self.bytes.extend_from_slice(message.bytes);
        Step { at_ms: 0, is_request, kind, begin, length }
    }

    /// How many players say something.
    pub fn players(&self) -> usize {
        self.players.len()
    }

    /// From the first thing that anybody said to the last (s).
    pub fn seconds(&self) -> u64 {
        let last = self.players.iter().filter_map(|steps| steps.last()).map(|step| step.at_ms).max();
        u64::from(last.unwrap_or(0)).div_ceil(1_000)
    }

    /// How often the busiest of them sent an input (Hz, at least 1): bots that think as often send each in a packet of its own.
    pub fn inputs_hz(&self) -> u32 {
        let rate = |steps: &Vec<Step>| {
            let inputs: Vec<u32> = steps.iter().filter(|step| !step.is_request).map(|step| step.at_ms).collect();
            let (first, last) = (inputs.first()?, inputs.last()?);
            let is_enough = inputs.len() >= INPUTS_MIN && last > first;
            is_enough.then(|| (inputs.len() - 1) as f64 * 1_000.0 / f64::from(last - first))
        };
        let most = self.players.iter().filter_map(rate).fold(1.0, f64::max);
        // A tick of a world holds what came in it, so the last digit is chance.
        (most - 0.05).ceil().clamp(1.0, 1_000.0) as u32
    }

    /// What was wrong with the recording's files.
    pub fn tails(&self) -> &[RecordingTail] {
        &self.tails
    }

    pub(crate) fn steps(&self, player: usize) -> &[Step] {
        self.players.get(player).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn bytes(&self, step: &Step) -> &[u8] {
        &self.bytes[step.begin as usize..][..step.length as usize]
    }
}

fn check(recording: &RecordingFiles, game: &str, schema: &Schema) -> Result<(), OtherGame> {
    let about = recording.about();
    if about.game != game {
        return Err(OtherGame::Name { recorded: about.game.clone(), here: game.to_owned() });
    }
    if about.schema != schema.hash() {
        let build = format!("{} ({})", about.version, about.commit);
        return Err(OtherGame::Schema { game: game.to_owned(), recorded: about.schema, here: schema.hash(), build });
    }
    Ok(())
}

fn player_of(client_id: Option<u64>, client: ClientKey) -> (bool, u64) {
    client_id.map_or((true, client.0.into()), |id| (false, id))
}
