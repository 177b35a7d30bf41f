//! Load journal: which worlds' loads ended the server before, so that none of them does so for ever (R22).
//!
//! A record may be one whose load is the end of a process: a stack that overflows, memory that is not there, a loop without
//! end. Nothing that this process learns of it outlives it, so what it is about to load stands in a small file beforehand, and
//! is taken out when the load is over, however it ended. What the next process finds there was the death of the one before:
//!
//! ```text
//! load begins: "7 0 loading" --> dies
//! next start:  "7 1 waits"   --> loads 7 again, by itself --> well, and ticks, sleeps or is retired: taken out
//!                                                         '-> dies
//! next start:  "7 2 waits"   --> 7 is parked, the rest are made
//! ```
//!
//! Loads run beside each other, so the first death may find several there, of which one is to blame. Those are loaded one at a
//! time from then on, so the second death has one. An operator may end the parking and have it tried once more.
//!
//! A line is in the kernel before its load begins: it survives the death of the process, which is what it is for; a host
//! that loses power was not ended by a world. What a start counts is on the disk before the first load. Deaths in ticks are told
//! by their reports (`runtime/crash/src/culprits.rs`).
//!
//! The file is written by who may wait for the disk: the thread that reads records of worlds ([`super::reader`]), or the one of a
//! server that has not begun. That a load is over, and that one is forgiven, is known at once, by whichever thread; the file says so
//! when it is written next. Cost: two small files written and renamed for a load, some 50 µs.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use throng_profiler::{log_error, log_warn};

use super::counts::SAVES;

/// A world may take a server along once by chance: its host ran out of memory, somebody ended it just then.
const FAILURES_UNTIL_PARKED: u32 = 2;
/// A load waits so long at most for one that is to be alone, or that one for others: a load that hangs must not keep all
/// others waiting.
const ALONE_FOR: Duration = Duration::from_secs(10);
/// Of more worlds than that the file says nothing, which then nobody wrote who is of ours.
const WORLDS_MAX: usize = 1 << 16;
const HEADING: &str = "throng: loads of worlds that are saved, 1";

/// Which loads ended a process, and which are on their way.
pub(crate) struct LoadJournal {
    path: PathBuf,
    /// Never held while the disk is waited for: a frame's thread takes it.
    known: Mutex<Known>,
    /// Held by who writes the file.
    file: Mutex<()>,
    is_over: Condvar,
}

#[derive(Default)]
struct Known {
    /// By the world's number; those of which there is anything to say.
    worlds: BTreeMap<u64, Entry>,
    /// Loads that are running, and since when one of them is to be alone.
    running: usize,
    alone_since: Option<Instant>,
    /// The file says something else.
    is_stale: bool,
    /// The file could not be written; said once.
    is_failing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    failures: u32,
    is_loading: bool,
    /// It was parked in this process: after that an operator decides.
    was_parked: bool,
}

impl LoadJournal {
    /// Reads what the process before has left, and counts the failures of whatever it died in.
    ///
    /// # Errors
    /// If the file cannot be read, or written.
    pub fn open(path: &Path) -> io::Result<LoadJournal> {
        let text = match fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut worlds: BTreeMap<u64, Entry> =
            text.lines().skip_while(|line| *line != HEADING).skip(1).take(WORLDS_MAX).filter_map(read_line).collect();
        // Those that were to blame before were alone; who was loaded beside one that would not end is not to blame.
        let is_known = worlds.values().any(|entry| entry.is_loading && entry.failures > 0);
        for (id, entry) in &mut worlds {
            if !std::mem::take(&mut entry.is_loading) || is_known && entry.failures == 0 {
                continue;
            }
            entry.failures = entry.failures.saturating_add(1);
            log_error!(
                SAVES,
                save = *id,
                times = entry.failures,
                "the server that was here before ended while it loaded this world, or one beside it"
            );
        }
        worlds.retain(|_, entry| entry.failures > 0);
        let known = Known { worlds, ..Known::default() };
        write(path, &known.worlds, true)?;
        Ok(LoadJournal {
            path: path.to_owned(),
            known: Mutex::new(known),
            file: Mutex::new(()),
            is_over: Condvar::new(),
        })
    }

