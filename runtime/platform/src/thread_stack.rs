//! Thread stack: where another thread of this very process is, and a copy of its stack, whatever it is doing.
//!
//! A thread that is stuck may compute for ever or sleep in a system call; the registers of one that computes are known to
//! nobody but itself. So it is sent a signal, whose handler leaves its registers and a copy of its stack, and goes on. That
//! takes no privilege, unlike what is in [`sampling`](crate::sampling).
//!
//! ```text
//! asker    STATE := ASKED, tgkill ──▶ waits ...........................▶ reads the copy, STATE := FREE
//! thread                     handler: STATE := COPYING, copies, STATE := COPIED, goes on
//! ```
//!
//! System calls that the kernel can begin again are begun again (`SA_RESTART`); sleeps and waits for events that it cannot
//! (`epoll_wait`, `poll`) end early with EINTR, which the standard library hides and a game that calls them itself may see.
//! So it is for a thread that is stuck anyway, and not for one that is well.
//!
//! The signal is SIGURG, which nothing happens by where nobody asked for it, and which hardly anybody uses. Any thread may
//! ask, one at a time. Cost: the signal and a copy of up to [`STACK_BYTES_MAX`], in the asked thread's time.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The registers from which a stack is unwound, and what lies above the stack pointer.
#[derive(Clone, Debug)]
pub struct ThreadStack {
    pub instruction: u64,
    pub stack: u64,
    pub frame: u64,
    /// The return address of the innermost function, on processors that have a register for it; else 0.
    pub link: u64,
    /// From `stack` upwards; empty where the kernel does not let the thread copy its own memory.
    pub bytes: Vec<u8>,
}

/// Of a stack this much is copied. Too low → the outer end of deep stacks is cut off; too high → memory, from the first
/// use on. Systems of a world are some ten calls deep.
pub const STACK_BYTES_MAX: usize = 256 << 10;

/// How long the thread may take to answer: it needs a core for it.
const PATIENCE: Duration = Duration::from_millis(50);
const LOOK_EVERY: Duration = Duration::from_micros(200);

const SIGNAL: libc::c_int = libc::SIGURG;

/// Where handler and asker meet. A signal handler can only find statics.
struct Desk {
    /// Whose turn it is: see below. Sequentially consistent, as it is used once in a hang.
    state: AtomicU32,
    /// Who is asked.
    thread: AtomicI32,
    copy: UnsafeCell<Copy>,
}

const FREE: u32 = 0;
const ASKED: u32 = 1;
const COPYING: u32 = 2;
const COPIED: u32 = 3;

struct Copy {
    instruction: u64,
    stack: u64,
    frame: u64,
    link: u64,
    bytes_count: usize,
    bytes: [u8; STACK_BYTES_MAX],
}

// SAFETY: the copy is touched by the handler between COPYING and COPIED alone, and by the asker, of whom there is one at a
// time by the lock, from COPIED to FREE alone.
unsafe impl Sync for Desk {}

static DESK: Desk = Desk {
    state: AtomicU32::new(FREE),
    thread: AtomicI32::new(0),
    copy: UnsafeCell::new(Copy {
        instruction: 0,
        stack: 0,
        frame: 0,
        link: 0,
        bytes_count: 0,
        bytes: [0; STACK_BYTES_MAX],
    }),
};

static ASKING: Mutex<()> = Mutex::new(());

/// Asks a thread of this process. Fails with `NotFound` if it has ended, with `TimedOut` if it does not answer, as one that
/// the kernel keeps in an uninterruptible sleep, and with `ResourceBusy` if the program uses the signal for something else.
pub fn of_thread(thread_id: u32) -> io::Result<ThreadStack> {
    let _alone = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    install()?;
    let thread = i32::try_from(thread_id).map_err(|_| io::ErrorKind::NotFound)?;
    // One that did not answer in time may be copying still.
    wait_while(COPYING)?;
    DESK.thread.store(thread, SeqCst);
    DESK.state.store(ASKED, SeqCst);
    // SAFETY: plain numbers; the signal has our handler.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, SIGNAL) };
    if sent != 0 {
        DESK.state.store(FREE, SeqCst);
        return Err(match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ESRCH) => io::ErrorKind::NotFound.into(),
            error => error,
        });
    }
    let answered = wait_while(ASKED).and_then(|()| wait_while(COPYING));
    if let Err(error) = answered {
        // If it begins at this very moment, the next asker waits for it.
        let _ = DESK.state.compare_exchange(ASKED, FREE, SeqCst, SeqCst);
        return Err(error);
    }
    // SAFETY: the state is COPIED: the handler is done with it, and no other asker is here.
    let copy = unsafe { &*DESK.copy.get() };
    let stack = ThreadStack {
        instruction: copy.instruction,
        stack: copy.stack,
        frame: copy.frame,
        link: copy.link,
        bytes: copy.bytes[..copy.bytes_count].to_vec(),
    };
    DESK.state.store(FREE, SeqCst);
    Ok(stack)
}

