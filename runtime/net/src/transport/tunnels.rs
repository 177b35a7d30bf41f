//! Tunnels: datagrams of clients that have no UDP, each inside a stream or session that somebody else holds.
//!
//! A browser opens a WebSocket and says in it, datagram for datagram, what another client says
//! over UDP: the same handshake, the same seals. So a [`TunnelledTransport`] is UDP and all tunnels together, and nothing
//! above it knows which is which. Whoever holds the streams (`throng-browser`) has [`Tunnels`], from any thread:
//!
//! ```text
//!   stream ── Tunnel::push ──> inbound queue ── receive ──> frame ──> worlds
//!   stream <── Tunnel::pop ── its own queue  <── commit  ── workers
//! ```
//!
//! A tunnel's address is the peer's own, IPv4 as mapped IPv6, with the tunnel's place and generation in the scope, whose
//! highest bit no real scope has: what is sent there is found without a table, what a reused place's last client is sent
//! goes nowhere, and the handshake counts browsers by their real addresses.
//!
//! | queue | maximum | what happens there |
//! |---|---|---|
//! | inbound, of all | 1 MiB, 8,192 datagrams | what comes is refused |
//! | inbound, of one, between two looks of the frame | 32 datagrams | what comes is refused |
//! | to one client | 32 KiB, 64 datagrams | the oldest are dropped: of two snapshots the newer one says more |
//!
//! All of it is counted ([`TunnelStats`]). Memory: 34 KiB for
//! each tunnel that is open, made when it opens. A tick neither allocates nor waits here: a lock is held for the copy of
//! one datagram, or for a swap, and where the gateway's thread lost its core with one in its hands, frame and workers go on
//! without it: what came is taken a moment later, what is sent waits for the tick's end. Cost beside UDP: one copy of each datagram more, and no system call but one to wake the
//! other thread where it sleeps.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use throng_platform::time::Nanos;
use throng_platform::wake::Wake;

use super::udp::UdpTransport;
use super::{DatagramSender, PacketSink, SendOutcome, ServerTransport};
use crate::protocol::PACKET_BYTES_MAX;

/// Tunnels that may be open at once, whatever is asked for: the place is half of the scope.
pub const TUNNELS_MAX: usize = 1 << 16;

const INBOUND_BYTES_MAX: usize = 1 << 20;
const INBOUND_DATAGRAMS_MAX: usize = 8_192;
/// 1,920 a second at 60 frames: a client of 128 Hz sends 128.
const INBOUND_OF_ONE_MAX: u32 = 32;
/// A quarter of a second of a client that is told 100 KB/s.
const OUTBOUND_BYTES_MAX: usize = 32 << 10;
const OUTBOUND_DATAGRAMS_MAX: usize = 64;

/// What a worker keeps for tunnels whose lock is taken (datagrams).
const KEPT_MAX: usize = 64;
/// When a look found the inbound queue's lock taken.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);

/// The highest bit of a scope: none of the kernel's has it.
const MARK: u32 = 1 << 31;
const PLACE_BITS: u32 = 16;
const GENERATION_MAX: u16 = (1 << 15) - 1;

/// What became of tunnels and their datagrams since the start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TunnelStats {
    /// Now.
    pub open: usize,
    pub opened: u64,
    pub received: u64,
    pub received_bytes: u64,
    /// Refused since too much waited for the frame, or since they are no packets.
    pub refused: u64,
    pub sent: u64,
    pub sent_bytes: u64,
    /// Dropped since their client takes less than it is told.
    pub dropped: u64,
    /// What whoever holds the streams has turned away: by [`Refusal`], in its order.
    pub turned_away: [u64; Refusal::COUNT],
}

/// Why whoever holds the streams turned a client or its datagram away, before there was anything for the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// All tunnels are open, or all connections taken.
    Full,
    /// The address has its share of them.
    Address,
    /// It did not shake hands in time, or as its protocol wants it.
    Handshake,
    /// No session came of it in time.
    NoSession,
    /// A datagram above its client's allowance.
    Allowance,
    /// The page that it comes from is of another server.
    Page,
}

impl Refusal {
    const COUNT: usize = 6;
}

/// A handle of all tunnels, for whoever holds the streams. Clones share them.
#[derive(Clone)]
pub struct Tunnels {
    shared: Arc<Shared>,
}

