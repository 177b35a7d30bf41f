//! Frames split on real threads: busy ones that share a core, sleepers, on both sources, as root and as nobody.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_platform::process::thread_cpu_time;
use throng_platform::sched::{pin_this_thread, pinnable_cores};
use throng_platform::steal::KernelSteal;
use throng_platform::testing::{as_nobody, not_permitted};
use throng_platform::threads::{Priority, spawn_named};
use throng_platform::time::Nanos;

use super::*;

/// Tests that measure shares of a core have it one after the other.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static CORE: Mutex<()> = Mutex::new(());
    CORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Switches with the best source, or `None` where the host does not allow it and the tests are to go without.
fn with_events() -> Option<Switches> {
    let mut switches = Switches::new(true);
    if switches.source() != SwitchSource::PerfEvent {
        not_permitted(&switches.why_not().unwrap());
        return None;
    }
    assert_eq!(switches.why_not(), None);
    Some(switches)
}

fn with_sums() -> Switches {
    Switches::with(SwitchSource::Schedstat, Some("for a test".into()))
}

/// A thread that does its work again and again, until it is dropped.
struct Worker {
    tid: u32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn spawn(core: u32, priority: Priority, mut work: impl FnMut() + Send + 'static) -> Worker {
        let (tell, told) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = spawn_named("worker", priority, move || {
            pin_this_thread(core).unwrap();
            tell.send(this_tid()).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                work();
            }
        });
        Worker { tid: told.recv().unwrap(), stop, thread: Some(thread.unwrap()) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn this_tid() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

fn burn(time: Nanos) {
    let begin = thread_cpu_time();
    while thread_cpu_time() - begin < time {}
}

/// Frames of a length with or without a gap, and the sums of each followed thread over them; in every frame the parts
/// make the whole.
fn run_frames(switches: &mut Switches, count: u32, [length_ms, gap_ms]: [u64; 2]) -> (Vec<FrameThread>, u64) {
    let mut sums: Vec<FrameThread> = Vec::new();
    let (mut out, mut wall_ns) = (Vec::new(), 0);
    for _ in 0..count {
        let begin_ns = monotonic_ns();
        if gap_ms > 0 {
            switches.begin(begin_ns);
        }
        std::thread::sleep(Duration::from_millis(length_ms));
        let end_ns = monotonic_ns();
        switches.frame(begin_ns, end_ns, &mut out);
        wall_ns += end_ns - begin_ns;
        sums.resize(out.len(), FrameThread::default());
        for (sum, thread) in sums.iter_mut().zip(&out) {
            assert_eq!(thread.running_ns + thread.waiting_ns + thread.blocked_ns, end_ns - begin_ns);
            sum.thread = thread.thread;
            sum.running_ns += thread.running_ns;
            sum.waiting_ns += thread.waiting_ns;
            sum.blocked_ns += thread.blocked_ns;
        }
        std::thread::sleep(Duration::from_millis(gap_ms));
    }
    (sums, wall_ns)
}

/// `apart_ns` is for what is known to be in one of the two and not in the other.
#[track_caller]
fn check_ratio(measured_ns: u64, expect_ns: u64, tolerance: f64, apart_ns: u64) {
    let off_ns = measured_ns.abs_diff(expect_ns).saturating_sub(apart_ns);
    assert!(
        (off_ns as f64) < tolerance * expect_ns as f64,
        "{measured_ns} and not {expect_ns} ns, {apart_ns} ns are not in both"
    );
}

/// The kernel's account of stolen time has such steps.
const STEAL_STEP_NS: u64 = 10_000_000;

/// Two threads that want the same core all the time: each runs as long as its clock says, waits for the rest, and is
/// never blocked.
#[track_caller]
fn check_two_busy_threads_on_one_core(mut switches: Switches, frames: u32, frame_ms: u64, waiting_tolerance: f64) {
    let _alone = one_at_a_time();
    let core = pinnable_cores()[0];
    let workers = [0, 1].map(|_| Worker::spawn(core, Priority::Normal, || burn(Nanos::from_millis(1))));
    for (index, worker) in workers.iter().enumerate() {
        assert!(switches.follow(index as u32, worker.tid));
    }
    let clocks = workers.each_ref().map(|worker| ThreadSums::open(worker.tid).unwrap());
    // The first frame finds out how the threads are.
    run_frames(&mut switches, 2, [10, 0]);
    let mut steal = KernelSteal::open();
    let stolen_before = steal.read()[0];
    let begin_ns = monotonic_ns();
    let before = clocks.each_ref().map(|clock| clock.read().unwrap());
    let (seen, wall_ns) = run_frames(&mut switches, frames, [frame_ms, 0]);
    let after = clocks.each_ref().map(|clock| clock.read().unwrap());
    // The clocks run between frames, too, and stand still while a hypervisor has the core.
    let between_ns = monotonic_ns() - begin_ns - wall_ns;
    let apart_ns = between_ns + (steal.read()[0] - stolen_before).0 + STEAL_STEP_NS;
    for thread in &seen {
        let (before, after) = (before[thread.thread as usize], after[thread.thread as usize]);
        check_ratio(thread.running_ns, after.running_ns - before.running_ns, 0.06, apart_ns);
        check_ratio(thread.waiting_ns, wall_ns - thread.running_ns, waiting_tolerance, 0);
        assert!(thread.waiting_ns > wall_ns / 3, "{thread:?} of {wall_ns} ns");
    }
}

#[test]
fn two_busy_threads_on_one_core_wait_for_each_other() {
    let Some(switches) = with_events() else { return };
    check_two_busy_threads_on_one_core(switches, 40, 10, 0.06);
}

#[test]
fn without_perf_event_sums_say_so_too() {
    // What a wait takes of the frames before the one that it ends in is not in the sums: with long frames that is little.
    check_two_busy_threads_on_one_core(with_sums(), 10, 100, 0.3);
}

#[test]
fn a_thread_that_sleeps_is_blocked() {
    for switches in [with_events(), Some(with_sums())].iter_mut().flatten() {
        let (wake, woken) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(this_tid()).unwrap();
            let _ = woken.recv();
        });
        let tid = told.recv().unwrap();
        while !thread_state(tid).unwrap().is_asleep {
            std::thread::yield_now();
        }
        switches.follow(5, tid);
        let (seen, wall_ns) = run_frames(switches, 3, [10, 0]);
        assert_eq!(seen, [FrameThread { thread: 5, running_ns: 0, waiting_ns: 0, blocked_ns: wall_ns }]);
        assert_eq!(switches.longest_waits(), []);
        drop(wake);
        thread.join().unwrap();
    }
}

