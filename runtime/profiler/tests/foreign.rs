//! The promise: a process that takes the core of a thread of ours is named in the capture, with its number and with
//! what it had of the core, to the switch.
//!
//! In a process of its own: there is one recorder per process.

use std::os::unix::fs::symlink;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use throng_capture::model::{Owner, SwitchSource, TriggerKind};
use throng_capture::{format, story};
use throng_platform::sched::{pin_this_thread, pinnable_cores};
use throng_platform::testing::not_permitted;
use throng_profiler::rules::Rules;
use throng_profiler::thread::{ThreadClass, register};
use throng_profiler::{Recorder, RecorderSettings, scope};

/// What nothing else on the host is called.
const THIEF: &str = "core-thief";

/// A process that wants the core all the time, and ends with the test.
struct Thief(Child);

impl Drop for Thief {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_takes_the_core_is_named_with_what_it_had_of_it() {
    let folder = std::env::temp_dir().join(format!("throng-foreign-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut rules = Rules::default();
    TriggerKind::ALL.into_iter().for_each(|kind| rules.trigger_mut(kind).is_on = false);
    rules.trigger_mut(TriggerKind::Manual).pre_roll_s = 5.0;
    let settings = RecorderSettings { captures: Some(folder.clone()), rules, ..RecorderSettings::default() };
    let mut recorder = Recorder::start(settings).unwrap();
    if let (source, Some(why_not)) = recorder.switch_source() {
        assert_ne!(source, SwitchSource::CpuWide);
        return not_permitted(&why_not);
    }
    register(ThreadClass::Frame);
    let core = pinnable_cores()[0];
    pin_this_thread(core).unwrap();
    // The kernel calls a program by the name that it was found under.
    symlink("/bin/sh", folder.join(THIEF)).unwrap();
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]).arg(folder.join(THIEF)).args(["-c", "while :; do :; done"]);
    let thief = Thief(command.spawn().unwrap());
    let pid = thief.0.id();

    // Two that want one core have it in turns of a few ms.
    for frame in 0..10 {
        recorder.frame_begin(frame, 20_000_000);
        let end = Instant::now() + Duration::from_millis(100);
        while Instant::now() < end {
            scope!("test.work");
            std::hint::black_box((0..10_000).sum::<u64>());
        }
        recorder.frame_end();
    }
    drop(thief);
    let saved = recorder.control().save_now("for a test").unwrap();
    let capture = format::read(&std::fs::read(saved.path).unwrap()).unwrap();
    assert_eq!((capture.about.switches, &*capture.about.switches_why_not), (SwitchSource::CpuWide, ""));

    // Any but the first: a thread is followed from the end of its first frame on.
    let told = story::tell(&capture, &story::Options { frame: Some(5), ..story::Options::default() }).unwrap();
    let of_thief =
        told.core_waits.iter().filter_map(|wait| Some((wait, wait.had_core.iter().find(|had| had.name == THIEF)?)));
    let (wait, had) = of_thief.into_iter().next().unwrap_or_else(|| panic!("{:?}", told.core_waits));
    assert_eq!((wait.core, had.owner, had.pid), (core, Owner::Foreign, pid), "{wait:?}");
    // All of the wait is somebody's, but for the switch itself.
    let known_ms: f64 = wait.had_core.iter().map(|had| had.ran_ms).sum();
    assert!((0.95..1.001).contains(&(known_ms / wait.waited_ms)), "{wait:?}");
    let mut text = Vec::new();
    told.write_text(false, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("{THIEF} (pid {pid})")), "{text}");

    // And our own thread is known as ours.
    let own = capture.host_threads.iter().find(|thread| thread.owner == Owner::Own).expect("we had the core, too");
    assert_eq!(own.pid, std::process::id());
    let _ = std::fs::remove_dir_all(&folder);
}
