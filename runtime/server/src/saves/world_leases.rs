//! World leases: which saved worlds are this process's, where several share a store.
//!
//! Two processes that save a world under one number would each write over what the other has. So a world's number is leased before
//! its record is read, and its record and its cells are written under that lease.
//!
//! ```text
//! world ordered --> lease asked --> (held by another process: again every second) --> record read --> world
//!                        |                                                                              |
//!                        '--> refused, if that process prolongs it meanwhile: it is alive               |
//!                                                                                                       |
//! forgotten <-- lease given up <-- all of it is on disk <-- the world has ended <-----------------------'
//! ```
//!
//! A process that has died does not prolong, so its worlds are to be had when their leases are over. A store that this process
//! alone has open needs none of it.
//!
//! Frame thread. Cost: for worlds that come or go; a look at all of them once a second.

use std::collections::BTreeMap;

use throng_persistence::{Done, Key, Lease, LeaseRequest, Outcome, Refusal};
use throng_platform::time::Nanos;
use throng_profiler::{log_error, log_info};

use super::{
    commits::Commits,
    counts::SAVES,
    held_lease::{Answer, Doubted, HeldLease, LeaseTerms},
};

/// A world that another process has is asked for again so often.
const HELD_AGAIN_AFTER: Nanos = Nanos::from_secs(1);
/// A world that was claimed and has not been asked for in so long is wanted no more.
const FORGOTTEN_AFTER: Nanos = Nanos::from_secs(10);
/// So often all are looked at.
const LOOK_EVERY: Nanos = Nanos::from_secs(1);

/// Whose a world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    Ours,
    /// The store has not said, or another process has it and may be dead: to be asked again.
    Wait,
    /// Another process has it, and lives.
    Elsewhere {
        owner: u64,
    },
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// The lease is to be asked for, from then on.
    Wants {
        from: Nanos,
    },
    /// It was asked for.
    Leasing,
    /// A world has it, or is being made.
    Ours,
    /// That world has ended: the lease is to be given up once all is on disk.
    Left,
    /// That was asked for.
    Releasing,
    Elsewhere {
        owner: u64,
    },
}

#[derive(Debug)]
struct Entry {
    lease: HeldLease,
    stage: Stage,
    asked_at: Nanos,
    /// Which process had it when it was first asked for, and when that lease was to end (ms since 1970).
    elsewhere: Option<(u64, u64)>,
}

/// The worlds that this process has, wants or gives up, by the numbers that they are saved under.
pub(crate) struct WorldLeases {
    worlds: BTreeMap<u64, Entry>,
    terms: LeaseTerms,
    look_at: Nanos,
    /// One is wanted, or to be given up.
    is_restless: bool,
    doubted: Doubted,
    /// Which another process has now.
    lost: Vec<u64>,
}

impl WorldLeases {
    pub fn new(terms: LeaseTerms) -> WorldLeases {
        WorldLeases {
            worlds: BTreeMap::new(),
            terms,
            look_at: Nanos::ZERO,
            is_restless: false,
            doubted: Doubted::default(),
            lost: Vec::new(),
        }
    }

    /// A world of this number is to be made. Asked again until it is another answer than `Wait`.
    pub fn claim(&mut self, id: u64, now: Nanos) -> Claim {
        let entry = self.worlds.entry(id).or_insert_with(|| {
            self.is_restless = true;
            let stage = Stage::Wants { from: now };
            Entry { lease: HeldLease::default(), stage, asked_at: now, elsewhere: None }
        });
        entry.asked_at = now;
        match entry.stage {
            Stage::Ours => Claim::Ours,
            Stage::Left => {
                entry.stage = Stage::Ours;
                Claim::Ours
            }
            Stage::Elsewhere { owner } => {
                // Whoever asks once more begins anew.
                self.worlds.remove(&id);
                Claim::Elsewhere { owner }
            }
            Stage::Wants { .. } | Stage::Leasing | Stage::Releasing => Claim::Wait,
        }
    }

