//! The folder of captures: one folder inside per kind of trigger, and in it one per cause and kind of world, each with
//! a disk budget of its own, so that what is captured all day never evicts what is captured once.
//!
//! ```text
//! DIR/scope/ai.think@hideout/1764000000-812-0.capture      seconds since 1970, frame, number
//! DIR/subsystem/replication/...                            in no world, or in all of them
//! DIR/manual/...                                           by hand: of no cause
//! ```
//!
//! A file is written under another name and renamed when it is whole, so that nobody reads half of one. Before that the
//! oldest of its folder go until the rest is within the folder's budget, and then, until all folders together are within
//! theirs, the oldest of whichever folder is largest; the newest always stays. Runs on the recorder's own thread. Cost:
//! a look at every file, some 2 us each.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use throng_capture::model::TriggerKind;

/// Where captures go.
#[derive(Debug, Clone)]
pub(crate) struct CapturesFolder {
    root: PathBuf,
    /// Numbers the files of this process.
    written: u64,
}

/// A capture's file, before it is written.
pub(crate) struct NewCapture<'a> {
    pub kind: TriggerKind,
    /// The folder of its cause, see [`folder_of`]; empty for none.
    pub folder: &'a str,
    pub unix_s: u64,
    pub frame: u64,
    pub bytes: &'a [u8],
}

/// What captures may take on the disk (bytes).
#[derive(Copy, Clone, Debug)]
pub(crate) struct DiskBudgets {
    pub folder: u64,
    pub all: u64,
}

/// Letters of a folder's name at most, of which a kind of world has half: a file's name has 255.
const NAME_MAX: usize = 120;

/// The name of a cause's folder: `ai.think@hideout`, without the part that is not known. What is no letter, digit, `.`,
/// `_` or `-` becomes `_`, because names come from games; causes whose names differ in nothing else share a folder.
pub(crate) fn folder_of(cause: &str, world_kind: Option<&str>) -> String {
    let plain = |name: &str| -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let letters = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' });
        // A name that begins with a dot would be hidden, or another folder.
        let shown = letters.enumerate().map(|(at, letter)| if at == 0 && letter == '.' { '_' } else { letter });
        shown.take(NAME_MAX / 2).collect()
    };
    match world_kind {
        Some(world_kind) => format!("{}@{}", plain(cause), plain(world_kind)),
        None => plain(cause),
    }
}

impl CapturesFolder {
    pub fn new(root: PathBuf) -> CapturesFolder {
        CapturesFolder { root, written: 0 }
    }

    /// Writes a capture and keeps its folder, and all of them, within their budgets.
    pub fn keep(&mut self, new: &NewCapture<'_>, budgets: DiskBudgets) -> io::Result<PathBuf> {
        let folder = self.root.join(new.kind.name()).join(new.folder);
        fs::create_dir_all(&folder)?;
        self.make_room(&folder, new.bytes.len() as u64, budgets)?;
        let path = folder.join(format!("{}-{}-{}.capture", new.unix_s, new.frame, self.written));
        let partial = path.with_extension("partial");
        // A write that failed half way must not take the room that the next one needs.
        fs::write(&partial, new.bytes).inspect_err(|_| drop(fs::remove_file(&partial)))?;
        fs::rename(&partial, &path)?;
        self.written += 1;
        Ok(path)
    }

    /// Removes captures until there is room for another one in `folder`.
    fn make_room(&self, folder: &Path, new_bytes: u64, budgets: DiskBudgets) -> io::Result<()> {
        let mut own = Kept::look(folder.to_owned())?;
        while own.bytes > budgets.folder.saturating_sub(new_bytes) && own.remove_oldest()? {}
        // It is the largest if it is with the new one.
        own.bytes += new_bytes;
        let others = folders(&self.root).into_iter().filter(|other| other != folder);
        let mut all: Vec<Kept> = others.filter_map(|other| Kept::look(other).ok()).collect();
        all.push(own);
        let mut total: u64 = all.iter().map(|kept| kept.bytes).sum();
        while total > budgets.all {
            let with_files = all.iter_mut().filter(|kept| !kept.files.is_empty());
            let Some(largest) = with_files.max_by_key(|kept| (kept.bytes, Reverse(kept.oldest()))) else { break };
            let before = largest.bytes;
            // What cannot be removed stays, and others give instead.
            let _ = largest.remove_oldest();
            total -= before - largest.bytes;
            if largest.files.is_empty() && largest.path != folder {
                // It may hold what is not ours, and then stays.
                let _ = fs::remove_dir(&largest.path);
            }
        }
        Ok(())
    }
}

