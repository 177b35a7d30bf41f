//! UDP: a client with a socket and a clock, for whoever plays one player: a game's own front end, a tool, a test.
//!
//! [`Client`] is sans-IO; a [`UdpClient`] does around it what every program would: it takes what has arrived, in batches,
//! lets the client answer, sends, and sleeps until something comes. It has no thread: the program calls
//! [`UdpClient::update`] once in each of its own frames, or [`UdpClient::run_for`], which sleeps between. What is said to
//! the client in between leaves with the next call.
//!
//! ```no_run
//! # use std::{error::Error, sync::Arc};
//! # use throng_client::{platform::time::Nanos, prelude::*};
//! # fn play(token: ConnectToken, schema: Arc<Schema>) -> Result<(), Box<dyn Error>> {
//! let mut player = UdpClient::connect(token, schema)?;
//! while !player.is_over() {
//!     player.run_for(Nanos::from_millis(50))?;
//!     println!("{} entities in view", player.client.replicas().len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! On the caller's thread. Memory: 216 KiB of batches, at the start; allocates nothing afterwards. Cost: three system
//! calls for each call, beside the client's own. Who drives thousands of clients wants one epoll and one buffer for all
//! of them, as the swarm of `throng-bots` has.

use std::{io, net::SocketAddr, os::fd::AsFd, sync::Arc};

use throng_net::{connection::PacketSink, protocol::ConnectToken};
use throng_platform::{
    clock::{Clock, MonotonicClock},
    poll::wait_readable,
    random,
    time::Nanos,
    udp::{BATCH_DATAGRAMS_MAX, BindError, BindOptions, ReceiveBatch, SendBatch, UdpSocket},
};
use throng_replication::{ClientInput, Schema};

use crate::{
    client::{Client, ClientState, SendInputError},
    login::RetrySettings,
};

/// Kernel buffers of the socket (bytes): 200 packets, ten seconds of an ordinary world. A program that does not call
/// for longer loses some, which the server sends again as far as they matter.
const SOCKET_BUFFER_BYTES: usize = 256 * 1024;

/// Batches taken in one update. What floods the socket waits, or is dropped by the kernel; the program goes on.
const BATCHES_PER_UPDATE_MAX: usize = 4;

/// The longest sleep of `run_for` (see [`Client::poll`], which wants to be called every 50 ms).
const SLEEP_MAX: Nanos = Nanos::from_millis(20);

/// Why the socket is of no use. Why the *connection* has ended is in [`Client::state`].
#[derive(Debug, thiserror::Error)]
pub enum UdpError {
    #[error("the connect token names no server")]
    NoServer,
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("the socket cannot be read: {0}")]
    Receive(io::Error),
    #[error("the socket cannot be waited for: {0}")]
    Wait(io::Error),
}

/// One player's end of the game, on a socket of its own.
pub struct UdpClient {
    /// What is driven: what the server shows and says is read here, and requests are made here.
    pub client: Client,
    clock: MonotonicClock,
    arrived: ReceiveBatch,
    way_out: WayOut,
}

impl UdpClient {
    /// Opens a socket on any free port and begins to connect. Nothing is sent before the first update.
    ///
    /// The socket is of the family (IPv4 or IPv6) of the token's first server; servers of the other one are not reached.
    ///
    /// # Errors
    /// If the token names no server, or no socket can be opened.
    pub fn connect(token: ConnectToken, schema: Arc<Schema>) -> Result<Self, UdpError> {
        let server = token.server_addresses().first().ok_or(UdpError::NoServer)?;
        let options = BindOptions {
            reuse_port: false,
            receive_buffer_bytes: SOCKET_BUFFER_BYTES,
            send_buffer_bytes: SOCKET_BUFFER_BYTES,
        };
        // A kernel that grants smaller buffers is good enough for one player.
        let (socket, _warnings) = UdpSocket::bind(any_port_for(*server), &options)?;
        let clock = MonotonicClock::new();
        Ok(Self {
            client: Client::new(token, schema, clock.now(), random::seed()),
            clock,
            arrived: ReceiveBatch::new(),
            way_out: WayOut { socket, batch: SendBatch::new(), dropped: 0 },
        })
    }

