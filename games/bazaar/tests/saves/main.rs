//! Saves from outside: the shipped commands as processes, which are killed, stopped and ended, and whose disks and PostgreSQL
//! are taken from them, while players deal.
//!
//! ```text
//!   kills    R30: kill -9 of the process that saves, and of PostgreSQL
//!   deaths   R21: a world that ends its server beside many that are saved
//!   ends     R36: an order to end, under load and on a full disk
//!   disks    R32: full, slow and read-only disks of their own, under a server that ticks
//!   owners   R34: two processes on one PostgreSQL, one of which stood still
//!   loads    load runs, which save into their reports
//!   looks    `saves check` and `saves show` of what such a server leaves, whole and damaged
//!   life  place  players  mounted    the processes, stores, players and disks that these are made of
//! ```
//!
//! What was said to be on disk goes over a socket to this process, which is the ledger outside.

#[path = "../../../../runtime/persistence/tests/postgres/cluster.rs"]
mod cluster;
mod deaths;
mod disks;
mod ends;
#[path = "../../../../runtime/persistence/tests/saves/folder.rs"]
mod folder;
mod kills;
mod life;
#[path = "../../../../toolbox/shipped/tests/command/little_memory.rs"]
mod little_memory;
mod loads;
mod looks;
mod mounted;
mod owners;
mod place;
mod players;
