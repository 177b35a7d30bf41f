//! Server: what a recording says of the server that it is of, and when it begins and ends with it.
//!
//! On the frame's thread, before the first frame and after the last.

use super::{About, RecordingError};
use crate::{report::Build, server::Server};

impl Server {
    /// What shaped the game's worlds, as words of a command line: for recordings, from which they are made again.
    pub fn set_arguments(&mut self, words: Vec<String>) {
        self.recorded.arguments = words;
    }

    /// What a recording is to say of this server.
    pub(crate) fn introduce_to_recording(&mut self) -> Result<(), RecordingError> {
        let Build { version, commit } = self.build.clone().unwrap_or_default();
        self.recording.introduce(About {
            game: self.game.clone(),
            version,
            commit,
            schema: self.schema.hash(),
            unix_s: self.clock.unix_seconds(),
            tunables: self.control.tuning.names_by_number(),
            kinds: self.kinds.iter().map(|row| row.name.to_string()).collect(),
            draws: self.seeds.drawn().to_vec(),
            has_store: Some(self.saves.is_some()),
            ..self.recorded.clone()
        })
    }

    /// No world ticks any more: what was recorded of them is written, up to their last tick. [`Server::run`] does it itself; this
    /// is for who calls [`Server::frame`], after the last: what worlds do in frames behind it is not recorded. Waits for the disk; what
    /// could not be written is told by the log and counted.
    pub fn end_recording(&mut self) {
        for hosted in self.worlds.iter_mut().filter_map(|slot| slot.home.as_mut()) {
            hosted.end_record();
        }
        self.recording.close();
    }
}
