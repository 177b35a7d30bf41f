//! The real `throng` command from outside: its processes, signals, sockets, exit statuses and words.
//!
//! ```text
//!   operator   what a person may do wrong, and what they are told
//!   lifecycle  start, tokens, metrics, sleep, stop
//!   load       the daily load test in small
//!   abuse      what strangers and players may do to a live server
//!   child  crowd  player  address    the processes and the players that the tests are made of
//! ```
//!
//! Every server takes free ports and says which; every child ends with the test that started it, also when that test
//! fails. Tests that measure take turns (`child::alone`), since two servers on a small machine measure each other.

mod abuse;
mod address;
mod child;
mod crowd;
mod lifecycle;
mod load;
mod operator;
mod player;
