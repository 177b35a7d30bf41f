//! What a server received, written down, and delivered once more.
//!
//! A server's worlds follow from its seeds and from what comes in. A [`RecordingTransport`] around any
//! other transport notes every datagram with the number of the `receive` call that handed it over; a
//! [`ReplayTransport`] hands the same datagrams over in the same calls. With the same clock, the second run
//! must come to the same worlds: that is how determinism is tested, and how a bug seen once is seen again.
//!
//! Sealed datagrams open only with the keys of the recorded run, so a replay needs its seeds as well.
//!
//! Costs a copy of each datagram; not for live servers that do not ask for it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use throng_platform::time::Nanos;

use super::{DatagramSender, PacketSink, SendOutcome, ServerTransport};

/// A recording ends at this size [bytes of datagrams]: 16 min of 1,000 players' inputs at 50 B. What comes
/// later is not noted, and [`Recording::is_complete`] says so.
pub const RECORDING_BYTES_MAX: usize = 1 << 30;

/// One datagram that was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDatagram {
    /// Which call of `receive` handed it over, counted from 0.
    pub call: u64,
    pub from: SocketAddr,
    pub bytes: Box<[u8]>,
}

/// Everything a server received, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    datagrams: Vec<RecordedDatagram>,
    calls: u64,
    bytes: usize,
    overflowed: bool,
}

impl Recording {
    pub fn datagrams(&self) -> &[RecordedDatagram] {
        &self.datagrams
    }

    /// Takes one datagram out, as if it had been lost on its way: to see what hangs on it, or to shorten a recording to
    /// what matters.
    ///
    /// # Panics
    /// If there is no datagram with this index.
    pub fn remove(&mut self, index: usize) -> RecordedDatagram {
        let datagram = self.datagrams.remove(index);
        self.bytes -= datagram.bytes.len();
        datagram
    }

    /// How often `receive` was called.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether everything that was received is in it.
    pub fn is_complete(&self) -> bool {
        !self.overflowed
    }

    fn note(&mut self, from: SocketAddr, datagram: &[u8]) {
        if self.overflowed || self.bytes + datagram.len() > RECORDING_BYTES_MAX {
            self.overflowed = true;
            return;
        }
        self.bytes += datagram.len();
        self.datagrams.push(RecordedDatagram { call: self.calls, from, bytes: datagram.into() });
    }
}

/// Notes what the transport inside it receives.
pub struct RecordingTransport<T> {
    inner: T,
    /// Written by `receive` on the frame's thread, read by whoever asked for the tap, usually afterwards.
    recording: Arc<Mutex<Recording>>,
}

impl<T: ServerTransport> RecordingTransport<T> {
    /// Returns the transport and the tap, which holds the recording as it grows.
    pub fn new(inner: T) -> (Self, Arc<Mutex<Recording>>) {
        let recording = Arc::<Mutex<Recording>>::default();
        (RecordingTransport { inner, recording: recording.clone() }, recording)
    }
}

impl<T: ServerTransport> ServerTransport for RecordingTransport<T> {
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize {
        let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        let count = self.inner.receive(
            &mut |from, datagram| {
                // Before the server opens it in place.
                recording.note(from, datagram);
                each(from, datagram);
            },
            max,
        );
        recording.calls += 1;
        count
    }

    fn sender(&mut self, worker: usize) -> Box<dyn DatagramSender> {
        self.inner.sender(worker)
    }

    fn wait(&self, timeout: Option<Nanos>) {
        self.inner.wait(timeout);
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }
}

/// Delivers a recording. What the server sends goes nowhere.
pub struct ReplayTransport {
    datagrams: std::vec::IntoIter<RecordedDatagram>,
    calls: u64,
    calls_recorded: u64,
    address: SocketAddr,
}

impl ReplayTransport {
    /// `address` is what the recorded server called its own.
    pub fn new(recording: Recording, address: SocketAddr) -> Self {
        ReplayTransport {
            calls_recorded: recording.calls,
            datagrams: recording.datagrams.into_iter(),
            calls: 0,
            address,
        }
    }

    /// Whether all recorded calls have been made again.
    pub fn is_over(&self) -> bool {
        self.calls >= self.calls_recorded
    }
}

impl ServerTransport for ReplayTransport {
    /// `max` is not asked: the recorded call has had its own.
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), _max: usize) -> usize {
        let mut count = 0;
        while self.datagrams.as_slice().first().is_some_and(|next| next.call == self.calls)
            && let Some(mut datagram) = self.datagrams.next()
        {
            each(datagram.from, &mut datagram.bytes);
            count += 1;
        }
        self.calls += 1;
        count
    }

    fn sender(&mut self, _worker: usize) -> Box<dyn DatagramSender> {
        Box::new(Nowhere { buffer: [0; crate::protocol::PACKET_BYTES_MAX], committed: 0 })
    }

    fn wait(&self, _timeout: Option<Nanos>) {}

    fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

/// Takes packets and lets them vanish.
struct Nowhere {
    buffer: [u8; crate::protocol::PACKET_BYTES_MAX],
    committed: usize,
}

impl PacketSink for Nowhere {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(&mut self, _to: SocketAddr, _len: usize) {
        self.committed += 1;
    }
}

impl DatagramSender for Nowhere {
    fn flush(&mut self) -> SendOutcome {
        SendOutcome { sent: std::mem::take(&mut self.committed), dropped: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Impairment, MemoryNetwork};

    /// One call's datagrams, as the server saw them.
    fn receive(transport: &mut dyn ServerTransport) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut seen = Vec::new();
        transport.receive(
            &mut |from, datagram| {
                seen.push((from, datagram.to_vec()));
                datagram.fill(0); // as opening in place does
            },
            10,
        );
        seen
    }

    #[test]
    fn a_replay_delivers_the_same_datagrams_in_the_same_calls() {
        let impairment = Impairment { loss: 0.2, jitter: Nanos::from_millis(40), ..Impairment::default() };
        let network = MemoryNetwork::new(11, impairment);
        let [server, a, b] = [1, 2, 3].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let (mut recorded, tap) = RecordingTransport::new(network.server(server));
        let mut clients = [network.endpoint(a), network.endpoint(b)];
        let mut calls = Vec::new();
        for tick in 0..100u8 {
            clients.iter_mut().for_each(|client| client.send_to(&[tick; 20], server));
            network.advance(Nanos::from_millis(16 * u64::from(tick)));
            calls.push(receive(&mut recorded));
        }
        let recording = tap.lock().unwrap().clone();
        assert!(recording.is_complete() && recording.datagrams().len() > 100);
        let mut replay = ReplayTransport::new(recording, server);
        let again: Vec<_> = std::iter::from_fn(|| (!replay.is_over()).then(|| receive(&mut replay))).collect();
        assert_eq!(again, calls);
    }
}
