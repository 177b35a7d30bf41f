//! Social: what players say to each other.
//!
//! A line goes to everybody within earshot, [`LISTENERS_MAX`] of them at most, as a reliable message with the
//! speaker's name. How much one player may say is its [`SpeechAllowance`]; names count as lines, so that changing them is
//! no way around it. Texts are copied into a buffer that is kept: nothing is allocated once it has grown.

use bevy_ecs::prelude::*;
use speech::SpeechAllowance;
use throng::prelude::*;

use crate::{
    arena::Arena,
    components::Pose,
    players::{Passport, PlayerClient, PlayerName},
    protocol::{ClientMessage, SAID_BYTES_MAX, encode_said},
};

/// How far a line is heard. (m)
pub const EARSHOT_M: f32 = 60.0;
/// Listeners that one line is sent to.
pub const LISTENERS_MAX: usize = 64;

/// What was said this tick, in order.
#[derive(Default)]
pub struct Sayings {
    words: String,
    sayings: Vec<Saying>,
}

struct Saying {
    speaker: Entity,
    is_name: bool,
    end: usize,
}

impl Sayings {
    /// Notes what a player said; it is acted on by [`speak`] later in the tick.
    pub fn hear(&mut self, speaker: Entity, message: &ClientMessage<'_>) {
        let (is_name, words) = match message {
            ClientMessage::Say(words) => (false, words),
            ClientMessage::Name(words) => (true, words),
        };
        self.words.push_str(words);
        self.sayings.push(Saying { speaker, is_name, end: self.words.len() });
    }
}

/// Whether there is anything for [`speak`] to do; in most ticks of most worlds there is not.
pub fn something_was_said(arena: Res<Arena>) -> bool {
    !arena.sayings.sayings.is_empty()
}

/// Delivers lines and names, within each speaker's allowance.
pub fn speak(
    tick: Res<TickInfo>,
    mut arena: ResMut<Arena>,
    mut outbox: ResMut<Outbox>,
    mut speakers: Query<(&mut Passport, &mut SpeechAllowance, &Pose)>,
    listeners: Query<(&PlayerClient, &Pose)>,
) {
    let Arena { sayings: Sayings { words, sayings }, tally, .. } = &mut *arena;
    let mut begin = 0;
    for saying in sayings.drain(..) {
        let line = &words[begin..saying.end];
        begin = saying.end;
        let Ok((mut passport, mut allowance, pose)) = speakers.get_mut(saying.speaker) else { continue };
        if !allowance.take(tick.tick, f32::from(tick.rate.0)) {
            tally.lines_dropped += 1;
            continue;
        }
        if saying.is_name {
            passport.name = PlayerName::new(line);
            continue;
        }
        tally.lines_said += 1;
        let mut message = [0; SAID_BYTES_MAX];
        let message = encode_said(passport.name.as_str(), line, &mut message);
        let (from, earshot_m2) = (pose.feet(), EARSHOT_M * EARSHOT_M);
        let in_earshot = listeners.iter().filter(|(_, there)| there.feet().distance_squared(from) <= earshot_m2);
        for (client, _) in in_earshot.take(LISTENERS_MAX) {
            outbox.send_reliable(client.0, message);
        }
    }
    words.clear();
}