fn wait_while(state: u32) -> io::Result<()> {
    let give_up_at = Instant::now() + PATIENCE;
    while DESK.state.load(SeqCst) == state {
        if Instant::now() >= give_up_at {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Once; a program that has a handler of its own keeps it.
fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks for the handler that there is, which the kernel writes into a structure of its own.
        let asked = unsafe { libc::sigaction(SIGNAL, ptr::null(), before.as_mut_ptr()) };
        // SAFETY: zeroed, and written by the kernel if it succeeded; every field may be zero.
        let before = unsafe { before.assume_init() };
        if asked != 0 || (before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN) {
            return Err(libc::EBUSY);
        }
        // SAFETY: zero is a valid value of every field: no flag, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: the handler does what may be done in a signal handler, and nothing else.
        match unsafe { libc::sigaction(SIGNAL, &raw const action, ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)),
        }
    });
    installed.map_err(io::Error::from_raw_os_error)
}

/// Inside the signal: no heap, no lock; loads, stores and system calls.
extern "C" fn on_signal(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: no arguments; it cannot fail.
    let own = unsafe { libc::gettid() };
    // Somebody else's SIGURG, or one whose asker has given up.
    let is_asked =
        DESK.thread.load(SeqCst) == own && DESK.state.compare_exchange(ASKED, COPYING, SeqCst, SeqCst).is_ok();
    if !is_asked || context.is_null() {
        return;
    }
    // SAFETY: each thread has an errno of its own, which is always there.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let errno_before = unsafe { *errno };
    // SAFETY: the kernel hands a `ucontext_t` to a handler with SA_SIGINFO.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    // SAFETY: the state is COPYING: nobody else touches it.
    let copy = unsafe { &mut *DESK.copy.get() };
    (copy.instruction, copy.stack, copy.frame, copy.link) = registers(context);
    let into = libc::iovec { iov_base: copy.bytes.as_mut_ptr().cast(), iov_len: STACK_BYTES_MAX };
    // Up to where its pages end: the kernel stops there, where a plain copy would be the end of the process.
    let from = libc::iovec { iov_base: copy.stack as *mut libc::c_void, iov_len: STACK_BYTES_MAX };
    // SAFETY: the kernel writes into the copy, at most its length, and checks what it reads.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &raw const into, 1, &raw const from, 1, 0) };
    copy.bytes_count = usize::try_from(copied).unwrap_or(0).min(STACK_BYTES_MAX);
    // SAFETY: as above.
    unsafe { *errno = errno_before };
    DESK.state.store(COPIED, SeqCst);
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> (u64, u64, u64, u64) {
    let register = |index: libc::c_int| context.uc_mcontext.gregs[index as usize] as u64;
    (register(libc::REG_RIP), register(libc::REG_RSP), register(libc::REG_RBP), 0)
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> (u64, u64, u64, u64) {
    let machine = &context.uc_mcontext;
    (machine.pc, machine.sp, machine.regs[29], machine.regs[30])
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::threads::this_thread_id;

    /// Asks a thread while it does `work`, which must go on until it is told to stop.
    fn asked_during(work: fn(&AtomicBool, u64)) -> (ThreadStack, u64) {
        let is_over = AtomicBool::new(false);
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // A value that is known, on the stack above what works.
                let mark = black_box(0x5ca1_ab1e_0b5e_55ed_u64);
                tell.send((this_thread_id(), &raw const mark as u64)).unwrap();
                work(&is_over, mark);
                black_box(&mark);
            });
            let (thread, mark_at) = told.recv().unwrap();
            let stack = of_thread(thread);
            is_over.store(true, SeqCst);
            (stack.unwrap(), mark_at)
        })
    }

    #[track_caller]
    fn check((stack, mark_at): (ThreadStack, u64)) {
        let offset = mark_at.checked_sub(stack.stack).expect("the mark is above the stack pointer") as usize;
        let word = stack.bytes.get(offset..offset + 8).expect("it was copied");
        assert_eq!(u64::from_ne_bytes(word.try_into().unwrap()), 0x5ca1_ab1e_0b5e_55ed);
        assert!(stack.instruction != 0);
    }

    #[test]
    fn a_thread_that_computes_is_seen() {
        check(asked_during(|is_over, mark| {
            while !is_over.load(SeqCst) {
                black_box(mark);
            }
        }));
    }

    #[test]
    fn a_thread_that_sleeps_is_seen_and_sleeps_on() {
        check(asked_during(|is_over, _| {
            let begin = Instant::now();
            std::thread::sleep(Duration::from_millis(200));
            assert!(begin.elapsed() >= Duration::from_millis(200));
            while !is_over.load(SeqCst) {
                std::thread::yield_now();
            }
        }));
    }

    #[test]
    fn one_that_is_not_there_is_an_error() {
        for none in [(1 << 22) - 1, u32::MAX] {
            assert_eq!(of_thread(none).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }
}