/// A thread with low priority shares its core with two busy ones and wants more than its part: when it wakes, it waits
/// for the core.
fn sleeper_beside_hogs(core: u32) -> [Worker; 3] {
    let hog = || Worker::spawn(core, Priority::Normal, || burn(Nanos::from_millis(1)));
    let sleeper = Worker::spawn(core, Priority::Low, || {
        std::thread::sleep(Duration::from_millis(2));
        burn(Nanos::from_micros(1_500));
    });
    [sleeper, hog(), hog()]
}

#[test]
fn a_wait_after_a_sleep_is_a_wait_and_no_sleep() {
    let Some(mut switches) = with_events() else { return };
    let _alone = one_at_a_time();
    let [sleeper, ..] = &sleeper_beside_hogs(pinnable_cores()[0]);
    assert!(switches.follow(1, sleeper.tid));
    let sums = ThreadSums::open(sleeper.tid).unwrap();
    for lengths in [[200, 0], [200, 50]] {
        let before = sums.read().unwrap();
        let begin_ns = monotonic_ns();
        let (seen, wall_ns) = run_frames(&mut switches, 10, lengths);
        let end_ns = monotonic_ns();
        let share = wall_ns as f64 / (end_ns - begin_ns) as f64;
        let after = sums.read().unwrap();
        // With gaps, the frames' part of what the kernel counted over all.
        let expect_ns = ((after.waiting_ns - before.waiting_ns) as f64 * share) as u64;
        assert!(expect_ns > wall_ns / 20, "the host's scheduler lets it wait: {expect_ns} of {wall_ns} ns");
        // A wait over a frame's end was a sleep in the frame before: with long frames that is little.
        let slept_ns = slept_ns(&switches.history().between(begin_ns, end_ns)[0].1, end_ns);
        check_ratio(seen[0].waiting_ns, expect_ns, 0.25, 0);
        assert!(seen[0].blocked_ns < slept_ns, "some of it was hidden in sleeps: {seen:?}, {slept_ns} ns");
    }
}

