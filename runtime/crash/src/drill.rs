//! Deaths on purpose: to see on a host that crash reports work there, and to test that they do.

use std::hint::black_box;
use std::io;
use std::str::FromStr;

use throng_platform::bad_access::{read_beyond_the_end, read_nowhere};

/// A way to die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// A long linked list is dropped, each element by the one before: the stack of a worker does not last.
    StackOverflow,
    Abort,
    /// A read through a pointer to nowhere.
    Segv,
    /// A read of a mapped file beyond its end.
    Bus,
    /// An allocation that no host can grant.
    OutOfMemory,
    /// Allocations until a limit on the address space is met.
    MemoryLimit,
    /// A panic in a destructor while a panic is under way.
    DoublePanic,
}

impl Death {
    pub const ALL: [(&'static str, Death); 7] = [
        ("stack-overflow", Death::StackOverflow),
        ("abort", Death::Abort),
        ("segv", Death::Segv),
        ("bus", Death::Bus),
        ("out-of-memory", Death::OutOfMemory),
        ("memory-limit", Death::MemoryLimit),
        ("double-panic", Death::DoublePanic),
    ];

    /// Ends this process. Returns only if it could not be done.
    pub fn die(self) -> io::Error {
        match self {
            Death::StackOverflow => drop_a_long_list(),
            Death::Abort => std::process::abort(),
            Death::Segv => read_nowhere(),
            Death::Bus => return read_beyond_the_end().err().unwrap_or_else(survived),
            Death::OutOfMemory => drop(black_box(vec![1_u8; isize::MAX as usize])),
            Death::MemoryLimit => return allocate_to_the_limit().err().unwrap_or_else(survived),
            Death::DoublePanic => panic_twice(),
        }
        survived()
    }
}

fn survived() -> io::Error {
    io::Error::other("the process survived its death")
}

impl FromStr for Death {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, death)| *death).ok_or_else(|| format!("one of {}", Self::ALL.map(|(known, _)| known).join(", ")))
    }
}

struct Node {
    _number: u64,
    _next: Option<Box<Node>>,
}

/// 1,000,000 elements of 16 B and more of stack each are 16 MiB and more: beyond any stack that is in use.
const NODES: u64 = 1_000_000;

fn drop_a_long_list() {
    let mut list = None;
    for number in 0..NODES {
        list = Some(Box::new(Node { _number: number, _next: list.take() }));
    }
    drop(black_box(list));
}

fn allocate_to_the_limit() -> io::Result<()> {
    use nix::sys::resource::{Resource, setrlimit};
    /// More than a process has at its start, and soon used up.
    const ROOM_BYTES: u64 = 256 << 20;
    let status = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = status.split(' ').next().and_then(|pages| pages.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let limit = pages * 4096 + ROOM_BYTES;
    setrlimit(Resource::RLIMIT_AS, limit, limit)?;
    // Never written, so that only addresses run out, and the host keeps its memory.
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for _ in 0..1_000_000 {
        kept.push(black_box(Vec::with_capacity(16 << 20)));
    }
    Ok(())
}

fn panic_twice() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("the second");
        }
    }
    let _second = PanicsWhenDropped;
    panic!("the first");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_death_has_its_name() {
        for (name, death) in Death::ALL {
            assert_eq!(name.parse(), Ok(death));
        }
        assert!("old-age".parse::<Death>().unwrap_err().contains("double-panic"));
    }
}
