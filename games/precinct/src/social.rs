//! Social: what players say to each other.
//!
//! A line goes to everybody within earshot, [`LISTENERS_MAX`] of them at most, as a reliable message with the speaker's
//! name. How much one player may say is its [`SpeechAllowance`]; names count as lines, so that changing them is no way
//! around it.

use bevy_ecs::prelude::*;
use speech::SpeechAllowance;
use throng::prelude::*;

use crate::{
    arena::{Arena, ArenaParts},
    components::Pose,
    passport::{Passport, PlayerName},
    protocol::{ClientMessage, SAID_BYTES_MAX, encode_said},
    roster::PlayerClient,
};

/// How far a line is heard. (m)
pub const EARSHOT_M: f32 = 60.0;
/// Listeners that one line is sent to.
pub const LISTENERS_MAX: usize = 64;

/// Whether there is anything for [`speak`] to do; in most ticks of most worlds there is not.
pub fn something_was_said(arena: Res<Arena>) -> bool {
    !arena.sayings.is_empty()
}

/// Delivers lines and names, within each speaker's allowance.
pub fn speak(
    tick: Res<TickInfo>,
    mut arena: ResMut<Arena>,
    mut outbox: ResMut<Outbox>,
    mut speakers: Query<(&mut Passport, &mut SpeechAllowance, &Pose)>,
    listeners: Query<(&PlayerClient, &Pose)>,
) {
    let ArenaParts { sayings, .. } = &mut **arena;
    sayings.drain(|speaker, said| {
        let Ok((mut passport, mut allowance, pose)) = speakers.get_mut(speaker) else { return };
        if !allowance.take(tick.tick, f32::from(tick.rate.0)) {
            throng::count!("lines_dropped");
            return;
        }
        let line = match said {
            ClientMessage::Say(line) => line,
            ClientMessage::Name(name) => {
                passport.name = PlayerName::new(name).unwrap_or(passport.name);
                return;
            }
        };
        throng::count!("lines_said");
        let mut message = [0; SAID_BYTES_MAX];
        let message = encode_said(&passport.name, line, &mut message);
        let (from, earshot_m2) = (pose.feet(), EARSHOT_M * EARSHOT_M);
        let in_earshot = listeners.iter().filter(|(_, there)| there.feet().distance_squared(from) <= earshot_m2);
        for (client, _) in in_earshot.take(LISTENERS_MAX) {
            outbox.send_reliable(client.0, message);
        }
    });
}
