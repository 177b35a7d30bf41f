//! Reader: the segments of one recording, in order, from a folder or a file.
//!
//! Believes nothing: what cannot be read ends that segment, is told, and what is before it was given. A segment that is
//! missing or ends badly is a gap; worlds are picked up again from their next checkpoints.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    blocks::{About, Block},
    folder::{SegmentFile, segments_in},
    segment::{Group, SegmentFault, SegmentReader},
};

/// A recording cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{}: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
    #[error("{}: there is no recording in this folder (recording-*.throngrec)", .0.display())]
    None(PathBuf),
    #[error("{}: {fault}", path.display())]
    Segment { path: PathBuf, fault: SegmentFault },
    #[error(
        "{}: nothing says what was recorded: it ended before its first group was written; name a segment of an earlier recording",
        .0.display()
    )]
    NoAbout(PathBuf),
}

/// What is wrong with a file of a recording, or with what should be before it. Its text begins with the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct FileFault {
    pub path: PathBuf,
    pub what: FaultKind,
}

/// What is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    #[error(transparent)]
    Segment(#[from] SegmentFault),
    #[error("it cannot be read: {0}")]
    Io(String),
    #[error("the segments before it are not here, from number {from} on: what worlds did then is missing")]
    Missing { from: u32 },
    #[error("it is of another recording, and is left out")]
    OtherRecording,
    #[error("it was not closed: the server was still writing, or died")]
    NotClosed,
}

/// The segments of one recording.
#[derive(Debug)]
pub struct RecordingFiles {
    segments: Vec<SegmentFile>,
    about: About,
    recording_id: u64,
}

impl RecordingFiles {
    /// A file is that segment alone; a folder the newest recording in it.
    ///
    /// # Errors
    /// If there is none, or no segment of it says what it is of: then why not, of the first.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |cause| OpenError::Io { path: path.to_owned(), cause };
        let segments = if fs::metadata(path).map_err(io)?.is_dir() {
            let mut all = segments_in(path).map_err(io)?;
            let newest = all.last().ok_or_else(|| OpenError::None(path.to_owned()))?.unix_s;
            all.retain(|segment| segment.unix_s == newest);
            all
        } else {
            let bytes = fs::metadata(path).map_err(io)?.len();
            vec![SegmentFile { unix_s: 0, number: 0, path: path.to_owned(), bytes }]
        };
        let mut told = None;
        for segment in &segments {
            match about_of(&segment.path) {
                Ok((about, recording_id)) => return Ok(Self { about, recording_id, segments }),
                // What is wrong with it is told again by whoever reads on.
                Err(error) => _ = told.get_or_insert(error),
            }
        }
        Err(told.unwrap_or_else(|| OpenError::None(path.to_owned())))
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Gives all groups in order; `each` returns false to have no more. Returns what was wrong on the way: a fault ends its
    /// segment, and the next one goes on.
    pub fn read(&self, mut each: impl FnMut(Group) -> bool) -> Vec<FileFault> {
        let mut faults = Vec::new();
        let mut expected = None;
        let count = self.segments.len();
        for (index, segment) in self.segments.iter().enumerate() {
            let path = &segment.path;
            let mut tell = |what: FaultKind| faults.push(FileFault { path: path.clone(), what });
            let bytes = match fs::read(path) {
                Ok(bytes) => bytes,
                Err(error) => {
                    tell(FaultKind::Io(error.to_string()));
                    continue;
                }
            };
            let reader = match SegmentReader::new(&bytes) {
                Ok(reader) => reader,
                Err(fault) => {
                    tell(fault.into());
                    continue;
                }
            };
            let heading = reader.heading();
            if heading.recording_id != self.recording_id {
                tell(FaultKind::OtherRecording);
                continue;
            }
            if let Some(from) = expected.filter(|expected| *expected != heading.number) {
                tell(FaultKind::Missing { from });
            }
            expected = Some(heading.number.wrapping_add(1));
            let (mut is_closed, mut is_good) = (false, true);
            for group in reader {
                match group {
                    Ok(group) => {
                        is_closed = matches!(group.blocks().last(), Some(Ok(Block::Closed { .. })));
                        if !each(group) {
                            return faults;
                        }
                    }
                    Err(fault) => {
                        is_good = false;
                        tell(fault.into());
                    }
                }
            }
            if is_good && !is_closed && index + 1 == count {
                tell(FaultKind::NotClosed);
            }
        }
        faults
    }
}

/// What a segment says of its recording, and which recording that is.
fn about_of(path: &Path) -> Result<(About, u64), OpenError> {
    let bytes = fs::read(path).map_err(|cause| OpenError::Io { path: path.to_owned(), cause })?;
    let of_file = |fault| OpenError::Segment { path: path.to_owned(), fault };
    let mut reader = SegmentReader::new(&bytes).map_err(of_file)?;
    let recording_id = reader.heading().recording_id;
    let group = reader.next().ok_or_else(|| OpenError::NoAbout(path.to_owned()))?.map_err(of_file)?;
    match group.blocks().next() {
        Some(Ok(Block::About(about))) => Ok((*about, recording_id)),
        Some(Err(fault)) => Err(of_file(fault)),
        _ => Err(OpenError::NoAbout(path.to_owned())),
    }
}
