//! R22: a world whose load is the end of its server does not make a crash loop. The server after the second death parks it,
//! and all others are there.
//!
//! This program starts itself again as a server with a store in a folder; one of its worlds has a record that is the end
//! of whoever loads it. It is started again when it dies, as by a supervisor, and killed when it hangs in its start.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use bevy_ecs::prelude::*;
use throng::{
    Server, lifecycle::NewWorld, net::protocol::PrivateKey, parking::ParkedFor, prelude::*, settings::Settings,
};
use throng_pack::{Pack, envelope};
use throng_persistence::{Commit, Embedded, Key, Store, Writer, WriterSettings};
use throng_platform::signals::install_stop;

const CHILD: &str = "killers::child_that_loads_its_worlds";
const FOLDER: &str = "THRONG_KILLER_FOLDER";
/// In which a server has made its worlds, or hangs.
const START_MAX: Duration = Duration::from_secs(8);
/// In which it has ticked, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a record does to whoever loads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "killers.end")]
enum End {
    None,
    Panic,
    Abort,
    StackOverflow,
    Segv,
    Hang,
}

const ENDS: [End; 5] = [End::Panic, End::Abort, End::StackOverflow, End::Segv, End::Hang];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Resource, Pack)]
#[pack(name = "killers.house")]
struct House {
    number: u64,
    end: End,
}

impl End {
    fn come(self) {
        match self {
            End::None => {}
            End::Panic => panic!("a bug in a load"),
            End::Abort => std::process::abort(),
            End::StackOverflow => _ = deeper(1),
            // The first is taken by the standard library, which looks whether a stack has overflowed.
            End::Segv => loop {
                nix::sys::signal::raise(nix::sys::signal::Signal::SIGSEGV).unwrap();
            },
            End::Hang => thread::sleep(Duration::from_secs(600)),
        }
    }
}

/// Farther than any stack goes.
fn deeper(depth: u64) -> u64 {
    if depth == u64::MAX {
        return depth;
    }
    let page = std::hint::black_box([depth; 512]);
    deeper(page[7] + 1) + page[9]
}

struct HouseState;

impl WorldState for HouseState {
    fn save(&self, ecs: &mut World, _: &[Entity]) -> Result<Vec<u8>, String> {
        Ok(packed(*ecs.resource::<House>()))
    }

    fn load(&self, ecs: &mut World, bytes: &[u8]) -> Result<(), String> {
        let house: House = envelope::read(bytes).map_err(|error| error.to_string())?;
        house.end.come();
        ecs.insert_resource(house);
        Ok(())
    }
}

fn packed(house: House) -> Vec<u8> {
    let mut bytes = Vec::new();
    envelope::write(&house, &mut bytes).unwrap();
    bytes
}

struct Street;

