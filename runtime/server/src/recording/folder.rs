//! Folder: the segments of recordings, and how many bytes they may have together.
//!
//! A segment is `recording-BEGAN-NUMBER.throngrec`, with the second in which its recording began and its number there, both
//! of a fixed width: names in their order are segments in theirs. Nothing else in the folder is looked at.
//!
//! One server records there at a time ([`FolderLock`]): what goes for want of room would be another's.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use throng_profiler::log_warn;

use super::writer::RECORDING;

const EXTENSION: &str = "throngrec";

/// Beside the segments; empty, and left there.
const LOCK_FILE: &str = "recording.lock";

/// A folder that no other server records into for as long as this is there. The kernel gives it back when the process dies.
pub(crate) struct FolderLock(#[expect(dead_code, reason = "it is locked while it is open")] File);

impl FolderLock {
    /// `None`: somebody has it. Where files cannot be locked it is believed to be free, and the log says so.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let path = folder.join(LOCK_FILE);
        // It may be another user's, who has recorded here: it need not be written to.
        let file = File::create(&path).or_else(|error| File::open(&path).map_err(|_| error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => {
                log_warn!(RECORDING, path = %path.display(), %error, "nothing keeps another server from recording here, too");
            }
            Ok(()) => {}
        }
        Ok(Some(Self(file)))
    }
}

/// A segment's file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentFile {
    /// When its recording began (s since 1970).
    pub unix_s: u64,
    pub number: u32,
    pub path: PathBuf,
    pub bytes: u64,
}

pub(crate) fn segment_path(folder: &Path, unix_s: u64, number: u32) -> PathBuf {
    folder.join(format!("recording-{unix_s:012}-{number:06}.{EXTENSION}"))
}

/// All segments in a folder, the oldest first.
pub fn segments_in(folder: &Path) -> io::Result<Vec<SegmentFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let Some((unix_s, number)) = numbers_of(&path) else { continue };
        // One that is being dropped meanwhile is none.
        let Ok(about) = entry.metadata() else { continue };
        found.push(SegmentFile { unix_s, number, path, bytes: about.len() });
    }
    found.sort();
    Ok(found)
}

fn numbers_of(path: &Path) -> Option<(u64, u32)> {
    if path.extension()? != EXTENSION {
        return None;
    }
    let (began, number) = path.file_stem()?.to_str()?.strip_prefix("recording-")?.split_once('-')?;
    Some((began.parse().ok()?, number.parse().ok()?))
}

/// Drops the oldest segments until `room` bytes more fit into `bytes_max`. Returns how many. The newest one stays.
pub(crate) fn make_room(folder: &Path, bytes_max: u64, room: u64) -> io::Result<u64> {
    let segments = segments_in(folder)?;
    let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let mut dropped = 0;
    for segment in &segments {
        if bytes + room <= bytes_max {
            break;
        }
        fs::remove_file(&segment.path)?;
        bytes -= segment.bytes;
        dropped += 1;
    }
    Ok(dropped)
}
