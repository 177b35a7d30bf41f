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
//! A commit is taken as a whole or not at all, and of several worlds. If the store refuses it because somebody in it, or a world,
//! is another process's by now, then whoever dealt with them has what is never saved: [`Commits::undo`] drops all that, and
//! says which worlds go back to their last save.
//!
//! The newest value of a record that is not on disk is found here ([`Commits::newest`]): who comes back, and a world that is made
//! again, need not wait for the disk.
//!
//! Frame thread. Cost: values are shared, not copied; a map entry for each record, and one more while it is handed in. In a
//! frame in which the writer takes nothing, nothing is allocated.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use throng_net::protocol::ClientId;
use throng_persistence::{
    Commit, Done, ItemKind, Key, Kind, LeaseRequest, Outcome, Refusal, SaveCounters, Ticket, Writer,
    writer::{Finished, Full},
};
use throng_platform::time::Nanos;
use throng_profiler::log_error;
use throng_world::{ids::WorldId, saving::SaveRequest};

use super::{
    counts::SAVES,
    status::{SavedNow, WORLDS_MISSING_MAX},
};
use crate::lifecycle::Answer;

/// What is saved together, and who waits for it.
#[derive(Default)]
pub(crate) struct Parcel {
    commit: Commit,
    /// What each world brought.
    dealings: BTreeMap<WorldId, Dealings>,
    /// Operators who wait for it.
    told: Vec<Told>,
}

/// What a world brought: it is saved as a whole, or not.
#[derive(Default)]
struct Dealings {
    /// Its own, its cells', and those of everybody who was in it.
    keys: Vec<Key>,
    items: Vec<(ItemKind, i64)>,
    requests: Vec<SaveRequest>,
    /// The ticks of the cuts whose cells are in it.
    cells: Vec<u32>,
}

/// An operator who waits for everything, and the worlds of which nothing is there.
pub(crate) struct Told {
    pub answer: Answer<SavedNow>,
    pub worlds_missing: Vec<u32>,
}

/// Who is told that something is on disk.
#[derive(Default)]
pub(crate) struct Answers {
    /// Wishes of games.
    pub requests: Vec<(WorldId, SaveRequest)>,
    /// Worlds, and the ticks of the cuts whose cells are there.
    pub cells: Vec<(WorldId, u32)>,
    pub told: Vec<Told>,
}

/// What is not saved, since somebody in it is another process's.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Undone {
    /// They go back to their last save.
    pub worlds: BTreeSet<WorldId>,
    /// The numbers that worlds are saved under of which what was to be saved is not.
    pub numbers: BTreeSet<u64>,
    /// What they have now is never saved, wherever they are.
    pub players: BTreeSet<ClientId>,
}

impl Parcel {
    /// A world's cut. `cells` is its tick if there are cells in it.
    pub fn of_cut(world: WorldId, commit: Commit, requests: Vec<SaveRequest>, cells: Option<u32>) -> Parcel {
        if commit.is_empty() && requests.is_empty() && cells.is_none() {
            return Parcel::default();
        }
        let mut commit = commit;
        commit.from_source(u64::from(world.generation()) << 32 | world.index() as u64);
        let (keys, items) = (commit.keys_and_leased().collect(), commit.items().collect());
        let dealings = Dealings { keys, items, requests, cells: cells.into_iter().collect() };
        Parcel { commit, dealings: BTreeMap::from([(world, dealings)]), told: Vec::new() }
    }

    /// Operators who are told when all before it is on disk.
    pub fn of_told(told: Vec<Told>) -> Parcel {
        Parcel { told, ..Parcel::default() }
    }

    /// All of it is on disk: who is to be told.
    pub fn into_answers(self) -> Answers {
        let mut answers = Answers { told: self.told, ..Answers::default() };
        for (world, dealings) in self.dealings {
            answers.requests.extend(dealings.requests.into_iter().map(|request| (world, request)));
            answers.cells.extend(dealings.cells.into_iter().map(|tick| (world, tick)));
        }
        answers
    }

    fn append(&mut self, later: Parcel) {
        self.commit.append(later.commit);
        for (world, later) in later.dealings {
            self.dealings.entry(world).or_default().append(later);
        }
        self.told.extend(later.told);
    }

    fn is_empty(&self) -> bool {
        self.commit.is_empty() && self.dealings.is_empty() && self.told.is_empty()
    }

    /// Whether there are cells of the world with this number in it.
    fn has_cells_of(&self, world: u64) -> bool {
        self.commit.keys().any(|key| key.kind == Kind::Cell && key.leased_with() == Key::world(world))
    }

