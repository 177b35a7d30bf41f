//! The line of those who have proven themselves and wait to come in.
//!
//! ```text
//! response authentic -> | back ...... front | -> called -> admitted, or refused
//!                         in order of arrival    its world may still have to be made
//! ```
//!
//! Who stands in line keeps its place for as long as it goes on repeating its response; five seconds of silence end
//! that, nothing else does. While a client waits its token belongs to its address and is not spent, and its slot is
//! kept free. A client that proves itself anew, from another address or with a fresh token, takes its own earlier
//! place. One that is connected already, from before a crash or a new address, waits for the slot that it has.
//!
//! Bounded: a full line refuses the new. Places are numbers that count up from the front's, so telling a place is
//! one subtraction; the holes of those who went silent are closed by a sweep once a second, and until then count as
//! waiting.
//!
//! About 1.2 KB an entry, allocated when a response authenticated. The sweep costs some 50 ns an entry: 0.2 ms for
//! 4,096.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rand::RngCore;
use throng_platform::time::Nanos;

use super::super::cipher::TAG_BYTES;
use super::super::keyed_hash::{KeyedMap, KeyedState};
use super::super::link::{OpenError, SealedLink};
use super::super::packet::{RESPONSE_BYTES_MAX, SealedHeader};
use super::super::queued::QueueState;
use super::super::{ClientId, UserData};
use super::challenge::challenge_number;
use super::used_tokens::TokenState;

/// Our clients repeat themselves every 500 ms while they wait, plain ones more often: ten tries, which at 20 % loss
/// fail once in ten million.
const SILENCE_MAX: Nanos = Nanos::from_secs(5);

const SWEEP_EVERY: Nanos = Nanos::from_secs(1);

/// So many at the front are looked at for one whose record is known. The journal answers within a frame or two, in the
/// order in which it was asked; those who prove themselves anew again and again are passed over.
const PASSED_OVER_MAX: usize = 1_024;

pub(super) struct JoinQueue {
    /// Everybody here: in line, or called.
    entries: KeyedMap<SocketAddr, Box<Waiting>>,
    by_client: KeyedMap<ClientId, SocketAddr>,
    /// Which address each token belongs to: one per entry.
    holders: KeyedMap<[u8; TAG_BYTES], SocketAddr>,
    /// Front first; the one at `index` has the number `first_number + index`. A name whose entry is gone or has another
    /// number is a hole.
    line: VecDeque<SocketAddr>,
    first_number: u64,
    entries_max: usize,
    /// How many here have a slot already.
    takeovers_count: usize,
    next_sweep: Nanos,
    /// Scratch of the sweep.
    silent: Vec<SocketAddr>,
}

/// Number of the challenge that a response answers, then its sequence. Of two responses the greater is the newer one,
/// also if the client has started over and counts from elsewhere: it answers a later challenge then.
pub(super) type ResponseAge = (u64, u64);

/// A client that has proven itself.
pub(super) struct Waiting {
    pub link: SealedLink,
    pub client_id: ClientId,
    pub user_data: UserData,
    pub token_mac: [u8; TAG_BYTES],
    pub expires_unix_s: u64,
    /// Came by the cookie, so it is one of ours and knows *queued* and reasons.
    pub knows_queue: bool,
    pub since: Nanos,
    /// Of its token: it is not called before it is known whether the journal has that. `Kept` also without a journal.
    pub token_state: TokenState,
    /// Its earlier session still has a slot, which is to become this one's.
    takes_over: bool,
    last_heard: Nanos,
    /// Of the newest response: an older one is a copy, and proves nothing.
    newest_response: ResponseAge,
    /// Its number in line; of no meaning once it is called.
    number: u64,
    is_called: bool,
}

impl Waiting {
    pub(super) fn new(
        link: SealedLink,
        (client_id, user_data): (ClientId, UserData),
        (token_mac, expires_unix_s): ([u8; TAG_BYTES], u64),
        knows_queue: bool,
        newest_response: ResponseAge,
        now: Nanos,
    ) -> Box<Self> {
        link.count_from(newest_response.1);
        Box::new(Self {
            link,
            client_id,
            user_data,
            token_mac,
            expires_unix_s,
            knows_queue,
            since: now,
            token_state: TokenState::Kept,
            takes_over: false,
            last_heard: now,
            newest_response,
            number: 0,
            is_called: false,
        })
    }

