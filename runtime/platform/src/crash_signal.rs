//! What a crashing thread itself does: as little as can be.
//!
//! The signal handler below the crash reports of `throng-crash`, which starts the processes and threads that it speaks
//! to: the **monitor**, another process at the other end of a line, and the **state writer**, a thread that tells what
//! the process was doing.
//!
//! It runs inside the signal, on an alternate stack of 16 KiB that each thread got when it was started (`crash-handler`
//! sees to that, for threads of C++ libraries as well), so it works when the thread's own stack is used up. The heap
//! may be broken and any lock may be held for ever, so everything here is loads, stores and a few system calls: wake
//! the state writer, hand the thread's registers to the monitor, wait for both with a limit, die.
//!
//! A second thread that crashes meanwhile waits in the handler, and ends with the process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst};

use crash_handler::{CrashContext, CrashEventResult, CrashHandler};

/// On the line: the process ends in good order.
pub const GOODBYE: u8 = b'G';
/// On the line: a thread has crashed. Then follow the time (Unix seconds, 8 bytes as the machine has them) and its
/// [`CrashContext`].
pub const CRASH: u8 = b'C';
/// Bytes of a [`CRASH`] in front of the context.
pub const CRASH_HEAD_BYTES: usize = 9;

/// Where the process dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashSite {
    pub signal: i32,
    /// The thread that got the signal, as the kernel numbers it.
    pub tid: u32,
    pub died_at_unix_s: u64,
}

/// How long a dying process waits for its state writer to say what all threads were doing. The writer takes a few
/// milliseconds; on a host whose cores are taken it is first to get one. Only a writer that hangs uses all of it.
const STATE_WAIT_MS: u64 = 500;
/// How long it waits, from the crash on, for what the state writer attaches.
const ATTACH_WAIT_MS: u64 = 1_500;
/// How long it waits, from the crash on, for the monitor to have read it. Well below the 3 s in which a report must be
/// there.
const MONITOR_WAIT_MS: u64 = 2_500;

/// Address space that is given back at a crash, so that a state writer whose process ran into a limit of memory still
/// has some. Never touched, so it takes no memory before.
const BALLAST_BYTES: usize = 64 << 20;

/// What handler and state writer tell each other. One in the process, since a signal handler can only find statics.
///
/// Sequentially consistent throughout: it is used a few times a second, and a crash is no time for doubts about order.
pub struct Board {
    /// The server's end of the line to the monitor; -1 when none is installed. Written by install and its end.
    line: AtomicI32,
    /// An eventfd that wakes the state writer; -1 likewise.
    wake: AtomicI32,
    /// The state writer's thread, which cannot be waited for if it is the one that crashed. Written by the state writer
    /// at its start.
    state_writer_tid: AtomicU32,
    ballast: AtomicPtr<libc::c_void>,
    /// The crash, written by the handler before it wakes the state writer.
    is_crashed: AtomicBool,
    signal: AtomicI32,
    tid: AtomicU32,
    died_at_unix_s: AtomicU64,
    /// How far the state writer is, written by it.
    progress: AtomicU32,
    /// Whether the monitor was reached, written by the handler.
    monitor: AtomicU32,
}

const STATE_WRITTEN: u32 = 1;
const ATTACHED: u32 = 2;

const MONITOR_REACHED: u32 = 1;
const MONITOR_LOST: u32 = 2;

pub static BOARD: Board = Board {
    line: AtomicI32::new(-1),
    wake: AtomicI32::new(-1),
    state_writer_tid: AtomicU32::new(0),
    ballast: AtomicPtr::new(ptr::null_mut()),
    is_crashed: AtomicBool::new(false),
    signal: AtomicI32::new(0),
    tid: AtomicU32::new(0),
    died_at_unix_s: AtomicU64::new(0),
    progress: AtomicU32::new(0),
    monitor: AtomicU32::new(0),
};

impl Board {
    pub fn set_state_writer(&self, tid: u32) {
        self.state_writer_tid.store(tid, SeqCst);
    }

