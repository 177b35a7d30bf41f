//! Input log: all that entered a world since a point in its life, tick by tick, as bytes.
//!
//! A world that begins from the same state and is given the same entries in the same ticks comes to the same state.
//! The format is for every reader of such a log: a world that is run again after a panic, and recordings.
//!
//! ```text
//! heading  | "thronglg" 8 | version u16 | rate u16 | tick u32 | seed u64 | schema u64 | crc u32 |
//! tick     | tick u32 | length u32 | body crc u32 | crc u32 | entries, length bytes |
//! ```
//!
//! The whole drawing is in `docs/spec/input-log.md`. A tick has a heading of its own with a checksum of its own, so a
//! length is believed only when it is as it was written: bytes that end too early are a torn tail, and all else that
//! is wrong is damage. Every tick is written, also one in which nothing came: a log says how far its world was. A
//! reactive world leaves out ticks, and so does its log.
//!
//! Sans-IO: it fills a buffer, which its owner hands on ([`InputLog::take`]). Allocates only until the buffers have the
//! size that a tick needs. Cost: 16 bytes per tick, and a copy and a checksum of what came in it.

mod entry;
mod reader;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

use throng_replication::TimeFactor;
use throng_scheduler::Hertz;

pub use entry::{Entry, LoggedArrival, LoggedSaveAnswers, LoggedTunables};
pub use reader::{Entries, InputLogReader, LogFault, LoggedTick};

use crate::{
    ids::ClientKey,
    inbox::InboxMessage,
    saving::{SaveAnswer, SaveStore},
    tick_resources::Arrival,
    transfer::WorldMessage,
    tunable::TunedValues,
};

const MAGIC: [u8; 8] = *b"thronglg";
const VERSION: u16 = 1;
const START_BYTES: usize = 8 + 2 + 2 + 4 + 8 + 8 + 4;
const TICK_HEADING_BYTES: usize = 4 * 4;

/// A log that another thread reads when the process dies: what its world has entered since is then in no other place.
///
/// Locked by the world's thread for as long as it writes an entry or reads what is there, so it is free at nearly all times.
pub type SharedInputLog = Arc<Mutex<InputLog>>;

/// What a log begins with: the state that its entries are to be given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStart {
    pub rate: Hertz,
    /// The last tick that the world had done; the log's first is the one after it.
    pub tick: u32,
    /// What the world was made with.
    pub seed: u64,
    /// Hash of the schema that inputs, requests and messages are of.
    pub schema: u64,
}

/// Writes a log: the heading, then tick after tick.
#[derive(Debug)]
pub struct InputLog {
    bytes: Vec<u8>,
    tick: u32,
    /// Where the tick that is being written begins.
    tick_begin: usize,
    /// Where its bytes ended when its heading was written; 0: it has none yet.
    sealed_until: usize,
    /// How often it was begun anew.
    restarts: u32,
}

impl InputLog {
    pub fn new(start: LogStart) -> Self {
        let mut log = Self::empty();
        log.restart(start);
        log
    }

    /// One that is not begun: to be [`restart`](Self::restart)ed before anything is written.
    pub fn empty() -> Self {
        Self { bytes: Vec::new(), tick: 0, tick_begin: 0, sealed_until: 0, restarts: 0 }
    }

    /// Begins anew, and forgets all that was written; keeps its memory.
    pub fn restart(&mut self, start: LogStart) {
        let bytes = &mut self.bytes;
        bytes.clear();
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&start.rate.0.to_le_bytes());
        bytes.extend_from_slice(&start.tick.to_le_bytes());
        bytes.extend_from_slice(&start.seed.to_le_bytes());
        bytes.extend_from_slice(&start.schema.to_le_bytes());
        let crc = crc32fast::hash(bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        self.tick = start.tick;
        self.restarts = self.restarts.wrapping_add(1);
        self.begin_tick();
    }

    /// How often it was begun anew: places in it are those of what was written since.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// What whole ticks have written since the log was begun or last taken from.
    pub fn whole_ticks(&self) -> &[u8] {
        &self.bytes[..self.tick_begin]
    }