    /// Drops what worlds brought in which one of these was, and adds all others who were in them, until nobody is left who
    /// dealt with any of them.
    fn drop_dealings_with(&mut self, keys: &mut BTreeSet<Key>, worlds: &mut BTreeSet<WorldId>) {
        loop {
            let is_with = |world: &WorldId, dealings: &mut Dealings| {
                worlds.contains(world) || dealings.keys.iter().any(|key| keys.contains(key))
            };
            let dropped: Vec<(WorldId, Dealings)> = self.dealings.extract_if(.., is_with).collect();
            if dropped.is_empty() {
                break;
            }
            for (world, dealings) in dropped {
                dealings.keys.iter().for_each(|key| _ = self.commit.withdraw(*key));
                dealings.items.iter().for_each(|(kind, count)| _ = self.commit.items_created(*kind, -count));
                keys.extend(dealings.keys);
                worlds.insert(world);
            }
        }
        for told in &mut self.told {
            told.worlds_missing.extend(worlds.iter().map(|world| world.number()));
            told.worlds_missing.sort_unstable();
            told.worlds_missing.dedup();
            told.worlds_missing.truncate(WORLDS_MISSING_MAX);
        }
    }
}

impl Dealings {
    fn append(&mut self, later: Dealings) {
        let Dealings { keys, items, requests, cells } = later;
        self.keys.extend(keys);
        self.keys.sort_unstable();
        self.keys.dedup();
        for (kind, count) in items {
            match self.items.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, sum)) => *sum += count,
                None => self.items.push((kind, count)),
            }
        }
        self.requests.extend(requests);
        self.cells.extend(cells);
    }
}

/// A store that has not answered for so long stands still: it is away, though it has not failed. A batch takes milliseconds. Too
/// short: a disk that is busy for a moment is reported. Too long: nobody hears of one that hangs.
pub(crate) const STANDS_STILL_AFTER: Nanos = Nanos::from_secs(2);

/// What the writer was asked.
enum Asked {
    Commit(Parcel),
    Lease { key: Key, is_release: bool },
}

/// An order that is not answered yet.
struct InFlight {
    ticket: Ticket,
    asked: Asked,
    given_at: Nanos,
}

impl InFlight {
    fn parcel(&self) -> Option<&Parcel> {
        match &self.asked {
            Asked::Commit(parcel) => Some(parcel),
            Asked::Lease { .. } => None,
        }
    }
}

/// What came of it.
pub(crate) enum Answered {
    Saved(Parcel),
    /// Why; it is handed in again.
    Refused(Refusal),
    /// A lease was taken, prolonged or given up, or was not.
    Lease {
        key: Key,
        is_release: bool,
        outcome: Outcome,
    },
}