    /// The crash, once there is one.
    pub fn crash(&self) -> Option<CrashSite> {
        self.is_crashed.load(SeqCst).then(|| CrashSite {
            signal: self.signal.load(SeqCst),
            tid: self.tid.load(SeqCst),
            died_at_unix_s: self.died_at_unix_s.load(SeqCst),
        })
    }

    pub fn state_is_written(&self) {
        self.progress.store(STATE_WRITTEN, SeqCst);
    }

    pub fn is_attached(&self) {
        self.progress.store(ATTACHED, SeqCst);
    }

    /// Whether the monitor has the crash; `None` while the handler is about to find out.
    pub fn monitor_has_it(&self) -> Option<bool> {
        match self.monitor.load(SeqCst) {
            MONITOR_REACHED => Some(true),
            MONITOR_LOST => Some(false),
            _ => None,
        }
    }
}

/// The right to install the one handler of this process; given back when dropped.
pub struct Claim(());

static IS_CLAIMED: AtomicBool = AtomicBool::new(false);

impl Claim {
    pub fn new() -> Option<Self> {
        (!IS_CLAIMED.swap(true, SeqCst)).then_some(Self(()))
    }

    /// From now on crashes wake the state writer by `wake`, an eventfd that must live as long as what is returned, and
    /// go to the monitor at the other end of `line`. [`io::ErrorKind::AlreadyExists`] if somebody else has taken the
    /// signals.
    pub fn install(self, line: OwnedFd, wake: RawFd, monitor_pid: u32) -> io::Result<Installed> {
        BOARD.line.store(line.as_raw_fd(), SeqCst);
        BOARD.wake.store(wake, SeqCst);
        BOARD.ballast.store(map_ballast(), SeqCst);
        // A process that ends by `exit` anywhere has ended in good order, whoever holds the guard.
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            // SAFETY: `say_goodbye` may run at any time and on any thread. Without room for it such an end is reported,
            // no more.
            let _ = unsafe { libc::atexit(say_goodbye) };
        });
        // SAFETY: `on_crash` does what may be done in a signal handler, and nothing else.
        let event = unsafe { crash_handler::make_crash_event(on_crash) };
        let handler = CrashHandler::attach(event).map_err(|error| match error {
            crash_handler::Error::HandlerAlreadyInstalled => io::ErrorKind::AlreadyExists.into(),
            other => io::Error::other(other),
        })?;
        // Hosts where a process may be read by its ancestors only must allow this one.
        handler.set_ptracer(Some(monitor_pid));
        Ok(Installed { handler: Some(handler), _line: line, _claim: self })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        IS_CLAIMED.store(false, SeqCst);
    }
}

/// Says goodbye when dropped.
pub struct Installed {
    handler: Option<CrashHandler>,
    _line: OwnedFd,
    _claim: Claim,
}

impl Drop for Installed {
    fn drop(&mut self) {
        drop(self.handler.take());
        say_goodbye();
        BOARD.line.store(-1, SeqCst);
        BOARD.wake.store(-1, SeqCst);
        release_ballast();
    }
}