struct Shared {
    inbound: Mutex<Inbound>,
    /// Whether anything is inbound, so that a frame without browsers takes no lock.
    has_inbound: AtomicBool,
    /// Ends the frame's sleep.
    frame: Wake,
    places: Box<[Mutex<Place>]>,
    free: Mutex<Vec<u16>>,
    /// Places with something for their client, in the order in which it came.
    filled: Mutex<Vec<u16>>,
    /// Called when `filled` was empty and is no more.
    on_filled: OnceLock<Box<dyn Fn() + Send + Sync>>,
    counts: Counts,
}

/// Added to by whoever it happens to, and read once a frame; nothing else follows from any, so relaxed order is enough.
#[derive(Default)]
struct Counts {
    opened: AtomicU64,
    closed: AtomicU64,
    received: AtomicU64,
    received_bytes: AtomicU64,
    refused: AtomicU64,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    dropped: AtomicU64,
    turned_away: [AtomicU64; Refusal::COUNT],
}

/// What came, one datagram after the other.
#[derive(Default)]
struct Inbound {
    bytes: Vec<u8>,
    /// From whom, and where it ends in `bytes`.
    datagrams: Vec<(SocketAddr, usize)>,
    /// Looks of the frame so far.
    look: u64,
}

#[derive(Default)]
struct Place {
    generation: u16,
    is_open: bool,
    /// Whether it is among those that are filled, or was taken from there and is not empty yet.
    is_listed: bool,
    outbound: Outbound,
}

/// What waits for one client, oldest first.
#[derive(Default)]
struct Outbound {
    bytes: VecDeque<u8>,
    lengths: VecDeque<u16>,
}

/// One client's tunnel; closed when it is dropped.
pub struct Tunnel {
    shared: Arc<Shared>,
    place: u16,
    address: SocketAddr,
    /// Datagrams since the frame's look of that number.
    pushed: (u64, u32),
}

impl Tunnels {
    /// UDP and up to `tunnels_max` tunnels, as one transport, and the handle for whoever opens them.
    ///
    /// # Errors
    /// If the process may have no more descriptors (`ulimit -n`).
    pub fn beside(udp: UdpTransport, tunnels_max: usize) -> std::io::Result<(TunnelledTransport, Self)> {
        let count = tunnels_max.clamp(1, TUNNELS_MAX);
        let shared = Arc::new(Shared {
            inbound: Mutex::new(Inbound::with_room()),
            has_inbound: AtomicBool::new(false),
            frame: Wake::new()?,
            places: (0..count).map(|_| Mutex::default()).collect(),
            // The first place is taken first.
            free: Mutex::new((0..count).rev().map(|place| place as u16).collect()),
            filled: Mutex::new(Vec::with_capacity(count)),
            on_filled: OnceLock::new(),
            counts: Counts::default(),
        });
        let transport = TunnelledTransport { udp, shared: shared.clone(), taken: Inbound::with_room() };
        Ok((transport, Self { shared }))
    }

    /// Says what to call, on a worker's thread, when there is something to [`take_filled`](Self::take_filled). It must not
    /// wait. Only the first call counts.
    pub fn on_filled(&self, call: impl Fn() + Send + Sync + 'static) {
        let _ = self.shared.on_filled.set(Box::new(call));
    }

    /// Opens a tunnel for the peer at `peer`; `None`: all are taken.
    pub fn open(&self, peer: SocketAddr) -> Option<Tunnel> {
        let place = lock(&self.shared.free).pop()?;
        let mut held = lock(&self.shared.places[usize::from(place)]);
        held.generation = if held.generation == GENERATION_MAX { 1 } else { held.generation + 1 };
        held.is_open = true;
        held.outbound.bytes.reserve(OUTBOUND_BYTES_MAX);
        held.outbound.lengths.reserve(OUTBOUND_DATAGRAMS_MAX);
        let address = address_of(peer, place, held.generation);
        drop(held);
        add(&self.shared.counts.opened, 1);
        Some(Tunnel { shared: self.shared.clone(), place, address, pushed: (0, 0) })
    }

    /// Adds the places of the tunnels that have something to send, each once; [`Tunnel::place`] says which is whose.
    pub fn take_filled(&self, into: &mut Vec<u16>) {
        into.append(&mut lock(&self.shared.filled));
    }

    /// Counts what was turned away before there was a tunnel, or a datagram for it.
    pub fn turn_away(&self, why: Refusal) {
        add(&self.shared.counts.turned_away[why as usize], 1);
    }

