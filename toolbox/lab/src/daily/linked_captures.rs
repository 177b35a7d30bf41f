//! Linked captures: which of a run's captures shows its worst frame, and which show what the host did.
//!
//! A run says how long its longest frame was, and a capture has the frames of some seconds: the one with a frame of that length
//! is the one that shows it. Each capture is read once for that, and once more if it is told of.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;
use throng_capture::model::TriggerKind;
use throng_capture::story::{self, Options};
use throng_capture::{Capture, format};

use super::folder::relative;

/// Captures that are looked into; a recorder keeps fewer.
const CAPTURES_MAX: usize = 100;
/// Larger files are left out (bytes), and what they may take of memory.
const FILE_BYTES_MAX: u64 = 256 << 20;
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// The recorder's clock and the frame's own agree better than that, as a share.
const SAME_FRAME_WITHIN: f64 = 0.05;

/// A capture that a row leads to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LinkedCapture {
    /// In the day's folder.
    pub file: String,
    /// What saved it.
    pub trigger: String,
    /// Of the frame in it that is meant; its longest.
    pub frame_ms: f64,
    /// Whether it has the frame that was looked for, or the longest that any capture has.
    pub is_it: bool,
    /// The story's sentence.
    pub verdict: String,
}

/// A run's captures, each looked into.
pub(super) struct Captures {
    day: PathBuf,
    looked: Vec<Looked>,
}

struct Looked {
    path: PathBuf,
    trigger: TriggerKind,
    /// Numbers and lengths of its frames (ms).
    frames: Vec<(u64, f64)>,
}

impl Captures {
    /// Looks into these files, the latest first; what cannot be read is left out: `capture list` says why.
    pub fn look(day: &Path, files: &[String]) -> Self {
        let looked = files.iter().rev().take(CAPTURES_MAX).filter_map(|file| {
            let path = PathBuf::from(file);
            let capture = read(&path)?;
            let ms = |ns: u64| ns as f64 / 1e6;
            let frames = capture.frames.iter();
            let frames = frames.map(|frame| (frame.number, ms(frame.end_ns.saturating_sub(frame.begin_ns)))).collect();
            Some(Looked { path, trigger: capture.about.trigger.kind, frames })
        });
        Self { day: day.to_owned(), looked: looked.collect() }
    }

    /// The one with a frame of this length (ms), or else with the longest.
    pub fn of_frame(&self, ms: f64) -> Option<LinkedCapture> {
        let all = || self.looked.iter().flat_map(|one| one.frames.iter().map(move |frame| (one, *frame)));
        let off = |length: f64| (length - ms).abs() / ms.max(f64::MIN_POSITIVE);
        let nearest = all().min_by(|(_, (_, one)), (_, (_, other))| off(*one).total_cmp(&off(*other)));
        let same = nearest.filter(|(_, (_, length))| off(*length) <= SAME_FRAME_WITHIN);
        let is_it = same.is_some();
        let (one, frame) = same.or_else(|| all().max_by(|(_, (_, one)), (_, (_, other))| one.total_cmp(other)))?;
        Some(self.linked(one, frame, is_it))
    }

    /// Those that were saved since a frame's thread had no core, the latest first.
    pub fn of_run_queue(&self, at_most: usize) -> Vec<LinkedCapture> {
        let of_host = self.looked.iter().filter(|one| one.trigger == TriggerKind::RunQueue);
        let linked = of_host.take(at_most).filter_map(|one| {
            let frame = one.frames.iter().copied().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
            Some(self.linked(one, frame, true))
        });
        linked.collect()
    }

    fn linked(&self, one: &Looked, (number, frame_ms): (u64, f64), is_it: bool) -> LinkedCapture {
        // What the trigger says where it is about that frame, which is what a reader of the capture sees first.
        let options = Options::default();
        let of_frame = Options { frame: Some(number), ..options };
        let is_of_host = one.trigger == TriggerKind::RunQueue;
        let options = if is_of_host { options } else { of_frame };
        let told = read(&one.path).and_then(|capture| story::tell(&capture, &options).ok());
        LinkedCapture {
            file: relative(&self.day, &one.path),
            trigger: one.trigger.name().to_owned(),
            frame_ms,
            is_it,
            verdict: told.map(|story| story.verdict).unwrap_or_default(),
        }
    }
}

fn read(path: &Path) -> Option<Capture> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    format::read_within(&bytes, MEMORY_BYTES_MAX).ok()
}

#[cfg(test)]
mod tests {
    use throng_capture::model::Frame;

    use super::*;

    fn write(path: &Path, trigger: TriggerKind, frames_ms: &[u64]) -> String {
        let mut capture = Capture::default();
        capture.about.trigger.kind = trigger;
        let mut begin_ns = 0;
        for (number, ms) in (1..).zip(frames_ms) {
            let end_ns = begin_ns + ms * 1_000_000;
            capture.frames.push(Frame { number, begin_ns, end_ns, budget_ns: 16_000_000, threads: Vec::new() });
            begin_ns = end_ns;
        }
        capture.about.end_ns = begin_ns;
        let mut bytes = Vec::new();
        format::write(&capture, &mut bytes).unwrap();
        std::fs::write(path, bytes).unwrap();
        path.display().to_string()
    }

    #[test]
    fn the_worst_frame_leads_to_the_capture_that_has_it() {
        let day = std::env::temp_dir().join(format!("throng-linked-{}", std::process::id()));
        std::fs::create_dir_all(&day).unwrap();
        let files = [
            write(&day.join("1.capture"), TriggerKind::Frame, &[5, 90, 5]),
            write(&day.join("2.capture"), TriggerKind::RunQueue, &[5, 40, 6]),
            day.join("gone.capture").display().to_string(),
        ];
        std::fs::write(day.join("broken.capture"), "no capture").unwrap();
        let captures =
            Captures::look(&day, &[&files[..], &[day.join("broken.capture").display().to_string()]].concat());
        let check = |ms: f64, file: &str, frame_ms: f64, is_it: bool| {
            let linked = captures.of_frame(ms).expect("there are captures");
            assert_eq!((linked.file.as_str(), linked.frame_ms, linked.is_it), (file, frame_ms, is_it), "{ms}");
            assert!(!linked.verdict.is_empty(), "{linked:?}");
        };
        check(40.2, "2.capture", 40.0, true);
        check(91.0, "1.capture", 90.0, true);
        check(60.0, "1.capture", 90.0, false);
        let of_host = captures.of_run_queue(3);
        assert_eq!(of_host.iter().map(|linked| linked.file.as_str()).collect::<Vec<_>>(), ["2.capture"]);
        assert_eq!(Captures::look(&day, &[]).of_frame(40.0), None);
        std::fs::remove_dir_all(&day).unwrap();
    }
}