    /// Takes a repeated response, of which the bytes are kept: they may be another handshake's.
    pub(super) fn hear(&mut self, header: SealedHeader, datagram: &[u8], now: Nanos) -> Result<(), OpenError> {
        let mut copy = [0; RESPONSE_BYTES_MAX];
        let copy = copy.get_mut(..datagram.len()).ok_or(OpenError::Malformed)?;
        copy.copy_from_slice(datagram);
        let body = self.link.open_handshake(header, copy)?;
        let response = (challenge_number(body.try_into().map_err(|_| OpenError::Malformed)?), header.sequence);
        if response <= self.newest_response {
            return Err(OpenError::Replayed);
        }
        self.newest_response = response;
        self.link.count_from(header.sequence);
        self.last_heard = now;
        Ok(())
    }
}

impl JoinQueue {
    pub(super) fn new(entries_max: usize, rng: &mut impl RngCore) -> Self {
        assert!(entries_max > 0, "a server with room for nobody in line admits nobody");
        Self {
            entries: KeyedMap::with_hasher(KeyedState::new(rng)),
            by_client: KeyedMap::with_hasher(KeyedState::new(rng)),
            holders: KeyedMap::with_hasher(KeyedState::new(rng)),
            line: VecDeque::new(),
            // Far from 0: who is called from behind the front may come back ahead of it.
            first_number: 1 << 32,
            entries_max,
            takeovers_count: 0,
            next_sweep: Nanos::ZERO,
            silent: Vec::new(),
        }
    }

