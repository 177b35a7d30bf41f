//! Rings, parsed and read: made-up ones cut at every byte, and the real ones of threads that share a core, sleep and
//! touch memory.

use std::sync::mpsc;
use std::time::Duration;

use super::cores::{CoreEvents, CoreRecord, ThreadName};
use super::*;
use crate::sched::{pin_this_thread, pinnable_cores};
use crate::testing::{as_nobody, not_permitted};
use crate::ticks::monotonic_ns;

/// The calling thread's events, or `None` where the host does not allow them and the tests are to go without.
fn own_events() -> Option<ThreadEvents> {
    match ThreadEvents::open(0) {
        Ok(events) => Some(events),
        Err(PerfError::Failed { source }) => panic!("{source}"),
        Err(error) => {
            not_permitted(&error.to_string());
            None
        }
    }
}

fn read_all(events: &mut ThreadEvents) -> Vec<Record> {
    let mut records = Vec::new();
    events.read(u64::MAX, usize::MAX, |record| records.push(record));
    records
}

fn faults_in(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record, Record::PageFault { .. })).count()
}

/// Pages that were never touched, each of which costs one fault.
struct FreshPages {
    begin: *mut u8,
    count: usize,
}

const PAGE_BYTES: usize = 4096;

impl FreshPages {
    fn new(count: usize) -> FreshPages {
        // SAFETY: a new mapping of our own, at no address in particular.
        let begin = unsafe {
            let bytes = count * PAGE_BYTES;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let begin = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(begin, libc::MAP_FAILED);
            // One fault must stand for one page, not for 512 of them.
            libc::madvise(begin, bytes, libc::MADV_NOHUGEPAGE);
            begin.cast()
        };
        FreshPages { begin, count }
    }

    fn touch(&self) {
        for page in 0..self.count {
            // SAFETY: inside of the mapping.
            unsafe { self.begin.add(page * PAGE_BYTES).write_volatile(1) };
        }
    }
}

impl Drop for FreshPages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing points into it any more.
        unsafe { libc::munmap(self.begin.cast(), self.count * PAGE_BYTES) };
    }
}

#[test]
fn a_sleep_is_blocked_and_then_running() {
    let Some(mut events) = own_events() else { return };
    let begin_ns = monotonic_ns();
    std::thread::sleep(Duration::from_millis(5));
    let switches: Vec<_> =
        read_all(&mut events).into_iter().filter(|r| !matches!(r, Record::PageFault { .. })).collect();
    // It may have been preempted until it had read.
    let end_ns = monotonic_ns();
    assert!(switches.iter().map(|record| record.at_ns()).is_sorted(), "{switches:?}");
    assert!(switches.iter().all(|record| record.at_ns() <= end_ns), "{switches:?}");
    let slept = switches.windows(2).any(|pair| match *pair {
        [Record::Blocked { at_ns: out_ns }, Record::Running { at_ns: in_ns, .. }] => {
            out_ns >= begin_ns && in_ns - out_ns >= 5_000_000
        }
        _ => false,
    });
    assert!(slept, "{switches:?}");
}

#[test]
fn another_thread_is_watched_by_its_number() {
    if own_events().is_none() {
        return;
    }
    let core = pinnable_cores()[0];
    let (tell, told) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        pin_this_thread(core).unwrap();
        tell.send(nix::unistd::gettid().as_raw() as u32).unwrap();
        wait.recv().unwrap();
    });
    let mut events = ThreadEvents::open(told.recv().unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    go.send(()).unwrap();
    thread.join().unwrap();
    let records = read_all(&mut events);
    assert!(records.iter().any(|record| matches!(record, Record::Running { core: seen, .. } if *seen == core)));
}

#[test]
fn every_fresh_page_is_a_fault_however_often_the_ring_wraps() {
    let Some(mut events) = own_events() else { return };
    let rings = 8;
    let pages_each = FAULTS_BYTES / 32 / 2 - 24;
    let mut seen = 0;
    for _ in 0..2 * rings {
        let pages = FreshPages::new(pages_each);
        read_all(&mut events);
        pages.touch();
        let records = read_all(&mut events);
        assert!(records.iter().map(|record| record.at_ns()).is_sorted());
        seen += faults_in(&records);
    }
    let expect = 2 * rings * pages_each;
    // The test's own stack and heap may fault now and then.
    assert!((expect..expect + expect / 100).contains(&seen), "{seen} of {expect}");
    assert_eq!(events.faults_lost(), 0);
}

