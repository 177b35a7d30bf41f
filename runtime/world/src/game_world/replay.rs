//! Replay: a world is taken through ticks that another one has done, by the log of what entered them.
//!
//! Nobody is in it meanwhile: clients are rows of a table, their connections are elsewhere. What the ticks order for
//! others, messages to worlds above all, was done when they ran first and is thrown away.

use std::sync::Arc;

use throng_pack::Fault;
use throng_platform::time::Nanos;

use super::GameWorld;
use crate::{
    input_log::{Entry, InputLogReader, LogFault, LoggedArrival},
    mail::Mail,
    nowhere::Nowhere,
    tick_resources::{Arrival, Departures, ScanRange},
    transfer::{Transfer, WorldMessage},
    tunable::TunedValues,
    worker::{Alone, Worker},
};

/// Why a log did not lead a world on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Log(#[from] LogFault),
    #[error("the log begins after tick {got}, and the world has done {ticks} ticks")]
    OtherTick { got: u32, ticks: u32 },
    #[error("the log is of worlds with another schema or rate")]
    OtherWorld,
}

impl GameWorld {
    /// Does all ticks of a log that began with the world as it is now. Returns how many there were.
    ///
    /// # Errors
    /// If the log is of another world or another tick, or cannot be read: then the world has done what stood before.
    pub fn replay(&mut self, log: &[u8]) -> Result<u32, ReplayError> {
        let reader = InputLogReader::new(log)?;
        let start = reader.start();
        if start.tick != self.tick.wrapping_sub(1) {
            return Err(ReplayError::OtherTick { got: start.tick, ticks: self.tick });
        }
        if start.rate != self.rate || start.schema != self.replication.schema().hash() {
            return Err(ReplayError::OtherWorld);
        }
        let mut worker = Worker::new(0, Box::new(Nowhere::default()));
        let mut mail = Mail::default();
        let period = Nanos(1_000_000_000 / u64::from(self.rate.0));
        let mut ticks = 0;
        for tick in reader {
            for entry in tick?.entries() {
                self.enter(entry?)?;
            }
            self.tick(self.now + period, &mut mail, &mut worker, &Alone);
            let report = self.report_mut();
            report.leaving.clear();
            report.messages.clear();
            report.long_tasks.clear();
            report.failed.clear();
            ticks += 1;
        }
        // Its clock is the host's again, and what it has counted has been counted before.
        self.now = Nanos::ZERO;
        self.report_mut().stats = Default::default();
        Ok(ticks)
    }

    /// What entered then enters again.
    fn enter(&mut self, entry: Entry<'_>) -> Result<(), LogFault> {
        match entry {
            Entry::Arrival(arrival) => self.note_arrival(arrival.to_arrival()),
            // The first tick's are in the checkpoint, too.
            Entry::Departure(client) if self.ecs.resource::<Departures>().0.contains(&client) => {}
            Entry::Departure(client) => self.note_departure(client),
            Entry::Message(message) => self.note_message(&message),
            Entry::WorldMessage { from, bytes } => {
                self.note_world_message(WorldMessage::from_packed(from, bytes.to_vec()));
            }
            // Nothing that a world computes follows from it, and the host says how fast it runs now.
            Entry::TimeFactor(_) => {}
            Entry::Rules(bytes) => self.set_scan_range(read_scan_range(bytes)?),
            Entry::Tunables(values) => self.set_tuned(&Arc::new(TunedValues::from_values(values.iter()))),
        }
        Ok(())
    }

    /// How far a game's neighbour lists reach from now on, by the rules.
    pub(super) fn set_scan_range(&mut self, ruled_m: Option<f32>) {
        if let Some(mut scan) = self.ecs.get_resource_mut::<ScanRange>() {
            scan.ruled_m = ruled_m;
            if let Some(log) = &mut self.log {
                let (mut bytes, length) = ([0; 5], if ruled_m.is_some() { 5 } else { 1 });
                bytes[0] = ruled_m.is_some().into();
                bytes[1..].copy_from_slice(&ruled_m.unwrap_or_default().to_le_bytes());
                log.rules(&bytes[..length]);
            }
        }
    }
}

fn read_scan_range(bytes: &[u8]) -> Result<Option<f32>, LogFault> {
    match *bytes {
        [0] => Ok(None),
        [1, a, b, c, d] => Ok(Some(f32::from_le_bytes([a, b, c, d]))),
        _ => Err(Fault::OutOfRange.into()),
    }
}

impl LoggedArrival<'_> {
    /// The arrival, as systems see it.
    pub fn to_arrival(&self) -> Arrival {
        Arrival {
            client: self.client,
            client_id: self.client_id,
            user_data: Box::new(*self.user_data),
            from: self.from,
            transfer: self.transfer.map(|bytes| Transfer::from_bytes(bytes.to_vec())),
            refused: self.refused,
        }
    }
}
