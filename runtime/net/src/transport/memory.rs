//! A network inside the process: datagrams lose their way, come twice, late or in another order, and do so
//! the same way again for the same seed.
//!
//! Time is told, never read: [`MemoryNetwork::advance`] says what time it is, and a datagram arrives once its
//! time has come. What happens to a datagram ([`super::impairment`]) does not follow from the order in which
//! threads send. So a server with eight workers meets the same network as a server with one.
//!
//! For tests and the simulator: one lock around everything, an allocation per datagram that is on its way.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_platform::time::Nanos;

use super::impairment::{Fate, Impairment, Way};
use super::{DatagramSender, PacketSink, SendOutcome, ServerTransport};

/// Datagrams that wait for one receiver at most, as in a kernel's buffer; more are dropped and counted.
const WAITING_MAX: usize = 65_536;
/// Room for one datagram: more than any packet.
const DATAGRAM_BYTES_MAX: usize = 1_400;

/// The network. A handle: clones share it.
#[derive(Clone)]
pub struct MemoryNetwork {
    state: Arc<Mutex<State>>,
}

struct State {
    seed: u64,
    now: Nanos,
    impairment: Impairment,
    /// Datagrams on their way and arrived, per receiver, in the order of arrival.
    inboxes: HashMap<SocketAddr, BTreeMap<Arrival, Vec<u8>>>,
    /// From one address to another.
    ways: HashMap<(SocketAddr, SocketAddr), Way>,
    dropped: u64,
}

/// When, then from whom, then which of theirs (and which copy): no two are equal, and no thread has a say
/// in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Nanos,
    from: SocketAddr,
    number: u64,
    copy: u8,
}

impl MemoryNetwork {
    pub fn new(seed: u64, impairment: Impairment) -> Self {
        let state =
            State { seed, now: Nanos::ZERO, impairment, inboxes: HashMap::new(), ways: HashMap::new(), dropped: 0 };
        MemoryNetwork { state: Arc::new(Mutex::new(state)) }
    }

    /// It is `now`; datagrams due until then can be received. Never goes back.
    pub fn advance(&self, now: Nanos) {
        let mut state = self.lock();
        state.now = state.now.max(now);
    }

    /// From now on datagrams fare like this; those on their way fare as before.
    pub fn impair(&self, impairment: Impairment) {
        self.lock().impairment = impairment;
    }

    /// A server that listens on `address`.
    pub fn server(&self, address: SocketAddr) -> MemoryServer {
        MemoryServer { endpoint: self.endpoint(address) }
    }

    /// A client at `address`.
    pub fn endpoint(&self, address: SocketAddr) -> MemoryEndpoint {
        self.lock().inboxes.entry(address).or_default();
        MemoryEndpoint { network: self.clone(), address, buffer: [0; DATAGRAM_BYTES_MAX] }
    }

    /// Datagrams lost on the way, or for nobody, or for a receiver that does not empty its buffer.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock; if a test does, the network is still a network.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn send(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let new_way = || Way::new(self.seed, address_bits(from), address_bits(to));
        let way = self.ways.entry((from, to)).or_insert_with(new_way);
        let number = way.sent();
        let Fate::Carried { at, copy_at, turned_bit, .. } = way.carry(self.now, datagram.len(), &self.impairment)
        else {
            self.dropped += 1;
            return;
        };
        let Some(inbox) = self.inboxes.get_mut(&to) else {
            self.dropped += 1;
            return;
        };
        let mut bytes = datagram.to_vec();
        if let Some(bit) = turned_bit {
            bit.apply(&mut bytes);
        }
        for (copy, at) in [Some(at), copy_at].into_iter().flatten().enumerate() {
            if inbox.len() >= WAITING_MAX {
                self.dropped += 1;
                return;
            }
            inbox.insert(Arrival { at, from, number, copy: copy as u8 }, bytes.clone());
        }
    }

    fn take(&mut self, at: SocketAddr) -> Option<(SocketAddr, Vec<u8>)> {
        let inbox = self.inboxes.get_mut(&at)?;
        let first = inbox.first_entry()?;
        if first.key().at > self.now {
            return None;
        }
        let (arrival, bytes) = first.remove_entry();
        Some((arrival.from, bytes))
    }
}

/// The address folded into a number. Two addresses that fold alike only share their luck.
fn address_bits(address: SocketAddr) -> u64 {
    let ip = match address.ip() {
        std::net::IpAddr::V4(ip) => u128::from(ip.to_bits()),
        std::net::IpAddr::V6(ip) => ip.to_bits(),
    };
    (ip as u64 ^ (ip >> 64) as u64).rotate_left(16) ^ u64::from(address.port())
}

/// One place on the network that sends and receives: a client.
pub struct MemoryEndpoint {
    network: MemoryNetwork,
    address: SocketAddr,
    buffer: [u8; DATAGRAM_BYTES_MAX],
}

impl MemoryEndpoint {
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    pub fn send_to(&mut self, datagram: &[u8], to: SocketAddr) {
        self.network.lock().send(self.address, to, datagram);
    }

    /// The next datagram whose time has come.
    pub fn receive(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.network.lock().take(self.address)
    }
}

/// Packets of a connection can be sealed straight into the network.
impl PacketSink for MemoryEndpoint {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        self.network.lock().send(self.address, to, &self.buffer[..len]);
    }
}

/// A server's place on the network.
pub struct MemoryServer {
    endpoint: MemoryEndpoint,
}

