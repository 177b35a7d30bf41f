//! Flights: a view's messages that went out and are not answered.
//!
//! A flight does not say what its message held: labels say that of what went the slow way, and the flight's tick and
//! its first and last slot of the rest (`loss`).

use std::collections::VecDeque;

use throng_platform::prefetch::{self, FootprintDraft};

/// Unanswered packets: a bit each in `EntryCold::spawn_packets`.
const PACKETS_IN_FLIGHT_MAX: u8 = 64;

/// A packet that went out and is not answered.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Flight {
    /// The transport's number; the message's own otherwise.
    pub packet: u16,
    pub sequence: u16,
    pub tick: u32,
    /// Slots between which plain updates were copied from the tick's bulk; `first > last` if none were.
    pub first: u32,
    pub last: u32,
    /// Whether it carried spawns or despawns; their acknowledgement means something.
    pub existence: bool,
    /// Whether it carried anything that is labelled with its sequence.
    pub labelled: bool,
}

#[derive(Default)]
pub(crate) struct Flights {
    next_sequence: u16,
    /// The message that was written last, until the name of its packet is known.
    unsent: Option<Flight>,
    /// Oldest first.
    in_flight: VecDeque<Flight>,
}

impl Flights {
    /// The number of the message that is written next.
    #[inline]
    pub fn next_sequence(&self) -> u16 {
        self.next_sequence
    }

    /// A label that no packet in flight has: it is half the circle away.
    pub fn unused_label(&self) -> u16 {
        self.next_sequence.wrapping_add(1 << 15)
    }

    /// A message was written, and has the next number.
    pub fn add_unsent(&mut self, flight: Flight) {
        self.unsent = Some(Flight { sequence: self.next_sequence, ..flight });
        self.next_sequence = self.next_sequence.wrapping_add(1);
    }

    pub fn take_unsent(&mut self) -> Option<Flight> {
        self.unsent.take()
    }

    /// Takes out the oldest flight if it keeps `flight` from going out: at most `span_max` [1 to 64] may be unanswered.
    pub fn take_outdated(&mut self, flight: &Flight, span_max: u8) -> Option<Flight> {
        // Counted in sequence numbers, not packets, so that `sequence % 64` tells those in flight apart.
        let span_max = u16::from(span_max.clamp(1, PACKETS_IN_FLIGHT_MAX));
        let oldest = self.in_flight.front()?;
        if flight.sequence.wrapping_sub(oldest.sequence) < span_max {
            return None;
        }
        self.in_flight.pop_front()
    }

    pub fn push(&mut self, flight: Flight) {
        self.in_flight.push_back(flight);
    }

    /// Takes out a flight that went in this packet; it may be one of several.
    pub fn take(&mut self, packet: u16) -> Option<Flight> {
        let index = self.in_flight.iter().position(|flight| flight.packet == packet)?;
        self.in_flight.remove(index)
    }

    /// Asks for what an answer will read.
    pub fn prefetch(&self) {
        let (flights, rest) = self.in_flight.as_slices();
        prefetch::value(flights);
        prefetch::value(rest);
    }

    pub fn note(&self, footprint: &mut FootprintDraft) {
        let (flights, rest) = self.in_flight.as_slices();
        footprint.note(flights);
        footprint.note(rest);
    }

    pub fn heap_bytes(&self) -> usize {
        self.in_flight.capacity() * size_of::<Flight>()
    }

    pub fn check(&self) {
        assert!(self.in_flight.len() <= usize::from(PACKETS_IN_FLIGHT_MAX));
    }
}
