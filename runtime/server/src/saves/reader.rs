//! Reader: what is saved of players who log in, read beside the frames.
//!
//! A thread of low priority reads one record after the other; a log-in waits for it as one waits for a world that is
//! being made. In a simulation it is read at once.

use std::sync::{
    Arc,
    mpsc::{Receiver, Sender, channel},
};

use throng_persistence::{Key, Reads, Saved, StoreError};
use throng_platform::threads::{Priority, spawn_named};

/// What was read of a player.
pub(crate) struct Read {
    pub player: u64,
    /// Of this reader's reads.
    pub number: u64,
    pub found: Result<Option<Saved>, StoreError>,
}

/// What is to be read.
struct Wanted {
    player: u64,
    number: u64,
}

impl Wanted {
    fn read(self, reads: &dyn Reads) -> Read {
        let Wanted { player, number } = self;
        Read { player, number, found: reads.get(Key::player(player)) }
    }
}

/// Reads players' records.
pub(crate) struct Reader {
    thread: Option<(Sender<Wanted>, Receiver<Read>)>,
    reads: Arc<dyn Reads>,
    /// How often it was asked.
    asked: u64,
    /// Read at once, to be taken.
    here: Vec<Read>,
}

impl Reader {
    pub fn with_thread(reads: Arc<dyn Reads>) -> std::io::Result<Reader> {
        let (jobs, wanted) = channel::<Wanted>();
        let (done, read) = channel();
        let of_thread = reads.clone();
        spawn_named("save-reader", Priority::Low, move || {
            // Ends with the server, which drops its end.
            for job in wanted {
                if done.send(job.read(&*of_thread)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Reader { thread: Some((jobs, read)), ..Reader::inline(reads) })
    }

    pub fn inline(reads: Arc<dyn Reads>) -> Reader {
        Reader { thread: None, reads, asked: 0, here: Vec::new() }
    }

    /// Wants what is saved of a player; the read's number. `None`: nobody reads any more.
    pub fn ask(&mut self, player: u64) -> Option<u64> {
        self.asked += 1;
        let job = Wanted { player, number: self.asked };
        match &self.thread {
            Some((jobs, _)) => jobs.send(job).ok()?,
            None => self.here.push(job.read(&*self.reads)),
        }
        Some(self.asked)
    }

    /// What was read since this was last asked.
    pub fn take(&mut self) -> Option<Read> {
        match &self.thread {
            Some((_, read)) => read.try_recv().ok(),
            None => self.here.pop(),
        }
    }

    /// For whoever reads the records of worlds.
    pub fn reads(&self) -> Arc<dyn Reads> {
        self.reads.clone()
    }
}
