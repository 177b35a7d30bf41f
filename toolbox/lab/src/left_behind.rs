//! What a run's server left on the disk: captures of bad frames, the report of its death, and a recording of what entered its
//! worlds.
//!
//! Both folders outlive a run, and their own limits keep them small; here those files are named that are of this run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use throng_crash::deaths;

/// A crash report is there within 3 s of a death (reliability R40); as much again for a machine that is busy.
const CRASH_REPORT_WITHIN: Duration = Duration::from_secs(6);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Written last into a death's folder: where it is, the rest is whole.
const CRASH_TEXT: &str = "report.txt";

/// Captures in `folder` that were written after `since`, the earliest first: in a folder for each trigger, or in one for each
/// cause inside.
pub(crate) fn captures_since(folder: &Path, since: SystemTime) -> Vec<String> {
    let mut found: Vec<(SystemTime, PathBuf)> = entries(folder)
        .into_iter()
        .flat_map(|trigger| entries(&trigger))
        .flat_map(|inside| if inside.is_dir() { entries(&inside) } else { vec![inside] })
        .filter_map(|path| {
            let about = path.metadata().ok().filter(|about| about.is_file())?;
            Some((about.modified().ok().filter(|at| *at >= since)?, path))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path.display().to_string()).collect()
}

/// The report of this process's death: its file, and the first line of it. Waits for it, since the monitor that writes
/// it outlives the server.
pub(crate) fn wait_for_crash_report(folder: &Path, pid: u32) -> Option<(PathBuf, String)> {
    let deadline = Instant::now() + CRASH_REPORT_WITHIN;
    let ending = format!("-{pid}");
    loop {
        let is_its = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ending));
        let text =
            entries(folder).into_iter().filter(is_its).map(|death| death.join(CRASH_TEXT)).find(|it| it.is_file());
        if let Some(path) = text {
            let words = std::fs::read_to_string(&path).unwrap_or_default();
            return Some((path, words.lines().next().unwrap_or_default().to_owned()));
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The newest report of a death in a folder of one run: its file, the first line of it, and what equal deaths have in common.
pub(crate) fn death_in(folder: &Path) -> Option<(PathBuf, String, String)> {
    // No death, no folder.
    let group = deaths::in_folder(folder).ok()?.groups.into_iter().max_by_key(|group| group.last_unix_s)?;
    let path = group.newest.join(CRASH_TEXT);
    let words = std::fs::read_to_string(&path).ok()?;
    Some((path, words.lines().next().unwrap_or_default().to_owned(), group.signature))
}

/// The folders in a run's in which its server leaves reports of its death, and records what enters its worlds.
pub const CRASHES: &str = "crashes";
pub const RECORDINGS: &str = "recordings";
/// What a segment of a recording ends in.
const SEGMENT: &str = "throngrec";

/// The folder of a run's recording, if there is one.
pub(crate) fn recording_in(folder: &Path) -> Option<PathBuf> {
    let recordings = folder.join(RECORDINGS);
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == SEGMENT);
    entries(&recordings).iter().any(is_segment).then_some(recordings)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_of_this_run_is_named() {
        let folder = std::env::temp_dir().join(format!("throng-left-behind-{}", std::process::id()));
        let (captures, crashes) = (folder.join("captures"), folder.join("crashes"));
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(captures.join("frame/1.capture"), "");
        write(crashes.join("crash-17-4711/report.txt"), "SIGABRT: the program ended itself\nand more");
        write(captures.join("scope/ai@hub/2.capture"), "");
        // By when they were written, whatever they are called.
        let files = ["scope/ai@hub/2.capture", "frame/1.capture"].map(|file| captures.join(file));
        for (file, s_ago) in files.iter().zip([30, 20]) {
            let file = std::fs::File::options().write(true).open(file).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(s_ago)).unwrap();
        }
        let both = files.map(|file| file.display().to_string());
        assert_eq!(captures_since(&captures, SystemTime::now() - Duration::from_secs(60)), both);
        assert_eq!(captures_since(&captures, SystemTime::now() + Duration::from_secs(60)), [""; 0]);
        assert_eq!(captures_since(&folder.join("none"), SystemTime::UNIX_EPOCH), [""; 0]);
        let (path, words) = wait_for_crash_report(&crashes, 4711).unwrap();
        assert_eq!(
            (path, words.as_str()),
            (crashes.join("crash-17-4711/report.txt"), "SIGABRT: the program ended itself")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
