//! Loads: loops that do one thing, and count what they did.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use throng_platform::process::thread_cpu_time;
use throng_platform::signals::StopFlag;
use throng_platform::threads::{Priority, spawn_named};
use throng_platform::ticks::monotonic_ns;
use throng_platform::time::Nanos;

use super::HostError;

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loop {
    /// Nothing: what others use.
    Idle,
    Busy,
    Disk,
    Network,
}

impl Loop {
    pub const ALL: [Loop; 4] = [Loop::Idle, Loop::Busy, Loop::Disk, Loop::Network];

    pub fn name(self) -> &'static str {
        match self {
            Loop::Idle => "idle",
            Loop::Busy => "busy",
            Loop::Disk => "disk",
            Loop::Network => "network",
        }
    }
}

/// What a load says of itself.
pub(super) struct Counted {
    /// Processor time of its threads, by their own clocks.
    pub cpu: Nanos,
    /// What it did, with units in the names.
    pub work: BTreeMap<&'static str, f64>,
}

/// A load that is ready to begin.
pub(super) struct Ready {
    threads: Vec<Work>,
}

/// What one thread does until it is over.
type Work = Box<dyn FnOnce(&AtomicBool) -> Sums + Send>;

/// What one thread did.
#[derive(Default)]
struct Sums {
    cpu: Nanos,
    work: Vec<(&'static str, f64)>,
}

pub(super) fn prepare(kind: Loop, threads: u32, folder: &Path) -> Result<Ready, HostError> {
    let threads: Vec<Work> = match kind {
        Loop::Idle => Vec::new(),
        Loop::Busy => (0..threads).map(|_| Box::new(compute) as Work).collect(),
        Loop::Disk => {
            let file = nameless_file(folder);
            let file = file.map_err(|cause| HostError::Folder { folder: folder.to_owned(), cause })?;
            vec![Box::new(move |is_over: &AtomicBool| write(&file, is_over))]
        }
        Loop::Network => {
            let (sender, receiver) = pair().map_err(HostError::Socket)?;
            vec![
                Box::new(move |is_over: &AtomicBool| send(&sender, is_over)),
                Box::new(move |is_over: &AtomicBool| receive(&receiver, is_over)),
            ]
        }
    };
    Ok(Ready { threads })
}

/// How often it is looked whether somebody wants the end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Ready {
    /// Until the time is over, or `stop` is requested.
    pub fn run(self, length: Nanos, stop: &StopFlag) -> Result<Counted, HostError> {
        let is_over = std::sync::Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for work in self.threads {
            let of_thread = is_over.clone();
            let counted = move || {
                let before = thread_cpu_time();
                let sums = work(&of_thread);
                Sums { cpu: thread_cpu_time() - before, ..sums }
            };
            match spawn_named("load", Priority::Normal, counted) {
                Ok(thread) => threads.push(thread),
                Err(cause) => {
                    // Those that run are not waited for: they end by themselves.
                    is_over.store(true, Ordering::Relaxed);
                    return Err(HostError::Thread(cause));
                }
            }
        }
        let begin_ns = monotonic_ns();
        while !stop.requested() && monotonic_ns() < begin_ns + length.0 {
            std::thread::sleep(LOOK_EVERY);
        }
        is_over.store(true, Ordering::Relaxed);
        let seconds = Nanos(monotonic_ns() - begin_ns).as_secs_f64();
        let mut counted = Counted { cpu: Nanos::ZERO, work: BTreeMap::new() };
        for thread in threads {
            let sums = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            counted.cpu += sums.cpu;
            for (name, value) in sums.work {
                *counted.work.entry(name).or_default() += value / seconds;
            }
        }
        Ok(counted)
    }
}

fn compute(is_over: &AtomicBool) -> Sums {
    let mut turns = 0_u64;
    let mut busy = 1_u64;
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..1_000 {
            busy = black_box(busy.wrapping_mul(6_364_136_223_846_793_005));
        }
        turns += 1;
    }
    Sums { work: vec![("thousand_multiplications_per_s", turns as f64)], ..Sums::default() }
}

/// Of one writing, which is waited for: large enough that a disk is busy, small enough that one end is soon.
const WRITE_BYTES: usize = 256 << 10;

/// The file grows no further.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Gone with this process, whatever ends it.
fn nameless_file(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!("throng-host-{}.trial", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

fn write(file: &File, is_over: &AtomicBool) -> Sums {
    let bytes = vec![0x5a_u8; WRITE_BYTES];
    let (mut writes, mut at) = (0_u64, 0);
    while !is_over.load(Ordering::Relaxed) {
        // A disk that is full is written over from the begin.
        if file.write_all_at(&bytes, at).and_then(|()| file.sync_data()).is_ok() {
            writes += 1;
        }
        at = (at + WRITE_BYTES as u64) % FILE_BYTES_MAX;
    }
    let written = (writes * WRITE_BYTES as u64) as f64;
    Sums { work: vec![("writes_per_s", writes as f64), ("written_bytes_per_s", written)], ..Sums::default() }
}

/// Of a datagram: what fits into one packet on most ways.
const DATAGRAM_BYTES: usize = 1_200;

fn pair() -> io::Result<(UdpSocket, UdpSocket)> {
    let (sender, receiver) = (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
    sender.connect(receiver.local_addr()?)?;
    receiver.set_read_timeout(Some(LOOK_EVERY))?;
    Ok((sender, receiver))
}

fn send(socket: &UdpSocket, is_over: &AtomicBool) -> Sums {
    let datagram = [0x5a; DATAGRAM_BYTES];
    let mut sent = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        sent += u64::from(socket.send(&datagram).is_ok());
    }
    Sums { work: vec![("sent_packets_per_s", sent as f64)], ..Sums::default() }
}

fn receive(socket: &UdpSocket, is_over: &AtomicBool) -> Sums {
    let mut datagram = [0; DATAGRAM_BYTES];
    let mut received = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        match socket.recv(&mut datagram) {
            Ok(_) => received += 1,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            // It says that nobody listened for a moment.
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
    Sums { work: vec![("received_packets_per_s", received as f64)], ..Sums::default() }
}
