//! Commits: what is to be saved, on its way to the disk.
//!
//! Cuts of a frame are added to one parcel, which is handed to the writer at the frame's end. What the writer does not
//! take, because it is full or its disk is dead, stays in the parcel, and later cuts go over it: of each record there is
//! the newest alone, however long the disk is away.
//!
//! What was handed in is kept until it is acknowledged. If it is refused, and with it what was built on it, nothing more
//! is handed in until every answer is there. Then all that was refused, in its order, and what came since become one
//! commit: the present state of everybody concerned. So after any number of refusals the store goes from one state that
//! was true to another, and no world has to be asked again.
//!
//! ```text
//! cuts --> waiting --(a commit a frame)--> in flight --> acknowledged
//!             ^                                |
//!             '---- refused, in order <--------'    once nothing is in flight
//! ```
//!
//! The newest value of a record that is not on disk is found here ([`Commits::newest`]): who comes back, and a world that is made
//! again, need not wait for the disk.
//!
//! Frame thread. Cost: values are shared, not copied; a map entry for each record.

use std::{collections::VecDeque, sync::Arc};

use throng_persistence::{
    Commit, Done, Key, Lease, LeaseRequest, Outcome, Refusal, SaveCounters, Ticket, Writer, writer::Full,
};
use throng_world::{ids::WorldId, saving::SaveRequest};

use super::SavedNow;
use crate::lifecycle::Answer;

/// What is saved together, and who waits for it.
#[derive(Default)]
pub(crate) struct Parcel {
    pub commit: Commit,
    pub requests: Vec<(WorldId, SaveRequest)>,
    /// Operators who wait for it.
    pub told: Vec<Answer<SavedNow>>,
}

impl Parcel {
    fn append(&mut self, later: Parcel) {
        self.commit.append(later.commit);
        self.requests.extend(later.requests);
        self.told.extend(later.told);
    }

    fn is_empty(&self) -> bool {
        self.commit.is_empty() && self.requests.is_empty() && self.told.is_empty()
    }
}

/// What the writer was asked.
enum Asked {
    Commit(Parcel),
    Lease { player: u64, is_release: bool },
}

/// What came of it.
pub(crate) enum Answered {
    Saved(Parcel),
    /// Why; it is handed in again.
    Refused(Refusal),
    /// A lease was taken, prolonged or given up, or was not.
    Lease {
        player: u64,
        is_release: bool,
        outcome: Outcome,
    },
}

/// All that is on its way.
pub(crate) struct Commits {
    writer: Writer,
    waiting: Parcel,
    in_flight: VecDeque<(Ticket, Asked)>,
    commits_in_flight: usize,
    /// Refused since everything was last well, in the order of tickets.
    refused: Parcel,
    is_refused: bool,
    /// Test switch.
    pub forgets_refusals: bool,
    /// Why the writer did not take the parcel that waits.
    pub full: Option<Full>,
}

impl Commits {
    pub fn new(writer: Writer) -> Commits {
        Commits {
            writer,
            waiting: Parcel::default(),
            in_flight: VecDeque::new(),
            commits_in_flight: 0,
            refused: Parcel::default(),
            is_refused: false,
            forgets_refusals: false,
            full: None,
        }
    }

    /// Is to be saved with all else of this frame.
    pub fn add(&mut self, parcel: Parcel) {
        self.waiting.append(parcel);
    }

    /// Hands in what waits, under the leases that there are.
    pub fn submit(&mut self, lease_of: impl Fn(u64) -> Option<Lease>) {
        if self.is_refused {
            if self.commits_in_flight > 0 {
                return;
            }
            let since = std::mem::replace(&mut self.waiting, std::mem::take(&mut self.refused));
            self.waiting.append(since);
            self.is_refused = false;
        }
        if self.waiting.is_empty() {
            self.full = None;
            return;
        }
        let mut commit = self.waiting.commit.clone();
        let players = self.waiting.commit.keys().filter(|key| *key == Key::player(key.id as u64));
        players.filter_map(|key| lease_of(key.id as u64)).for_each(|lease| _ = commit.under(&lease));
        match self.writer.submit(commit) {
            Ok(ticket) => {
                self.in_flight.push_back((ticket, Asked::Commit(std::mem::take(&mut self.waiting))));
                self.commits_in_flight += 1;
                self.full = None;
            }
            Err(full) => self.full = Some(full),
        }
    }