impl ServerTransport for MemoryServer {
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize {
        let mut count = 0;
        while count < max
            && let Some((from, mut datagram)) = self.endpoint.receive()
        {
            each(from, &mut datagram);
            count += 1;
        }
        count
    }

    fn sender(&mut self, _worker: usize) -> Box<dyn DatagramSender> {
        Box::new(MemorySender {
            network: self.endpoint.network.clone(),
            address: self.endpoint.address,
            committed: Vec::new(),
            bytes: Vec::new(),
            used: 0,
        })
    }

    /// Returns at once: whoever has a network in memory also moves the clock.
    fn wait(&self, _timeout: Option<Nanos>) {}

    fn local_addr(&self) -> SocketAddr {
        self.endpoint.address
    }
}

/// Datagrams enter the network when they are flushed, as they enter the kernel: until then a worker allocates nothing
/// for them once its buffer has grown.
struct MemorySender {
    network: MemoryNetwork,
    address: SocketAddr,
    /// To whom, and where in `bytes` the datagram ends.
    committed: Vec<(SocketAddr, usize)>,
    bytes: Vec<u8>,
    /// Where the last datagram ends.
    used: usize,
}

impl PacketSink for MemorySender {
    fn buffer(&mut self) -> &mut [u8] {
        self.bytes.resize(self.bytes.len().max(self.used + DATAGRAM_BYTES_MAX), 0);
        &mut self.bytes[self.used..]
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        self.used += len;
        self.committed.push((to, self.used));
    }
}

impl DatagramSender for MemorySender {
    /// Everything counts as sent: what the network loses, no sender hears of.
    fn flush(&mut self) -> SendOutcome {
        let mut state = self.network.lock();
        let mut begin = 0;
        for &(to, end) in &self.committed {
            state.send(self.address, to, &self.bytes[begin..end]);
            begin = end;
        }
        self.used = 0;
        let sent = self.committed.len();
        self.committed.clear();
        SendOutcome { sent, dropped: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    /// Sends 1,000 numbered datagrams a millisecond apart; `(when in ms, number)` of those that arrive.
    fn arrivals(seed: u64, impairment: Impairment) -> Vec<(u64, u16)> {
        let network = MemoryNetwork::new(seed, impairment);
        let (mut client, mut server) = (network.endpoint(address(1)), network.server(address(2)));
        let mut arrived = Vec::new();
        for ms in 0..2_000u16 {
            network.advance(Nanos::from_millis(ms.into()));
            if ms < 1_000 {
                client.send_to(&ms.to_le_bytes(), address(2));
            }
            server.receive(
                &mut |_, datagram| arrived.push((ms.into(), u16::from_le_bytes([datagram[0], datagram[1]]))),
                usize::MAX,
            );
        }
        arrived
    }

    #[test]
    fn a_perfect_way_delivers_at_once_and_a_long_one_later() {
        assert!(arrivals(1, Impairment::default()).into_iter().eq((0..1_000).map(|ms| (ms.into(), ms))));
        let delay = Nanos::from_millis(30);
        let late = arrivals(1, Impairment { delay, ..Impairment::default() });
        assert!(late.into_iter().eq((0..1_000).map(|ms| (u64::from(ms) + 30, ms))));
    }

    #[test]
    fn the_shares_are_what_was_asked_for() {
        let check = |impairment: Impairment, expect: std::ops::Range<usize>| {
            let arrived = arrivals(7, impairment).len();
            assert!(expect.contains(&arrived), "{impairment:?}: {arrived} of 1,000");
        };
        check(Impairment { loss: 0.3, ..Impairment::default() }, 660..740);
        check(Impairment { duplication: 0.1, ..Impairment::default() }, 1_070..1_130);
        let reorder_delay = Nanos::from_millis(5);
        let reordered = arrivals(7, Impairment { reordering: 0.2, reorder_delay, ..Impairment::default() });
        let swaps = reordered.windows(2).filter(|pair| pair[0].1 > pair[1].1).count();
        assert!((100..220).contains(&swaps), "{swaps}");
    }

    #[test]
    fn the_same_seed_is_the_same_network_whoever_sends_first() {
        let bad = Impairment {
            loss: 0.1,
            duplication: 0.1,
            delay: Nanos::from_millis(20),
            jitter: Nanos::from_millis(20),
            ..Impairment::default()
        };
        assert_eq!(arrivals(5, bad), arrivals(5, bad));
        assert_ne!(arrivals(5, bad), arrivals(6, bad));

        let received = |first: u16, second: u16| {
            let network = MemoryNetwork::new(5, bad);
            let mut server = network.server(address(9));
            for port in [first, second] {
                let mut sender = network.endpoint(address(port));
                (0..100u8).for_each(|number| sender.send_to(&[number], address(9)));
            }
            network.advance(Nanos::from_secs(1));
            let mut order = Vec::new();
            server.receive(&mut |from, datagram| order.push((from, datagram[0])), usize::MAX);
            order
        };
        assert_eq!(received(1, 2), received(2, 1));
    }

    #[test]
    fn a_receiver_that_never_reads_has_a_full_buffer() {
        let network = MemoryNetwork::new(1, Impairment::default());
        let (mut client, _server) = (network.endpoint(address(1)), network.server(address(2)));
        (0..WAITING_MAX + 5).for_each(|_| client.send_to(&[1], address(2)));
        client.send_to(&[1], address(3));
        assert_eq!(network.dropped(), 6);
    }
}
