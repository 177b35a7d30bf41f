//! Settlement: all that a game asks of its store in one workload, and what the store must have after each batch.
//!
//! Players pay each other, come, go for ever and come again under the number of somebody who went. Owners take leases of them,
//! prolong them, give them up and take each other's when their time is over. Cells of a world's map change, alone or with the
//! player who builds there in one commit, and become again as nobody has touched them, in which case there is no record.

use std::collections::BTreeMap;

use rand::{Rng, seq::IteratorRandom};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_pack::List;
use throng_persistence::{
    Commit, Done, Key, Kind, Lease, LeaseRequest, Outcome, Reads, Refusal, commit::Request, conservation::Count,
};

use crate::accounts::{Account, Accounts, COINS};

/// What the store has of cells.
type Cells = BTreeMap<Key, Vec<u8>>;

const PLAYERS_AT_FIRST: u64 = 12;
/// Numbers that players ever have.
const PLAYERS_MAX: u64 = 24;
/// Fewer than so many do not stay behind.
const PLAYERS_MIN: usize = 6;
const WORLD: u64 = 7;
const CELLS: u64 = 64;
/// A builder changes so many cells at once.
const CELLS_AT_ONCE_MAX: u64 = 6;
/// Two processes, and one that has never had anything.
const OWNERS: [u64; 2] = [10, 20];
const STRANGER: u64 = 99;
const LEASE_MS: u64 = 1_000;

/// What a store keeps of a lease: owner (0: nobody), fence, end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub owner: u64,
    pub fence: u64,
    pub until_ms: u64,
}

/// What there is to be after a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    pub accounts: Accounts,
    pub cells: BTreeMap<Key, Vec<u8>>,
    pub leases: BTreeMap<Key, Held>,
    pub now_ms: u64,
}

impl Settlement {
    /// The first batch.
    pub fn found() -> (Settlement, Vec<Request>) {
        let (accounts, first) = Accounts::found(PLAYERS_AT_FIRST);
        (Settlement { accounts, now_ms: 1, ..Settlement::default() }, vec![Request::Commit(first)])
    }

    /// Up to nine orders, by chance. `number` tells batches apart.
    pub fn turn(&mut self, number: u64, rng: &mut Xoshiro256PlusPlus) -> Vec<Request> {
        self.now_ms += rng.random_range(0..LEASE_MS / 2);
        let count = rng.random_range(1..10);
        (0..count).filter_map(|_| self.order(number, rng)).collect()
    }

    /// `None` where nobody is there who could.
    fn order(&mut self, number: u64, rng: &mut Xoshiro256PlusPlus) -> Option<Request> {
        match rng.random_range(0..20) {
            0..8 => self.pay(number, rng).map(Request::Commit),
            8..11 => Some(Request::Commit(self.build(number, rng))),
            11 => self.go_for_ever(rng).map(Request::Commit),
            12..14 => self.come(number, rng).map(Request::Commit),
            14..18 => self.take_lease(rng).map(Request::Lease),
            18 => self.prolong(rng).map(Request::Lease),
            _ => self.release(rng).map(Request::Lease),
        }
    }

    fn lease(&self, key: Key) -> Option<Lease> {
        let held = self.leases.get(&key)?;
        Some(Lease { key, owner: held.owner, fence: held.fence, until_ms: held.until_ms })
    }

    /// Whom a commit may write: who was never leased, or is now.
    fn may_be_written(&self, key: Key) -> bool {
        self.leases.get(&key).is_none_or(|held| held.owner != 0)
    }

    fn under(&self, commit: &mut Commit, key: Key) {
        self.lease(key).iter().for_each(|lease| _ = commit.under(lease));
    }

    fn pay(&mut self, number: u64, rng: &mut Xoshiro256PlusPlus) -> Option<Commit> {
        let able = self.accounts.0.keys().copied().filter(|key| self.may_be_written(*key));
        let [payer, payee] = able.choose_multiple(rng, 2)[..] else { return None };
        let mut commit = self.accounts.pay_from_to(payer, payee, number, rng);
        self.under(&mut commit, payer);
        self.under(&mut commit, payee);
        // Whoever pays may build with it: both sides are in one commit.
        if rng.random_bool(0.3) {
            self.change_cells(&mut commit, number, rng);
        }
        Some(commit)
    }

    fn build(&mut self, number: u64, rng: &mut Xoshiro256PlusPlus) -> Commit {
        let mut commit = Commit::new();
        self.change_cells(&mut commit, number, rng);
        commit
    }

    fn change_cells(&mut self, commit: &mut Commit, number: u64, rng: &mut Xoshiro256PlusPlus) {
        for _ in 0..rng.random_range(1..=CELLS_AT_ONCE_MAX) {
            let key = Key::cell(WORLD, rng.random_range(0..CELLS));
            if self.cells.contains_key(&key) && rng.random_bool(0.4) {
                self.cells.remove(&key);
                commit.delete(key);
            } else {
                let ground = vec![number as u8; rng.random_range(8..48)];
                commit.put_bytes(key, ground.clone());
                self.cells.insert(key, ground);
            }
        }
    }

    /// Everything that they have ceases to be, and their record with it.
    fn go_for_ever(&mut self, rng: &mut Xoshiro256PlusPlus) -> Option<Commit> {
        if self.accounts.0.len() <= PLAYERS_MIN {
            return None;
        }
        let key = self.accounts.0.keys().copied().filter(|key| self.may_be_written(*key)).choose(rng)?;
        let account = self.accounts.0.remove(&key)?;
        let mut commit = Commit::new();
        commit.delete(key).items_created(COINS, -account.coins);
        self.under(&mut commit, key);
        Some(commit)
    }

