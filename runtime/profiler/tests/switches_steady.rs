//! A steady frame's look at the switches allocates nothing, whatever the source.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use throng_platform::allocator::{CountingAllocator, thread_counts};
use throng_platform::ticks::monotonic_ns;
use throng_profiler::switches::Switches;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_steady_frame_allocates_nothing() {
    let stop = AtomicBool::new(false);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (stop, tell) = (&stop, tell.clone());
            scope.spawn(move || {
                let link = std::fs::read_link("/proc/thread-self").unwrap();
                tell.send(link.file_name().unwrap().to_str().unwrap().parse::<u32>().unwrap()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_micros(100));
                }
            });
        }
        let mut switches = Switches::new(true);
        switches.follow(0, 0);
        (1..4).for_each(|index| assert!(switches.follow(index, told.recv().unwrap())));
        let (mut out, mut waited) = (Vec::with_capacity(4), 0);
        let before = thread_counts();
        for _ in 0..20 {
            let begin_ns = monotonic_ns();
            switches.begin(begin_ns);
            std::thread::sleep(Duration::from_millis(2));
            switches.frame(begin_ns, monotonic_ns(), &mut out);
            waited += switches.longest_waits().len();
        }
        assert_eq!((thread_counts() - before).allocations, 0);
        assert!(out.len() == 4 && waited > 0);
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_counter_counts() {
    let before = thread_counts();
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!((thread_counts() - before).allocations, 1);
}