    /// A world of this number was claimed, and the store has not said that it is this process's.
    pub fn is_waiting(&self, id: u64) -> bool {
        self.worlds.get(&id).is_some_and(|entry| !matches!(entry.stage, Stage::Ours | Stage::Left))
    }

    /// Which process the store has said that has it.
    pub fn held_by(&self, id: u64) -> Option<u64> {
        self.worlds.get(&id)?.elsewhere.map(|(owner, _)| owner)
    }

    /// The lease under which a world is written.
    pub fn lease(&self, id: u64) -> Option<Lease> {
        self.worlds.get(&id)?.lease.get()
    }

    /// There is no world of this number any more, or it could not be made.
    pub fn left(&mut self, id: u64) {
        if let Some(entry) = self.worlds.get_mut(&id)
            && matches!(entry.stage, Stage::Ours)
        {
            (entry.stage, self.is_restless) = (Stage::Left, true);
        }
    }

    /// Asks for all leases anew, before anything is done with the worlds.
    pub fn doubt(&mut self, now: Nanos) {
        let held = self.worlds.iter_mut().filter(|(_, entry)| matches!(entry.stage, Stage::Ours | Stage::Left));
        let ids = held.map(|(id, entry)| {
            entry.lease.doubt(now);
            *id
        });
        self.doubted.begin(ids.collect(), now);
        self.look_at = now;
    }

    /// A world's lease may be over, and the store has not said.
    pub fn is_in_doubt(&self, now: Nanos) -> bool {
        self.doubted.is_on(now)
    }

    /// Something was refused because another process has had this world since the lease with this fence.
    pub fn lost_lease(&mut self, id: u64, fence: u64) {
        if self.worlds.get_mut(&id).is_some_and(|entry| entry.lease.lost(fence)) {
            self.worlds.remove(&id);
            self.doubted.settle(id);
            self.lost.push(id);
            log_error!(
                SAVES,
                save = id,
                "another process has taken this world over, since its lease was not prolonged in time: it ends here, and what \
                 was done in it since the last save is not kept; is the store slow, or did this process stand still?"
            );
        }
    }

