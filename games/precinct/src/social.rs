//! Social: what players say to each other, and what the server says to them.
//!
//! A line goes to everybody within earshot, [`LISTENERS_MAX`] of them at most, as a message with the speaker's name. How
//! much one player may say is its [`SpeechAllowance`]; names count as lines, so that changing them is no way around it.

use bevy_ecs::prelude::*;
use speech::SpeechAllowance;
use throng::prelude::*;

use crate::{
    components::Pose,
    passport::{Passport, PlayerClient},
    protocol::{CallMe, Said, Say},
};

/// How far a line is heard. (m)
pub const EARSHOT_M: f32 = 60.0;
/// Listeners that one line is sent to.
pub const LISTENERS_MAX: usize = 64;

/// Who says what when the store of the saves has gone away, and when it is back.
pub const SAVES_AWAY: (&str, &str) = ("Server", "saves are held up: what you do now gets on disk later; play goes on");
pub const SAVES_BACK: (&str, &str) = ("Server", "all is being saved again");

/// Whether there is anything for [`tell_of_saves`] to do.
pub fn saves_have_turned(store: Option<Res<SaveStore>>) -> bool {
    store.is_some_and(|store| store.has_turned)
}

/// Tells everybody who is here. Whoever comes while the store is away is told then (`arrivals`).
pub fn tell_of_saves(store: Res<SaveStore>, players: Query<&PlayerClient>, mut outbox: ResMut<Outbox>) {
    let (speaker, words) = if store.is_away { SAVES_AWAY } else { SAVES_BACK };
    players.iter().for_each(|client| say_to(&mut outbox, client.0, speaker, words));
}

/// Says something to one client that no player says.
pub fn say_to(outbox: &mut Outbox, client: ClientKey, speaker: &str, words: &str) {
    let said = Said::new(speaker, words).expect("both are fit to be said");
    outbox.send(client, &said).expect("it has no other limits");
}

/// Whether there is anything for [`speak`] to do; in most ticks of most worlds there is not.
pub fn something_was_said(lines: Requests<Say>, names: Requests<CallMe>) -> bool {
    !lines.is_empty() || !names.is_empty()
}

/// Gives players their names and delivers lines, within each speaker's allowance.
pub fn speak(
    tick: Res<TickInfo>,
    lines: Requests<Say>,
    names: Requests<CallMe>,
    mut outbox: ResMut<Outbox>,
    mut speakers: Query<(&mut Passport, &mut SpeechAllowance, &Pose)>,
    listeners: Query<(&PlayerClient, &Pose)>,
) {
    let may_speak = |allowance: &mut SpeechAllowance| {
        let may = allowance.take(tick.tick, f32::from(tick.rate.0));
        throng::count!("lines_dropped", !may);
        may
    };
    for (sender, CallMe { name }) in names.read() {
        let Some(Ok((mut passport, mut allowance, _))) = sender.entity.map(|own| speakers.get_mut(own)) else {
            continue;
        };
        if may_speak(&mut allowance) {
            passport.name = name.text();
        }
    }
    for (sender, Say { words }) in lines.read() {
        let Some(Ok((passport, mut allowance, pose))) = sender.entity.map(|own| speakers.get_mut(own)) else {
            continue;
        };
        if !may_speak(&mut allowance) {
            continue;
        }
        throng::count!("lines_said");
        let Ok(said) = Said::new(&passport.name, words) else { continue };
        let (from, earshot_m2) = (pose.feet(), EARSHOT_M * EARSHOT_M);
        let in_earshot = listeners.iter().filter(|(_, there)| there.feet().distance_squared(from) <= earshot_m2);
        for (client, _) in in_earshot.take(LISTENERS_MAX) {
            outbox.send(client.0, &said).expect("it has no other limits");
        }
    }
}
