//! The real `throng` command from outside: its processes, signals, sockets, exit statuses and words.
//!
//! ```text
//!   operator   what a person may do wrong, and what they are told
//!   lifecycle  start, tokens, metrics, sleep, stop
//!   idle       what wakes a server that nobody plays on
//!   supervised a server that dies is started again, and not for ever
//!   load       the load test in small
//!   daily      every scenario in one folder for the day, and in an object store, and a rare crash found, linked and replayed
//!   history    what a history that is asked for slowdowns ends with
//!   density    how many instances of a command a host holds
//!   host       what loads that are known use, and limits that hold a server up
//!   console    commands of a running server
//!   terminal   the console before a person: Tab, history, what was meant
//!   access     who may change it, and with which key
//!   analytics  what games tell of play, in files
//!   sync       folders to an object store, and what is told where there is none
//!   uploads    what goes there by itself, and events to a receiver
//!   capture    bad frames listed, read and converted
//!   faults     bad frames made on purpose, saved by themselves and named
//!   crash      what a server's death leaves behind
//!   deaths     a world that ends its server is parked in the next one
//!   prometheus  what is shipped in deploy/, with the real Prometheus: panels, alerts, spikes
//!   service    what a service manager is told
//!   recorder   rules that change, captures by hand, disks and readers that fail it
//!   recordings all that enters the worlds, run again
//!   likeness   recorded bots held against recorded players, and recorded inputs said again
//!   panics     worlds that panic are back soon, with their players, and nobody else waits for them
//!   watchdog   a world that hangs is named, and everything answers meanwhile
//!   abuse      what strangers and players may do to a live server
//!   hostile_inputs    what a player of Frontier may send
//!   floods     datagrams of thousands of strangers, and under a player's address
//!   network    bad networks between players and server
//!   slow       players who take nothing that they are sent
//!   soak       players come and go for an hour, and nothing grows
//!   paused     a server whose process is stopped for a while
//!   child  crowd  player  game  address    the processes and the players that the tests are made of
//!   little_memory  a control group in which the kernel ends who takes more
//!   kept_waiting  what a busy host took from the times that a server promises
//!   strangers  half_open  reliable_pair  figures    what attacks and lines are made of, and what they did
//!   s3_server  an object store that is not ours
//! ```
//!
//! Every server takes free ports and says which; every child ends with the test that started it, also when that test
//! fails. Tests that measure, or that fill the machine, take turns (`child::alone`), since two servers on a small machine
//! measure each other. What a server says or writes is the same beside another one: such tests wait for nobody.

mod abuse;
mod access;
mod address;
mod analytics;
mod capture;
mod child;
mod console;
mod crash;
mod crowd;
mod daily;
mod deaths;
mod density;
mod faults;
mod figures;
mod floods;
mod game;
mod half_open;
mod history;
mod host;
mod hostile_inputs;
mod idle;
mod kept_waiting;
mod lifecycle;
mod likeness;
mod little_memory;
mod load;
mod network;
mod operator;
mod overload;
mod panics;
mod paused;
mod player;
mod prometheus;
mod recorder;
mod recordings;
mod reliable_pair;
#[path = "../../../upload/tests/object_store/server.rs"]
#[allow(dead_code, reason = "its own tests start another kind of store, too")]
mod s3_server;
mod service;
mod slow;
mod soak;
mod strangers;
mod supervised;
mod sync;
mod terminal;
mod top;
mod uploads;
mod watchdog;