    /// Those that are to end here, since this was last asked.
    pub fn take_lost(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.lost)
    }

    /// What the store says of a lease.
    pub fn take_answer(&mut self, id: u64, is_release: bool, outcome: &Outcome, now: Nanos) {
        let Some(entry) = self.worlds.get_mut(&id) else { return };
        self.is_restless = true;
        let Answer { is_sure, has_failed } = entry.lease.take_answer(outcome, &self.terms, now);
        if is_sure || is_release {
            self.doubted.settle(id);
        }
        if has_failed {
            self.look_at = now;
        }
        match outcome {
            Ok(Done::Leased(_)) => {
                if matches!(entry.stage, Stage::Leasing) {
                    (entry.stage, entry.elsewhere) = (Stage::Ours, None);
                }
            }
            Ok(_) if is_release => {
                self.worlds.remove(&id);
            }
            Ok(_) => {}
            Err(Refusal::Held { owner, until_ms, .. }) => {
                let is_first = entry.elsewhere.is_none();
                if *entry.elsewhere.get_or_insert((*owner, *until_ms)) != (*owner, *until_ms) {
                    entry.stage = Stage::Elsewhere { owner: *owner };
                    return;
                }
                if is_first {
                    log_info!(
                        SAVES,
                        save = id,
                        owner,
                        until_ms,
                        "a world that is to be made is another process's; it waits"
                    );
                }
                entry.stage = Stage::Wants { from: now + HELD_AGAIN_AFTER };
            }
            Err(Refusal::Stale { .. } | Refusal::Unleased { .. }) if is_release => {
                self.worlds.remove(&id);
            }
            Err(Refusal::Stale { ours, .. }) => self.lost_lease(id, *ours),
            // The disk failed; it is asked again.
            Err(_) => match entry.stage {
                Stage::Leasing => entry.stage = Stage::Wants { from: now },
                Stage::Releasing => entry.stage = Stage::Left,
                _ => {}
            },
        }
    }

    /// Asks for leases, and gives them up. `is_used`: whether there is a world of a number, or one is being made.
    pub fn step(&mut self, now: Nanos, unix_ms: u64, commits: &mut Commits, is_used: impl Fn(&u64) -> bool) {
        if now >= self.look_at {
            self.look_at = now + LOOK_EVERY;
            self.look_at_all(now, unix_ms, commits, is_used);
        }
        if !std::mem::take(&mut self.is_restless) {
            return;
        }
        for (&id, entry) in &mut self.worlds {
            let key = Key::world(id);
            match (entry.stage, entry.lease.get()) {
                (Stage::Wants { from }, _) if from <= now && commits.lease(self.terms.take(key, unix_ms), now) => {
                    entry.stage = Stage::Leasing;
                }
                (Stage::Left, Some(lease))
                    if commits.newest(key).is_none()
                        && !commits.has_cells_of(id)
                        && commits.lease(LeaseRequest::Release { lease }, now) =>
                {
                    entry.stage = Stage::Releasing;
                }
                _ => {}
            }
        }
        // Those that have ended are tried again at the next look.
        self.is_restless = self.worlds.values().any(|entry| matches!(entry.stage, Stage::Wants { .. }));
    }

    fn look_at_all(&mut self, now: Nanos, unix_ms: u64, commits: &mut Commits, is_used: impl Fn(&u64) -> bool) {
        let is_forgotten = |entry: &Entry| now.saturating_sub(entry.asked_at) > FORGOTTEN_AFTER;
        let is_unwanted = |entry: &Entry| matches!(entry.stage, Stage::Wants { .. } | Stage::Elsewhere { .. });
        self.worlds.retain(|_, entry| !(is_unwanted(entry) && is_forgotten(entry)));
        for (id, entry) in &mut self.worlds {
            if matches!(entry.stage, Stage::Ours) && is_forgotten(entry) && !is_used(id) {
                entry.stage = Stage::Left;
            }
            if matches!(entry.stage, Stage::Ours | Stage::Left) {
                entry.lease.prolong_if_due(&self.terms, now, unix_ms, commits);
            }
            self.is_restless |= matches!(entry.stage, Stage::Left);
        }
    }

    /// Everything is on disk, and the server ends: no process need wait for the end of a lease.
    pub fn give_all_up(&mut self, now: Nanos, commits: &mut Commits) {
        for entry in self.worlds.values().filter(|entry| !matches!(entry.stage, Stage::Releasing)) {
            if let Some(lease) = entry.lease.get() {
                // If the writer does not take it, the others wait for its end.
                _ = commits.lease(LeaseRequest::Release { lease }, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use throng_persistence::{
        Commit, Embedded, Reads, Store, StoreError, Writer, WriterSettings, commit::Order, disk::MemoryDisk,
        refused_keys::RefusedKeys,
    };
    use throng_platform::clock::ManualClock;

    use super::{
        super::commits::{Answered, Parcel},
        *,
    };
    use throng_world::ids::WorldId;

    const HUB: u64 = 7;
    const LEASE: Nanos = Nanos::from_secs(6);

    #[derive(Clone)]
    struct Shared(Arc<Mutex<Embedded>>);

    impl Store for Shared {
        fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
            self.0.lock().unwrap().apply(orders, refused)
        }

        fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
            self.0.lock().unwrap().settle()
        }

        fn is_shared(&self) -> bool {
            true
        }

        fn reader(&self) -> Arc<dyn Reads> {
            self.0.lock().unwrap().reader()
        }
    }

    /// One of two processes.
    struct Process {
        leases: WorldLeases,
        commits: Commits,
    }

    impl Process {
        fn new(owner: u64, store: &Shared) -> Process {
            let clock = Arc::new(ManualClock::new());
            let writer = Writer::inline(Box::new(store.clone()), WriterSettings::default(), clock);
            let leases = WorldLeases::new(LeaseTerms { owner, length: LEASE });
            Process { leases, commits: Commits::new(writer) }
        }

        /// Frames of a second, in which it wants the world if it has not got it.
        fn claims(&mut self, seconds: std::ops::Range<u64>) -> Claim {
            let mut claim = Claim::Wait;
            for second in seconds {
                if claim == Claim::Wait {
                    claim = self.leases.claim(HUB, Nanos::from_secs(second));
                }
                self.lives(second);
            }
            claim
        }

        fn lives(&mut self, second: u64) {
            let now = Nanos::from_secs(second);
            self.commits.submit(now);
            // What is asked in one is answered in the next, or at once: it is the same.
            for _ in 0..2 {
                while let Some(answer) = self.commits.take_answer() {
                    if let Answered::Lease { key, is_release, outcome } = answer {
                        self.leases.take_answer(key.id as u64, is_release, &outcome, now);
                    }
                }
                self.leases.step(now, 1_000 * second, &mut self.commits, |_| true);
            }
        }
    }

    fn two() -> (Process, Process) {
        let store = Shared(Arc::new(Mutex::new(Embedded::on(Box::new(MemoryDisk::default())).unwrap())));
        (Process::new(1, &store), Process::new(2, &store))
    }

    #[test]
    fn a_world_of_a_process_that_lives_is_refused_by_its_number() {
        let (mut north, mut south) = two();
        assert_eq!(north.claims(0..3), Claim::Ours);
        let mut claim = Claim::Wait;
        for second in 3..9 {
            north.lives(second);
            if claim == Claim::Wait {
                claim = south.claims(second..second + 1);
            }
        }
        assert_eq!(claim, Claim::Elsewhere { owner: 1 }, "north has prolonged it meanwhile");
        assert!(north.leases.lease(HUB).is_some() && south.leases.lease(HUB).is_none());
    }

    #[test]
    fn a_world_of_a_process_that_died_is_to_be_had_when_its_lease_is_over() {
        let (mut north, mut south) = two();
        assert_eq!(north.claims(0..2), Claim::Ours);
        assert_eq!(south.claims(2..6), Claim::Wait);
        assert_eq!((south.leases.is_waiting(HUB), south.leases.held_by(HUB)), (true, Some(1)));
        assert_eq!(south.claims(6..10), Claim::Ours);
        // It had only stood still.
        north.leases.doubt(Nanos::from_secs(10));
        assert!(north.leases.is_in_doubt(Nanos::from_secs(10)));
        north.lives(10);
        north.lives(11);
        assert!(!north.leases.is_in_doubt(Nanos::from_secs(11)));
        assert_eq!((north.leases.take_lost(), north.leases.lease(HUB)), (vec![HUB], None));
    }

    #[test]
    fn a_world_that_has_ended_is_given_up_once_it_is_on_disk() {
        let (mut north, mut south) = two();
        assert_eq!(north.claims(0..2), Claim::Ours);
        let mut commit = Commit::new();
        commit.put_bytes(Key::cell(HUB, 3), vec![1]).under(&north.leases.lease(HUB).unwrap());
        north.commits.add(Parcel::of_cut(WorldId::new(0, 0), commit, Vec::new(), Some(1)));
        north.leases.left(HUB);
        north.leases.step(Nanos::from_secs(2), 2_000, &mut north.commits, |_| true);
        assert_eq!(south.claims(2..4), Claim::Wait, "a cell is on its way");
        north.lives(4);
        north.lives(5);
        assert_eq!(south.claims(5..7), Claim::Ours, "before the lease was over");
    }
}