/// All that is on its way.
pub(crate) struct Commits {
    writer: Writer,
    waiting: Parcel,
    in_flight: VecDeque<InFlight>,
    commits_in_flight: usize,
    /// Refused since everything was last well, in the order of tickets.
    refused: Parcel,
    is_refused: bool,
    /// The store failed, and what it had then is not on disk yet. That it could be opened anew does not say that it takes it.
    has_failed: bool,
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
            has_failed: false,
            forgets_refusals: false,
            full: None,
        }
    }

    /// Is to be saved with all else of this frame.
    pub fn add(&mut self, parcel: Parcel) {
        self.waiting.append(parcel);
    }

    /// Hands in what waits. Players and worlds are written under the leases that there were when the cut came: under a later one
    /// it would be taken, though somebody else may have written them in between.
    pub fn submit(&mut self, now: Nanos) {
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
            // What it had then may have become somebody else's.
            self.has_failed &= self.commits_in_flight > 0;
            return;
        }
        // While the disk is away that is all that a frame does for saves, however much waits.
        if let Err(full) = self.writer.has_room_for(self.waiting.commit.bytes()) {
            self.full = Some(full);
            return;
        }
        match self.writer.submit(self.waiting.commit.clone()) {
            Ok(ticket) => {
                let asked = Asked::Commit(std::mem::take(&mut self.waiting));
                self.in_flight.push_back(InFlight { ticket, asked, given_at: now });
                self.commits_in_flight += 1;
                self.full = None;
            }
            Err(full) => self.full = Some(full),
        }
    }

    /// Asks something about a lease. False: the writer does not take it now.
    pub fn lease(&mut self, request: LeaseRequest, now: Nanos) -> bool {
        let (key, is_release) = (request.key(), matches!(request, LeaseRequest::Release { .. }));
        match self.writer.lease(request) {
            Ok(ticket) => {
                let asked = Asked::Lease { key, is_release };
                self.in_flight.push_back(InFlight { ticket, asked, given_at: now });
                true
            }
            Err(_) => false,
        }
    }

    /// Somebody waits for what is asked next.
    pub fn hurry(&self) {
        self.writer.hurry();
    }

    /// What has come of one of those things. `None`: nothing more yet.
    pub fn take_answer(&mut self) -> Option<Answered> {
        let ack = self.writer.take_ack()?;
        let InFlight { ticket, asked, .. } = self.in_flight.pop_front()?;
        debug_assert_eq!(ticket, ack.ticket, "answers come in the order of tickets");
        Some(match (asked, ack.outcome) {
            (Asked::Lease { key, is_release }, outcome) => Answered::Lease { key, is_release, outcome },
            (Asked::Commit(parcel), Ok(Done::Committed | Done::Leased(_) | Done::Released)) => {
                self.commits_in_flight -= 1;
                // While refusals are gathered, this one was handed in beside them.
                self.has_failed &= self.is_refused;
                Answered::Saved(parcel)
            }
            (Asked::Commit(parcel), Err(refusal)) => {
                self.commits_in_flight -= 1;
                self.has_failed |= matches!(refusal, Refusal::Store(_));
                if !self.forgets_refusals {
                    self.refused.append(parcel);
                }
                self.is_refused = true;
                Answered::Refused(refusal)
            }
        })
    }

    /// These are another process's by now. What is on its way of them is older than what that one wrote, and is neither saved
    /// nor loaded again; nor is anything of whoever dealt with them in it, or with those in turn, later on. What the writer has
    /// of it already the store refuses by itself: it is in one commit with them, or built on one that is.
    pub fn undo(&mut self, stale: BTreeSet<Key>) -> Undone {
        let (mut keys, mut worlds) = (stale, BTreeSet::new());
        let in_flight = self.in_flight.iter_mut().filter_map(|order| match &mut order.asked {
            Asked::Commit(parcel) => Some(parcel),
            Asked::Lease { .. } => None,
        });
        // In the order in which they came: what was before they dealt with each other stays.
        let all = std::iter::once(&mut self.refused).chain(in_flight).chain([&mut self.waiting]);
        all.for_each(|parcel| parcel.drop_dealings_with(&mut keys, &mut worlds));
        let ids = |kind| keys.iter().filter(move |key| key.kind == kind).map(|key| key.id as u64);
        Undone { worlds, numbers: ids(Kind::World).collect(), players: ids(Kind::Player).map(ClientId).collect() }
    }

    /// What is to be under this key and is not known to be on disk yet.
    pub fn newest(&self, key: Key) -> Option<Option<Arc<Vec<u8>>>> {
        let in_flight = self.in_flight.iter().rev().filter_map(InFlight::parcel);
        // While refusals are gathered, what is in flight may be newer than they are.
        let mut parcels = std::iter::once(&self.waiting).chain(in_flight).chain([&self.refused]);
        parcels.find_map(|parcel| parcel.commit.value(key)).map(|value| value.cloned())
    }

    /// Whether cells of the world with this number are not known to be on disk yet. Who reads them meanwhile, reads older ones.
    pub fn has_cells_of(&self, world: u64) -> bool {
        let in_flight = self.in_flight.iter().filter_map(InFlight::parcel);
        in_flight.chain([&self.waiting, &self.refused]).any(|parcel| parcel.has_cells_of(world))
    }

    /// Everything that was ever added is on disk.
    pub fn is_all_saved(&self) -> bool {
        self.waiting.is_empty() && self.commits_in_flight == 0 && !self.is_refused
    }

    /// Nothing reaches the disk now, as far as is known.
    pub fn is_away(&self, now: Nanos) -> bool {
        self.has_failed || self.full.is_some() || self.writer.is_down() || self.stands_still(now)
    }

    /// It was given something [`STANDS_STILL_AFTER`] ago and has said nothing since, neither that it is done nor that it failed.
    pub fn stands_still(&self, now: Nanos) -> bool {
        // Answers come in the order of tickets: the first is the oldest.
        self.in_flight.front().is_some_and(|oldest| now.saturating_sub(oldest.given_at) >= STANDS_STILL_AFTER)
    }

    /// This process did not run for so long: in that time nobody could have been answered.
    pub fn stood_still(&mut self, length: Nanos) {
        self.in_flight.iter_mut().for_each(|order| order.given_at += length);
    }

    /// Bytes that are not handed in yet.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.commit.bytes() + self.refused.commit.bytes()
    }

    pub fn counters(&self) -> SaveCounters {
        self.writer.counters()
    }

    /// What the longest transaction took since this was last asked.
    pub fn take_longest_batch(&mut self) -> Nanos {
        self.writer.take_longest_batch()
    }

    /// Waits until the writer has done all that it was handed, for so long at most. True: all that was ever added is on disk.
    pub fn finish(mut self, patience: Nanos) -> bool {
        let was_all_in = self.waiting.is_empty() && !self.is_refused;
        let Finished { acks, is_over } = self.writer.finish_within(patience);
        if !is_over {
            log_error!(
                SAVES,
                "the store does not come back from what it was given: the server ends without it, and whether that is on disk \
                 is not known"
            );
        }
        let outcomes: Vec<_> = self
            .in_flight
            .drain(..)
            .map(|InFlight { ticket, asked, .. }| {
                let outcome = acks.iter().find(|ack| ack.ticket == ticket).map(|ack| &ack.outcome);
                matches!(asked, Asked::Lease { .. }) || matches!(outcome, Some(Ok(_)))
            })
            .collect();
        was_all_in && outcomes.into_iter().all(|is_saved| is_saved)
    }
}
