//! Token journal: the connect tokens that made a session, in a file, so that one token is one session across
//! restarts too.
//!
//! Nothing in a token says when it was made, so a server that has just started cannot tell a fresh token from one
//! that its predecessor let in. The handshake therefore records each token here before it admits the client, and gets
//! back at start what the file holds. The file is a table rather than a log:
//!
//! ```text
//!  0            32          64
//! +------------+-----------+-----------+--- -
//! | heading 32 | record 32 | record 32 |        a record as in `UsedToken::to_bytes`, with its own checksum
//! +------------+-----------+-----------+--- -
//! ```
//!
//! A new record takes the place of one that has expired, and the end of the file only if there is none. So the file
//! is as long as the busiest moment needed, needs no compaction, and has at most [`RECORDS_MAX`] records; then new
//! clients are denied. A record that does not hold its checksum, or a torn one at the end, is left out and counted,
//! and its place is free. One server at a time: the file is locked.
//!
//! A record is in the kernel when its client is admitted: it survives the death of the process, and of the host but
//! for what the kernel had not yet put on the disk, 30 s by default. A thread of its own writes it ([`recording_thread`]):
//! per log-in one `pwrite` of 32 bytes, about 2 us, and 16 bytes of memory per record.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use throng_net::protocol::{JournalError, Recorded, TokenJournal, UsedToken};
use throng_platform::clock::Clock;
use throng_profiler::{log_category, log_error, log_info, log_warn};

use self::recording_thread::RecordingThread;
use crate::settings::{PRIVATE_KEY_VARIABLE, Settings, TokenJournalFile};

mod recording_thread;

log_category!(TOKENS = "server.tokens");

/// 32 MiB of file, and 1,000 admissions a second with tokens of five minutes.
pub(crate) const RECORDS_MAX: usize = 1 << 20;

/// A record may be overwritten so long after its token's expiry (s). Ten times what the handshake forgives a token, so
/// that a wall clock set back by some minutes finds nothing forgotten that is alive again.
const KEPT_AFTER_EXPIRY_S: u64 = 600;

/// What our files begin with; the number is the format's.
const HEADING: &[u8; HEADING_BYTES] = b"throng: connect tokens used, 1\n\0";
const HEADING_BYTES: usize = UsedToken::BYTES;
const FILE_BYTES_MAX: usize = HEADING_BYTES + RECORDS_MAX * UsedToken::BYTES;

/// A journal of used tokens that lives in a file.
pub(crate) struct FileTokenJournal {
    path: PathBuf,
    /// Locked for as long as it is open.
    file: File,
    clock: Arc<dyn Clock>,
    /// Expiry and index of every record, the next one to be free first; 0 = free.
    by_expiry: BinaryHeap<Reverse<(u64, u32)>>,
    records_count: u32,
    /// The last record could not be written; said once.
    failing: bool,
}

/// A journal, and what it holds of earlier runs.
pub(crate) struct OpenedTokenJournal {
    pub journal: FileTokenJournal,
    pub used: Vec<UsedToken>,
    /// Records that were torn or changed: their tokens, until they expire, could make a session again.
    pub damaged_count: usize,
}

/// The journal that the settings name or imply, written by a thread of its own, and what it holds of earlier runs.
pub(crate) struct StartedTokenJournal {
    pub journal: RecordingThread,
    pub used: Vec<UsedToken>,
}

/// Opens the journal as the settings say; logs what an operator should know about it. `environment` looks a variable up.
pub(crate) fn start_as_set(
    settings: &Settings,
    environment: impl Fn(&str) -> Option<String>,
    clock: &Arc<dyn Clock>,
) -> Result<Option<StartedTokenJournal>, TokenJournalError> {
    let Some(path) = path_as_set(settings, environment) else { return Ok(None) };
    let opened = match FileTokenJournal::open(&path, clock.clone()) {
        // Nobody asked for it: a server without is better than none.
        Err(error) if settings.server.token_journal == TokenJournalFile::Implied => {
            log_warn!(TOKENS, %error, "used connect tokens are not remembered across restarts");
            return Ok(None);
        }
        opened => opened?,
    };
    if opened.damaged_count > 0 {
        log_warn!(
            TOKENS,
            file = %path.display(),
            records = opened.damaged_count,
            "damaged records left out; their tokens, until they expire, could be used once more"
        );
    }
    log_info!(TOKENS, file = %path.display(), records = opened.used.len(), "connect tokens that are used are remembered");
    let journal = RecordingThread::start(opened.journal, settings.server.join_queue_max as usize);
    let journal = journal.map_err(TokenJournalError::Thread)?;
    Ok(Some(StartedTokenJournal { journal, used: opened.used }))
}

/// The file that is to be the journal; `None` for a server without one.
fn path_as_set(settings: &Settings, environment: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let server = &settings.server;
    if let TokenJournalFile::Named(path) = &server.token_journal {
        return Some(path.clone());
    }
    // A key of the server's own dies with it, and every token with the key.
    if !server.private_key(&environment).is_ok_and(|key| key.is_some()) {
        return None;
    }
    // One from the environment may be for this run alone.
    let key_is_in_settings = environment(PRIVATE_KEY_VARIABLE).is_none();
    let folder = match &server.token_journal {
        TokenJournalFile::Off => None,
        _ => {
            let beside = settings.folder().filter(|_| key_is_in_settings);
            // Of several folders the first.
            let state = environment(STATE_FOLDER_VARIABLE);
            state.and_then(|folders| folders.split(':').next().map(PathBuf::from)).or(beside)
        }
    };
    if folder.is_none() {
        log_warn!(
            TOKENS,
            "after a restart, connect tokens that were used before it could be used once more until they expire: name \
             a file in [server] token_journal to remember them"
        );
    }
    // Servers that share a folder have addresses of their own.
    let address = server.address.to_string().replace(':', "-");
    Some(folder?.join(format!("tokens-{address}.used")))
}

