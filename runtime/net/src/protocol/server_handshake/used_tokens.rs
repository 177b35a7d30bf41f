//! One token, one session: the memory of tokens that were used.
//!
//! A token is named by the tag of its private part. While a handshake is pending its token belongs to the
//! address that showed it (see `pending`); the session made with it spends it for good. The memory of that
//! ends when the token does.
//!
//! **Across a restart.** Nothing inside a token says when it was made (the creation time is not
//! authenticated), so a new handshake cannot tell a fresh token from one that its predecessor saw. Therefore
//! each session's token is kept by a [`TokenJournal`] *before* the client is admitted, and a new handshake is given
//! what the journal holds. Where no journal is kept, see `ServerHandshakeSettings::tokens_expire_from_unix_s` for the
//! rule that needs none.
//!
//! Bounded: a full table denies new sessions rather than forget a token that could come again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::Hasher;

use rand::RngCore;
use siphasher::sip::SipHasher24;
use thiserror::Error;

use super::super::cipher::TAG_BYTES;
use super::super::keyed_hash::{KeyedMap, KeyedState};

/// A token that a session was made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsedToken {
    pub(super) token_mac: [u8; TAG_BYTES],
    pub(super) expires_unix_s: u64,
}

impl UsedToken {
    /// Size of a record (bytes).
    pub const BYTES: usize = TAG_BYTES + 8 + 8;

    pub(super) fn new(token_mac: [u8; TAG_BYTES], expires_unix_s: u64) -> Self {
        Self { token_mac, expires_unix_s }
    }

    /// The record of a journal: tag, expiry, and a checksum that tells a torn write from a whole one.
    ///
    /// ```text
    /// | tag 16 | expires [unix s] 8 | checksum 8 |
    /// ```
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.token_mac);
        bytes[16..24].copy_from_slice(&self.expires_unix_s.to_le_bytes());
        let checksum = checksum_of(&bytes[..24]);
        bytes[24..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a record; `None` when its checksum does not hold.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (body, checksum) = bytes.split_last_chunk::<8>()?;
        if checksum_of(body).to_le_bytes() != *checksum {
            return None;
        }
        let (token_mac, expires) = body.split_first_chunk::<TAG_BYTES>()?;
        Some(Self { token_mac: *token_mac, expires_unix_s: u64::from_le_bytes(*expires.first_chunk()?) })
    }

    /// The token's expiry. A journal may drop the record once this lies back by more than the clock skew
    /// of the settings: from then on the token is refused by itself.
    pub fn expires_unix_s(&self) -> u64 {
        self.expires_unix_s
    }
}

/// A checksum against accidents, not attackers: a fixed key is enough.
fn checksum_of(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(0x7573_6564, 0x746F_6B65_6E73);
    hasher.write(bytes);
    hasher.finish()
}

/// Where used tokens survive the process. Without one they are remembered in memory only.
///
/// A record is asked for when its client has proven itself and comes into the line, and the client is admitted when it
/// is kept: a write that the kernel has taken survives the death of the process. So the token of who is turned away
/// in the end, or gives up, is refused after a restart.
pub trait TokenJournal: Send {
    /// Keeps a record, or begins to. Called in the serial part of the frame: hand it on and return. On an error the
    /// client is denied.
    fn record(&mut self, used: &UsedToken) -> Result<Recorded, JournalError>;

    /// What has become of a record that was begun, each once, in any order. `None`: nothing new. For a journal whose
    /// records are all kept at once the default does.
    fn next_done(&mut self) -> Option<(UsedToken, Result<(), JournalError>)> {
        None
    }
}

/// Whether a record is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recorded {
    Now,
    /// [`TokenJournal::next_done`] will say so.
    Later,
}

/// What is known of a token that somebody has proven to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenState {
    /// The journal has begun to keep it.
    Begun,
    /// The journal has it, and no session was made with it.
    Kept,
    /// The journal could not keep it. Not remembered, so that it may be tried again.
    Failed,
    /// A session was made with it.
    Spent,
}

/// The journal could not keep a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the journal of used tokens could not be written")]
pub struct JournalError;

pub(super) struct UsedTokens {
    states: KeyedMap<[u8; TAG_BYTES], TokenState>,
    /// How many of them are spent.
    spent_count: usize,
    by_expiry: BinaryHeap<Reverse<(u64, [u8; TAG_BYTES])>>,
    tokens_max: usize,
    /// The latest expiry among the forgotten. Should the wall clock step back, tokens up to here would
    /// look alive again with nobody to remember them: they stay refused.
    forgotten_up_to_unix_s: u64,
}

impl UsedTokens {
    pub(super) fn new(tokens_max: usize, rng: &mut impl RngCore) -> Self {
        Self {
            states: KeyedMap::with_hasher(KeyedState::new(rng)),
            spent_count: 0,
            by_expiry: BinaryHeap::new(),
            tokens_max,
            forgotten_up_to_unix_s: 0,
        }
    }

    /// Whether a session was made with this token, as far as anybody can know.
    pub(super) fn is_spent(&self, token_mac: &[u8; TAG_BYTES], forget_at_unix_s: u64) -> bool {
        forget_at_unix_s <= self.forgotten_up_to_unix_s || self.state(token_mac) == Some(TokenState::Spent)
    }

