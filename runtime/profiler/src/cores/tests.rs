//! What made-up records of two cores come out as.

use throng_platform::testing::not_permitted;

use super::*;

fn runs(at_ns: u64, pid: u32, tid: u32) -> CoreRecord {
    CoreRecord::Runs { at_ns, pid, tid }
}

/// Cores 0 and 3; 100 is our own process.
fn known(zero_is_idle: bool) -> Known {
    Known::new(vec![0, 3], 100, zero_is_idle)
}

fn name_of(_: u32, tid: u32) -> Option<ThreadName> {
    (tid < 1_000).then(|| ThreadName::new(format!("t{tid}").as_bytes()))
}

#[test]
fn each_core_has_its_runs_and_every_thread_its_name_and_owner() {
    let mut known = known(true);
    known.take(0, runs(10, 100, 101));
    known.take(0, runs(20, 200, 201));
    // The same switch from the other side.
    known.take(0, runs(21, 200, 201));
    known.take(0, runs(30, 0, 0));
    known.take(1, runs(15, 2_000, 2_001));
    known.settle(name_of);
    let (threads, cores) = known.between(12, 40);
    let told: Vec<_> = threads.iter().map(|it| (it.pid, it.tid, it.owner, &*it.name, &*it.process)).collect();
    assert_eq!(
        told,
        [
            (0, 0, Owner::Idle, "idle", "idle"),
            (100, 101, Owner::Own, "t101", "t100"),
            (200, 201, Owner::Foreign, "t201", "t200"),
            (2_000, 2_001, Owner::Foreign, "", ""),
        ]
    );
    let run = |at_ns, thread| CoreRun { at_ns, thread: Some(thread) };
    assert_eq!(
        cores,
        [
            Core { number: 0, runs: vec![run(12, 1), run(20, 2), run(30, 0)] },
            Core { number: 3, runs: vec![run(15, 3)] },
        ]
    );
}

#[test]
fn lost_records_are_counted_and_leave_a_gap() {
    let mut known = known(true);
    known.take(0, runs(10, 200, 201));
    known.take(0, CoreRecord::Lost { at_ns: 50, count: 7 });
    known.take(0, runs(50, 200, 201));
    known.settle(name_of);
    let (_, cores) = known.between(0, 100);
    let seen: Vec<_> = cores[0].runs.iter().map(|run| (run.at_ns, run.thread)).collect();
    assert_eq!((known.lost, seen), (7, vec![(10, None), (50, Some(0))]));
    known.forget_present(0);
    assert_eq!(known.between(60, 100).1[0].runs, [CoreRun { at_ns: 60, thread: None }]);
}

/// The kernel numbers threads outside of a container's own numbers 0, as it does an idle core.
#[test]
fn in_a_container_nobody_says_that_a_core_was_idle() {
    let mut known = known(false);
    known.take(0, runs(10, 0, 0));
    known.settle(name_of);
    assert_eq!(known.between(0, 20).0[0].name, "idle or outside of this container");
}

#[test]
fn a_window_without_records_is_empty() {
    assert_eq!(known(true).between(0, 100), (vec![], vec![]));
}

/// The kernel's own records: what our short sleeps leave on the cores, read at once.
fn runs_known(watch: &CoreWatch) -> usize {
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (_, cores) = watch.history().between(0, u64::MAX);
    cores.iter().map(|core| core.runs.len()).sum()
}

#[test]
fn switched_off_it_hears_of_nothing_and_switched_on_again_of_all() {
    let watch = match CoreWatch::start() {
        Ok(watch) => watch,
        Err(why_not) => return not_permitted(&why_not),
    };
    while runs_known(&watch) == 0 {}
    watch.switch_on(false);
    // Whoever looks obeys, whether or not the reader has.
    let before = runs_known(&watch);
    assert_eq!(runs_known(&watch), before);
    let (_, cores) = watch.history().between(0, u64::MAX);
    let present = |core: &Core| core.runs.last().and_then(|run| run.thread);
    assert_eq!(cores.iter().find_map(present), None, "nobody knows who has a core");
    watch.switch_on(true);
    while runs_known(&watch) <= before {}
}

#[test]
fn a_saver_may_have_the_history() {
    fn check<T: Send + Sync>() {}
    check::<CoreHistory>();
}