#[test]
fn what_finds_its_ring_full_is_counted_and_costs_no_switch() {
    let Some(mut events) = own_events() else { return };
    let pages = FreshPages::new(5_000);
    let last = FreshPages::new(1);
    read_all(&mut events);
    pages.touch();
    std::thread::sleep(Duration::from_millis(1));
    let records = read_all(&mut events);
    assert!(records.iter().any(|record| matches!(record, Record::Blocked { .. })), "the sleep is there");
    last.touch();
    let seen = faults_in(&records) + faults_in(&read_all(&mut events)) + events.faults_lost() as usize;
    assert!(events.faults_lost() > 3_000, "{}", events.faults_lost());
    assert!((5_001..5_100).contains(&seen), "{seen}");
    assert_eq!(events.switches_lost(), 0);
}

#[test]
fn a_read_ends_at_its_time_or_number_and_goes_on_from_there() {
    let Some(mut events) = own_events() else { return };
    let pages = FreshPages::new(30);
    read_all(&mut events);
    let touched = (0..3).map(|_| {
        std::thread::sleep(Duration::from_millis(1));
        monotonic_ns()
    });
    let moments: Vec<u64> = touched.collect();
    pages.touch();
    let mut records = Vec::new();
    events.read(moments[0], usize::MAX, |record| records.push(record));
    assert!(!records.is_empty() && records.iter().all(|record| record.at_ns() <= moments[0]));
    assert_eq!(events.read(u64::MAX, 3, |record| records.push(record)), 3);
    assert_eq!(events.read(u64::MAX, 0, |record| records.push(record)), 0);
    records.extend(read_all(&mut events));
    assert!(records.iter().map(|record| record.at_ns()).is_sorted(), "{records:?}");
    assert!(faults_in(&records) >= 30);
    assert_eq!(read_all(&mut events), []);
}

#[test]
fn reading_never_allocates() {
    let Some(mut events) = own_events() else { return };
    let pages = FreshPages::new(500);
    pages.touch();
    let mut count = 0;
    let before = crate::allocator::thread_counts();
    events.read(u64::MAX, usize::MAX, |_| count += 1);
    assert_eq!((crate::allocator::thread_counts() - before).allocations, 0);
    assert!(count >= 500);
}

/// Promise: another process on a core is told, with the name that it took itself.
#[test]
fn a_process_that_has_a_core_is_told_with_its_name() {
    let core = pinnable_cores()[0];
    let mut events = match CoreEvents::open(core) {
        Ok(events) => events,
        Err(error) => return not_permitted(&error.to_string()),
    };
    let mut command = std::process::Command::new("taskset");
    let mut child = command.args(["-c", &core.to_string(), "sh", "-c", "sleep 0.01; sleep 0.01"]).spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    let mut records = Vec::new();
    events.read(usize::MAX, |record| records.push(record));
    let has = |wanted: &dyn Fn(&CoreRecord) -> bool| records.iter().any(wanted);
    assert!(has(&|record| matches!(*record, CoreRecord::Runs { pid: of, tid, .. } if of == pid && tid == pid)));
    let name = ThreadName::new(b"sh");
    assert!(has(&|record| matches!(*record, CoreRecord::Named { tid, name: new, .. } if tid == pid && new == name)));
    assert!(has(&|record| matches!(*record, CoreRecord::Started { parent_tid, .. } if parent_tid == pid)), "sleep");
    let runs = records
        .iter()
        .filter_map(|record| if let CoreRecord::Runs { at_ns, .. } = record { Some(*at_ns) } else { None });
    assert!(runs.is_sorted(), "{records:?}");
}

#[test]
fn a_thread_is_asked_for_its_name() {
    let work = || (std::process::id(), nix::unistd::gettid().as_raw() as u32);
    let thread = crate::threads::spawn_named("some-name", crate::threads::Priority::Normal, move || {
        let (pid, tid) = work();
        (ThreadName::of(pid, tid), ThreadName::of(pid, u32::MAX))
    });
    assert_eq!(thread.unwrap().join().unwrap(), (Some(ThreadName::new(b"some-name")), None));
}

#[test]
fn a_thread_that_is_not_there_is_an_error() {
    if own_events().is_some() {
        // Above the kernel's highest thread id.
        assert!(matches!(ThreadEvents::open(1 << 30), Err(PerfError::Failed { .. })));
    }
}

#[test]
fn a_user_without_privileges_may_watch_its_own_threads() {
    let executable = std::env::current_exe().unwrap();
    let Some(mut command) = as_nobody(executable.to_str().unwrap()) else { return };
    let tests = ["--exact", "perf::tests::a_sleep_is_blocked_and_then_running", "sched::tests::a_busy_thread_runs"];
    let output = command.arg(&executable).args(tests).arg("--nocapture").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("2 passed"), "{text}");
}