    /// Everybody here, those who are called included.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn holds_client(&self, client_id: ClientId) -> bool {
        self.by_client.contains_key(&client_id)
    }

    /// Slots that have to be free for those here.
    pub(super) fn promised_slots(&self) -> usize {
        self.entries.len() - self.takeovers_count
    }

    /// This client's slot has become free; if it waits here, that one is promised to it.
    pub(super) fn session_ended(&mut self, client_id: ClientId) {
        let entry = self.by_client.get(&client_id).and_then(|address| self.entries.get_mut(address));
        if let Some(entry) = entry.filter(|entry| entry.takes_over) {
            entry.takes_over = false;
            self.takeovers_count -= 1;
        }
    }

    /// Whether a client that is not here yet finds no room.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.entries_max
    }

    pub(super) fn get_mut(&mut self, from: SocketAddr) -> Option<&mut Waiting> {
        self.entries.get_mut(&from).map(|entry| &mut **entry)
    }

    /// The address that waits with this token.
    pub(super) fn holder_of(&self, token_mac: &[u8; TAG_BYTES]) -> Option<SocketAddr> {
        self.holders.get(token_mac).copied()
    }

    /// The client that was called and waits at this address.
    pub(super) fn called_at(&self, address: SocketAddr) -> Option<ClientId> {
        self.entries.get(&address).filter(|entry| entry.is_called).map(|entry| entry.client_id)
    }

    /// Puts a client that has just proven itself at the back; one that is here already, where it stands. `takes_over`:
    /// it has a slot already. The caller has asked [`is_full`](Self::is_full).
    pub(super) fn enter(&mut self, from: SocketAddr, mut waiting: Box<Waiting>, takes_over: bool) {
        let earlier = self.by_client.get(&waiting.client_id).copied().and_then(|address| self.remove(address));
        // Another client's, whose address this one has now: it will not be heard of again.
        self.remove(from);
        match earlier {
            Some(earlier) if earlier.is_called => {
                self.first_number -= 1;
                waiting.number = self.first_number;
                waiting.since = earlier.since;
                self.line.push_front(from);
            }
            Some(earlier) => {
                waiting.number = earlier.number;
                waiting.since = earlier.since;
                let index = (earlier.number - self.first_number) as usize;
                self.line[index] = from;
            }
            None => {
                waiting.number = self.first_number + self.line.len() as u64;
                self.line.push_back(from);
            }
        }
        waiting.takes_over = takes_over;
        self.takeovers_count += usize::from(takes_over);
        self.by_client.insert(waiting.client_id, from);
        let earlier_holder = self.holders.insert(waiting.token_mac, from);
        assert!(earlier_holder.is_none(), "a token has one holder");
        self.entries.insert(from, waiting);
        debug_assert!(self.entries.len() <= self.entries_max);
    }

    /// Calls the first whose record is known, and so passes over those at the front whose is not yet.
    pub(super) fn call(&mut self) -> Option<(SocketAddr, &Waiting)> {
        self.close_front();
        let is_ready = |(address, number): &(SocketAddr, u64)| {
            let entry = self.entries.get(address).filter(|entry| stands_at(entry, *number));
            entry.is_some_and(|entry| entry.token_state != TokenState::Begun)
        };
        let mut in_view = self.line.iter().copied().zip(self.first_number..).take(PASSED_OVER_MAX);
        let (address, _) = in_view.find(is_ready)?;
        self.entries.get_mut(&address)?.is_called = true;
        self.close_front();
        Some((address, self.entries.get(&address)?))
    }

    /// Takes away the holes at the front.
    fn close_front(&mut self) {
        let entries = &self.entries;
        let is_hole =
            |address: SocketAddr, number| !entries.get(&address).is_some_and(|entry| stands_at(entry, number));
        while let Some(&address) = self.line.front()
            && is_hole(address, self.first_number)
        {
            self.line.pop_front();
            self.first_number += 1;
        }
    }

    /// The journal is done with this token.
    pub(super) fn set_token_state(&mut self, token_mac: &[u8; TAG_BYTES], state: TokenState) {
        let entry = self.holders.get(token_mac).and_then(|address| self.entries.get_mut(address));
        entry.into_iter().for_each(|entry| entry.token_state = state);
    }

    /// Takes out one that was called.
    pub(super) fn take_called(&mut self, address: SocketAddr) -> Option<Box<Waiting>> {
        if self.called_at(address).is_some() { self.remove(address) } else { None }
    }

    /// What the one at this address is to be told.
    pub(super) fn state_of(&self, address: SocketAddr) -> Option<QueueState> {
        let entry = self.entries.get(&address)?;
        if entry.is_called {
            return Some(QueueState::WorldBeingMade);
        }
        let place = entry.number - self.first_number + 1;
        Some(QueueState::InLine { place: place as u32, length: self.line.len() as u32 })
    }

    /// Once a second, lets go of those who have fallen silent, and closes the holes; gives how many it let go.
    pub(super) fn sweep(&mut self, now: Nanos) -> usize {
        if now < self.next_sweep {
            return 0;
        }
        self.next_sweep = now + SWEEP_EVERY;
        let mut silent = std::mem::take(&mut self.silent);
        let fell_silent = |entry: &Waiting| now.saturating_sub(entry.last_heard) >= SILENCE_MAX;
        silent.extend(self.entries.iter().filter(|(_, entry)| fell_silent(entry)).map(|(&address, _)| address));
        let count = silent.len();
        for address in silent.drain(..) {
            self.remove(address);
        }
        self.silent = silent;

        let (mut was_at, mut is_at, entries) = (self.first_number, self.first_number, &mut self.entries);
        self.line.retain(|address| {
            let number = was_at;
            was_at += 1;
            match entries.get_mut(address) {
                Some(entry) if stands_at(entry, number) => {
                    entry.number = is_at;
                    is_at += 1;
                    true
                }
                _ => false,
            }
        });
        count
    }

    /// Every entry is found by its client, by its token and, unless it is called, by its number.
    pub(super) fn check(&self) {
        assert!(self.entries.len() <= self.entries_max);
        assert_eq!(self.entries.len(), self.by_client.len());
        assert_eq!(self.entries.len(), self.holders.len());
        assert_eq!(self.entries.values().filter(|entry| entry.takes_over).count(), self.takeovers_count);
        for (address, entry) in &self.entries {
            assert_eq!(self.by_client.get(&entry.client_id), Some(address));
            assert_eq!(self.holders.get(&entry.token_mac), Some(address));
            if !entry.is_called {
                let index = entry.number.checked_sub(self.first_number).expect("no number is before the front's");
                assert_eq!(self.line.get(index as usize), Some(address));
            }
        }
    }

    /// Leaves a hole in the line, if it stood there.
    fn remove(&mut self, address: SocketAddr) -> Option<Box<Waiting>> {
        let entry = self.entries.remove(&address)?;
        self.by_client.remove(&entry.client_id);
        self.holders.remove(&entry.token_mac);
        self.takeovers_count -= usize::from(entry.takes_over);
        Some(entry)
    }
}

