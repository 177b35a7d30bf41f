//! Lines: what the network does to runners in each row.

use throng_net::transport::Impairment;
use throng_platform::time::Nanos;

/// A line, the same both ways.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub name: &'static str,
    /// There and back together (ms).
    pub round_trip_ms: u64,
    /// Of all packets each way, at random [0 to 1].
    pub loss: f64,
    /// And so many in a row each way, once in [`Self::GAP_TICKS`].
    pub lost_in_a_row: u32,
}

impl Line {
    /// From the end of one row of lost packets to the next: long enough for all to be told and put right.
    pub const GAP_TICKS: u32 = 100;

    pub const ALL: [Self; 7] = [
        Self::new("clean"),
        Self { round_trip_ms: 150, ..Self::new("far") },
        Self { loss: 0.05, ..Self::new("lossy") },
        Self { round_trip_ms: 150, loss: 0.05, ..Self::new("far and lossy") },
        Self { round_trip_ms: 40, lost_in_a_row: 3, ..Self::new("three lost in a row") },
        Self { round_trip_ms: 150, lost_in_a_row: 3, ..Self::new("far, three lost in a row") },
        Self { round_trip_ms: 40, lost_in_a_row: 10, ..Self::new("ten lost in a row") },
    ];

    const fn new(name: &'static str) -> Self {
        Self { name, round_trip_ms: 0, loss: 0.0, lost_in_a_row: 0 }
    }

    pub fn impairment(&self) -> Impairment {
        Impairment { loss: self.loss, delay: Nanos::from_millis(self.round_trip_ms / 2), ..Impairment::NONE }
    }

    /// While packets are lost in a row.
    pub fn silence(&self) -> Impairment {
        Impairment { loss: 1.0, ..self.impairment() }
    }
}
