//! Lowering threads by their name, in a process of its own: it cannot be undone.

use std::sync::mpsc::channel;

use throng_platform::threads::{Priority, lower_threads, spawn_named};

/// As the kernel tells it for the calling thread: field 19 of its `stat`, counted from behind the name.
fn nice_of_this_thread() -> i32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let behind_name = &stat[stat.rfind(')').unwrap() + 2..];
    behind_name.split(' ').nth(16).unwrap().parse().unwrap()
}

#[test]
fn threads_of_the_name_become_low_and_the_others_stay() {
    let before = nice_of_this_thread();
    let threads = ["worker-0", "recorder"].map(|name| {
        let (begin, begun) = channel::<()>();
        let look = move || {
            begun.recv().unwrap();
            nice_of_this_thread()
        };
        (begin, spawn_named(name, Priority::Normal, look).unwrap())
    });
    // A thread names itself: until both have, there is nothing to find.
    std::thread::sleep(std::time::Duration::from_millis(200));
    lower_threads("worker-").unwrap();
    let [worker, recorder] = threads.map(|(begin, thread)| {
        begin.send(()).unwrap();
        thread.join().unwrap()
    });
    assert!(worker >= 10.max(before));
    assert_eq!((recorder, nice_of_this_thread()), (before, before));
}
