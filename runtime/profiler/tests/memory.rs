//! Memory as the allocator and the profiler see it together: live bytes by scope, across threads, and who leaks.

use std::sync::mpsc;

use throng_platform::allocator::{CountingAllocator, thread_counts};
use throng_profiler::{KindNumber, Scope, Site, SiteId, memory, pool::PoolSettings, site, start_recording, thread};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const LARGE_BYTES: usize = 100_000;

/// Watching and recording; tests run beside each other, each with scopes of its own.
fn begin(name: &str) -> (&'static Site, SiteId) {
    memory::install().unwrap();
    start_recording(PoolSettings { blocks_max: 256, reserve: 16, history: 0 });
    let site = site::intern(name, None);
    (site, site.id().unwrap())
}

fn within<T>(site: &'static Site, work: impl FnOnce() -> T) -> T {
    let _scope = Scope::begin(site);
    work()
}

#[test]
fn live_bytes_belong_to_the_scope_that_allocated_them_whoever_frees() {
    let (site, id) = begin("memory_test.across");
    let mut blocks = within(site, || (0..20).map(|_| Vec::<u8>::with_capacity(LARGE_BYTES)).collect::<Vec<_>>());
    assert_eq!(memory::live_bytes(Some(id)), 20 * LARGE_BYTES as u64, "blocks of this size are all followed");

    let (to_other, from_here) = mpsc::channel::<Vec<Vec<u8>>>();
    let other = std::thread::spawn(move || drop(from_here.recv().unwrap()));
    to_other.send(blocks.split_off(5)).unwrap();
    other.join().unwrap();
    assert_eq!(memory::live_bytes(Some(id)), 5 * LARGE_BYTES as u64);

    drop(blocks);
    assert_eq!(memory::live_bytes(Some(id)), 0);
}

#[test]
fn a_block_that_is_resized_moves_to_the_scope_that_resized_it() {
    let (first, first_id) = begin("memory_test.first");
    let (second, second_id) = begin("memory_test.second");
    let mut block = within(first, || vec![0_u8; LARGE_BYTES]);
    assert_eq!(memory::live_bytes(Some(first_id)), LARGE_BYTES as u64, "zeroed blocks too");
    within(second, || block.reserve_exact(2 * LARGE_BYTES));
    assert_eq!((memory::live_bytes(Some(first_id)), memory::live_bytes(Some(second_id))), (0, 3 * LARGE_BYTES as u64));
    drop(block);
    assert_eq!(memory::live_bytes(Some(second_id)), 0);
}

#[test]
fn small_blocks_are_estimated_and_nothing_stays_when_they_are_gone() {
    let (site, id) = begin("memory_test.small");
    let mut blocks: Vec<Vec<u8>> = Vec::with_capacity(400_000);
    within(site, || blocks.extend((0..400_000).map(|number| Vec::with_capacity(20 + number % 180))));
    let live = memory::live_bytes(Some(id)) as f64;
    let real: usize = blocks.iter().map(Vec::capacity).sum();
    // 670 samples: 1/sqrt(n) is 4 %.
    assert!((live / real as f64 - 1.0).abs() < 0.25, "{live} of {real}");
    assert!(memory::coverage().samples > 300);
    drop(blocks);
    assert_eq!(memory::live_bytes(Some(id)), 0);
}

#[test]
fn many_threads_leave_nothing_behind() {
    let (site, id) = begin("memory_test.many");
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(100);
        for _ in 0..3 {
            let sender = sender.clone();
            scope.spawn(move || {
                within(site, || {
                    for number in 0..30_000_usize {
                        let mut block = Vec::with_capacity(100 + number * 31 % 5_000);
                        block.push(1);
                        if number % 3 == 0 {
                            block.reserve_exact(70_000);
                        }
                        if number % 2 == 0 {
                            sender.send(block).unwrap();
                        }
                    }
                });
            });
        }
        drop(sender);
        scope.spawn(move || receiver.into_iter().for_each(drop));
    });
    assert_eq!(memory::live_bytes(Some(id)), 0);
    assert_eq!(memory::coverage().samples_dropped, 0);
}

#[test]
fn a_large_allocation_in_a_world_is_told_once() {
    let (site, id) = begin("memory_test.large");
    within(site, || drop(vec![0_u8; 900 << 10]));
    assert_eq!(memory::take_large_allocation(), None, "outside of every world it is nobody's business");
    {
        let _in_world = thread::enter_world(KindNumber::NONE, 7, 100);
        within(site, || {
            drop(vec![0_u8; 200 << 10]);
            drop(vec![0_u8; 300 << 10]);
            drop(vec![0_u8; 700 << 10]);
            drop(vec![0_u8; 500 << 10]);
        });
    }
    let large = memory::take_large_allocation().unwrap();
    assert_eq!((large.bytes, large.site, large.world), (700 << 10, Some(id), 7));
    assert_eq!(thread::current_index(), Some(large.thread));
    assert_eq!(memory::take_large_allocation(), None);
    assert_eq!(memory::coverage().large_allocations, 3);
}

#[test]
fn allocations_are_charged_to_the_thread_and_watching_allocates_nothing() {
    let (site, _) = begin("memory_test.charged");
    within(site, || drop(vec![0_u8; 10]));
    let index = thread::current_index().unwrap() as usize;
    let cells = thread::all()[index];
    let (counts, charged, charged_bytes) = (thread_counts(), cells.allocations_and_frees(), cells.allocated_bytes());
    within(site, || (0..5_000).for_each(|_| drop(Vec::<u8>::with_capacity(1_000))));
    let made = thread_counts() - counts;
    let (allocations, frees) = cells.allocations_and_frees();
    assert_eq!((made.allocations, made.frees, made.bytes), (5_000, 5_000, 5_000_000));
    assert_eq!((allocations - charged.0, frees - charged.1), (5_000, 5_000));
    assert_eq!(cells.allocated_bytes() - charged_bytes, 5_000_000);
}

/// The only test that notes, since there is one history.
#[test]
fn a_scope_that_keeps_a_little_each_second_is_named() {
    let (leaking, leaking_id) = begin("memory_test.leaking");
    let (steady, steady_id) = begin("memory_test.steady");
    let mut kept = Vec::with_capacity(90 * 2_000);
    let mut found = None;
    for second in 0..90_u64 {
        within(leaking, || (0..2_000).for_each(|_| kept.push(Vec::<u8>::with_capacity(300))));
        within(steady, || drop((0..5_000).map(|_| Box::new([0_u8; 400])).collect::<Vec<_>>()));
        assert!(memory::note(second * 1_000_000_000, 0));
        found = found.or(memory::leak(60, 8_000_000).map(|leak| (second, leak)));
    }
    let (second, leak) = found.expect("600 KB/s are a leak");
    assert_eq!(leak.site, Some(leaking_id));
    assert!((50..70).contains(&second), "seen after {second} s");
    // 500 samples in the window: 1/sqrt(n) is 4.5 %, and five times that is out of reach of chance.
    assert!((460_000..740_000).contains(&leak.bytes_per_s), "{leak:?}");

    let view = memory::view();
    assert_eq!(view.at_ns.len(), 90);
    let series = |id| view.by_site.iter().find(|live| live.site == Some(id)).map(|live| live.bytes.clone());
    assert!(series(leaking_id).unwrap()[89] > 40_000_000);
    assert!(series(steady_id).is_none_or(|bytes| bytes.iter().all(|&bytes| bytes < 1_000_000)));
    drop(kept);
}
