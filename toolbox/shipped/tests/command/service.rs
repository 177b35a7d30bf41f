//! What a service manager is told: that the server is ready, how it does, that it lives, and that it ends.

use std::{
    os::unix::net::UnixDatagram,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    address::{KEY, token},
    child::{Server, folder, throng, wait_until},
    player::Player,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// The service manager's end.
struct Manager(UnixDatagram);

impl Manager {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a folder of ours");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket of ours");
        Self(socket)
    }

    /// What it is told within so long, up to a word that `is_last`.
    fn told(&self, within: Duration, is_last: impl Fn(&str) -> bool) -> Vec<String> {
        let (until, mut told) = (Instant::now() + within, Vec::new());
        let mut word = [0; 512];
        while Instant::now() < until {
            let Ok(length) = self.0.recv(&mut word) else { continue };
            told.push(String::from_utf8_lossy(&word[..length]).into_owned());
            if told.last().is_some_and(|word| is_last(word)) {
                break;
            }
        }
        told
    }
}

fn start(socket: &Path, more: &[&str]) -> Server {
    let mut command =
        throng(&["serve", "--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--crashes", "off"]);
    command.args(["--players", "2", "--npcs", "8"]).args(more);
    command.env("THRONG_PRIVATE_KEY", KEY).env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", "400000");
    Server::start_command(command)
}

#[test]
fn a_service_manager_is_told_of_a_server_from_its_first_tick_to_its_end() {
    let socket = folder("service").join("notify");
    let manager = Manager::at(&socket);
    let mut server = start(&socket, &[]);
    let told = manager.told(PATIENCE, |word| word == "READY=1");
    assert_eq!(told.iter().filter(|word| *word == "READY=1").count(), 1, "{told:?}");

    let player = Player::enter(token(server.address, 1));
    let told = manager.told(PATIENCE, |word| word.starts_with("STATUS=1 players"));
    assert!(told.last().is_some_and(|word| word.contains(" worlds awake")), "{told:?}");
    let told = manager.told(PATIENCE, |word| word == "WATCHDOG=1");
    assert!(told.iter().any(|word| word == "WATCHDOG=1"), "{told:?}");
    drop(player);

    server.signal_to_end();
    let told = manager.told(PATIENCE, |word| word == "STOPPING=1");
    assert_eq!(told.last().map(String::as_str), Some("STOPPING=1"), "{told:?}");
    assert!(server.wait().status.success());
    let rest = manager.told(Duration::from_millis(200), |_| false);
    assert!(!rest.iter().any(|word| word == "READY=1" || word == "STOPPING=1"), "each once: {rest:?}");
}

/// Promise: with a supervisor between them the service manager hears of each server that is ready, and of the end.
#[test]
fn a_supervisor_passes_on_what_its_server_says() {
    let socket = folder("service-supervised").join("notify");
    let manager = Manager::at(&socket);
    let mut server = start(&socket, &["--supervised"]);
    let told = manager.told(PATIENCE, |word| word == "READY=1");
    assert_eq!(told, ["READY=1"]);
    server.signal_to_end();
    assert!(server.wait().status.success());
}

/// Promise: a server whose process is stopped says nothing, so that its service manager ends it.
#[test]
fn a_server_that_stands_still_does_not_say_that_it_lives() {
    use crate::child::Signal;
    let socket = folder("service-stopped").join("notify");
    let manager = Manager::at(&socket);
    let server = start(&socket, &[]);
    let told = manager.told(PATIENCE, |word| word == "WATCHDOG=1");
    assert!(!told.is_empty());
    server.signal(Signal::SIGSTOP);
    let stat = format!("/proc/{}/stat", server.pid());
    let is_stopped = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T ")).then_some(());
    assert!(wait_until(PATIENCE, is_stopped).is_some());
    manager.told(Duration::from_millis(50), |_| false);
    assert_eq!(manager.told(Duration::from_secs(2), |_| false), [] as [String; 0]);
    server.signal(Signal::SIGCONT);
    assert!(!manager.told(PATIENCE, |word| word == "WATCHDOG=1").is_empty());
    assert!(server.stop().status.success());
}
