//! Linked captures: which of a run's captures shows its worst frame, and which show what the host did.
//!
//! A run says how long its longest frame was, and in which second; a capture has the frames of some seconds. The one with a
//! frame of that length at that time is the one that shows it: by its length alone, any of a thousand others might be.
//!
//! A frame's time is that of the recorder's own clock, whose begin no capture tells. It is saved after its last moment, sooner or
//! later; so of a run's captures, which are of one recorder, the one that was saved the soonest says best when the clock began.
//!
//! Each capture is read once for that, and once more if it is told of.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;
use throng_capture::model::TriggerKind;
use throng_capture::story::{self, Options};
use throng_capture::{Capture, format};

use super::folder::relative;

/// Captures that are looked into, the latest. What a recorder keeps is limited in bytes, and may be more.
const CAPTURES_MAX: usize = 100;
/// Larger files are left out (bytes), and what they may take of memory.
const FILE_BYTES_MAX: u64 = 256 << 20;
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// The recorder's clock and the frame's own agree better than that, as a share.
const SAME_FRAME_WITHIN: f64 = 0.05;
/// A frame's time is known so well (s): a capture says when it was saved in whole seconds, it is saved up to a second late, and
/// a second is heard of a little late. Too low: a frame's own capture is not told as such; too high: another one's may be.
const TIME_WITHIN_S: f64 = 3.0;

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
    /// The latest first.
    looked: Vec<Looked>,
    clock_began_unix_s: f64,
}

struct Looked {
    path: PathBuf,
    trigger: TriggerKind,
    /// When the recorder's clock began, at the latest (s since 1970).
    clock_began_unix_s: f64,
    frames: Vec<LookedFrame>,
}

#[derive(Clone, Copy)]
struct LookedFrame {
    number: u64,
    ms: f64,
    /// By the recorder's clock (s).
    end_s: f64,
}

/// A frame that is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct WantedFrame {
    pub ms: f64,
    /// The end of the second that it is in, and the begin of the time that is looked into (s since 1970); none: not known.
    pub second_end_unix_s: Option<f64>,
    pub since_unix_s: Option<f64>,
}

impl Captures {
    /// Looks into these files, of which the last is the latest; what cannot be read is left out: `capture list` says why.
    pub fn look(day: &Path, files: &[String]) -> Self {
        let looked = files.iter().rev().take(CAPTURES_MAX).filter_map(|file| Looked::look(PathBuf::from(file)));
        let looked: Vec<Looked> = looked.collect();
        let began = looked.iter().map(|one| one.clock_began_unix_s).fold(f64::INFINITY, f64::min);
        Self { day: day.to_owned(), looked, clock_began_unix_s: began }
    }

    /// The one that has this frame, or else the longest of the time that is looked into.
    pub fn of_frame(&self, wanted: &WantedFrame) -> Option<LinkedCapture> {
        let end_unix_s = |frame: &LookedFrame| self.clock_began_unix_s + frame.end_s;
        let is_since = |frame: &LookedFrame| {
            wanted.since_unix_s.is_none_or(|since_s| end_unix_s(frame) >= since_s - TIME_WITHIN_S)
        };
        let off = |frame: &LookedFrame| (frame.ms - wanted.ms).abs() / wanted.ms.max(f64::MIN_POSITIVE);
        let is_it = |frame: &LookedFrame| {
            let is_then = wanted.second_end_unix_s.is_none_or(|second_end_s| {
                let times = second_end_s - 1.0 - TIME_WITHIN_S..=second_end_s + TIME_WITHIN_S;
                times.contains(&end_unix_s(frame))
            });
            is_then && off(frame) <= SAME_FRAME_WITHIN
        };
        let all = self.looked.iter().flat_map(|one| one.frames.iter().map(move |frame| (one, *frame)));
        let all: Vec<(&Looked, LookedFrame)> = all.filter(|(_, frame)| is_since(frame)).collect();
        let same = all.iter().filter(|(_, frame)| is_it(frame));
        let nearest = same.min_by(|(_, one), (_, other)| off(one).total_cmp(&off(other)));
        let found = nearest.or_else(|| all.iter().max_by(|(_, one), (_, other)| one.ms.total_cmp(&other.ms)));
        found.map(|(one, frame)| self.linked(one, *frame, nearest.is_some()))
    }

    /// Those that were saved since a frame's thread had no core, the latest first.
    pub fn of_run_queue(&self, at_most: usize) -> Vec<LinkedCapture> {
        let of_host = self.looked.iter().filter(|one| one.trigger == TriggerKind::RunQueue);
        let linked = of_host.take(at_most).filter_map(|one| {
            let frame = one.frames.iter().copied().max_by(|one, other| one.ms.total_cmp(&other.ms))?;
            Some(self.linked(one, frame, true))
        });
        linked.collect()
    }