    /// Takes no lock.
    pub fn stats(&self) -> TunnelStats {
        let counts = &self.shared.counts;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let opened = count(&counts.opened);
        TunnelStats {
            open: opened.saturating_sub(count(&counts.closed)) as usize,
            opened,
            received: count(&counts.received),
            received_bytes: count(&counts.received_bytes),
            refused: count(&counts.refused),
            sent: count(&counts.sent),
            sent_bytes: count(&counts.sent_bytes),
            dropped: count(&counts.dropped),
            turned_away: counts.turned_away.each_ref().map(count),
        }
    }
}

impl Tunnel {
    /// Which of the tunnels it is, as long as it is open.
    pub fn place(&self) -> u16 {
        self.place
    }

    /// By which the server knows its client.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Hands a datagram to the frame. `false`: it is longer than any packet, or too much waits; it is counted.
    pub fn push(&mut self, datagram: &[u8]) -> bool {
        let Shared { inbound, has_inbound, frame, counts, .. } = &*self.shared;
        let mut inbound = lock(inbound);
        if self.pushed.0 != inbound.look {
            self.pushed = (inbound.look, 0);
        }
        let has_room = inbound.bytes.len() + datagram.len() <= INBOUND_BYTES_MAX
            && inbound.datagrams.len() < INBOUND_DATAGRAMS_MAX
            && self.pushed.1 < INBOUND_OF_ONE_MAX;
        if datagram.is_empty() || datagram.len() > PACKET_BYTES_MAX || !has_room {
            add(&counts.refused, 1);
            return false;
        }
        self.pushed.1 += 1;
        inbound.bytes.extend_from_slice(datagram);
        let end = inbound.bytes.len();
        inbound.datagrams.push((self.address, end));
        add(&counts.received, 1);
        add(&counts.received_bytes, datagram.len() as u64);
        // Under the lock, so that a look that clears it has taken what it stands for; the call that wakes is not, since
        // the frame's thread would wait for it.
        let is_first = !has_inbound.swap(true, Ordering::Release);
        drop(inbound);
        if is_first {
            frame.wake();
        }
        true
    }

    /// Takes the oldest datagram for the client into `out`, which is emptied first. `false`: there is none. Whoever begins
    /// goes on until then, or is not told of the next one.
    pub fn pop(&self, out: &mut Vec<u8>) -> bool {
        out.clear();
        let mut place = lock(&self.shared.places[usize::from(self.place)]);
        let Some(length) = place.outbound.lengths.pop_front() else {
            place.is_listed = false;
            return false;
        };
        out.extend(place.outbound.bytes.drain(..usize::from(length)));
        add(&self.shared.counts.sent, 1);
        add(&self.shared.counts.sent_bytes, u64::from(length));
        true
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let mut place = lock(&self.shared.places[usize::from(self.place)]);
        (place.is_open, place.is_listed) = (false, false);
        place.outbound = Outbound::default();
        drop(place);
        add(&self.shared.counts.closed, 1);
        lock(&self.shared.free).push(self.place);
    }
}

impl Inbound {
    fn with_room() -> Self {
        let datagrams = Vec::with_capacity(INBOUND_DATAGRAMS_MAX);
        Self { bytes: Vec::with_capacity(INBOUND_BYTES_MAX), datagrams, look: 0 }
    }
}

impl Outbound {
    /// How many had to go.
    fn push(&mut self, datagram: &[u8]) -> usize {
        let Self { bytes, lengths } = self;
        let mut dropped = 0;
        while lengths.len() == OUTBOUND_DATAGRAMS_MAX || bytes.len() + datagram.len() > OUTBOUND_BYTES_MAX {
            let Some(length) = lengths.pop_front() else { break };
            bytes.drain(..usize::from(length));
            dropped += 1;
        }
        bytes.extend(datagram);
        lengths.push_back(datagram.len() as u16);
        dropped
    }
}

/// UDP and tunnels as one transport: see [`Tunnels::beside`].
pub struct TunnelledTransport {
    udp: UdpTransport,
    shared: Arc<Shared>,
    /// What was taken from the inbound queue, for its memory.
    taken: Inbound,
}

