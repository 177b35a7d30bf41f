//! Captures of a running server: which there are, their bytes, and their stories, for the viewer in a browser.
//!
//! ```text
//! GET /api/captures                       the newest CAPTURES_MAX, what each is about
//! GET /api/captures/scope/ai@hub/1.capture     its bytes
//! GET /api/stories/scope/ai@hub/1.capture      its story, as `throng capture show` tells it
//! ```
//!
//! A path from outside is compared with those that are found in the folder and never opened as it is; links are not
//! followed. Runs on threads where waiting is allowed, of low priority; [`PLACES_MAX`] at a time, for each holds a file of
//! up to [`FILE_BYTES_MAX`] or reads one piece by piece.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use serde::Serialize;
use throng_capture::format::{self, read_summary};
use throng_capture::story::{self, Options, printable_name};
use throng_platform::allocator;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::bounds::Life;
use crate::watch::Lines;

/// Captures that are told, the newest first: what a folder of two gigabytes holds of usual size.
const CAPTURES_MAX: usize = 200;
/// Files that are looked at, over all folders.
const FILES_MAX: usize = 20_000;
/// Folders in each other: of captures, of a trigger, of a cause.
const FOLDERS_DEEP: usize = 3;
/// At a time.
const PLACES_MAX: usize = 2;
/// A story is told of a capture up to this.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// What one may take of memory while its story is told.
const STORY_MEMORY_BYTES_MAX: u64 = 256 << 20;
/// A large capture over a slow line.
const DOWNLOAD_MAX: Duration = Duration::from_secs(120);
/// Of a file, on its way to a socket.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that wait for the line.
const PIECES_WAITING_MAX: usize = 2;

/// A capture, as the list tells it.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    /// Inside the folder of captures, with `/` between folders.
    path: String,
    bytes: u64,
    saved_unix_s: u64,
    /// The trigger's name; null where the file cannot be read.
    trigger: Option<&'static str>,
    /// What it is about; null also where that is nothing in particular, as with a capture asked for by hand.
    name: Option<String>,
    world: Option<String>,
    frame: Option<u64>,
    /// In the trigger's unit: ns for times.
    measured: Option<u64>,
    allowed: Option<u64>,
}

/// The story of a capture, as the viewer takes it.
#[derive(Debug, Serialize)]
struct Told {
    file: String,
    verdict: String,
    text: String,
    frame: Option<u64>,
}

/// The captures of a server.
pub(crate) struct Captures {
    places: Arc<Semaphore>,
    /// The folder is listed for one after the other: each time all of its files are looked at.
    listing: Arc<Semaphore>,
}

impl Captures {
    pub(crate) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(PLACES_MAX)), listing: Arc::new(Semaphore::new(1)) }
    }

    /// When it is somebody's turn to have the folder listed; `None` never comes. To be held by whatever lists: it goes on
    /// when the asker has left.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        self.listing.clone().acquire_owned().await.ok()
    }

    /// A place for somebody who wants one's bytes or story; `None` if there is none now.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }
}

/// The captures in a folder, the newest first.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<Listed>> {
    let mut files = files(folder)?;
    files.sort_by(|a, b| (b.written_unix_ms, &b.path).cmp(&(a.written_unix_ms, &a.path)));
    files.truncate(CAPTURES_MAX);
    Ok(files.iter().map(|found| listed(folder, found)).collect())
}

/// A file that may be a capture.
pub(crate) struct Found {
    /// Inside.
    pub path: String,
    pub bytes: u64,
    pub written_unix_ms: u64,
}

/// All files in a folder that may be captures.
pub(crate) fn files(root: &Path) -> io::Result<Vec<Found>> {
    let mut files = Vec::new();
    let mut open = vec![String::new()];
    for depth in 0..FOLDERS_DEEP {
        for inside in std::mem::take(&mut open) {
            let entries = match fs::read_dir(root.join(&inside)) {
                Ok(entries) => entries,
                Err(error) if depth == 0 => return Err(error),
                // The recorder may have removed it, or it may not be read: the others are told.
                Err(_) => continue,
            };
            for entry in entries.flatten() {
                // The entry's own word: links are neither.
                let (Ok(about), Ok(name)) = (entry.metadata(), entry.file_name().into_string()) else { continue };
                let path = if inside.is_empty() { name } else { format!("{inside}/{name}") };
                if about.is_dir() {
                    open.push(path);
                } else if about.is_file() && path.ends_with(".capture") && files.len() < FILES_MAX {
                    let written = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                    let written_unix_ms = written.map_or(0, |since| since.as_millis() as u64);
                    files.push(Found { path, bytes: about.len(), written_unix_ms });
                }
            }
        }
    }
    Ok(files)
}