/// From giving the core up to having one again, which is a sleep and the wait after it; the last one may not have ended
/// at `end_ns`.
fn slept_ns(records: &[Record], end_ns: u64) -> u64 {
    let switches: Vec<_> = records.iter().filter(|record| !matches!(record, Record::PageFault { .. })).collect();
    let ends = switches.iter().skip(1).map(|record| record.at_ns()).chain([end_ns]);
    let spans = switches.iter().zip(ends);
    spans
        .filter(|(record, _)| matches!(record, Record::Blocked { .. }))
        .map(|(record, end_ns)| end_ns - record.at_ns())
        .sum()
}

#[test]
fn the_longest_wait_is_named_with_its_core() {
    let Some(mut switches) = with_events() else { return };
    let _alone = one_at_a_time();
    let core = pinnable_cores()[0];
    let [sleeper, hog, _] = &sleeper_beside_hogs(core);
    assert!(switches.follow(3, hog.tid) && switches.follow(4, sleeper.tid));
    let mut seen = Vec::new();
    for _ in 0..100 {
        run_frames(&mut switches, 1, [10, 0]);
        seen.extend_from_slice(switches.longest_waits());
    }
    let long = |thread| seen.iter().filter(|wait| wait.thread == thread).max_by_key(|wait| wait.waited_ns).unwrap();
    for wait in [long(3), long(4)] {
        assert_eq!(wait.core, Some(core));
        assert!(wait.waited_ns_min > 0 && wait.waited_ns_min <= wait.waited_ns, "{wait:?}");
    }
    assert!(long(4).waited_ns > 300_000, "{:?}", long(4));
}

#[test]
fn the_history_tells_what_the_frames_add_up() {
    let Some(mut switches) = with_events() else { return };
    let _alone = one_at_a_time();
    let core = pinnable_cores()[0];
    let workers = sleeper_beside_hogs(core);
    for (index, worker) in workers.iter().enumerate() {
        switches.follow(index as u32, worker.tid);
    }
    let history = switches.history();
    run_frames(&mut switches, 1, [10, 0]);
    let mut out = Vec::new();
    let begin_ns = monotonic_ns();
    let mut frames = [(0, 0); 3];
    let mut at_ns = begin_ns;
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(5));
        let end_ns = monotonic_ns();
        switches.frame(at_ns, end_ns, &mut out);
        at_ns = end_ns;
        for (sum, thread) in frames.iter_mut().zip(&out) {
            *sum = (sum.0 + thread.running_ns, sum.1 + thread.waiting_ns + thread.blocked_ns);
        }
    }
    let told = std::thread::spawn(move || history.between(begin_ns, at_ns)).join().unwrap();
    assert_eq!(told.len(), 3);
    for (index, records) in told {
        assert_eq!(records[0].at_ns(), begin_ns, "the state at the window's begin is known");
        let mut account = Account::new(records[0]);
        records[1..].iter().for_each(|record| account.note(*record));
        account.pass_until(at_ns);
        let (split, _) = account.take();
        assert_eq!((split.running_ns, split.waiting_ns + split.blocked_ns), frames[index as usize]);
    }
    assert_eq!(switches.records_lost(), 0);
}

