//! The operating system: clocks, cores, sockets in batches, signals, limits, allocator.
//!
//! Everything that Throng asks of Linux is asked here, so that the rooms above can be run with a
//! virtual clock and a network in memory, and so that `unsafe` has one address. Each module is thin:
//! it turns a system call into a type with units and errors that name the fix, and decides nothing.
//!
//! | module | what it answers |
//! | --- | --- |
//! | [`time`], [`clock`] | what time is it, and who may move it |
//! | [`udp`], [`poll`] | datagrams in batches, and sleeping until there are some |
//! | [`wake`] | ending such a sleep from another thread |
//! | [`signals`] | has somebody asked this process to stop |
//! | [`cores`], [`nodes`], [`limits`], [`process`] | what the host grants, and what we use of it |
//! | [`accounts`], [`control_groups`] | what we use by our own word, and by the word of those who bill or limit it |
//! | [`threads`] | named threads, with low priority where asked |
//! | [`allocator`] | mimalloc with a count per thread |
//! | [`prefetch`] | memory that is going to be read, early |
//! | [`headroom`] | memory that is kept for a busier tick |
//! | [`ticks`] | the cheapest clock, for measuring |
//! | [`perf`], [`sched`] | when a thread had no core, and which other threads of the host had it |
//! | [`steal`], [`heartbeat`] | for how long a hypervisor gave our cores to somebody else, by its word and without |
//! | [`sampling`] | where another process's threads are, without stopping them |
//! | [`thread_stack`] | where a stuck thread of this process is, and its stack |
//! | [`hardware`] | what the processor counts of them |
//! | [`children`] | when has a process of ours ended, and ending when our parent does |
//! | [`process_groups`] | a program with all that it has started, ended and counted as one |
//! | [`never`](mod@never) | states that only a bug can make: loud in tests, counted and survived in a live server |
//! | [`crash_signal`], [`message_pair`], [`bad_access`] | what a dying thread may do, and whom it tells: the ground of `throng-crash` |
//! | [`random`] | one seed from the kernel; everything after it is seeded |
//! | [`testing`] | what a test does when the host does not permit what it needs |
#![allow(unsafe_code)]

pub mod accounts;
pub mod allocator;
pub mod bad_access;
pub mod children;
pub mod clock;
pub mod control_groups;
pub mod cores;
pub mod crash_signal;
pub mod hardware;
pub mod headroom;
pub mod heartbeat;
pub mod limits;
pub mod message_pair;
pub mod never;
pub mod nodes;
pub mod perf;
pub mod poll;
pub mod prefetch;
pub mod process;
pub mod process_groups;
pub mod random;
mod raw_address;
pub mod sampling;
pub mod sched;
pub mod signals;
pub mod steal;
pub mod testing;
pub mod thread_stack;
pub mod threads;
pub mod ticks;
pub mod time;
pub mod udp;
pub mod wake;