    /// What has entered the tick that was begun last.
    pub fn unfinished_tick(&self) -> Entries<'_> {
        Entries::of(&self.bytes[self.tick_begin + TICK_HEADING_BYTES..])
    }

    /// The tick that is being written, as it will stand in the log, once all that enters it is there and before its systems run.
    pub fn tick_under_way(&self) -> Option<&[u8]> {
        (self.sealed_until > 0).then(|| &self.bytes[self.tick_begin..self.sealed_until])
    }

    /// The tick that is being written is this one: those before it were left out.
    pub fn go_on_to(&mut self, tick: u32) {
        self.tick = tick;
    }

    /// A client has come in.
    pub fn arrival(&mut self, arrival: &Arrival) {
        entry::write_arrival(arrival, &mut self.bytes);
    }

    /// A client's connection has ended.
    pub fn departure(&mut self, client: ClientKey) {
        entry::write_departure(client, &mut self.bytes);
    }

    /// What a client said, as it was opened.
    pub fn message(&mut self, message: &InboxMessage<'_>) {
        entry::write_message(message, &mut self.bytes);
    }

    /// What another world said.
    pub fn world_message(&mut self, message: &WorldMessage) {
        entry::write_world_message(message, &mut self.bytes);
    }

    /// Rules came into force, as the bytes that whoever reads the log makes rules of.
    pub fn rules(&mut self, rules: &[u8]) {
        entry::write_rules(rules, &mut self.bytes);
    }

    /// The world's time runs at this factor from this tick on. Nothing that a game computes follows from it; it tells why
    /// ticks came when they did.
    pub fn time_factor(&mut self, factor: TimeFactor) {
        entry::write_time_factor(factor, &mut self.bytes);
    }

    /// Tunables came into force: by the numbers that they have in this process.
    pub fn tunables(&mut self, values: &TunedValues) {
        entry::write_tunables(values, &mut self.bytes);
    }

    /// The game hears what became of its requests to be saved.
    pub fn save_answers(&mut self, answers: &[SaveAnswer]) {
        entry::write_save_answers(answers, &mut self.bytes);
    }

    /// The game sees the store of the saves so.
    pub fn save_store(&mut self, store: SaveStore) {
        entry::write_save_store(store, &mut self.bytes);
    }

    /// All that enters the tick is written, and its systems run next: writes its heading, so that it can be read if it never ends.
    pub fn all_has_entered(&mut self) {
        let (heading, entries) = self.bytes[self.tick_begin..].split_at_mut(TICK_HEADING_BYTES);
        heading.copy_from_slice(&tick_heading(self.tick, entries));
        self.sealed_until = self.bytes.len();
    }

    /// The tick has all that entered it; what comes now enters the next one.
    pub fn end_tick(&mut self) {
        if self.sealed_until != self.bytes.len() {
            self.all_has_entered();
        }
        self.begin_tick();
    }

    /// Moves what whole ticks have written into `out`, behind what is there. Both keep their memory.
    pub fn take(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[..self.tick_begin]);
        self.forget();
    }

    /// Forgets what whole ticks have written; keeps its memory. Between two ticks.
    pub fn forget(&mut self) {
        self.bytes.drain(..self.tick_begin);
        self.tick_begin = 0;
        self.sealed_until = 0;
    }

    fn begin_tick(&mut self) {
        self.tick = self.tick.wrapping_add(1);
        self.tick_begin = self.bytes.len();
        self.sealed_until = 0;
        self.bytes.extend_from_slice(&[0; TICK_HEADING_BYTES]);
    }
}

/// What stands in front of a tick's entries.
fn tick_heading(tick: u32, entries: &[u8]) -> [u8; TICK_HEADING_BYTES] {
    let mut heading = [0; TICK_HEADING_BYTES];
    heading[..4].copy_from_slice(&tick.to_le_bytes());
    heading[4..8].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    heading[8..12].copy_from_slice(&crc32fast::hash(entries).to_le_bytes());
    let crc = crc32fast::hash(&heading[..12]);
    heading[12..].copy_from_slice(&crc.to_le_bytes());
    heading
}