/// Where systemd's `StateDirectory=` lets a service keep files.
pub(crate) const STATE_FOLDER_VARIABLE: &str = "STATE_DIRECTORY";

/// Why there is no journal. `[server] token_journal` is where the file was named.
#[derive(Debug, thiserror::Error)]
pub enum TokenJournalError {
    #[error(
        "{}: cannot be used as the token journal: {cause}; let this user write it and its folder, or name another file in \
         [server] token_journal, or \"off\" to do without", .path.display()
    )]
    Unusable { path: PathBuf, cause: io::Error },
    #[error(
        "{}: is not a token journal and was left as it is; name a file that does not exist yet in [server] token_journal, \
         or remove this one",
        .0.display()
    )]
    Foreign(PathBuf),
    #[error("the token journal's thread cannot start: {0}; raise `ulimit -u` or the container's pids limit")]
    Thread(io::Error),
    #[error(
        "{}: is the token journal of another server that runs; stop it, or name another file in [server] token_journal",
        .0.display()
    )]
    InUse(PathBuf),
}

impl FileTokenJournal {
    /// Opens the journal at `path`, or makes an empty one. `clock` tells which records have expired.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<OpenedTokenJournal, TokenJournalError> {
        let unusable = |cause| TokenJournalError::Unusable { path: path.to_owned(), cause };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(path).map_err(unusable)?;
        if !file.metadata().map_err(unusable)?.is_file() {
            return Err(TokenJournalError::Foreign(path.to_owned()));
        }
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => TokenJournalError::InUse(path.to_owned()),
            TryLockError::Error(cause) => unusable(cause),
        })?;
        let mut bytes = Vec::new();
        (&mut file).take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unusable)?;
        let table = Table::read(&bytes).ok_or_else(|| TokenJournalError::Foreign(path.to_owned()))?;
        if !bytes.starts_with(HEADING) {
            write_heading(&file, path).map_err(unusable)?;
        }
        let slots = table.slots.iter().zip(0..);
        let by_expiry = slots.map(|(record, index)| Reverse((record.map_or(0, |used| used.expires_unix_s()), index)));
        let journal = Self {
            path: path.to_owned(),
            file,
            clock,
            by_expiry: by_expiry.collect(),
            records_count: table.slots.len() as u32,
            failing: false,
        };
        let damaged_count = table.damaged_count();
        Ok(OpenedTokenJournal { journal, used: table.slots.into_iter().flatten().collect(), damaged_count })
    }

    /// The place of the next record; `None` when the table is full of records that still matter.
    fn take_slot(&mut self) -> Option<u32> {
        let free_before = self.clock.unix_seconds().saturating_sub(KEPT_AFTER_EXPIRY_S);
        match self.by_expiry.peek() {
            Some(&Reverse((expires_unix_s, index))) if expires_unix_s < free_before => {
                self.by_expiry.pop();
                Some(index)
            }
            _ if (self.records_count as usize) < RECORDS_MAX => {
                self.records_count += 1;
                Some(self.records_count - 1)
            }
            _ => None,
        }
    }

    fn tell(&mut self, failed: Option<&dyn std::fmt::Display>) {
        if failed.is_some() == self.failing {
            return;
        }
        self.failing = failed.is_some();
        let file = self.path.display();
        match failed {
            Some(cause) => log_error!(TOKENS, %file, %cause, "no token can be recorded, so no client is admitted"),
            None => log_info!(TOKENS, %file, "tokens are recorded again, and clients admitted"),
        }
    }
}

impl TokenJournal for FileTokenJournal {
    fn record(&mut self, used: &UsedToken) -> Result<Recorded, JournalError> {
        let Some(index) = self.take_slot() else {
            self.tell(Some(&"its records have not expired, and there are as many as there may be"));
            return Err(JournalError);
        };
        let offset = (HEADING_BYTES + index as usize * UsedToken::BYTES) as u64;
        let written = self.file.write_all_at(&used.to_bytes(), offset);
        // What a failed write left behind is no record, and the place is free for the next.
        let expires_unix_s = if written.is_ok() { used.expires_unix_s() } else { 0 };
        self.by_expiry.push(Reverse((expires_unix_s, index)));
        self.tell(written.as_ref().err().map(|cause| cause as _));
        written.map(|()| Recorded::Now).map_err(|_| JournalError)
    }
}

/// A file as read: every whole record's place, and what is in it if it is sound.
struct Table {
    slots: Vec<Option<UsedToken>>,
    torn: bool,
}

impl Table {
    /// `None` for a file that is not ours: neither empty nor with our heading, nor with any record of ours.
    fn read(bytes: &[u8]) -> Option<Self> {
        let body = bytes.get(HEADING_BYTES..).unwrap_or_default();
        let (records, tail) = body.as_chunks::<{ UsedToken::BYTES }>();
        let slots: Vec<_> = records.iter().map(UsedToken::from_bytes).collect();
        let begun = HEADING.starts_with(&bytes[..bytes.len().min(HEADING_BYTES)]);
        let ours = begun || slots.iter().any(Option::is_some);
        (ours && bytes.len() <= FILE_BYTES_MAX).then_some(Self { slots, torn: !tail.is_empty() })
    }

    fn damaged_count(&self) -> usize {
        self.slots.iter().filter(|record| record.is_none()).count() + usize::from(self.torn)
    }
}

/// Makes the file's existence, and not only its contents, outlive the host's power.
fn write_heading(file: &File, path: &Path) -> io::Result<()> {
    file.write_all_at(HEADING, 0)?;
    file.sync_all()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests;
