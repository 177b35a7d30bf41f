//! `throng console` before a person: a pseudo-terminal, at which keys are pressed and the screen is read.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use nix::pty::{Winsize, openpty};

use crate::child::{Server, folder, throng, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);

const TAB: &str = "\t";
const ENTER: &str = "\r";
const UP: &str = "\x1b[A";
const END_OF_INPUT: &str = "\x04";

/// A console at a terminal. Killed when dropped.
struct AtTerminal {
    child: Child,
    keys: File,
    screen: Arc<Mutex<Vec<u8>>>,
    /// Bytes of the screen that were waited for.
    seen: usize,
}

impl AtTerminal {
    fn open(server: &Server, state: &Path) -> Self {
        let size = Winsize { ws_row: 40, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = openpty(&size, None).expect("the host has pseudo-terminals");
        let end = || Stdio::from(terminal.slave.try_clone().expect("a descriptor is left"));
        let address = server.admin_address.to_string();
        let mut command = throng(&["console", "--connect", &address]);
        command.env("TERM", "xterm").env("XDG_STATE_HOME", state).stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().expect("it starts");
        drop((command, terminal.slave));
        let keys = File::from(terminal.master);
        let screen = Arc::<Mutex<Vec<u8>>>::default();
        let (mut output, kept) = (keys.try_clone().expect("a descriptor is left"), screen.clone());
        std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            // It fails when the last end of the other side is closed.
            while let Ok(length @ 1..) = output.read(&mut piece) {
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..length]);
            }
        });
        let mut at = Self { child, keys, screen, seen: 0 };
        at.wait_for(&format!("{address}> "));
        at
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("somebody reads keys");
    }

    /// Until the screen shows this, after what was waited for before.
    fn wait_for(&mut self, words: &str) {
        let find = || {
            let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
            let rest = screen.get(self.seen..).unwrap_or_default();
            let at = rest.windows(words.len()).position(|shown| shown == words.as_bytes())?;
            Some(self.seen + at + words.len())
        };
        match wait_until(PATIENCE, find) {
            Some(seen) => self.seen = seen,
            None => {
                let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
                panic!("{words:?} is not on the screen:\n{:?}", String::from_utf8_lossy(&screen[self.seen..]));
            }
        }
    }

    fn leave(mut self) {
        // Between two lines the terminal itself would take the key.
        self.wait_for("> ");
        self.press(END_OF_INPUT);
        let status = wait_until(PATIENCE, || self.child.try_wait().expect("a child of ours"));
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Promise: who types at a live server may press Tab, is told what was meant, and finds yesterday's lines.
#[test]
fn a_person_at_a_terminal_completes_corrects_and_finds_lines_again() {
    let server = Server::start(&["--players", "2", "--npcs", "0"]);
    let state = folder("terminal-state");
    let mut console = AtTerminal::open(&server, &state);
    console.press(&format!("player.l{TAB}"));
    console.wait_for("player.list");
    console.press(ENTER);
    console.wait_for("player");
    console.wait_for("> ");
    console.press(&format!("help world.l{TAB}{ENTER}"));
    console.wait_for("all worlds: kind, rate");
    console.press(&format!("wrold.list{ENTER}"));
    console.wait_for("did you mean `world.list`?");
    console.press(&format!("{UP}{UP}"));
    console.wait_for("help world.list");
    console.press(ENTER);
    console.wait_for("all worlds: kind, rate");
    // A line that is thrown away is not carried out.
    console.wait_for("> ");
    console.press("nonsense\x03");
    console.leave();

    let mut console = AtTerminal::open(&server, &state);
    console.press(&format!("{UP}{ENTER}"));
    console.wait_for("all worlds: kind, rate");
    console.leave();
    assert!(server.stop().status.success());
}

/// Promise: what is piped in is carried out as before, without a word that is for people.
#[test]
fn lines_from_a_pipe_are_carried_out_without_a_prompt() {
    let server = Server::start(&["--players", "2", "--npcs", "0"]);
    let (reader, mut writer) = std::io::pipe().expect("a descriptor is left");
    let mut command = throng(&["console", "--connect", &server.admin_address.to_string()]);
    command.stdin(Stdio::from(OwnedFd::from(reader)));
    writer.write_all(b"help world.list\n\nhelp help\n").expect("a pipe has room");
    drop(writer);
    let finished = crate::child::finish(command, PATIENCE);
    assert!(finished.status.success(), "{}", finished.stderr);
    assert!(
        finished.stdout.starts_with("world.list\n") && finished.stdout.contains("help [COMMAND]\n"),
        "{}",
        finished.stdout
    );
    assert!(!finished.stdout.contains('>'), "{}", finished.stdout);
    assert!(server.stop().status.success());
}
