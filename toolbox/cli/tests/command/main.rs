//! The real `throng` command from outside: its processes, signals, sockets, exit statuses and words.
//!
//! ```text
//!   operator   what a person may do wrong, and what they are told
//!   lifecycle  start, tokens, metrics, sleep, stop
//!   load       the daily load test in small
//!   capture    bad frames listed, read and converted
//!   faults     bad frames made on purpose, saved by themselves and named
//!   crash      what a server's death leaves behind
//!   recorder   rules that change, captures by hand, disks and readers that fail it
//!   abuse      what strangers and players may do to a live server
//!   child  crowd  player  address    the processes and the players that the tests are made of
//! ```
//!
//! Every server takes free ports and says which; every child ends with the test that started it, also when that test
//! fails. Tests that measure take turns (`child::alone`), since two servers on a small machine measure each other.

mod abuse;
mod address;
mod capture;
mod child;
mod crash;
mod crowd;
mod faults;
mod lifecycle;
mod load;
mod operator;
mod player;
mod recorder;