impl ServerTransport for TunnelledTransport {
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize {
        let mut count = 0;
        // Those of UDP have the kernel's buffer to wait in; here everything is taken, as it is bounded.
        if self.shared.has_inbound.load(Ordering::Acquire) {
            let Self { shared, taken, .. } = self;
            taken.bytes.clear();
            taken.datagrams.clear();
            // Whoever pushes may have lost its core with the lock in its hands, having a lower priority: a frame does not
            // wait for it, and finds all of it at its next look.
            if let Some(mut inbound) = try_lock(&shared.inbound) {
                taken.look = inbound.look + 1;
                std::mem::swap(&mut *inbound, taken);
                shared.has_inbound.store(false, Ordering::Release);
                drop(inbound);
            }
            let mut begin = 0;
            for &(from, end) in &taken.datagrams {
                each(from, &mut taken.bytes[begin..end]);
                begin = end;
            }
            count = taken.datagrams.len();
        }
        count + self.udp.receive(each, max)
    }

    fn sender(&mut self, worker: usize) -> Box<dyn DatagramSender> {
        Box::new(TunnelledSender {
            udp: self.udp.sender(worker),
            booked: Booked { filled: Vec::with_capacity(self.shared.places.len()), outcome: SendOutcome::default() },
            kept: Vec::with_capacity(KEPT_MAX),
            kept_bytes: Vec::with_capacity(KEPT_MAX * PACKET_BYTES_MAX),
            shared: self.shared.clone(),
        })
    }

    fn wait(&self, timeout: Option<Nanos>) {
        // Something is there whose lock was taken when it was looked at: nobody wakes for it again.
        let soon = self.shared.has_inbound.load(Ordering::Acquire).then_some(LOOK_AGAIN);
        let timeout = soon.map_or(timeout, |soon| Some(timeout.map_or(soon, |timeout| timeout.min(soon))));
        self.udp.wait_or(self.shared.frame.as_fd(), timeout);
        // Whoever waited looks next, whatever it was woken for.
        self.shared.frame.clear();
    }

    fn local_addr(&self) -> SocketAddr {
        self.udp.local_addr()
    }
}

/// A worker's way out: what is for tunnels goes into their queues, the rest to UDP.
struct TunnelledSender {
    udp: Box<dyn DatagramSender>,
    shared: Arc<Shared>,
    booked: Booked,
    /// Until the flush: place, generation, and where the datagram ends in `kept_bytes`.
    kept: Vec<(u16, u16, usize)>,
    kept_bytes: Vec<u8>,
}

/// What came of the datagrams since the last flush.
struct Booked {
    /// Places to be listed at the flush.
    filled: Vec<u16>,
    outcome: SendOutcome,
}

impl Booked {
    /// Puts a datagram into its client's queue. What is dropped for it is the client's own, and not the kernel's.
    fn put(&mut self, (place, generation): (u16, u16), held: &mut Place, datagram: &[u8], counts: &Counts) {
        if !held.is_open || held.generation != generation {
            // Its browser is gone; the server hears of that by silence.
            return add(&counts.dropped, 1);
        }
        let dropped = held.outbound.push(datagram);
        self.outcome.sent += 1;
        add(&counts.dropped, dropped as u64);
        if !std::mem::replace(&mut held.is_listed, true) {
            self.filled.push(place);
        }
    }
}

impl PacketSink for TunnelledSender {
    fn buffer(&mut self) -> &mut [u8] {
        self.udp.buffer()
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        let Some((place, generation)) = place_of(to) else { return self.udp.commit(to, len) };
        let Self { udp, shared, booked, kept, kept_bytes } = self;
        let Some(held) = shared.places.get(usize::from(place)) else { return };
        let datagram = &udp.buffer()[..len];
        // The gateway's thread has a lower priority and may have lost its core with the lock in its hands: a tick goes on.
        // What comes after something that is kept stays behind it.
        let taken = if kept.is_empty() { try_lock(held) } else { None };
        if let Some(mut held) = taken {
            booked.put((place, generation), &mut held, datagram, &shared.counts);
        } else if kept.len() < KEPT_MAX {
            kept_bytes.extend_from_slice(datagram);
            kept.push((place, generation, kept_bytes.len()));
        } else {
            add(&shared.counts.dropped, 1);
        }
    }
}

impl DatagramSender for TunnelledSender {
    fn flush(&mut self) -> SendOutcome {
        let Self { udp, shared, booked, kept, kept_bytes } = self;
        let mut begin = 0;
        // By now whoever had the locks has mostly given them back.
        for (place, generation, end) in kept.drain(..) {
            let mut held = lock(&shared.places[usize::from(place)]);
            booked.put((place, generation), &mut held, &kept_bytes[begin..end], &shared.counts);
            begin = end;
        }
        kept_bytes.clear();
        if !booked.filled.is_empty() {
            let mut filled = lock(&shared.filled);
            let was_empty = filled.is_empty();
            filled.append(&mut booked.filled);
            drop(filled);
            if was_empty && let Some(call) = shared.on_filled.get() {
                call();
            }
        }
        let mut outcome = udp.flush();
        outcome += std::mem::take(&mut booked.outcome);
        outcome
    }
}

