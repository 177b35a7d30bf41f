//! The promise: work that is done in `hand_memory_back` leaves no memory behind. In a process of its own, since others
//! change the same switch of the allocator.

use throng_platform::allocator::{CountingAllocator, hand_memory_back, keep_memory};
use throng_platform::process::rss_bytes;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Grows a list as who reads records does, and a thousand small ones; in all some 100 MB at its peak.
fn work() -> usize {
    let mut list = Vec::new();
    (0..4_000_000_u64).for_each(|number| list.push(number));
    let small: Vec<Vec<u8>> = (0..1_000).map(|number| vec![1; 10_000 + number]).collect();
    std::hint::black_box((&list, &small));
    list.len() + small.len()
}

#[test]
fn what_work_took_goes_back_to_the_kernel() {
    keep_memory();
    let before = rss_bytes();
    hand_memory_back(work);
    let after_handing_back = rss_bytes().saturating_sub(before);
    work();
    let after_keeping = rss_bytes().saturating_sub(before);
    // Memory is kept again, also when the work panicked.
    std::panic::catch_unwind(|| hand_memory_back(|| panic!("on purpose"))).unwrap_err();
    work();
    let kept_again = rss_bytes().saturating_sub(before);
    assert!(after_keeping > 40 << 20, "{after_keeping} bytes kept: the work is too small for this test");
    assert!(kept_again > after_keeping / 2, "{kept_again} bytes kept after a panic, {after_keeping} before");
    assert!(
        after_handing_back < after_keeping / 4,
        "{after_handing_back} bytes left, {after_keeping} when they are kept"
    );
}