    /// A load begins, which may be the end of this process. It is over when what is returned is dropped. Waits for the disk, and
    /// for loads that are to be alone.
    pub fn begin(self: &Arc<Self>, id: u64) -> Running {
        let mut known = self.lock();
        let wants_alone = known.worlds.get(&id).is_some_and(|entry| entry.failures > 0);
        // One that hangs is waited for once, and not by each of the others.
        let alone_for = |known: &Known| known.alone_since.map_or(Duration::ZERO, |since| since.elapsed());
        let must_wait = |known: &mut Known| {
            known.alone_since.is_some() && alone_for(known) < ALONE_FOR || wants_alone && known.running > 0
        };
        let wait_max = ALONE_FOR.saturating_sub(alone_for(&known));
        known = self.is_over.wait_timeout_while(known, wait_max, must_wait).unwrap_or_else(PoisonError::into_inner).0;
        known.running += 1;
        if wants_alone {
            known.alone_since = Some(Instant::now());
        }
        let entry = known.worlds.entry(id).or_insert(Entry { failures: 0, is_loading: false, was_parked: false });
        entry.is_loading = true;
        known.is_stale = true;
        drop(known);
        self.write(wants_alone);
        Running { journal: self.clone(), id, is_alone: wants_alone }
    }

    /// How often its load ended a process, of late.
    pub fn failures(&self, id: u64) -> u32 {
        self.lock().worlds.get(&id).map_or(0, |entry| entry.failures)
    }

    /// Whether it is to be parked, once in a process: how often it failed.
    pub fn take_killer(&self, id: u64) -> Option<u32> {
        let mut known = self.lock();
        let entry = known.worlds.get_mut(&id)?;
        let is_it = entry.failures >= FAILURES_UNTIL_PARKED && !std::mem::replace(&mut entry.was_parked, true);
        is_it.then_some(entry.failures)
    }

    /// It was loaded and is well: what it did before is forgotten, and the file says so when it is written next.
    pub fn forgive(&self, id: u64) {
        let mut known = self.lock();
        known.is_stale |= known.worlds.remove(&id).is_some();
    }

    /// Has the file say what is known, if it does not. Waits for the disk.
    pub fn write_if_stale(&self) {
        self.write(false);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, is_to_last: bool) {
        let _file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let worlds = {
            let mut known = self.lock();
            if !std::mem::take(&mut known.is_stale) && !is_to_last {
                return;
            }
            known.worlds.clone()
        };
        if let Err(error) = write(&self.path, &worlds, is_to_last) {
            let mut known = self.lock();
            known.is_stale = true;
            if !std::mem::replace(&mut known.is_failing, true) {
                log_warn!(
                    SAVES,
                    file = %self.path.display(),
                    %error,
                    "loads of worlds cannot be noted: one that ends the server would end the next one, too"
                );
            }
        }
    }
}

/// A load that is running. It is over when this is dropped, by a panic as well, and the file says so when it is written next.
pub(crate) struct Running {
    journal: Arc<LoadJournal>,
    id: u64,
    is_alone: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut known = self.journal.lock();
        known.running -= 1;
        known.is_stale = true;
        if self.is_alone {
            known.alone_since = None;
        }
        if let Some(entry) = known.worlds.get_mut(&self.id) {
            entry.is_loading = false;
            if entry.failures == 0 {
                known.worlds.remove(&self.id);
            }
        }
        self.journal.is_over.notify_all();
    }
}

fn read_line(line: &str) -> Option<(u64, Entry)> {
    let mut words = line.split(' ');
    let (id, failures) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let is_loading = match words.next()? {
        "loading" => true,
        "waits" => false,
        _ => return None,
    };
    Some((id, Entry { failures, is_loading, was_parked: false }))
}