    pub(super) fn state(&self, token_mac: &[u8; TAG_BYTES]) -> Option<TokenState> {
        self.states.get(token_mac).copied()
    }

    /// Whether no session can be remembered beyond so many that are promised, and so none may begin. Those that are
    /// promised one are among the tokens that the journal has.
    pub(super) fn is_full(&self, promised: usize) -> bool {
        self.spent_count + promised.max(self.states.len() - self.spent_count) >= self.tokens_max
    }

    /// A session begins, here or in an earlier run: no other will with this token.
    pub(super) fn spend(&mut self, token_mac: [u8; TAG_BYTES], forget_at_unix_s: u64) {
        self.set(token_mac, TokenState::Spent, forget_at_unix_s);
    }

    /// The journal has a token, or has begun to keep it. Remembered as a spent one is, so that it is kept once however
    /// often its client comes into the line.
    pub(super) fn set(&mut self, token_mac: [u8; TAG_BYTES], state: TokenState, forget_at_unix_s: u64) {
        let before = self.states.insert(token_mac, state);
        self.spent_count += usize::from(state == TokenState::Spent);
        self.spent_count -= usize::from(before == Some(TokenState::Spent));
        if before.is_none() {
            self.by_expiry.push(Reverse((forget_at_unix_s, token_mac)));
        }
    }

    /// The journal is done with a token that it had begun to keep; one that it could not keep may be tried again.
    pub(super) fn end_record(&mut self, token_mac: &[u8; TAG_BYTES], ended: TokenState) {
        if let Some(state @ TokenState::Begun) = self.states.get_mut(token_mac) {
            if ended == TokenState::Failed {
                self.states.remove(token_mac);
            } else {
                *state = ended;
            }
        }
    }

    /// Forgets tokens that are refused by their expiry from now on.
    pub(super) fn expire(&mut self, unix_s: u64) {
        while let Some(Reverse((forget_at_unix_s, token_mac))) = self.by_expiry.peek() {
            if *forget_at_unix_s > unix_s {
                break;
            }
            self.forgotten_up_to_unix_s = self.forgotten_up_to_unix_s.max(*forget_at_unix_s);
            if self.states.remove(token_mac) == Some(TokenState::Spent) {
                self.spent_count -= 1;
            }
            self.by_expiry.pop();
        }
    }

    /// Tokens that a session was made with.
    pub(super) fn spent_count(&self) -> usize {
        self.spent_count
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    fn table(tokens_max: usize) -> UsedTokens {
        UsedTokens::new(tokens_max, &mut ChaCha20Rng::seed_from_u64(1))
    }

    #[test]
    fn a_token_is_spent_until_it_has_expired() {
        let mut used = table(10);
        assert!(!used.is_spent(&[1; 16], 100));
        used.spend([1; 16], 100);
        used.expire(99);
        assert!(used.is_spent(&[1; 16], 100));
        assert_eq!(used.spent_count(), 1);
        used.expire(100);
        assert_eq!(used.spent_count(), 0);
    }

    #[test]
    fn a_wall_clock_that_steps_back_revives_no_token() {
        let mut used = table(10);
        used.spend([1; 16], 100);
        used.expire(3_600);
        used.expire(50);
        assert!(used.is_spent(&[1; 16], 100));
        assert!(!used.is_spent(&[2; 16], 101), "tokens made since are welcome");
    }

    #[test]
    fn a_full_table_says_so_rather_than_forget() {
        let mut used = table(2);
        used.spend([1; 16], 100);
        used.spend([1; 16], 100);
        assert!(!used.is_full(0) && used.is_full(1));
        used.spend([2; 16], 50);
        assert!(used.is_full(0));
        used.expire(50);
        assert!(!used.is_full(0));
        assert!(used.is_spent(&[1; 16], 100));
    }

    #[test]
    fn what_the_journal_has_is_remembered_and_not_spent() {
        let mut used = table(3);
        used.set([1; 16], TokenState::Begun, 100);
        used.set([2; 16], TokenState::Begun, 100);
        used.end_record(&[1; 16], TokenState::Kept);
        used.end_record(&[2; 16], TokenState::Failed);
        assert_eq!([1, 2].map(|token| used.state(&[token; 16])), [Some(TokenState::Kept), None]);
        assert!(!used.is_spent(&[1; 16], 100) && used.spent_count() == 0);
        assert!(!used.is_full(2) && used.is_full(3), "those who were promised one are among them");
        used.spend([1; 16], 100);
        used.end_record(&[1; 16], TokenState::Failed);
        assert!(used.is_spent(&[1; 16], 100) && used.is_full(2));
        used.expire(100);
        assert_eq!((used.spent_count(), used.state(&[1; 16])), (0, None));
    }

    #[test]
    fn a_record_survives_its_bytes_and_a_torn_one_does_not() {
        let record = UsedToken::new([7; 16], 1_234_567);
        let bytes = record.to_bytes();
        assert_eq!(UsedToken::from_bytes(&bytes), Some(record));
        for bit in 0..bytes.len() * 8 {
            let mut torn = bytes;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(UsedToken::from_bytes(&torn), None, "bit {bit}");
        }
        assert_eq!(UsedToken::from_bytes(&[0; UsedToken::BYTES]), None, "a hole in the file");
    }
}
