//! Signals: what NPCs tell each other, at a bounded rate.
//!
//! A yell, a pack's call, a scripted nod: each goes into the mailbox of the receiver's camp, which holds [`MAILBOX_MAX`] of them. Mailboxes
//! are opened every [`HANDLE_MS`], each camp in another tick than its neighbours. What does not fit is dropped and counted. So however
//! many NPCs shout at once, a camp costs at most so much, and a signal is at most half a second late.
//!
//! Cost: 30 ns a signal, 2 ns a camp and tick. Allocates nothing: all mailboxes are one block of memory.

use crate::{
    actors::Who,
    components::{Gesture, Kind},
    events::{Emote, Say, Source},
    zone::Zone,
};
use throng_replication::Text;

/// Signals that wait for a camp at most; more are dropped and counted.
pub const MAILBOX_MAX: usize = 24;
/// Between two openings of a camp's mailbox. (ms)
pub const HANDLE_MS: u32 = 500;

/// What a signal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Call {
    /// Help me against it.
    #[default]
    Yell,
    /// The pack hunts it.
    Pack,
    /// A player has hailed.
    Hail,
}

/// One NPC's word to another.
#[derive(Debug, Clone, Copy, Default)]
pub struct Signal {
    pub call: Call,
    pub to: Who,
    pub about: Who,
}

/// The mailboxes of all camps.
#[derive(Default)]
pub struct Mailboxes {
    /// [`MAILBOX_MAX`] for each camp, one after the other.
    signals: Vec<Signal>,
    waiting: Vec<u8>,
}

impl Mailboxes {
    pub fn new(camps: usize) -> Self {
        Self { signals: vec![Signal::default(); camps * MAILBOX_MAX], waiting: vec![0; camps] }
    }

    /// False if the mailbox is full.
    pub fn post(&mut self, camp: u16, signal: Signal) -> bool {
        let camp = usize::from(camp);
        let waiting = usize::from(self.waiting[camp]);
        if waiting == MAILBOX_MAX {
            return false;
        }
        self.signals[camp * MAILBOX_MAX + waiting] = signal;
        self.waiting[camp] += 1;
        true
    }

    pub fn waiting(&self, camp: u16) -> usize {
        self.waiting[usize::from(camp)].into()
    }
}

impl Zone<'_> {
    /// Sends a signal to an NPC.
    pub fn signal(&mut self, to: u32, call: Call, about: Who) {
        let signal = Signal { call, to: self.actors.who(to), about };
        let camp = self.minds.rows[to as usize].camp;
        let posted = self.minds.mailboxes.post(camp, signal);
        throng::count!("signals_sent", posted);
        throng::count!("signals_dropped", !posted);
    }
}

/// Opens the mailboxes whose turn it is.
pub fn handle(mut zone: Zone) {
    let (now, period) = (zone.now(), zone.ticks(HANDLE_MS));
    let camps = zone.minds.mailboxes.waiting.len() as u32;
    let first = (period - now % period) % period;
    for camp in (first..camps).step_by(period as usize) {
        let waiting = std::mem::take(&mut zone.minds.mailboxes.waiting[camp as usize]);
        for index in 0..usize::from(waiting) {
            let signal = zone.minds.mailboxes.signals[camp as usize * MAILBOX_MAX + index];
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
            if !mind.hates_anybody() && mind.errand != crate::npc::minds::Errand::Return {
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
                let say = |id| Say { speaker: Source(Some(id)), name: Text::default(), words };
                zone.tell(npc, say, "script.hail");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_takes_so_many_and_no_more() {
        let mut mailboxes = Mailboxes::new(2);
        let posted = (0..100).filter(|_| mailboxes.post(1, Signal::default())).count();
        assert_eq!(posted, MAILBOX_MAX);
        assert_eq!((mailboxes.waiting(0), mailboxes.waiting(1)), (0, MAILBOX_MAX));
    }
}
