//! What happens at the maxima: more sites and more threads than are recorded. In a process of its own, which is then
//! full.

use throng_profiler::pool::PoolSettings;
use throng_profiler::site::SITES_MAX;
use throng_profiler::thread::{self, THREADS_MAX, ThreadClass};
use throng_profiler::{Scope, scope, site, start_recording};

#[test]
fn what_does_not_fit_is_left_out_and_does_no_harm() {
    start_recording(PoolSettings { blocks_max: 64, reserve: 4, history: u64::MAX });
    scope!("limits.known");
    let me = thread::current_index().expect("the scope has registered this thread") as usize;
    while site::all().len() < SITES_MAX {
        let name = format!("limits.made_{}", site::all().len());
        drop(Scope::begin(site::intern(&name, None)));
    }
    let before = thread::all()[me].scopes();
    {
        scope!("limits.one_too_many");
        assert_eq!(thread::all()[me].open_scopes().count(), 1, "only the one that is known");
    }
    assert_eq!(thread::all()[me].scopes(), before);
    assert_eq!(site::all().len(), SITES_MAX);

    let record = || {
        thread::register(ThreadClass::Other);
        scope!("limits.known");
        thread::current_index()
    };
    let mut last = None;
    for _ in 0..=THREADS_MAX {
        last = std::thread::spawn(record).join().unwrap();
    }
    assert_eq!(last, None, "the last thread found no place");
    assert_eq!(thread::count(), THREADS_MAX);
}
