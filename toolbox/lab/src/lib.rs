//! Lab: what tries a whole server and says whether it held.
//!
//! The lab knows servers as processes only: it starts them, reads what they say about themselves, and ends them. So
//! a load run here is what an operator would see, and a fault of the measured program cannot hide in the measuring
//! one. The load test is [`load`]: a server and a swarm of bots from one executable, judged by [`bars`] on
//! ticks rather than on times, written down by [`report`] as JSON and as one page.
//!
//! ```text
//! load ──starts──> child "serve" <──UDP── child "bots"
//!   ^                  │ status, report        │        (lines of JSON: protocol in `child`)
//!   └──────────────────┴───────────────────────┘
//!   └─> LoadRun ─> bars ─> report.json, report.html
//! ```
//!
//! Runs of every scenario of every game, one after the other, are a day: [`daily`]. How many instances of any program a host holds
//! is tried by [`density`]; where a running process spends its time, by [`wallclock`]; what a host makes of loads that are known, by [`host`]. Runs are kept, and held against those of other commits, by
//! [`history`]; one run against another is [`against`]. What the README shows of reports and benches is drawn by [`pictures`].
//!
//! For tests there is [`relay`]: a bad network with a seed, to be put between a server and its clients.

pub mod against;
pub mod bars;
pub mod daily;
mod dark;
pub mod density;
pub mod history;
pub mod host;
pub mod load;
pub mod load_packets;
pub mod load_report;
pub mod pictures;
pub mod preflight;
pub mod relay;
pub mod report;
pub mod saves_cost;
pub mod seconds;
pub mod settling;
pub mod shell;
pub mod wallclock;

mod accounts_page;
mod charts;
mod child;
mod document;
mod earlier_runs;
mod history_page;
mod left_behind;
mod listened;
mod missed_ticks;
mod page;
mod saves_page;