    /// Somebody new, maybe under the number of somebody who went.
    fn come(&mut self, number: u64, rng: &mut Xoshiro256PlusPlus) -> Option<Commit> {
        let free = |key: &Key| !self.accounts.0.contains_key(key) && self.may_be_written(*key);
        let key = (0..PLAYERS_MAX).map(Key::player).filter(free).choose(rng)?;
        let account = Account { coins: 100, written_by: number, luggage: List::default() };
        let mut commit = Commit::new();
        commit.put(key, &account).expect("an account packs").items_created(COINS, account.coins);
        self.under(&mut commit, key);
        self.accounts.0.insert(key, account);
        Some(commit)
    }

    fn take_lease(&mut self, rng: &mut Xoshiro256PlusPlus) -> Option<LeaseRequest> {
        let owner = *OWNERS.iter().choose(rng)?;
        let may_take = |key: &Key| {
            let held = self.leases.get(key);
            held.is_none_or(|held| held.owner == 0 || held.owner == owner || held.until_ms <= self.now_ms)
        };
        let key = (0..PLAYERS_MAX).map(Key::player).filter(may_take).choose(rng)?;
        let fence = self.leases.get(&key).map_or(1, |held| held.fence + 1);
        self.leases.insert(key, Held { owner, fence, until_ms: self.now_ms + LEASE_MS });
        Some(LeaseRequest::Take { key, owner, now_ms: self.now_ms, for_ms: LEASE_MS })
    }

    fn prolong(&mut self, rng: &mut Xoshiro256PlusPlus) -> Option<LeaseRequest> {
        let lease = self.any_lease(rng)?;
        let held = self.leases.get_mut(&lease.key)?;
        held.until_ms = self.now_ms + LEASE_MS;
        Some(LeaseRequest::Prolong { lease, now_ms: self.now_ms, for_ms: LEASE_MS })
    }

    fn release(&mut self, rng: &mut Xoshiro256PlusPlus) -> Option<LeaseRequest> {
        let lease = self.any_lease(rng)?;
        self.leases.insert(lease.key, Held { owner: 0, until_ms: 0, fence: lease.fence });
        Some(LeaseRequest::Release { lease })
    }

    fn any_lease(&self, rng: &mut Xoshiro256PlusPlus) -> Option<Lease> {
        let held = self.leases.iter().filter(|(_, held)| held.owner != 0);
        held.map(|(key, _)| *key).choose(rng).and_then(|key| self.lease(key))
    }

    /// What the store has of players and cells. Leases are asked for: see [`Settlement::who_may_write`].
    pub fn read(reads: &dyn Reads) -> Result<(Accounts, Cells, Count), String> {
        let (accounts, count) = Accounts::read(reads)?;
        let (mut cells, mut broken) = (BTreeMap::new(), None);
        // As a map is read that is loaded where somebody comes near.
        let all = Key::cell(WORLD, 0)..=Key::cell(WORLD, u64::MAX);
        let read = reads.range(all, &mut |key, saved| match saved {
            Ok(saved) if saved.is_previous => broken = Some(format!("{key:?} fell back")),
            Ok(saved) => _ = cells.insert(key, saved.value),
            Err(error) => broken = Some(format!("{key:?}: {error}")),
        });
        read.map_err(|error| error.to_string())?;
        broken.map_or(Ok((accounts, cells, count)), Err)
    }

    /// The records are those of this moment.
    pub fn is_of(&self, accounts: &Accounts, cells: &BTreeMap<Key, Vec<u8>>) -> bool {
        self.accounts == *accounts && self.cells == *cells
    }

    /// What is not to be there is not found by its name either.
    pub fn check_gone(&self, reads: &dyn Reads) -> Result<(), String> {
        let players = (0..PLAYERS_MAX).map(Key::player);
        let cells = (0..CELLS).map(|cell| Key::cell(WORLD, cell));
        let is_gone = |key: &Key| match key.kind {
            Kind::Player => !self.accounts.0.contains_key(key),
            _ => !self.cells.contains_key(key),
        };
        for key in players.chain(cells).filter(is_gone) {
            if reads.get(key).map_err(|error| error.to_string())?.is_some() {
                return Err(format!("{key:?} is there again"));
            }
        }
        Ok(())
    }

    /// Orders that change nothing, each with the answer of a store that has these leases and no others: whoever has one may
    /// write, and what was given up, or never taken, is nobody's.
    pub fn who_may_write(&self) -> Vec<Question> {
        let ask = |key| {
            let held = self.leases.get(&key).copied().unwrap_or(Held { owner: 0, fence: 0, until_ms: 0 });
            let Held { owner, fence, until_ms } = held;
            let mut nothing = Commit::new();
            nothing.under(&Lease { key, owner, fence, until_ms });
            let stale = Err(Refusal::Stale { key, ours: fence, newest: fence });
            (Request::Commit(nothing), if owner == 0 { stale } else { Ok(Done::Committed) })
        };
        (0..PLAYERS_MAX).map(Key::player).map(ask).collect()
    }

    /// The same of whose they are, and until when: nobody else may take them. Where a lease is nobody's this would take it, so
    /// it is asked of a store of which the other answers were right.
    pub fn who_has(&self) -> Vec<Question> {
        let held = self.leases.iter().filter(|(_, held)| held.owner != 0);
        held.map(|(&key, &Held { owner, until_ms, .. })| {
            let take = LeaseRequest::Take { key, owner: STRANGER, now_ms: 0, for_ms: LEASE_MS };
            (Request::Lease(take), Err(Refusal::Held { key, owner, until_ms }))
        })
        .collect()
    }
}

/// What is asked of a store, and the answer.
pub type Question = (Request, Outcome);