    /// Asks something about the lease of a player. False: the writer does not take it now.
    pub fn lease(&mut self, player: u64, request: LeaseRequest) -> bool {
        let is_release = matches!(request, LeaseRequest::Release { .. });
        match self.writer.lease(request) {
            Ok(ticket) => {
                self.in_flight.push_back((ticket, Asked::Lease { player, is_release }));
                true
            }
            Err(_) => false,
        }
    }

    /// What has come of one of those things. `None`: nothing more yet.
    pub fn take_answer(&mut self) -> Option<Answered> {
        let ack = self.writer.take_ack()?;
        let (ticket, asked) = self.in_flight.pop_front()?;
        debug_assert_eq!(ticket, ack.ticket, "answers come in the order of tickets");
        Some(match (asked, ack.outcome) {
            (Asked::Lease { player, is_release }, outcome) => Answered::Lease { player, is_release, outcome },
            (Asked::Commit(parcel), Ok(Done::Committed | Done::Leased(_) | Done::Released)) => {
                self.commits_in_flight -= 1;
                Answered::Saved(parcel)
            }
            (Asked::Commit(mut parcel), Err(refusal)) => {
                self.commits_in_flight -= 1;
                if let Refusal::Stale { key, .. } | Refusal::Unleased { key } = &refusal {
                    parcel.commit.withdraw(*key);
                }
                if !self.forgets_refusals {
                    self.refused.append(parcel);
                }
                self.is_refused = true;
                Answered::Refused(refusal)
            }
        })
    }

    /// Nothing is to be saved of a player any more.
    pub fn forget(&mut self, player: u64) {
        self.waiting.commit.withdraw(Key::player(player));
        self.refused.commit.withdraw(Key::player(player));
    }

    /// What is to be under this key and is not known to be on disk yet.
    pub fn newest(&self, key: Key) -> Option<Option<Arc<Vec<u8>>>> {
        let in_flight = self.in_flight.iter().rev().filter_map(|(_, asked)| match asked {
            Asked::Commit(parcel) => Some(parcel),
            Asked::Lease { .. } => None,
        });
        // While refusals are gathered, what is in flight may be newer than they are.
        let mut parcels = std::iter::once(&self.waiting).chain(in_flight).chain([&self.refused]);
        parcels.find_map(|parcel| parcel.commit.value(key)).map(|value| value.cloned())
    }

    /// Everything that was ever added is on disk.
    pub fn is_all_saved(&self) -> bool {
        self.waiting.is_empty() && self.commits_in_flight == 0 && !self.is_refused
    }

    pub fn is_down(&self) -> bool {
        self.writer.is_down()
    }

    /// Bytes that are not handed in yet.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.commit.bytes() + self.refused.commit.bytes()
    }

    pub fn counters(&self) -> SaveCounters {
        self.writer.counters()
    }

    /// Waits until the writer has done all that it was handed. True: all that was ever added is on disk.
    pub fn finish(mut self) -> bool {
        let was_all_in = self.waiting.is_empty() && !self.is_refused;
        let acks = self.writer.finish();
        let outcomes: Vec<_> = self
            .in_flight
            .drain(..)
            .map(|(ticket, asked)| {
                let outcome = acks.iter().find(|ack| ack.ticket == ticket).map(|ack| &ack.outcome);
                matches!(asked, Asked::Lease { .. }) || matches!(outcome, Some(Ok(_)))
            })
            .collect();
        was_all_in && outcomes.into_iter().all(|is_saved| is_saved)
    }
}
