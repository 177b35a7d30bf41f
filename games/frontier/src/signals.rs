//! Signals: what NPCs tell each other, at a bounded rate.
//!
//! A yell, a pack's call, a scripted nod: each goes into the mailbox of the receiver's camp
//! ([`Mailboxes`](crate::mailboxes::Mailboxes)). A mailbox is opened every [`HANDLE_MS`], each camp's in another tick
//! than its neighbours'. A signal that finds a full mailbox is dropped and counted. So a camp's cost is bounded however
//! many NPCs shout at once, and a signal is at most half a second late.
//!
//! Cost: 30 ns a signal, 2 ns a camp and tick.

use throng_replication::Text;

use crate::{
    components::{Gesture, Kind},
    events::{Emote, Say},
    mailboxes::{Call, Signal},
    npc::minds::Errand,
    zone::Zone,
};

/// Between two openings of a camp's mailbox. (ms)
pub const HANDLE_MS: u32 = 500;

/// Opens the mailboxes whose turn it is.
pub fn handle(mut zone: Zone) {
    let (now, period) = (zone.now(), zone.ticks(HANDLE_MS));
    let camps = zone.minds.mailboxes.camps();
    let first = (period - now % period) % period;
    for camp in (first..camps).step_by(period as usize) {
        for index in 0..zone.minds.mailboxes.open(camp) {
            let signal = zone.minds.mailboxes.read(camp, index);
            throng::count!("signals_handled");
            heed(&mut zone, signal);
        }
    }
}

fn heed(zone: &mut Zone, signal: Signal) {
    let Some(npc) = zone.actors.resolve(signal.to) else { return };
    let Some(about) = zone.actors.resolve(signal.about) else { return };
    match signal.call {
        Call::Yell | Call::Pack => {
            let mind = &mut zone.minds.rows[npc as usize];
            if !mind.hates_anybody() && mind.errand != Errand::Return {
                mind.hate(signal.about, 1);
                throng::count!("assists");
            }
        }
        Call::Hail => {
            let place = zone.actors[about].place;
            zone.face(npc, place);
            zone.actors.play(npc, Gesture::Bow);
            zone.tell(npc, |who| Emote { who, gesture: Gesture::Bow }, "script.hail");
            if zone.actors[npc].kind() == Kind::Banker {
                let words = Text::new("Well met. What would you leave with me?").unwrap_or_default();
                let say = |id| Say { speaker: Some(id), name: Text::default(), words };
                zone.tell(npc, say, "script.hail");
            }
        }
    }
}
