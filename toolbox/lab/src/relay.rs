//! Relay: a bad network between clients and a server that know nothing of it.
//!
//! ```text
//! client ──> front ──> fate ──> in flight ──> back (one socket per client) ──> server
//! client <── front <── in flight <── fate <── back <──────────────────────────┘
//! ```
//!
//! What happens to a datagram follows from the seed, the client (by order of arrival), the direction and its number
//! between the two, and from nothing else but the time it came at: the same packets at the same times fare the same way
//! again ([`Way`]). The kernel's own emulation is not on every machine, has no seed, and cannot turn bits over that a
//! checksum would not notice.
//!
//! Used by the tests of the command (`toolbox/shipped/tests/command`: `network`, and `reliable_pair` for two bare
//! connections), which put real players and a real server on either side of it. No load run goes through it.
//!
//! One thread. It allocates per datagram and sleeps in whole milliseconds, so a delay may be 1 ms longer than asked.
//! Cost: two system calls per datagram, some 60,000 a second of them on one core.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use throng_net::transport::impairment::{Fate, Way};
use throng_platform::{
    clock::{Clock, MonotonicClock},
    poll::Epoll,
    threads::{Priority, spawn_named},
    time::Nanos,
    udp::{BindOptions, UdpSocket},
};

pub use throng_net::transport::Impairment;

/// Which way a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToServer = 0,
    ToClient = 1,
}

/// Datagrams on their way at most, in both directions together: 0.5 s of what 1,000 players and their server say.
/// Further ones are lost and counted.
pub const IN_FLIGHT_MAX: usize = 65_536;
/// Clients at most, each a socket; datagrams of further ones are lost and counted.
pub const CLIENTS_MAX: usize = 4_096;

/// The longest datagram that is carried; a longer one is cut by the kernel, as on a path with a smaller MTU.
const DATAGRAM_BYTES_MAX: usize = 2_048;
/// Datagrams taken from one socket before the others get their turn.
const VISIT_MAX: usize = 64;
/// The longest sleep (ms): how late an order to stop is heard.
const SLEEP_MS_MAX: u16 = 5;
/// The front socket's name in epoll; the others have their client's number.
const FRONT: u64 = u64::MAX;

/// What became of the datagrams so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RelayCounts {
    pub taken: u64,
    /// Copies that were sent on.
    pub carried: u64,
    pub lost: u64,
    /// Lost in a blackout.
    pub blacked_out: u64,
    /// Lost because the line's queue was full.
    pub queue_full: u64,
    pub doubled: u64,
    pub held_back: u64,
    pub corrupted: u64,
    /// Lost because of [`IN_FLIGHT_MAX`] or [`CLIENTS_MAX`], or because the kernel did not take them: not for a test's
    /// seed to decide, so a test that relies on its seed wants 0 here.
    pub refused: u64,
}

/// A relay that runs until it is dropped.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Read and written by both threads.
struct Shared {
    stop: AtomicBool,
    /// By direction.
    impairments: Mutex<[Impairment; 2]>,
    counts: Mutex<RelayCounts>,
}