#[test]
fn page_faults_reach_the_history() {
    let Some(mut switches) = with_events() else { return };
    switches.follow(0, 0);
    let begin_ns = monotonic_ns();
    let pages = 2_000;
    // So much no allocator takes from what was freed before, whose pages are there already.
    let fresh_bytes = 64 << 20;
    let mut out = Vec::new();
    for _ in 0..4 {
        let mut fresh = vec![0_u8; fresh_bytes];
        black_box(&mut fresh).chunks_mut(4096).take(pages / 4).for_each(|page| page[0] = 1);
        switches.frame(begin_ns, monotonic_ns(), &mut out);
        std::mem::forget(fresh);
    }
    let [(0, records)] = &switches.history().between(begin_ns, u64::MAX)[..] else { panic!("one thread") };
    let faults = records.iter().filter(|record| matches!(record, Record::PageFault { .. })).count();
    assert!((pages..pages + pages / 10).contains(&faults), "{faults} of {pages}");
}

#[test]
fn a_thread_that_ended_does_not_run_on() {
    let Some(mut switches) = with_events() else { return };
    let worker = Worker::spawn(pinnable_cores()[0], Priority::Normal, || burn(Nanos::from_millis(1)));
    switches.follow(0, worker.tid);
    run_frames(&mut switches, 1, [10, 0]);
    let clock = ThreadSums::open(worker.tid).unwrap();
    drop(worker);
    while clock.read().is_ok() {
        std::thread::yield_now();
    }
    run_frames(&mut switches, SILENT_FRAMES_MAX + 1, [1, 0]);
    let (seen, wall_ns) = run_frames(&mut switches, 1, [10, 0]);
    assert_eq!(seen, [FrameThread { thread: 0, running_ns: 0, waiting_ns: 0, blocked_ns: wall_ns }]);
    switches.forget(0);
    assert_eq!(run_frames(&mut switches, 1, [10, 0]).0, []);
    assert_eq!(switches.history().between(0, u64::MAX).len(), 1, "what it did is still known");
}

#[test]
fn what_cannot_be_followed_is_said_once() {
    let mut off = Switches::new(false);
    assert_eq!((off.source(), off.why_not()), (SwitchSource::None, None));
    assert!(!off.follow(0, 0));
    let mut out = vec![FrameThread::default()];
    off.frame(0, 1_000, &mut out);
    assert_eq!(out, []);

    let mut sums = with_sums();
    assert_eq!(sums.why_not().as_deref(), Some("for a test"));
    assert_eq!(sums.why_not(), None);
    assert!(!sums.follow(0, u32::MAX));
    assert!(sums.why_not().unwrap().contains("cannot be followed: "));

    for index in 0..FOLLOWED_MAX as u32 {
        assert!(sums.follow(index, 0));
    }
    assert!(sums.follow(0, 0), "followed already");
    assert!(!sums.follow(FOLLOWED_MAX as u32, 0));
    assert!(sums.why_not().unwrap().contains("256"));
}

#[test]
fn the_frame_thread_may_hand_them_over() {
    fn check<T: Send>() {}
    check::<Switches>();
    check::<SwitchHistory>();
}

#[test]
fn a_user_without_privileges_gets_the_same() {
    let _alone = one_at_a_time();
    let executable = std::env::current_exe().unwrap();
    let Some(mut command) = as_nobody(executable.to_str().unwrap()) else { return };
    let module = module_path!().split_once("::").unwrap().1;
    let tests = ["two_busy_threads_on_one_core_wait_for_each_other", "without_perf_event_sums_say_so_too"];
    let names = tests.map(|name| format!("{module}::{name}"));
    let output = command.arg(&executable).args(["--exact", &names[0], &names[1], "--nocapture"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("2 passed"), "{text}");
}