    /// Lets it try again where that may help: see [`Client::with_retries`]. Each time it wants a fresh token, which
    /// [`wants_token`](Self::wants_token) tells.
    #[must_use]
    pub fn with_retries(self, settings: RetrySettings) -> Self {
        Self { client: self.client.with_retries(settings), ..self }
    }

    /// Whether it has rested after a failed attempt and waits for a fresh token.
    pub fn wants_token(&self) -> bool {
        self.client.wants_token(self.now())
    }

    /// The next attempt begins, with a token that was not shown before. To the same servers, or others of their family.
    pub fn try_again(&mut self, token: ConnectToken) {
        self.client.try_again(token, self.clock.now(), random::seed());
    }

    /// Time since `connect`, as the client is told it.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Whether the connection is over, or never came to be: [`Client::state`] has the reason.
    pub fn is_over(&self) -> bool {
        matches!(self.client.state(), ClientState::Disconnected(_))
    }

    /// Takes what has arrived and sends what is due. Never waits. Wants to be called every 50 ms at least.
    ///
    /// # Errors
    /// If the socket cannot be read. The next call may do better: a network device may have gone and come back.
    pub fn update(&mut self) -> Result<(), UdpError> {
        let received = self.receive();
        // In any case: a goodbye or a keep-alive may be due.
        self.client.poll(self.clock.now(), self.clock.unix_seconds(), &mut self.way_out);
        self.way_out.flush();
        received
    }

    /// Updates for so long, asleep while nothing comes, and for no longer than the connection lasts.
    ///
    /// What comes meanwhile is kept for the program to read, up to the client's maxima (4,096 messages, 32
    /// [`ClientEvent`](crate::ClientEvent)s): some tens of milliseconds are a good length.
    ///
    /// # Errors
    /// As [`update`](Self::update), and if the socket cannot be waited for.
    pub fn run_for(&mut self, span: Nanos) -> Result<(), UdpError> {
        let end = self.now().saturating_add(span);
        loop {
            self.update()?;
            let left = end.saturating_sub(self.now());
            if left == Nanos::ZERO || self.is_over() {
                return Ok(());
            }
            // A signal may end the sleep early, which does no harm.
            wait_readable(&[self.way_out.socket.as_fd()], Some(left.min(SLEEP_MAX))).map_err(UdpError::Wait)?;
        }
    }

    /// Sends `input` with the next update: see [`Client::send_input`].
    ///
    /// # Errors
    /// [`SendInputError::NotInWorld`] is ordinary; the others are mistakes of the program.
    pub fn send_input<T: ClientInput>(&mut self, input: &T) -> Result<u16, SendInputError> {
        self.client.send_input(self.clock.now(), input)
    }

    /// Says goodbye. Without it the server notices the end when it has heard nothing for as long as the token allows.
    pub fn close(&mut self) {
        self.client.close(self.clock.now(), &mut self.way_out);
        self.way_out.flush();
    }

    /// Datagrams that the kernel did not take, since `connect`: lost, as on any network.
    pub fn send_dropped(&self) -> u64 {
        self.way_out.dropped
    }

    fn receive(&mut self) -> Result<(), UdpError> {
        for _ in 0..BATCHES_PER_UPDATE_MAX {
            let taken = self.way_out.socket.receive_batch(&mut self.arrived).map_err(UdpError::Receive)?;
            // Whoever sent them: what the server did not seal is counted and dropped.
            for (_from, datagram) in self.arrived.iter_mut() {
                self.client.receive(self.clock.now(), datagram);
            }
            if taken < BATCH_DATAGRAMS_MAX {
                break;
            }
        }
        Ok(())
    }
}

/// The socket, and what is about to leave through it.
struct WayOut {
    socket: UdpSocket,
    batch: SendBatch,
    dropped: u64,
}

impl WayOut {
    fn flush(&mut self) {
        let outcome = self.socket.send_batch(&mut self.batch);
        self.dropped += outcome.dropped as u64;
    }
}

impl PacketSink for WayOut {
    fn buffer(&mut self) -> &mut [u8] {
        self.batch.buffer()
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        self.batch.commit(to, len);
        if self.batch.is_full() {
            self.flush();
        }
    }
}

/// Any free port, of the family that reaches `server`.
fn any_port_for(server: SocketAddr) -> SocketAddr {
    match server {
        SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
        SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
    }
}
