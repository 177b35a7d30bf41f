//! A connection whose reader is counted: bytes beneath HTTP and WebSocket, which a library takes in before it says anything
//! of them. Fragments of a message that never ends, each empty, are such.
//!
//! It may send ten seconds' worth at once, as it does after its line stood still; above that it is broken off.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::allowance::Limits;

/// What a WebSocket adds to a packet: a head of 8 bytes with its mask, rounded up.
const FRAME_BYTES: f64 = 16.0;
/// How much may come at once (s).
const BURST_S: f64 = 10.0;
/// For a request's head, whatever the limits are.
const REQUEST_BYTES: f64 = 32.0 * 1024.0;

pub(crate) struct Metered<S> {
    stream: S,
    bytes_per_s: f64,
    bytes_max: f64,
    left: f64,
    at: Instant,
}

impl<S> Metered<S> {
    pub fn new(stream: S, limits: Limits) -> Self {
        let bytes_per_s = limits.bytes_per_s + limits.packets_per_s * FRAME_BYTES;
        let bytes_max = bytes_per_s * BURST_S + REQUEST_BYTES;
        Self { stream, bytes_per_s, bytes_max, left: bytes_max, at: Instant::now() }
    }

    fn take(&mut self, bytes: usize) -> io::Result<()> {
        let now = Instant::now();
        self.left = (self.left + (now - self.at).as_secs_f64() * self.bytes_per_s).min(self.bytes_max);
        self.at = now;
        self.left -= bytes as f64;
        if self.left < 0.0 { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(()) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, into);
        match read {
            Poll::Ready(Ok(())) => Poll::Ready(this.take(into.filled().len() - before)),
            other => other,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
