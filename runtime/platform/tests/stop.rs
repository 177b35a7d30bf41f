//! Promise: SIGTERM is never missed, whichever thread it is given to and however long the others sleep.
//! One test in a process of its own, because signals are the whole process's.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use throng_platform::poll::wait_readable;
use throng_platform::signals::install_stop;
use throng_platform::time::Nanos;

const LONG: Option<Nanos> = Some(Nanos::from_secs(600));

#[test]
fn sigterm_sets_the_flag_and_wakes_every_sleeper_once() {
    let flag = install_stop();
    assert!(!flag.requested());
    let sleepers: Vec<_> = (0..3).map(|_| std::thread::spawn(|| wait_readable(&[], LONG).unwrap())).collect();

    raise(Signal::SIGTERM).unwrap();

    assert!(flag.requested());
    assert!(install_stop().requested());
    for sleeper in sleepers {
        assert!(!sleeper.join().unwrap(), "woken, with nothing to read");
    }
    assert!(!wait_readable(&[], LONG).unwrap(), "this thread is told as well");

    // Told once, it sleeps as before: only the datagram ends this wait.
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = receiver.local_addr().unwrap();
    let sender = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", to).unwrap();
    });
    assert!(wait_readable(&[receiver.as_fd()], LONG).unwrap());
    sender.join().unwrap();
}