/// The captures of one folder.
struct Kept {
    path: PathBuf,
    /// Oldest first: when it was written, and how long it is (bytes).
    files: VecDeque<(SystemTime, PathBuf, u64)>,
    bytes: u64,
}

impl Kept {
    fn look(path: PathBuf) -> io::Result<Kept> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let file = entry.path();
            if file.extension().is_some_and(|extension| extension == "capture" || extension == "partial") {
                // Others may remove captures, too, and put there what they like.
                let Ok(about) = entry.metadata() else { continue };
                if !about.is_file() {
                    continue;
                }
                files.push((about.modified()?, file, about.len()));
            }
        }
        files.sort();
        let bytes = files.iter().map(|(_, _, length)| length).sum();
        Ok(Kept { path, files: files.into(), bytes })
    }

    fn oldest(&self) -> Option<SystemTime> {
        self.files.front().map(|(written_at, ..)| *written_at)
    }

    /// False if there was none.
    fn remove_oldest(&mut self) -> io::Result<bool> {
        let Some((_, path, length)) = self.files.pop_front() else { return Ok(false) };
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                self.bytes -= length;
                Ok(true)
            }
        }
    }
}

/// The folders that captures are in: of each trigger its own and those in it.
fn folders(root: &Path) -> Vec<PathBuf> {
    let is_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|file_type| file_type.is_dir());
    let mut folders = Vec::new();
    for kind in TriggerKind::ALL {
        let of_kind = root.join(kind.name());
        let inside = fs::read_dir(&of_kind).into_iter().flatten().flatten();
        folders.extend(inside.filter(is_folder).map(|entry| entry.path()));
        folders.push(of_kind);
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A folder of its own, which goes with it.
    struct Place {
        root: PathBuf,
        folder: CapturesFolder,
        budgets: DiskBudgets,
    }

    impl Place {
        fn new(name: &str, folder_bytes: u64, all_bytes: u64) -> Place {
            let root = std::env::temp_dir().join(format!("throng-captures-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            let budgets = DiskBudgets { folder: folder_bytes, all: all_bytes };
            Place { folder: CapturesFolder::new(root.clone()), root, budgets }
        }

        fn keep(&mut self, kind: TriggerKind, folder: &str, second: u64, bytes: usize) {
            let new = NewCapture { kind, folder, unix_s: second, frame: 10 * second, bytes: &vec![0; bytes] };
            self.folder.keep(&new, self.budgets).unwrap();
            // File times may be no finer than the kernel's clock tick.
            std::thread::sleep(std::time::Duration::from_millis(12));
        }

        fn names(&self, folder: &str) -> Vec<String> {
            names(&self.root.join(folder))
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.root);
        }
    }

    /// Promise: an AI that is over budget all day never evicts the dark zone's captures, nor any other cause's.
    #[test]
    fn the_oldest_of_a_cause_go_first_and_other_causes_stay() {
        let mut place = Place::new("oldest", 100, 1_000);
        place.keep(TriggerKind::Scope, "world.tick@dark-zone", 1, 90);
        place.keep(TriggerKind::Scope, "ai.think@dark-zone", 2, 90);
        for second in 3..=9 {
            place.keep(TriggerKind::Scope, "ai.think@hideout", second, 40);
        }
        assert_eq!(place.names("scope/ai.think@hideout"), ["8-80-7.capture", "9-90-8.capture"]);
        assert_eq!(place.names("scope/world.tick@dark-zone"), ["1-10-0.capture"]);
        assert_eq!(place.names("scope/ai.think@dark-zone"), ["2-20-1.capture"]);
    }

    /// Promise: a hundred causes do not fill the disk, and it is the loudest that give.
    #[test]
    fn when_all_take_too_much_the_largest_folder_gives_its_oldest() {
        let mut place = Place::new("all", 100, 235);
        place.keep(TriggerKind::LockWait, "ledger", 1, 30);
        for second in 2..=4 {
            place.keep(TriggerKind::Subsystem, "ai", second, 30);
            place.keep(TriggerKind::Scope, "combat.damage@hub", 10 + second, 30);
        }
        // 210 are kept; of two that are as large, the one with the oldest capture gives.
        place.keep(TriggerKind::Tick, "world.tick@hub", 20, 50);
        assert_eq!(place.names("subsystem/ai"), ["3-30-3.capture", "4-40-5.capture"]);
        assert_eq!(place.names("scope/combat.damage@hub").len(), 3);
        // A folder that is the largest with the new one gives for it.
        place.keep(TriggerKind::Scope, "combat.damage@hub", 21, 10);
        assert_eq!(place.names("subsystem/ai").len(), 2);
        assert_eq!(place.names("scope/combat.damage@hub").len(), 3);
        assert_eq!(place.names("lock-wait/ledger"), ["1-10-0.capture"]);
        // The newest stays, even alone, and folders that are empty go.
        place.keep(TriggerKind::Manual, "", 22, 1_000);
        assert_eq!(place.names("manual"), ["22-220-9.capture"]);
        assert_eq!((place.names("scope"), place.names("lock-wait")), (vec![], vec![]));
    }

    #[test]
    fn captures_that_lie_in_their_triggers_own_folder_count_too() {
        let mut place = Place::new("flat", 100, 100);
        fs::create_dir_all(place.root.join("scope")).unwrap();
        fs::write(place.root.join("scope/0-0-0.capture"), [0; 80]).unwrap();
        fs::create_dir_all(place.root.join("of-others")).unwrap();
        fs::write(place.root.join("of-others/0-0-0.capture"), [0; 80]).unwrap();
        place.keep(TriggerKind::Scope, "ai@hub", 1, 30);
        assert_eq!(place.names("scope"), ["ai@hub"]);
        assert_eq!(place.names("of-others"), ["0-0-0.capture"], "no folder of ours");
    }

    #[test]
    fn one_that_is_larger_than_the_budget_is_kept_alone() {
        let mut place = Place::new("larger", 100, 1_000);
        place.keep(TriggerKind::Manual, "", 1, 50);
        place.keep(TriggerKind::Manual, "", 2, 500);
        assert_eq!(place.names("manual"), ["2-20-1.capture"]);
    }

    #[test]
    fn what_is_no_file_of_ours_is_left_alone() {
        let mut place = Place::new("foreign", 100, 100);
        fs::create_dir_all(place.root.join("manual/0-0-0.capture")).unwrap();
        place.keep(TriggerKind::Manual, "", 1, 90);
        place.keep(TriggerKind::Manual, "", 2, 90);
        assert_eq!(place.names("manual"), ["0-0-0.capture", "2-20-1.capture"]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let mut folder = CapturesFolder::new(PathBuf::from("/proc/nowhere"));
        let new = NewCapture { kind: TriggerKind::Manual, folder: "", unix_s: 1, frame: 1, bytes: &[] };
        assert!(folder.keep(&new, DiskBudgets { folder: 100, all: 100 }).is_err());
    }

    #[test]
    fn a_folders_name_is_a_plain_one_whatever_a_game_calls_its_scopes() {
        let check = |cause: &str, world_kind, expect: &str| assert_eq!(folder_of(cause, world_kind), expect);
        check("ai.think", Some("hideout"), "ai.think@hideout");
        check("ai.think", None, "ai.think");
        check("", None, "");
        check("..", None, "_.");
        check("../../etc", Some("a/b@c\0\u{1b}[2J"), "_._.._etc@a_b_c___2J");
        check("Gedränge", None, "Gedr_nge");
        assert_eq!(folder_of(&"x".repeat(500), Some(&"y".repeat(500))).len(), NAME_MAX + 1);
    }
}