fn listed(folder: &Path, found: &Found) -> Listed {
    let summary = File::open(folder.join(&found.path)).and_then(read_summary).ok();
    let about = summary.as_ref().map(|summary| &summary.about);
    let trigger = about.map(|about| &about.trigger);
    Listed {
        path: found.path.clone(),
        bytes: found.bytes,
        saved_unix_s: about.map_or(found.written_unix_ms / 1_000, |about| about.saved_unix_s),
        trigger: trigger.map(|trigger| trigger.kind.name()),
        name: trigger.map(|trigger| &trigger.name).filter(|name| !name.is_empty()).map(|name| printable_name(name)),
        world: summary.as_ref().and_then(|summary| summary.world.as_ref()).map(|world| {
            let name = printable_name(&world.name);
            format!("{name} {}", world.id)
        }),
        frame: about.map(|about| about.frame),
        measured: trigger.map(|trigger| trigger.measured),
        allowed: trigger.map(|trigger| trigger.allowed),
    }
}

/// The capture of this path inside the folder, if the list would have it.
fn find(folder: &Path, path: &str) -> io::Result<(PathBuf, u64)> {
    find_by(folder, |found| found.path == path)
}

/// The first of the folder that is meant, and its length.
fn find_by(folder: &Path, is_meant: impl Fn(&Found) -> bool) -> io::Result<(PathBuf, u64)> {
    let found = files(folder)?.into_iter().find(is_meant);
    let found = found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such capture (any more)"))?;
    Ok((folder.join(&found.path), found.bytes))
}

/// The bytes of the capture that is meant, as they are read, and how many those are; the connection has this place for so
/// long.
pub(crate) fn bytes(
    folder: &Path,
    is_meant: impl Fn(&Found) -> bool,
    life: &Life,
    place: OwnedSemaphorePermit,
) -> io::Result<(Body, u64)> {
    let (path, length) = find_by(folder, is_meant)?;
    let mut file = File::open(path)?.take(length);
    let (to, pieces) = mpsc::channel(PIECES_WAITING_MAX);
    life.last((Instant::now() + DOWNLOAD_MAX).into(), place);
    tokio::task::spawn_blocking(move || {
        let mut buffer = vec![0; PIECE_BYTES];
        // A file that cannot be read to its end is cut off there, and the viewer says so. Whoever has left reads no more.
        while let Ok(read @ 1..) = file.read(&mut buffer) {
            if to.blocking_send(Bytes::copy_from_slice(&buffer[..read])).is_err() {
                break;
            }
        }
    });
    Ok((Body::new(Lines::new(pieces)), length))
}

/// The story of a capture, as JSON. Takes up to a second and [`STORY_MEMORY_BYTES_MAX`], which is given back.
pub(crate) fn tell(folder: &Path, path: &str) -> io::Result<String> {
    let (file, length) = find(folder, path)?;
    if length > FILE_BYTES_MAX {
        return Err(io::Error::other("it is too large for its story to be told here; `throng capture show` tells it"));
    }
    allocator::hand_memory_back(|| {
        let mut bytes = Vec::new();
        File::open(&file)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        let capture = format::read_within(&bytes, STORY_MEMORY_BYTES_MAX).map_err(io::Error::other)?;
        let options = Options { frame: None, with_emphasis: false };
        let story = story::tell(&capture, &options).map_err(|error| io::Error::other(error.to_string()))?;
        let mut text = Vec::new();
        story.write_text(false, &mut text)?;
        let told = Told {
            file: path.rsplit('/').next().unwrap_or(path).to_owned(),
            verdict: story.verdict.clone(),
            text: String::from_utf8_lossy(&text).into_owned(),
            frame: story.frame.as_ref().map(|frame| frame.number),
        };
        Ok(serde_json::to_string(&told)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("throng-admin-captures-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("scope/ai@hub")).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_captures_inside_the_folder_are_told_and_found() {
        let folder = Folder::new("inside");
        let root = &folder.0;
        fs::write(root.join("scope/ai@hub/1-2-0.capture"), b"not one").unwrap();
        fs::write(root.join("scope/ai@hub/1-2-0.partial"), b"x").unwrap();
        let outside = root.with_extension("outside.capture");
        fs::write(&outside, b"secret").unwrap();
        std::os::unix::fs::symlink(&outside, root.join("scope/link.capture")).unwrap();
        std::os::unix::fs::symlink("/", root.join("scope/up")).unwrap();
        let listed = list(root).unwrap();
        let paths: Vec<&str> = listed.iter().map(|listed| listed.path.as_str()).collect();
        assert_eq!(paths, ["scope/ai@hub/1-2-0.capture"]);
        assert_eq!((listed[0].bytes, listed[0].trigger), (7, None), "it is told that it cannot be read");
        assert!(find(root, "scope/ai@hub/1-2-0.capture").is_ok());
        for path in
            ["", "..", "scope/../scope/ai@hub/1-2-0.capture", "/etc/passwd", "scope/link.capture", "scope/ai@hub"]
        {
            assert!(find(root, path).is_err(), "{path}");
        }
        fs::remove_file(outside).unwrap();
    }

    #[test]
    fn a_capture_that_cannot_be_read_has_no_story() {
        let folder = Folder::new("story");
        fs::write(folder.0.join("scope/ai@hub/1-2-0.capture"), b"not one").unwrap();
        assert!(tell(&folder.0, "scope/ai@hub/1-2-0.capture").is_err());
    }
}
