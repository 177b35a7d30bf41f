//! Mailboxes: the signals that wait for the NPCs of each camp.
//!
//! Allocates nothing: all mailboxes are one block of memory.

use throng_pack::{ArrayVec, List, Pack};

use crate::actors::Who;

/// Signals that wait for a camp at most; more are dropped and counted.
pub const MAILBOX_MAX: usize = 24;

/// What a signal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pack)]
#[pack(name = "frontier.call")]
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
#[derive(Debug, Clone, Copy, Default, Pack)]
#[pack(name = "frontier.signal")]
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

/// Mailboxes as they are packed: what waits in each.
pub type SavedMailboxes = List<ArrayVec<Signal, MAILBOX_MAX>, { 1 << 16 }>;

impl Mailboxes {
    pub fn save(&self) -> SavedMailboxes {
        let of_camp = |camp: usize| {
            let begin = camp * MAILBOX_MAX;
            self.signals[begin..begin + usize::from(self.waiting[camp])].iter().copied().collect()
        };
        let camps: Vec<_> = (0..self.waiting.len()).map(of_camp).collect();
        camps.try_into().expect("the landscape has fewer camps")
    }

    pub fn load(saved: SavedMailboxes) -> Self {
        let mut mailboxes = Self::new(saved.len());
        for (camp, signals) in saved.iter().enumerate() {
            signals.iter().for_each(|signal| _ = mailboxes.post(camp as u16, *signal));
        }
        mailboxes
    }

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

    pub fn camps(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// Opens a camp's mailbox: how many signals were in it, to be [read](Self::read) before another is posted.
    pub fn open(&mut self, camp: u32) -> usize {
        std::mem::take(&mut self.waiting[camp as usize]).into()
    }

    /// A signal of a mailbox that has been opened.
    pub fn read(&self, camp: u32, index: usize) -> Signal {
        self.signals[camp as usize * MAILBOX_MAX + index]
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
