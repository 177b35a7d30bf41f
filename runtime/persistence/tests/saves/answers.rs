//! Answers of a writer, for tests that wait for them.

use std::time::{Duration, Instant};

use throng_persistence::{Ack, Writer};

/// The next answer. The deadline is one for a test that hangs.
pub fn await_ack(writer: &mut Writer) -> Ack {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(ack) = writer.take_ack() {
            return ack;
        }
        assert!(Instant::now() < deadline, "no answer in a minute: {:?}", writer.counters());
        std::thread::sleep(Duration::from_micros(100));
    }
}