impl WorldKind for Street {
    fn name(&self) -> &str {
        "house"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(House { number: 0, end: End::None }).save_world(HouseState);
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

/// Not a test by itself: what the tests below start.
#[test]
#[ignore = "the other tests of this file start it"]
fn child_that_loads_its_worlds() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else { return };
    let houses: u64 = fs::read_to_string(folder.join("houses")).unwrap().parse().unwrap();
    let settings = Settings::load(&folder.join("throng.toml")).unwrap();
    let mut server = Server::bind(&settings, Protocol::new().schema(), PrivateKey::new([9; 32])).unwrap();
    let kind = server.add_kind(Street).unwrap();
    for number in 1..=houses {
        server.create_world_as(NewWorld::new(kind, number).saved_as(number)).unwrap();
    }
    let there: Vec<_> = server.worlds().map(|(id, _, seed)| (id, seed)).collect();
    for (id, number) in &there {
        assert_eq!(server.world_mut(*id).unwrap().ecs().resource::<House>().number, *number, "it was loaded");
    }
    println!("made {}", there.len());
    let published = server.control().published();
    let told = thread::spawn(move || {
        while !published.has_ticked() || published.parked().is_empty() {
            thread::sleep(Duration::from_millis(20));
        }
        let parked = published.parked();
        let killers: Vec<_> =
            parked.iter().filter(|plan| plan.why == ParkedFor::Load).filter_map(|it| it.seed).collect();
        // After a second in which all have ticked.
        thread::sleep(Duration::from_millis(1_500));
        println!("there {} parked {killers:?} of {}", there.len(), parked.len());
    });
    server.run(&install_stop(), &mut |_| {}).unwrap();
    told.join().unwrap();
}

/// A folder with a server's settings and its houses, one of which is the end.
fn street(name: &str, houses: u64, killer: u64, end: End) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("killers-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let text = "[server]\naddress = \"127.0.0.1:0\"\nadmin_address = \"off\"\nhost_heartbeat = false\nworkers = 2\n";
    fs::write(folder.join("throng.toml"), format!("{text}[saves]\nperiod_s = 3600\n")).unwrap();
    fs::write(folder.join("houses"), houses.to_string()).unwrap();
    let store = Embedded::open(&folder.join("saves.redb")).unwrap();
    let mut writer = Writer::start(Box::new(store), WriterSettings::default()).unwrap();
    let mut commit = Commit::new();
    for number in 1..=houses {
        let end = if number == killer { end } else { End::None };
        // As the server writes it: format, the kind's name, its state.
        let record = [&[1, 5][..], b"house", &packed(House { number, end })].concat();
        commit.put_bytes(Key::world(number), record);
    }
    writer.submit(commit).unwrap();
    assert!(writer.finish().iter().all(|ack| ack.outcome.is_ok()));
    folder
}

/// Killed when dropped.
struct Life(Child);

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the server until it is there. Returns what it says, and how often it died before.
fn start_again_and_again(folder: &Path) -> (String, u32) {
    for deaths in 0..5 {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([CHILD, "--exact", "--ignored", "--nocapture"]).env(FOLDER, folder);
        let mut life = Life(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
        let mut lines = BufReader::new(life.0.stdout.take().unwrap());
        let (say, said) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
                if let Some(at) = line.find("there ").or(line.find("made ")) {
                    let _ = say.send(line[at..].trim().to_owned());
                }
                line.clear();
            }
        });
        // It dies, and its end of the pipe with it; or it hangs, and is ended here.
        if said.recv_timeout(START_MAX).is_ok() {
            return (said.recv_timeout(PATIENCE).expect("it has made its worlds, and ticks"), deaths);
        }
    }
    panic!("it dies again and again");
}

#[track_caller]
fn comes_up_without(name: &str, houses: u64, killer: u64, end: End) {
    let folder = street(name, houses, killer, end);
    let (said, deaths) = start_again_and_again(&folder);
    assert_eq!(said, format!("there {} parked [{killer}] of 1", houses - 1), "{end:?}");
    // A panic is caught where it is; the rest take their process along.
    assert_eq!(deaths, if end == End::Panic { 0 } else { 2 }, "{end:?}");
    let record = Embedded::open(&folder.join("saves.redb")).unwrap().reader().get(Key::world(killer)).unwrap().unwrap();
    assert!(record.value.ends_with(&packed(House { number: killer, end })), "what is saved of it stays");
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn r22_a_world_whose_load_ends_its_server_is_parked_after_two() {
    for (number, end) in ENDS.into_iter().enumerate() {
        comes_up_without(&format!("few-{number}"), 4, 1 + number as u64 % 4, end);
    }
}

#[test]
#[ignore = "full form: minutes"]
fn r22_a_hundred_stores_with_a_killer_each_come_up() {
    for store in 0..100 {
        comes_up_without("hundred", 20, 1 + store * 7 % 20, ENDS[store as usize % ENDS.len()]);
        println!("{} of 100 stores", store + 1);
    }
}