fn address_of(peer: SocketAddr, place: u16, generation: u16) -> SocketAddr {
    let ip = match peer.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let scope = MARK | u32::from(generation) << PLACE_BITS | u32::from(place);
    SocketAddrV6::new(ip, peer.port(), 0, scope).into()
}

/// Place and generation of a tunnel's address; `None` for any other.
fn place_of(address: SocketAddr) -> Option<(u16, u16)> {
    let SocketAddr::V6(address) = address else { return None };
    let scope = address.scope_id();
    (scope & MARK != 0).then_some((scope as u16, ((scope & !MARK) >> PLACE_BITS) as u16))
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}

/// `None`: somebody has it.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these locks; what is inside is whole after each step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = "192.0.2.7:50000";

    struct Bench {
        transport: TunnelledTransport,
        tunnels: Tunnels,
        sender: Box<dyn DatagramSender>,
    }

    fn bench(tunnels_max: usize) -> Bench {
        let (udp, _) = UdpTransport::bind("127.0.0.1:0".parse().unwrap(), 1, 1 << 20, 1 << 20).unwrap();
        let (mut transport, tunnels) = Tunnels::beside(udp, tunnels_max).unwrap();
        let sender = transport.sender(0);
        Bench { transport, tunnels, sender }
    }

    impl Bench {
        fn open(&self) -> Tunnel {
            self.tunnels.open(PEER.parse().unwrap()).expect("a place is free")
        }

        fn received(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
            let mut received = Vec::new();
            self.transport.receive(&mut |from, datagram| received.push((from, datagram.to_vec())), 64);
            received
        }

        fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
            self.sender.buffer()[..datagram.len()].copy_from_slice(datagram);
            self.sender.commit(to, datagram.len());
        }

        fn filled(&self) -> Vec<u16> {
            let mut filled = Vec::new();
            self.tunnels.take_filled(&mut filled);
            filled
        }
    }

    fn popped(tunnel: &Tunnel) -> Vec<Vec<u8>> {
        let mut datagram = Vec::new();
        std::iter::from_fn(|| tunnel.pop(&mut datagram).then(|| datagram.clone())).collect()
    }

    #[test]
    fn datagrams_go_both_ways_and_no_other_way() {
        let mut bench = bench(4);
        let (mut one, mut two) = (bench.open(), bench.open());
        assert_ne!(one.address(), two.address());
        assert_eq!(one.address().ip().to_canonical(), PEER.parse::<SocketAddr>().unwrap().ip());
        assert!(one.push(b"hello") && two.push(b"there") && one.push(b"again"));
        let expect = [(one.address(), "hello"), (two.address(), "there"), (one.address(), "again")];
        let expect = expect.map(|(from, text)| (from, text.as_bytes().to_vec()));
        assert_eq!(bench.received(), expect);
        assert!(bench.received().is_empty());

        bench.send(two.address(), b"for two");
        bench.send(two.address(), b"for two, too");
        bench.send(one.address(), b"for one");
        assert!(bench.filled().is_empty(), "nobody is woken before the flush");
        assert_eq!(bench.sender.flush(), SendOutcome { sent: 3, dropped: 0 });
        assert_eq!(bench.filled(), [two.place(), one.place()]);
        assert_eq!(popped(&two), [b"for two".to_vec(), b"for two, too".to_vec()]);
        assert_eq!(popped(&one), [b"for one".to_vec()]);
    }

    #[test]
    fn udp_goes_on_beside_tunnels() {
        let mut bench = bench(1);
        let (mut client, _) = UdpTransport::bind("127.0.0.1:0".parse().unwrap(), 1, 1 << 20, 1 << 20).unwrap();
        bench.send(client.local_addr(), b"over udp");
        assert_eq!(bench.sender.flush(), SendOutcome { sent: 1, dropped: 0 });
        client.wait(Some(Nanos::from_secs(5)));
        let mut received = Vec::new();
        client.receive(&mut |_, datagram| received.extend_from_slice(datagram), 1);
        assert_eq!(received, b"over udp");
    }

    #[test]
    fn a_client_that_takes_nothing_costs_a_bounded_queue_of_the_newest() {
        let mut bench = bench(1);
        let tunnel = bench.open();
        for number in 0..200_u8 {
            bench.send(tunnel.address(), &[number; 1_000]);
        }
        assert_eq!(bench.sender.flush(), SendOutcome { sent: 200, dropped: 0 }, "the kernel has dropped none");
        let dropped = bench.tunnels.stats().dropped as usize;
        let waiting = popped(&tunnel);
        assert_eq!(waiting.len(), 200 - dropped);
        assert_eq!((waiting.len(), waiting.last()), (OUTBOUND_BYTES_MAX / 1_000, Some(&vec![199; 1_000])));
    }

    #[test]
    fn a_flood_of_one_client_leaves_room_for_others() {
        let mut bench = bench(2);
        let (mut flood, mut other) = (bench.open(), bench.open());
        let taken = (0..1_000).filter(|_| flood.push(&[0; 100])).count();
        assert_eq!(taken, INBOUND_OF_ONE_MAX as usize);
        assert!(other.push(b"me, too"));
        assert_eq!(bench.received().len(), taken + 1);
        assert!(flood.push(&[0; 100]), "after the frame's look it may again");
        assert!(!other.push(&[0; PACKET_BYTES_MAX + 1]) && !other.push(&[]));
        assert_eq!(bench.tunnels.stats().refused, 1_000 - u64::from(INBOUND_OF_ONE_MAX) + 2);
    }

    #[test]
    fn the_inbound_queue_has_an_end() {
        let bench = bench(2_000);
        let mut tunnels: Vec<Tunnel> = (0..2_000).map(|_| bench.open()).collect();
        assert!(bench.tunnels.open(PEER.parse().unwrap()).is_none(), "all are taken");
        let taken: usize = tunnels.iter_mut().map(|tunnel| (0..32).filter(|_| tunnel.push(&[0; 1_200])).count()).sum();
        assert_eq!(taken, INBOUND_BYTES_MAX / 1_200);
    }

    #[test]
    fn what_was_for_an_earlier_client_of_the_place_goes_nowhere() {
        let mut bench = bench(1);
        let first = bench.open();
        let (place, address) = (first.place(), first.address());
        bench.send(address, b"for the first");
        drop(first);
        let second = bench.open();
        assert_eq!(second.place(), place);
        assert_ne!(second.address(), address);
        bench.send(address, b"late");
        bench.send(second.address(), b"for the second");
        assert_eq!(bench.sender.flush(), SendOutcome { sent: 2, dropped: 0 });
        assert_eq!(bench.tunnels.stats().dropped, 1);
        assert_eq!(popped(&second), [b"for the second".to_vec()]);
        bench.tunnels.turn_away(Refusal::Allowance);
        let stats = bench.tunnels.stats();
        assert_eq!((stats.open, stats.opened, stats.sent, stats.sent_bytes), (1, 2, 1, 14));
        assert_eq!(stats.turned_away, [0, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn nobody_waits_for_a_gateway_that_lost_its_core() {
        let mut bench = bench(2);
        let (mut one, two) = (bench.open(), bench.open());
        assert!(one.push(b"hello"));
        // As if its thread stood still with both locks.
        let shared = bench.tunnels.shared.clone();
        let inbound = lock(&shared.inbound);
        let place = lock(&shared.places[usize::from(one.place())]);
        assert!(bench.received().is_empty());
        bench.transport.wait(Some(Nanos::from_secs(60)));
        for datagram in [&b"first"[..], b"second"] {
            bench.send(one.address(), datagram);
        }
        bench.send(two.address(), b"for two");
        drop((inbound, place));
        assert_eq!(bench.received(), [(one.address(), b"hello".to_vec())]);
        assert_eq!(bench.sender.flush(), SendOutcome { sent: 3, dropped: 0 });
        assert_eq!(bench.filled(), [one.place(), two.place()]);
        assert_eq!(popped(&one), [b"first".to_vec(), b"second".to_vec()]);
        assert_eq!(popped(&two), [b"for two".to_vec()]);
    }

    #[test]
    fn a_datagram_in_a_tunnel_ends_the_frames_sleep() {
        let bench = bench(1);
        let mut tunnel = bench.open();
        let pushed = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            tunnel.push(b"wake up")
        });
        // Without the wake it would sleep for a minute, and the test would be told to have hung.
        let began = std::time::Instant::now();
        bench.transport.wait(Some(Nanos::from_secs(60)));
        assert!(pushed.join().unwrap() && began.elapsed().as_secs() < 30);
    }
}
