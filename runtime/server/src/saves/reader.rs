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

pub(crate) type Read = (u64, Result<Option<Saved>, StoreError>);

/// Reads players' records.
pub(crate) struct Reader {
    thread: Option<(Sender<u64>, Receiver<Read>)>,
    reads: Arc<dyn Reads>,
    /// Read at once, to be taken.
    here: Vec<Read>,
}

impl Reader {
    pub fn with_thread(reads: Arc<dyn Reads>) -> std::io::Result<Reader> {
        let (jobs, wanted) = channel::<u64>();
        let (done, read) = channel();
        let of_thread = reads.clone();
        spawn_named("save-reader", Priority::Low, move || {
            // Ends with the server, which drops its end.
            for player in wanted {
                if done.send((player, of_thread.get(Key::player(player)))).is_err() {
                    return;
                }
            }
        })?;
        Ok(Reader { thread: Some((jobs, read)), ..Reader::inline(reads) })
    }

    pub fn inline(reads: Arc<dyn Reads>) -> Reader {
        Reader { thread: None, reads, here: Vec::new() }
    }

    /// Wants what is saved of a player. False: nobody reads any more.
    pub fn ask(&mut self, player: u64) -> bool {
        match &self.thread {
            Some((jobs, _)) => jobs.send(player).is_ok(),
            None => {
                self.here.push((player, self.reads.get(Key::player(player))));
                true
            }
        }
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
