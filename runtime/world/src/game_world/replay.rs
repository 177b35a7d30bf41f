//! Replay: a world is taken through ticks that another one has done, by the log of what entered them.
//!
//! Nobody is in it meanwhile: clients are rows of a table, their connections are elsewhere. What the ticks order for
//! others, messages to worlds above all, was done when they ran first and is thrown away.

use std::sync::Arc;

use throng_metrics::game::GameTotals;
use throng_pack::Fault;
use throng_platform::time::Nanos;

use super::GameWorld;
use crate::{
    ids::ClientKey,
    inbox::Inbox,
    input_log::{Entry, InputLogReader, LogFault, LoggedArrival, LoggedTick},
    mail::Mail,
    nowhere::Nowhere,
    saving::{CutMark, SavesLeft},
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
    #[error("after tick {tick} it is another world than the one that was saved then")]
    OtherCut { tick: u32 },
}

/// What a thread needs that replays worlds, whichever they are.
pub struct ReplayWorker {
    worker: Worker,
    mail: Mail,
    /// Which number a tunable of the log has in this process, by its number in the log: `None` of one that is no more.
    /// Empty: the log is of this process.
    pub tunables: Vec<Option<usize>>,
}

impl ReplayWorker {
    /// `number`: another one for each of a process.
    pub fn new(number: usize) -> Self {
        let worker = Worker::new(number, Box::new(Nowhere::default()));
        Self { worker, mail: Mail::default(), tunables: Vec::new() }
    }

    /// What games have counted in the ticks since this was last called goes to `totals`.
    pub fn take_counted(&mut self, totals: &mut GameTotals) {
        totals.take(&mut self.worker.game);
    }
}

impl GameWorld {
    /// Does all ticks of a log that began with the world as it is now. Returns how many there were.
    ///
    /// # Errors
    /// If the log is of another world or another tick, or cannot be read: then the world has done what stood before.
    pub fn replay(&mut self, log: &[u8]) -> Result<u32, ReplayError> {
        self.saving.is_replaying = true;
        let replayed = self.do_ticks(log, None);
        self.saving.is_replaying = false;
        replayed
    }

    /// The same for a world that is saved: it must be again what it was when its newest cut was taken, since others have
    /// what was in that one.
    ///
    /// # Errors
    /// As [`Self::replay`], and if it is not.
    pub fn replay_saved(&mut self, log: &[u8], left: &SavesLeft) -> Result<u32, ReplayError> {
        self.saving.is_replaying = true;
        let replayed = self.do_ticks(log, left.mark.as_ref());
        self.saving.is_replaying = false;
        replayed
    }

    fn do_ticks(&mut self, log: &[u8], mark: Option<&CutMark>) -> Result<u32, ReplayError> {
        let reader = InputLogReader::new(log)?;
        let start = reader.start();
        if start.tick != self.tick.wrapping_sub(1) {
            return Err(ReplayError::OtherTick { got: start.tick, ticks: self.tick });
        }
        if start.rate != self.rate || start.schema != self.replication.schema().hash() {
            return Err(ReplayError::OtherWorld);
        }
        let mut hands = ReplayWorker::new(0);
        let mut ticks = 0;
        for tick in reader {
            self.do_tick(&tick?, &mut hands)?;
            ticks += 1;
            if let Some(mark) = mark.filter(|mark| mark.tick.wrapping_add(1) == self.tick)
                && !self.is_as_cut(mark)
            {
                return Err(ReplayError::OtherCut { tick: mark.tick });
            }
        }
        if let Some(reactive) = &mut self.reactive {
            reactive.begin_at(self.tick);
        }
        // Its clock is the host's again, and what it has counted has been counted before.
        self.now = Nanos::ZERO;
        self.report_mut().stats = Default::default();
        Ok(ticks)
    }

    /// Does one tick of a log: for a world of which nobody wants anything but that.
    ///
    /// # Errors
    /// If it is not the tick that the world does next, or cannot be read.
    pub fn replay_tick(&mut self, tick: &LoggedTick<'_>, worker: &mut ReplayWorker) -> Result<(), ReplayError> {
        self.saving.is_replaying = true;
        self.do_tick(tick, worker)
    }

    /// The players who are here.
    pub fn players_here(&self) -> impl Iterator<Item = ClientKey> {
        self.ecs.resource::<Inbox>().players().iter().map(|(client, _)| client)
    }

    /// The players who are here, and where they stand (m): `None` for one without an entity, or with one that has no place.
    /// As of the last tick; whether their clients are here or in a log makes no difference.
    pub fn places_of_players(&self) -> impl Iterator<Item = (ClientKey, Option<[f32; 2]>)> {
        let place_of = |entity| self.replication.place_of(self.collector.net_id(&self.ecs, entity)?);
        self.ecs.resource::<Inbox>().players().iter().map(move |(client, own)| (client, own.and_then(place_of)))
    }

    fn do_tick(&mut self, tick: &LoggedTick<'_>, worker: &mut ReplayWorker) -> Result<(), ReplayError> {
        let period = Nanos(1_000_000_000 / u64::from(self.rate.0));
        self.rest_until(tick.tick)?;
        for entry in tick.entries() {
            self.enter(entry?, &worker.tunables)?;
        }
        self.tick(self.now + period, &mut worker.mail, &mut worker.worker, &Alone);
        let report = self.report_mut();
        report.leaving.clear();
        report.messages.clear();
        report.long_tasks.clear();
        report.failed.clear();
        Ok(())
    }

    /// The next step is this tick: those before it were left out.
    fn rest_until(&mut self, tick: u32) -> Result<(), LogFault> {
        match &mut self.reactive {
            Some(reactive) => {
                reactive.wake();
                self.tick = tick;
            }
            None if tick != self.tick => {
                return Err(LogFault::TickOutOfOrder { got: tick, expected: self.tick });
            }
            None => {}
        }
        Ok(())
    }

    /// What entered then enters again.
    fn enter(&mut self, entry: Entry<'_>, tunables: &[Option<usize>]) -> Result<(), LogFault> {
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
            Entry::SaveAnswers(answers) => self.note_save_answers(&answers.iter().collect::<Vec<_>>()),
            Entry::SaveStore(store) => self.note_save_store(store),
            Entry::Rules(bytes) => self.set_scan_range(read_scan_range(bytes)?),
            Entry::Tunables(values) => {
                let values = TunedValues::from_values(values.iter());
                self.set_tuned(&Arc::new(values.renumbered(tunables)));
            }
        }
        Ok(())
    }

    /// How far a game's neighbour lists reach from now on, by the rules.
    pub(super) fn set_scan_range(&mut self, ruled_m: Option<f32>) {
        if let Some(mut scan) = self.ecs.get_resource_mut::<ScanRange>() {
            scan.ruled_m = ruled_m;
            if let Some(mut log) = self.log() {
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