/// Takes the place of the file at once, so that a death leaves the old one or the new one.
fn write(path: &Path, worlds: &BTreeMap<u64, Entry>, is_to_last: bool) -> io::Result<()> {
    let mut text = format!("{HEADING}\n");
    for (id, Entry { failures, is_loading, .. }) in worlds {
        // A string takes whatever is written to it.
        let _ = writeln!(text, "{id} {failures} {}", if *is_loading { "loading" } else { "waits" });
    }
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    if is_to_last {
        file.sync_all()?;
    }
    drop(file);
    fs::rename(&beside, path)?;
    match path.parent().filter(|_| is_to_last) {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("throng-loads-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn journal(&self) -> Arc<LoadJournal> {
            Arc::new(LoadJournal::open(&self.0.join("loads")).unwrap())
        }

        /// A process that dies in these loads.
        fn dies_in(&self, ids: &[u64]) {
            let journal = self.journal();
            ids.iter().for_each(|id| std::mem::forget(journal.begin(*id)));
        }
    }

    fn load<R>(journal: &Arc<LoadJournal>, id: u64, load: impl FnOnce() -> R) -> R {
        let running = journal.begin(id);
        let loaded = load();
        drop(running);
        journal.write_if_stale();
        loaded
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_load_that_ends_two_processes_is_not_tried_a_third_time() {
        let folder = Folder::new("twice");
        folder.dies_in(&[7]);
        let journal = folder.journal();
        assert_eq!((journal.failures(7), journal.take_killer(7)), (1, None));
        assert_eq!(load(&journal, 8, || 5), 5, "others are loaded as ever");
        drop(journal);
        assert_eq!((folder.journal().failures(7), folder.journal().failures(8)), (1, 0), "nothing was loading");
        folder.dies_in(&[7]);
        let journal = folder.journal();
        assert_eq!((journal.take_killer(7), journal.take_killer(7)), (Some(2), None), "then an operator decides");
        folder.dies_in(&[7]);
        assert_eq!(folder.journal().take_killer(7), Some(3));
    }

    #[test]
    fn who_was_loaded_beside_it_is_not_to_blame_twice() {
        let folder = Folder::new("beside");
        folder.dies_in(&[5, 6, 7]);
        let journal = folder.journal();
        assert_eq!([5, 6, 7].map(|id| journal.failures(id)), [1, 1, 1]);
        // Two of them come in well, and one has ticked.
        load(&journal, 5, || ());
        load(&journal, 6, || ());
        journal.forgive(5);
        std::mem::forget(journal.begin(7));
        drop(journal);
        let journal = folder.journal();
        assert_eq!([5, 6, 7].map(|id| journal.failures(id)), [0, 1, 2]);
        assert_eq!((journal.take_killer(6), journal.take_killer(7)), (None, Some(2)));
    }

    #[test]
    fn who_is_under_suspicion_is_loaded_alone() {
        let folder = Folder::new("alone");
        folder.dies_in(&[7, 8]);
        let (journal, running, beside) = (folder.journal(), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for id in [7, 8, 7, 8, 7, 8] {
                let (journal, running, beside) = (&journal, &running, &beside);
                scope.spawn(move || {
                    load(journal, id, || {
                        beside.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(5));
                        running.fetch_sub(1, Ordering::SeqCst);
                    });
                });
            }
        });
        assert_eq!(beside.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_load_that_panics_has_not_ended_the_process() {
        let folder = Folder::new("panics");
        let journal = folder.journal();
        let load = std::panic::AssertUnwindSafe(|| load(&journal, 7, || panic!("in a load")));
        assert!(std::panic::catch_unwind(load).is_err());
        journal.write_if_stale();
        assert_eq!(folder.journal().failures(7), 0);
    }

    #[test]
    fn bytes_that_are_no_journal_say_nothing() {
        let folder = Folder::new("bytes");
        let check = |bytes: &[u8], expect: u32| {
            fs::write(folder.0.join("loads"), bytes).unwrap();
            assert_eq!(folder.journal().failures(7), expect, "{:?}", String::from_utf8_lossy(bytes));
        };
        check(b"", 0);
        check(b"7 1 loading\n", 0);
        check(format!("{HEADING}\n7 1 loading\n").as_bytes(), 2);
        check(format!("{HEADING}\n7 1 loa").as_bytes(), 0);
        check(format!("{HEADING}\nx\n7 -1 waits\n7 3 waits 9\n\u{0}").as_bytes(), 3);
        check(&[&b"\xff\xfe"[..], HEADING.as_bytes(), b"\n7 1 loading"].concat(), 0);
        check(format!("{HEADING}\n7 {} loading\n", u32::MAX).as_bytes(), u32::MAX);
    }
}