    fn linked(&self, one: &Looked, frame: LookedFrame, is_it: bool) -> LinkedCapture {
        // What the trigger says where it is about that frame, which is what a reader of the capture sees first.
        let options = Options::default();
        let of_frame = Options { frame: Some(frame.number), ..options };
        let is_of_host = one.trigger == TriggerKind::RunQueue;
        let options = if is_of_host { options } else { of_frame };
        let told = read(&one.path).and_then(|capture| story::tell(&capture, &options).ok());
        LinkedCapture {
            file: relative(&self.day, &one.path),
            trigger: one.trigger.name().to_owned(),
            frame_ms: frame.ms,
            is_it,
            verdict: told.map(|story| story.verdict).unwrap_or_default(),
        }
    }
}

impl Looked {
    fn look(path: PathBuf) -> Option<Self> {
        let capture = read(&path)?;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let frames = capture.frames.iter().map(|frame| LookedFrame {
            number: frame.number,
            ms: frame.end_ns.saturating_sub(frame.begin_ns) as f64 / 1e6,
            end_s: seconds(frame.end_ns),
        });
        let frames = frames.collect();
        let clock_began_unix_s = capture.about.saved_unix_s as f64 - seconds(capture.about.end_ns);
        Some(Self { path, trigger: capture.about.trigger.kind, clock_began_unix_s, frames })
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

    /// When the recorder's clock began.
    const BEGAN_UNIX_S: u64 = 1_795_737_000;

    /// Frames from this second of the recorder's clock on, in a capture that is saved so late (s).
    fn write(path: &Path, trigger: TriggerKind, begin_s: u64, late_s: u64, frames_ms: &[u64]) -> String {
        let mut capture = Capture::default();
        capture.about.trigger.kind = trigger;
        let mut begin_ns = begin_s * 1_000_000_000;
        capture.about.begin_ns = begin_ns;
        for (number, ms) in (1..).zip(frames_ms) {
            let end_ns = begin_ns + ms * 1_000_000;
            capture.frames.push(Frame { number, begin_ns, end_ns, budget_ns: 16_000_000, threads: Vec::new() });
            begin_ns = end_ns;
        }
        capture.about.end_ns = begin_ns;
        capture.about.saved_unix_s = BEGAN_UNIX_S + begin_ns.div_ceil(1_000_000_000) + late_s;
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
            write(&day.join("2.capture"), TriggerKind::Frame, 7, 0, &[5, 90, 5]),
            write(&day.join("1.capture"), TriggerKind::RunQueue, 100, 9, &[5, 40, 6]),
            day.join("gone.capture").display().to_string(),
        ];
        std::fs::write(day.join("broken.capture"), "no capture").unwrap();
        let captures =
            Captures::look(&day, &[&files[..], &[day.join("broken.capture").display().to_string()]].concat());
        let check = |wanted: WantedFrame, file: &str, frame_ms: f64, is_it: bool| {
            let linked = captures.of_frame(&wanted).expect("there are captures");
            assert_eq!((linked.file.as_str(), linked.frame_ms, linked.is_it), (file, frame_ms, is_it), "{wanted:?}");
            assert!(!linked.verdict.is_empty(), "{linked:?}");
        };
        let of = |ms: f64| WantedFrame { ms, ..WantedFrame::default() };
        check(of(40.2), "1.capture", 40.0, true);
        check(of(91.0), "2.capture", 90.0, true);
        check(of(60.0), "2.capture", 90.0, false);
        // In its own second, however late it was saved; in another one it is another frame.
        let at =
            |ms: f64, second: u64| WantedFrame { second_end_unix_s: Some((BEGAN_UNIX_S + second) as f64), ..of(ms) };
        check(at(40.2, 101), "1.capture", 40.0, true);
        check(at(40.2, 60), "2.capture", 90.0, false);
        check(at(91.0, 8), "2.capture", 90.0, true);
        check(at(91.0, 101), "2.capture", 90.0, false);
        // What was before the time that is looked into is none of it.
        let since = |wanted: WantedFrame, second: u64| WantedFrame {
            since_unix_s: Some((BEGAN_UNIX_S + second) as f64),
            ..wanted
        };
        check(since(at(91.0, 101), 60), "1.capture", 40.0, false);
        check(since(at(40.2, 101), 60), "1.capture", 40.0, true);
        assert_eq!(captures.of_frame(&since(of(40.2), 200)), None);
        let of_host = captures.of_run_queue(3);
        assert_eq!(of_host.iter().map(|linked| linked.file.as_str()).collect::<Vec<_>>(), ["1.capture"]);
        assert_eq!(Captures::look(&day, &[]).of_frame(&of(40.0)), None);
        std::fs::remove_dir_all(&day).unwrap();
    }
}
