//! Accounts: players who pay each other, so that whatever is doubled, lost or half there shows.
//!
//! Each account says how many coins it has and which commit wrote it last. The coins of all accounts stay what they
//! were at the beginning, and both sides of a payment must name the same commit or a later one.

use std::collections::BTreeMap;

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_pack::{List, Pack, envelope};
use throng_persistence::{
    Commit, Key, Kind, Reads,
    conservation::{self, Count},
};

pub const COINS: u32 = 1;

/// Coins that each account begins with.
const COINS_EACH: i64 = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Pack)]
#[pack(name = "test.account")]
pub struct Account {
    pub coins: i64,
    pub written_by: u64,
    /// What makes records span pages.
    pub luggage: List<u8, 6_000>,
}

/// What all accounts should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts(pub BTreeMap<Key, Account>);

impl Accounts {
    /// The first commit: it makes them, with their coins.
    pub fn found(count: u64) -> (Accounts, Commit) {
        let account = Account { coins: COINS_EACH, written_by: 0, luggage: List::default() };
        let accounts = Accounts((0..count).map(|id| (Key::player(id), account.clone())).collect());
        let mut commit = accounts.whole();
        commit.items_created(COINS, COINS_EACH * count as i64);
        (accounts, commit)
    }

    /// Two accounts change, and are written in one commit.
    pub fn pay(&mut self, number: u64, rng: &mut Xoshiro256PlusPlus) -> Commit {
        let count = self.0.len() as u64;
        let payer = rng.random_range(0..count);
        let payee = (payer + rng.random_range(1..count)) % count;
        self.pay_from_to(Key::player(payer), Key::player(payee), number, rng)
    }

    /// The same between these two.
    pub fn pay_from_to(&mut self, payer: Key, payee: Key, number: u64, rng: &mut Xoshiro256PlusPlus) -> Commit {
        let amount = rng.random_range(1..20);
        let mut commit = Commit::new();
        for (key, change) in [(payer, -amount), (payee, amount)] {
            let account = self.0.get_mut(&key).expect("it was founded");
            account.coins += change;
            account.written_by = number;
            let bytes = if rng.random_bool(0.1) { rng.random_range(0..6_000) } else { rng.random_range(0..300) };
            account.luggage = List::try_from(vec![number as u8; bytes]).expect("within the list's maximum");
            commit.put(key, account).expect("an account packs");
        }
        commit
    }

    /// All of them in one commit.
    pub fn whole(&self) -> Commit {
        let mut commit = Commit::new();
        for (key, account) in &self.0 {
            commit.put(*key, account).expect("an account packs");
        }
        commit
    }

    /// What the store has.
    pub fn read(reads: &dyn Reads) -> Result<(Accounts, Count), String> {
        let mut accounts = Accounts::default();
        let mut broken = None;
        let count = conservation::check(reads, |key, value, item| {
            // Worlds hold nothing here.
            if key.kind != Kind::Player {
                return;
            }
            match envelope::read::<Account>(value) {
                Ok(account) => {
                    item(COINS, account.coins);
                    accounts.0.insert(key, account);
                }
                Err(error) => broken = Some(format!("{key:?}: {error}")),
            }
        });
        let count = count.map_err(|error| error.to_string())?;
        broken.map_or(Ok((accounts, count)), Err)
    }
}
