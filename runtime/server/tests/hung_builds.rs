//! The promise (R24): a build that never returns is named while it hangs, other kinds' worlds are made as long as a thread is left
//! for that, and a server that can make no world any more ends itself, for another one to take its place.
//!
//! This program starts itself again as a server, whose worlds of one kind are built without end.

use std::{
    env,
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use throng::{
    lifecycle::NewWorld,
    prelude::*,
    server::Server,
    settings::Settings,
    testing::{self, TestKind},
    watchdog::StackSource,
};
use throng_net::protocol::PrivateKey;
use throng_platform::signals::install_stop;
use throng_replication::SchemaBuilder;

const CHILD: &str = "child_that_builds_without_end";
const IS_CHILD: &str = "THRONG_HUNG_BUILDS";
const PATIENCE: Duration = Duration::from_secs(60);
const SIGABRT: i32 = 6;

/// Says what it is told.
struct Says;

impl StackSource for Says {
    fn stack_of(&mut self, _: u32) -> Result<Vec<String>, String> {
        Err("none are wanted".into())
    }

    fn last_words(&mut self, why: &str, details: &str) {
        println!("last words: {why}: {details}");
    }
}

fn loops(_: &mut WorldBuilder) {
    loop {
        std::hint::spin_loop();
    }
}

/// Not a test by itself: what the test below starts.
#[test]
#[ignore = "the other test of this file starts it"]
fn child_that_builds_without_end() {
    if env::var_os(IS_CHILD).is_none() {
        return;
    }
    let text = "[server]\naddress = \"127.0.0.1:0\"\nadmin_address = \"off\"\nhost_heartbeat = false\nworkers = 1\n\
                all_workers_stuck_s_max = 2\ntoken_journal = \"off\"\n[long_tasks]\nthreads = 2\nmake_within_ms = 500\n";
    let settings = Settings::parse("throng.toml", text).unwrap();
    let mut server = Server::bind(&settings, SchemaBuilder::new().build(), PrivateKey::new([9; 32])).unwrap();
    let empty = server.add_kind(testing::empty()).unwrap();
    let endless = server.add_kind(TestKind::new("endless", Hertz(20), loops)).unwrap();
    server.create_world(empty, 0).unwrap();
    server.start_watchdog(&settings.server, Some(|| Box::new(Says) as Box<dyn StackSource>)).unwrap();
    let (control, published) = (server.control(), server.control().published());
    thread::spawn(move || {
        let _hangs = control.create_world(NewWorld::new(endless, 1));
        while published.long_tasks_stuck() == 0 {
            thread::sleep(Duration::from_millis(10));
        }
        let other = control.create_world(NewWorld::new(empty, 2)).wait(PATIENCE);
        println!("beside it: {}", other.expect("a thread is left").is_ok());
        // It waits for the kind, and takes the other thread.
        let _waits = control.create_world(NewWorld::new(endless, 3));
        thread::sleep(PATIENCE);
        println!("it lives on");
        std::process::exit(1);
    });
    server.run(&install_stop(), &mut |_| {}).unwrap();
}

/// Killed when dropped.
struct Life(Child);

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_that_can_make_no_world_any_more_ends_and_says_why() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([CHILD, "--exact", "--ignored", "--nocapture"]).env(IS_CHILD, "1");
    let mut life = Life(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let lines = BufReader::new(life.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    // Until it is dead: its end of the pipe goes with it.
    let said: Vec<String> = lines.collect();
    let status = life.0.wait().unwrap();
    assert_eq!(status.signal(), Some(SIGABRT), "{said:#?}");
    let find = |words: &str| said.iter().find_map(|line| Some(&line[line.find(words)?..]));
    assert_eq!(find("beside it: "), Some("beside it: true"), "{said:#?}");
    let last = find("last words: ").unwrap_or_else(|| panic!("{said:#?}"));
    assert!(last.starts_with("last words: all threads for long tasks were stuck: "), "{last}");
    for world in ["long task world.make of world 1 for ", "long task world.make of world 3 for "] {
        assert!(last.contains(world), "{last}");
    }
}
