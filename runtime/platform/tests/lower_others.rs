//! Lowering all other threads of a process, in a process of its own: it cannot be undone.

use throng_platform::threads::{Priority, lower_other_threads, spawn_named};

/// As the kernel tells it for the calling thread: field 19 of its `stat`, counted from behind the name.
fn nice_of_this_thread() -> i32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let behind_name = &stat[stat.rfind(')').unwrap() + 2..];
    behind_name.split(' ').nth(16).unwrap().parse().unwrap()
}

#[test]
fn the_other_threads_become_low_and_the_caller_stays() {
    let caller = spawn_named("caller", Priority::Normal, || {
        let before = nice_of_this_thread();
        lower_other_threads().unwrap();
        (before, nice_of_this_thread())
    });
    let (before, after) = caller.unwrap().join().unwrap();
    assert_eq!(after, before);
    assert!(nice_of_this_thread() >= 10.max(before));
}