fn stands_at(entry: &Waiting, number: u64) -> bool {
    !entry.is_called && entry.number == number
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::super::super::ProtocolId;
    use super::super::super::link::LinkKeys;
    use super::*;

    fn queue(entries_max: usize) -> JoinQueue {
        JoinQueue::new(entries_max, &mut ChaCha20Rng::seed_from_u64(1))
    }

    fn address(number: u64) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], number as u16))
    }

    fn waiting(client: u64, token: u64, now: Nanos) -> Box<Waiting> {
        let protocol_id = ProtocolId(1);
        let keys = LinkKeys { sealing: &[1; 32], opening: &[2; 32], protocol_id, first_sequence: 0 };
        let mut token_mac = [0; TAG_BYTES];
        token_mac[..8].copy_from_slice(&token.to_le_bytes());
        Waiting::new(SealedLink::new(keys, 10, now), (ClientId(client), [0; 256]), (token_mac, 0), true, (0, 0), now)
    }

    fn enter(queue: &mut JoinQueue, from: u64, client: u64, token: u64) {
        queue.enter(address(from), waiting(client, token, Nanos::ZERO), false);
        queue.check();
    }

    fn place(queue: &JoinQueue, from: u64) -> Option<u32> {
        match queue.state_of(address(from))? {
            QueueState::InLine { place, .. } => Some(place),
            QueueState::WorldBeingMade => Some(0),
        }
    }

    fn call(queue: &mut JoinQueue) -> Option<u64> {
        let called = queue.call().map(|(_, entry)| entry.client_id.0);
        queue.check();
        called
    }

    #[test]
    fn the_first_to_come_is_the_first_to_be_called() {
        let mut queue = queue(10);
        for n in 1..=4 {
            enter(&mut queue, n, n, n);
        }
        assert_eq!([1, 2, 3, 4].map(|n| place(&queue, n)), [Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!(call(&mut queue), Some(1));
        assert_eq!([1, 2, 3, 4].map(|n| place(&queue, n)), [Some(0), Some(1), Some(2), Some(3)]);
        enter(&mut queue, 5, 5, 5);
        assert_eq!([call(&mut queue), call(&mut queue), call(&mut queue), call(&mut queue)], [2, 3, 4, 5].map(Some));
        assert_eq!((call(&mut queue), queue.len()), (None, 5), "called, and still here");
        assert!(queue.take_called(address(3)).is_some());
        assert!(queue.take_called(address(3)).is_none());
    }

    #[test]
    fn who_proves_itself_anew_keeps_its_place() {
        let mut queue = queue(3);
        for n in 1..=3 {
            enter(&mut queue, n, n, n);
        }
        assert!(queue.is_full() && queue.holds_client(ClientId(2)));
        enter(&mut queue, 12, 2, 22);
        assert_eq!((place(&queue, 2), place(&queue, 12), queue.len()), (None, Some(2), 3));
        assert_eq!(queue.holder_of(&waiting(2, 2, Nanos::ZERO).token_mac), None, "the earlier token is free");
        assert_eq!(call(&mut queue), Some(1));
        enter(&mut queue, 11, 1, 21);
        assert_eq!(
            (queue.called_at(address(11)).is_some(), place(&queue, 11), place(&queue, 12)),
            (false, Some(1), Some(2))
        );
        assert_eq!([call(&mut queue), call(&mut queue), call(&mut queue)], [1, 2, 3].map(Some));
    }

    #[test]
    fn nobody_is_called_before_the_journal_has_its_token() {
        let mut queue = queue(10);
        for n in 1..=3 {
            let mut waiting = waiting(n, n, Nanos::ZERO);
            waiting.token_state = if n == 3 { TokenState::Kept } else { TokenState::Begun };
            queue.enter(address(n), waiting, false);
        }
        let token = |n| waiting(n, n, Nanos::ZERO).token_mac;
        assert_eq!(
            [call(&mut queue), call(&mut queue)],
            [Some(3), None],
            "and nobody waits for whom it does not concern"
        );
        assert_eq!([1, 2].map(|n| place(&queue, n)), [Some(1), Some(2)]);
        queue.set_token_state(&token(2), TokenState::Kept);
        assert_eq!([call(&mut queue), call(&mut queue)], [Some(2), None]);
        queue.set_token_state(&token(1), TokenState::Failed);
        queue.set_token_state(&token(9), TokenState::Kept);
        assert_eq!([call(&mut queue), call(&mut queue)], [Some(1), None]);
    }

    #[test]
    fn who_has_a_slot_is_promised_none_until_that_is_free() {
        let mut queue = queue(10);
        for n in 1..=3 {
            queue.enter(address(n), waiting(n, n, Nanos::ZERO), n != 2);
            queue.check();
        }
        assert_eq!((queue.len(), queue.promised_slots()), (3, 1));
        for ended in [1, 1, 2, 9] {
            queue.session_ended(ClientId(ended));
            queue.check();
            assert_eq!(queue.promised_slots(), 2, "once, and for those who had one");
        }
        enter(&mut queue, 13, 3, 33);
        assert_eq!(queue.promised_slots(), 3, "it proved itself anew when its session was over");
    }

    #[test]
    fn another_client_at_a_waiting_address_goes_to_the_back() {
        let mut queue = queue(10);
        for n in 1..=3 {
            enter(&mut queue, n, n, n);
        }
        enter(&mut queue, 1, 9, 9);
        assert_eq!((place(&queue, 1), queue.holds_client(ClientId(1))), (Some(4), false));
        assert_eq!([call(&mut queue), call(&mut queue), call(&mut queue)], [2, 3, 9].map(Some));
    }

    #[test]
    fn the_silent_are_let_go_and_those_behind_move_up() {
        let mut queue = queue(10);
        for n in 1..=5 {
            let heard = Nanos::from_secs(if n % 2 == 0 { 0 } else { 3 });
            queue.enter(address(n), waiting(n, n, heard), false);
        }
        call(&mut queue);
        assert_eq!(queue.sweep(Nanos::from_millis(4_999)), 0);
        assert_eq!(queue.sweep(Nanos::from_millis(5_998)), 0, "once a second is often enough");
        assert_eq!(queue.sweep(Nanos::from_millis(5_999)), 2);
        queue.check();
        assert_eq!([2, 3, 4, 5].map(|n| place(&queue, n)), [None, Some(1), None, Some(2)]);
        assert_eq!(queue.sweep(Nanos::from_secs(8)), 3, "a called one too");
        assert_eq!((queue.len(), queue.line.len()), (0, 0));
    }

    /// Against a plain list: entering, taking over, calling, leaving, in any order.
    #[test]
    fn it_agrees_with_a_plain_list() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let mut queue = queue(20);
        let (mut list, mut called): (Vec<u64>, HashSet<u64>) = (Vec::new(), HashSet::new());
        for token in 0..20_000 {
            let client = rng.random_range(0..25);
            match rng.random_range(0..4) {
                0 | 1 if queue.holds_client(ClientId(client)) || !queue.is_full() => {
                    // Each client has two addresses of its own.
                    enter(&mut queue, 2 * client + rng.random_range(0..2), client, token);
                    if called.remove(&client) {
                        list.insert(0, client);
                    } else if !list.contains(&client) {
                        list.push(client);
                    }
                }
                2 => {
                    let expect = (!list.is_empty()).then(|| list.remove(0));
                    assert_eq!(call(&mut queue), expect);
                    called.extend(expect);
                }
                _ => {
                    let address = queue.by_client.get(&ClientId(client)).copied();
                    let taken = address.and_then(|address| queue.take_called(address)).is_some();
                    assert_eq!(taken, called.remove(&client));
                }
            }
            assert_eq!(queue.len(), list.len() + called.len());
            for (index, client) in list.iter().enumerate() {
                let state = queue.state_of(queue.by_client[&ClientId(*client)]);
                let QueueState::InLine { place, length } = state.expect("in line") else { panic!("not called") };
                assert_eq!((place as usize, length as usize), (index + 1, list.len()));
            }
        }
    }
}