extern "C" fn say_goodbye() {
    let word = GOODBYE;
    // SAFETY: one readable byte; -1 or a full line make it fail, which changes nothing.
    unsafe {
        libc::send(BOARD.line.load(SeqCst), (&raw const word).cast(), 1, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
    };
}

/// Inside the signal. See the head of this file for what is allowed here.
fn on_crash(context: &CrashContext) -> CrashEventResult {
    let crashed_at_ms = clock_ms(libc::CLOCK_MONOTONIC);
    let died_at_unix_s = clock_ms(libc::CLOCK_REALTIME) / 1_000;
    let tid = context.tid as u32;
    BOARD.signal.store(context.siginfo.ssi_signo as i32, SeqCst);
    BOARD.tid.store(tid, SeqCst);
    BOARD.died_at_unix_s.store(died_at_unix_s, SeqCst);
    BOARD.is_crashed.store(true, SeqCst);

    release_ballast();
    let has_writer = tid != BOARD.state_writer_tid.load(SeqCst) && wake_state_writer();
    if has_writer {
        // The monitor stops all threads, so the state writer's first word should be out before.
        wait_for_state_writer(STATE_WRITTEN, crashed_at_ms + STATE_WAIT_MS);
    }
    let line = BOARD.line.load(SeqCst);
    let is_reached = send_crash(line, died_at_unix_s, context);
    BOARD.monitor.store(if is_reached { MONITOR_REACHED } else { MONITOR_LOST }, SeqCst);
    if is_reached {
        wait_for_monitor(line, crashed_at_ms + MONITOR_WAIT_MS);
    }
    if has_writer {
        wait_for_state_writer(ATTACHED, crashed_at_ms + ATTACH_WAIT_MS);
    }
    // The default action of the signal comes next: whoever waits for this process sees how it died.
    CrashEventResult::Handled(true)
}

/// Ends this process as [`abort`](std::process::abort) does, on another of its threads: that one's stack is where it died.
/// Returns at once; a thread that sleeps in the kernel and hears no signal does not die.
pub fn abort_on(thread_id: u32) -> io::Result<()> {
    let thread = i32::try_from(thread_id).map_err(|_| io::ErrorKind::NotFound)?;
    // SAFETY: plain numbers. The thread ends the process, by our handler or by the signal's default action.
    match unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGABRT) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn wake_state_writer() -> bool {
    let one = 1_u64;
    // SAFETY: 8 readable bytes.
    unsafe { libc::write(BOARD.wake.load(SeqCst), (&raw const one).cast(), 8) == 8 }
}

fn send_crash(line: RawFd, died_at_unix_s: u64, context: &CrashContext) -> bool {
    let mut head = [CRASH; CRASH_HEAD_BYTES];
    head[1..].copy_from_slice(&died_at_unix_s.to_ne_bytes());
    let context = context.as_bytes();
    let mut parts = [
        libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() },
        libc::iovec { iov_base: context.as_ptr().cast_mut().cast(), iov_len: context.len() },
    ];
    // SAFETY: zero is a valid value of every field: no address, nothing beside.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    // SAFETY: both parts are readable for their lengths, and only read.
    let sent = unsafe { libc::sendmsg(line, &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
    sent == (head.len() + context.len()) as isize
}

fn wait_for_monitor(line: RawFd, until_ms: u64) {
    loop {
        let left_ms = until_ms.saturating_sub(clock_ms(libc::CLOCK_MONOTONIC));
        let mut polled = libc::pollfd { fd: line, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, written by the kernel. Being stopped and continued ends the wait early, so it is begun
        // again.
        if unsafe { libc::poll(&raw mut polled, 1, left_ms as libc::c_int) } >= 0 || left_ms == 0 {
            // Whatever was said: it is done, or dead.
            return;
        }
    }
}

fn wait_for_state_writer(progress: u32, until_ms: u64) {
    while BOARD.progress.load(SeqCst) < progress && clock_ms(libc::CLOCK_MONOTONIC) < until_ms {
        let a_while = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        // SAFETY: reads one timespec; how much was left is not asked.
        unsafe { libc::nanosleep(&raw const a_while, ptr::null_mut()) };
    }
}

fn clock_ms(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

fn map_ballast() -> *mut libc::c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping wherever the kernel likes, that nobody ever touches.
    let ballast = unsafe { libc::mmap(ptr::null_mut(), BALLAST_BYTES, libc::PROT_NONE, flags, -1, 0) };
    if ballast == libc::MAP_FAILED { ptr::null_mut() } else { ballast }
}

fn release_ballast() {
    let ballast = BOARD.ballast.swap(ptr::null_mut(), SeqCst);
    if !ballast.is_null() {
        // SAFETY: mapped by us with this size, and taken from the board, so that nobody unmaps it twice.
        unsafe { libc::munmap(ballast, BALLAST_BYTES) };
    }
}
