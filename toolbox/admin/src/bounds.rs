//! Bounds: what strangers at the admin port can make this process hold.
//!
//! Without them, clients that connect and never finish their request would take file descriptors until the game's
//! own sockets had none. Here each connection has a place, and loses it by time or by size:
//!
//! ```text
//! CONNECTIONS_MAX places x (1 descriptor + REQUEST_BYTES_MAX + a page of text), each for at most LIFE_MAX
//! ```
//!
//! With all places taken, newcomers wait in the kernel's backlog until the oldest has lived its [`LIFE_MAX`]. Those
//! that say nothing are gone after [`SILENCE_MAX`]: a supervisor that gives a probe some seconds gets its answer.
//!
//! An answer that lasts, as a watcher's does, takes a place of another sort ([`Life::last`]) and gives this one back, so
//! that no number of watchers keeps anybody from asking.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use throng_profiler::{log_category, log_warn};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

log_category!(ADMIN = "admin");

/// A Prometheus or two, a supervisor's probe, a person: 32 at once is already strange.
pub(crate) const CONNECTIONS_MAX: usize = 32;
/// A scrape's request has about 300 bytes; a browser's with cookies stays under 8 KiB.
pub(crate) const REQUEST_BYTES_MAX: usize = 16 << 10;
/// A request and its answer take milliseconds on loopback; a slow line has 10 s for a page of text.
pub(crate) const LIFE_MAX: Duration = Duration::from_secs(10);
/// Until the first byte, which whoever has something to ask sends at once.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(1);
/// After a failed accept (no descriptors left, mostly), so that the thread does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A listener that gives out at most [`CONNECTIONS_MAX`] connections at a time.
pub(crate) struct BoundedListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
    life_max: Duration,
}

impl BoundedListener {
    pub(crate) fn new(listener: TcpListener, life_max: Duration) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)), life_max }
    }
}

impl Listener for BoundedListener {
    type Io = BoundedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (BoundedStream, SocketAddr) {
        loop {
            let Ok(place) = self.places.clone().acquire_owned().await else {
                // Only a closed semaphore refuses, and nobody closes this one.
                std::future::pending::<()>().await;
                continue;
            };
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    return (BoundedStream::new(stream, place, self.life_max), address);
                }
                Err(cause) => {
                    log_warn!(ADMIN, %cause, "an admin connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Whom a connection comes from, and how long it may last.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub address: SocketAddr,
    pub life: Arc<Life>,
}

impl Connected<IncomingStream<'_, BoundedListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, BoundedListener>) -> Self {
        Self { address: *stream.remote_addr(), life: stream.io().life.clone() }
    }
}

/// How long a connection lasts. The connection's task looks at it, and whoever answers may change it.
#[derive(Debug)]
pub(crate) struct Life(Mutex<Left>);

#[derive(Debug)]
struct Left {
    until: Instant,
    /// Given back with the connection.
    place: Option<OwnedSemaphorePermit>,
    /// Of the connection's task, where its end is to be told at once.
    waker: Option<Waker>,
    is_lasting: bool,
}

impl Life {
    fn new(until: Instant, place: OwnedSemaphorePermit) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Left { until, place: Some(place), waker: None, is_lasting: false })))
    }

    /// The answer lasts: the connection has this place from now on, in exchange for the one of those that are short.
    pub(crate) fn last(&self, until: Instant, place: OwnedSemaphorePermit) {
        let before = {
            let mut left = self.left();
            (left.until, left.is_lasting) = (until, true);
            left.place.replace(place)
        };
        drop(before);
    }

    /// The connection ends now, whatever it waits for.
    pub(crate) fn end(&self) {
        let mut left = self.left();
        left.until = Instant::now();
        left.waker.iter().for_each(Waker::wake_by_ref);
    }

    /// When it is over; whoever asks is woken if it ends before.
    fn until(&self, context: &Context<'_>) -> Instant {
        let mut left = self.left();
        if left.is_lasting {
            match &mut left.waker {
                Some(waker) => waker.clone_from(context.waker()),
                waker => *waker = Some(context.waker().clone()),
            }
        }
        left.until
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        // Its parts do not depend on each other.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that ends when it has lived or sent too much.
pub(crate) struct BoundedStream {
    stream: TcpStream,
    /// Until something was said, the end of the silence that is borne.
    end_of_life: Pin<Box<Sleep>>,
    /// What its whole life may take.
    life: Arc<Life>,
    has_spoken: bool,
    request_bytes_left: usize,
}

impl BoundedStream {
    fn new(stream: TcpStream, place: OwnedSemaphorePermit, life_max: Duration) -> Self {
        let now = Instant::now();
        Self {
            stream,
            end_of_life: Box::pin(tokio::time::sleep_until(now + life_max.min(SILENCE_MAX))),
            life: Life::new(now + life_max, place),
            has_spoken: false,
            request_bytes_left: REQUEST_BYTES_MAX,
        }
    }

    fn check_life(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.has_spoken {
            let until = self.life.until(context);
            if self.end_of_life.deadline() != until {
                self.end_of_life.as_mut().reset(until);
            }
        }
        match self.end_of_life.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::Error::new(io::ErrorKind::TimedOut, "the connection lived too long")),
            Poll::Pending => Ok(()),
        }
    }
}

impl Drop for BoundedStream {
    /// The place is free with the connection, whoever still holds on to its life.
    fn drop(&mut self) {
        let place = self.life.left().place.take();
        drop(place);
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.has_spoken {
            self.check_life(context)?;
        }
        let filled_before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        // What has come already is no silence, however late this thread looks.
        if !self.has_spoken && result.is_pending() {
            self.check_life(context)?;
        }
        let read_bytes = buffer.filled().len() - filled_before;
        if read_bytes > 0 && !std::mem::replace(&mut self.has_spoken, true) {
            // It wakes whoever has asked it last.
            self.check_life(context)?;
        }
        match self.request_bytes_left.checked_sub(read_bytes) {
            Some(left) => self.request_bytes_left = left,
            None => {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the request is too long")));
            }
        }
        result
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check_life(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_life(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