impl Relay {
    /// Listens on `listen` (port 0 = any free one) and passes on to `server`. The sockets belong to the network
    /// namespace of the calling thread.
    pub fn start(
        listen: SocketAddr,
        server: SocketAddr,
        seed: u64,
        to_server: Impairment,
        to_client: Impairment,
    ) -> io::Result<Self> {
        let front = open(listen)?;
        let address = front.local_addr();
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            impairments: Mutex::new([to_server, to_client]),
            counts: Mutex::default(),
        });
        let mut work = Work::new(front, server, seed, shared.clone())?;
        let thread = spawn_named("relay", Priority::Normal, move || {
            // An error is the machine's; who uses the relay sees that nothing arrives any more.
            if let Err(error) = work.run() {
                eprintln!("the relay ends: {error}");
            }
        })?;
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// Where clients are to send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on datagrams fare like this; those on their way fare as before.
    pub fn impair(&self, to_server: Impairment, to_client: Impairment) {
        *lock(&self.shared.impairments) = [to_server, to_client];
    }

    /// As of the last few milliseconds.
    pub fn counts(&self) -> RelayCounts {
        *lock(&self.shared.counts)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Nothing else is handed over with it.
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One client's sockets and ways.
struct Passage {
    client: SocketAddr,
    back: UdpSocket,
    ways: [Way; 2],
}

/// When, then in the order of arrival: earlier ones leave the heap first.
type Due = (Nanos, u64);

struct InFlight {
    client: usize,
    direction: Direction,
    datagram: Box<[u8]>,
}

struct Work {
    clock: MonotonicClock,
    began: Nanos,
    front: UdpSocket,
    server: SocketAddr,
    seed: u64,
    shared: Arc<Shared>,
    epoll: Epoll,
    passages: Vec<Passage>,
    client_of: HashMap<SocketAddr, usize>,
    due: BinaryHeap<Reverse<Due>>,
    in_flight: HashMap<u64, InFlight>,
    arrivals: u64,
    counts: RelayCounts,
}

impl Work {
    fn new(front: UdpSocket, server: SocketAddr, seed: u64, shared: Arc<Shared>) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(&front, FRONT)?;
        let clock = MonotonicClock::new();
        Ok(Self {
            began: clock.now(),
            clock,
            front,
            server,
            seed,
            shared,
            epoll,
            passages: Vec::new(),
            client_of: HashMap::new(),
            due: BinaryHeap::new(),
            in_flight: HashMap::new(),
            arrivals: 0,
            counts: RelayCounts::default(),
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut readable = Vec::new();
        while !self.shared.stop.load(Ordering::Relaxed) {
            let sleep_ms = self.sleep_ms();
            self.epoll.wait(&mut readable, sleep_ms)?;
            let impairments = *lock(&self.shared.impairments);
            for &token in &readable {
                self.visit(token, &impairments)?;
            }
            self.send_due();
            *lock(&self.shared.counts) = self.counts;
        }
        Ok(())
    }

    /// Time since the start: what blackouts are reckoned by.
    fn now(&self) -> Nanos {
        self.clock.now().saturating_sub(self.began)
    }

    fn sleep_ms(&self) -> u16 {
        let Some(Reverse((at, _))) = self.due.peek() else { return SLEEP_MS_MAX };
        let wait_us = at.saturating_sub(self.now()).as_micros();
        u16::try_from(wait_us.div_ceil(1_000)).map_or(SLEEP_MS_MAX, |ms| ms.min(SLEEP_MS_MAX))
    }

    /// Takes what waits in one socket.
    fn visit(&mut self, token: u64, impairments: &[Impairment; 2]) -> io::Result<()> {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        for _ in 0..VISIT_MAX {
            let (client, direction, len) = if token == FRONT {
                let Some((len, from)) = self.front.recv_from(&mut buffer)? else { break };
                let Some(client) = self.client(from)? else {
                    self.counts.refused += 1;
                    continue;
                };
                (client, Direction::ToServer, len)
            } else {
                let client = token as usize;
                let Some((len, from)) = self.passages[client].back.recv_from(&mut buffer)? else { break };
                // A stranger's, who found the port.
                if from != self.server {
                    continue;
                }
                (client, Direction::ToClient, len)
            };
            self.take(client, direction, &mut buffer[..len], &impairments[direction as usize]);
        }
        Ok(())
    }

    fn client(&mut self, from: SocketAddr) -> io::Result<Option<usize>> {
        if let Some(&client) = self.client_of.get(&from) {
            return Ok(Some(client));
        }
        let client = self.passages.len();
        if client == CLIENTS_MAX {
            return Ok(None);
        }
        let any_ip = match self.server {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let back = open(SocketAddr::new(any_ip, 0))?;
        self.epoll.add(&back, client as u64)?;
        let way = |direction| Way::new(self.seed, client as u64, direction as u64);
        let ways = [way(Direction::ToServer), way(Direction::ToClient)];
        self.passages.push(Passage { client: from, back, ways });
        self.client_of.insert(from, client);
        Ok(Some(client))
    }

    fn take(&mut self, client: usize, direction: Direction, datagram: &mut [u8], impairment: &Impairment) {
        let now = self.now();
        let counts = &mut self.counts;
        counts.taken += 1;
        let way = &mut self.passages[client].ways[direction as usize];
        let (at, copy_at, turned_bit) = match way.carry(now, datagram.len(), impairment) {
            Fate::Lost => return counts.lost += 1,
            Fate::BlackedOut => return counts.blacked_out += 1,
            Fate::QueueFull => return counts.queue_full += 1,
            Fate::Carried { at, copy_at, is_held_back, turned_bit } => {
                counts.held_back += u64::from(is_held_back);
                (at, copy_at, turned_bit)
            }
        };
        if let Some(bit) = turned_bit {
            counts.corrupted += 1;
            bit.apply(datagram);
        }
        if let Some(at) = copy_at {
            counts.doubled += 1;
            self.launch(at, InFlight { client, direction, datagram: (&*datagram).into() });
        }
        self.launch(at, InFlight { client, direction, datagram: (&*datagram).into() });
    }

    fn launch(&mut self, at: Nanos, flight: InFlight) {
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            self.counts.refused += 1;
            return;
        }
        self.due.push(Reverse((at, self.arrivals)));
        self.in_flight.insert(self.arrivals, flight);
        self.arrivals += 1;
    }

    fn send_due(&mut self) {
        let now = self.now();
        while let Some(&Reverse((at, number))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            let Some(InFlight { client, direction, datagram }) = self.in_flight.remove(&number) else { continue };
            let passage = &self.passages[client];
            let outcome = match direction {
                Direction::ToServer => passage.back.send_to(&datagram, self.server),
                Direction::ToClient => self.front.send_to(&datagram, passage.client),
            };
            self.counts.carried += outcome.sent as u64;
            self.counts.refused += outcome.dropped as u64;
        }
    }
}

fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let (socket, _smaller_buffers) = UdpSocket::bind(address, &BindOptions::default()).map_err(io::Error::other)?;
    Ok(socket)
}

/// Both are plain values that are replaced whole: a thread that panicked left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
