//! Figures: what the server says of itself that is no counter, each with its help and an operator's advice.
//!
//! Values are set once a second by [`ServerMetrics`](super::ServerMetrics); the page in `docs` is made of these.

use throng_metrics::LabelledGauges;

/// What a figure that is no counter says, and what an operator does when it grows.
pub(in super::super) struct Figure {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the page, which a test writes"))]
    pub(super) advice: &'static str,
}

pub(super) const FRAME: Figure = Figure {
    name: "server.frame",
    help: "Time from a frame's begin to its end.",
    advice: "A capture of a long frame says who took it; `throng_subsystem_frame_us_window_max` names the subsystem.",
};
pub(super) const FRAME_MAX: Figure = Figure {
    name: "server.frame_us",
    help: "Longest frame of the last five minutes.",
    advice: "As above. One long frame is a hitch that somebody felt.",
};
pub(super) const LATENESS_MAX: Figure = Figure {
    name: "server.tick_lateness_us",
    help: "Latest end of a tick after its period, of the last five minutes.",
    advice: "Players of that world felt it: too little processor time for its worlds, or one that takes long.",
};
/// With the label `reason`.
pub(super) const REFUSED: Figure = Figure {
    name: "net.handshake_refused",
    help: "Datagrams of strangers that the handshake refused, by reason.",
    advice: "`token_expired`, `token_used`, `token_forged` and `other_server` are about connect tokens; `other_protocol` is \
             another version; `plain_netcode_off` are clients without address cookies, which `plain_netcode` in the settings \
             lets in; the others are noise or a flood.",
};
/// Gauges that are published once a second.
pub(super) const GAUGES: [&Figure; 22] = [
    &PLAYERS,
    &JOIN_QUEUE,
    &PLACEMENTS_PENDING,
    &WORLDS,
    &WORLDS_AWAKE,
    &WORLDS_DORMANT,
    &PLANS_PARKED,
    &OVERLOAD_LEVEL,
    &WORLDS_OVERLOADED,
    &WORLDS_SLOWED,
    &TIME_FACTOR_MIN,
    &TIME_LOST_SHARE,
    &ADMISSION_CLOSED,
    &STARVATION_LEVEL,
    &ADMISSION_WAITS,
    &LONG_TASKS_WAITING,
    &LONG_TASKS_MS,
    &LONG_TASKS_FREEING_MS,
    &CPU_CORES,
    &RSS_BYTES,
    &HEARTBEATS,
    &BROWSERS_OPEN,
];
pub(super) const PLAYERS: Figure =
    Figure { name: "server.players", help: "Clients connected.", advice: "Good. Compare with what the host carries." };
pub(super) const JOIN_QUEUE: Figure = Figure {
    name: "server.join_queue",
    help: "Clients in line to come in.",
    advice: "A storm of log-ins. Raise `joins_per_frame_max` in the settings if frames have room.",
};
pub(super) const PLACEMENTS_PENDING: Figure = Figure {
    name: "server.placements_pending",
    help: "Clients whose world is being made.",
    advice: "Worlds are made more slowly than they are asked for.",
};
pub(super) const WORLDS: Figure = Figure {
    name: "server.worlds",
    help: "Worlds in this process.",
    advice: "Each takes memory, and time while it is awake.",
};
pub(super) const WORLDS_AWAKE: Figure = Figure {
    name: "server.worlds_awake",
    help: "Worlds that tick.",
    advice: "More than have players: a game keeps them awake.",
};
pub(super) const WORLDS_DORMANT: Figure = Figure {
    name: "server.worlds_dormant",
    help: "Worlds that sleep, since they have nothing to do until somebody comes or writes. They take memory alone.",
    advice: "Good. If players are few and it is 0, a game keeps its worlds awake.",
};
pub(super) const PLANS_PARKED: Figure = Figure {
    name: "server.plans_parked",
    help: "Plans by which no world is made for now, since worlds made by them panicked again and again.",
    advice: "As `server.parkings`. The console's `world.parked` names them.",
};
pub(super) const OVERLOAD_LEVEL: Figure = Figure {
    name: "server.overload_level",
    help: "Step of the overload ladder of the world that is worst off: 0 normal, 1 long tasks yield, 2 far updates thin out, 3 its time slows, 4 newcomers wait.",
    advice: "A world's ticks end when their period is nearly over or later. `subsystem.frame_us` says what takes the time; docs/overload.md says what is done.",
};
pub(super) const WORLDS_OVERLOADED: Figure = Figure {
    name: "server.worlds_overloaded",
    help: "Worlds on any step of the overload ladder.",
    advice: "One: that world is hot. Many: the host has too few cores for what it is given.",
};
pub(super) const WORLDS_SLOWED: Figure = Figure {
    name: "server.worlds_slowed",
    help: "Worlds whose time is slowed, since they have too little of it for their rate.",
    advice: "Their players see slow motion. As `throng_server_worlds_overloaded`.",
};
pub(super) const TIME_FACTOR_MIN: Figure = Figure {
    name: "server.time_factor_min",
    help: "How fast the slowest world's time ran in the last second: 1 as a clock's, 0.1 at worst.",
    advice: "Below 1 for more than moments: give the world less to do or the server more cores. docs/overload.md.",
};
pub(super) const TIME_LOST_SHARE: Figure = Figure {
    name: "server.time_lost_share",
    help: "Share of the time of all worlds that are awake which was lost in the last second since theirs was slowed.",
    advice: "What the overload costs players, in one figure.",
};
pub(super) const ADMISSION_CLOSED: Figure = Figure {
    name: "server.admission_closed",
    help: "1 while newcomers wait in line because worlds with a quarter of all clients are on the ladder's last step.",
    advice: "Players cannot get in until it is calm again. Start another server, or give this one more cores.",
};
pub(super) const STARVATION_LEVEL: Figure = Figure {
    name: "server.starvation_level",
    help: "Workers that leave their cores to long tasks, since these pile up.",
    advice: "Worlds take nearly all of the cores. For long above 0: the host has too few. docs/long-tasks.md.",
};
pub(super) const ADMISSION_WAITS: Figure = Figure {
    name: "server.admission_waits",
    help: "1 while nobody is let in from the line and no world is made, since ended worlds pile up that are to be dropped.",
    advice: "Worlds come and go faster than they can be dropped. Give this server more cores, or keep worlds for longer.",
};
pub(super) const LONG_TASKS_WAITING: Figure = Figure {
    name: "server.long_tasks_waiting",
    help: "Long tasks that have not begun.",
    advice: "A rush passes. If it stays, see `throng_server_starvation_level`; the console's `tasks` tells the kinds.",
};
pub(super) const LONG_TASKS_MS: Figure = Figure {
    name: "server.long_tasks_ms",
    help: "What all long tasks that are not done will take of a core, by what such tasks took before.",
    advice: "Held against `high_mark_ms` in `[long_tasks]`.",
};
pub(super) const LONG_TASKS_FREEING_MS: Figure = Figure {
    name: "server.long_tasks_freeing_ms",
    help: "Of that, what gives memory back.",
    advice: "Held against `admission_mark_ms` in `[long_tasks]`.",
};
pub(super) const CPU_CORES: Figure = Figure {
    name: "process.cpu_cores",
    help: "Cores' worth of processor time used in the last second.",
    advice: "Near the number of workers the next players are too many.",
};
pub(super) const RSS_BYTES: Figure = Figure {
    name: "process.rss_bytes",
    help: "Memory of the process in RAM.",
    advice: "If it grows with the same players and worlds, a capture with memory on says which scopes hold on to it.",
};
pub(super) const HEARTBEATS: Figure = Figure {
    name: "host.heartbeats",
    help: "Cores that are watched for stalls of the host.",
    advice: "0 with worlds awake: it is off in the settings, or real-time priority is not permitted, as the log says at the start. Then no stall is known. While all worlds sleep nothing can be late, and nobody looks.",
};
pub(super) const BROWSERS_OPEN: Figure = Figure {
    name: "browser.open",
    help: "Browsers that have a WebSocket or a WebTransport session open.",
    advice: "As `throng_server_players`. Near `clients_max` in [browser]: newcomers are refused.",
};

/// Told by the watchdog, not by the frame's thread: it is up to date while that one is stuck.
pub(super) const WORLDS_STUCK: Figure = Figure {
    name: "server.worlds_stuck",
    help: "Worlds that are stuck in their ticks now.",
    advice: "The log has a line for each, with the stack that it is stuck in, and a capture was saved. The other worlds play on with a worker less.",
};

pub(super) const SAVES_AWAY: Figure = Figure {
    name: "saves.is_away",
    help: "1 while the store of the saves has failed, takes nothing, or has not answered for 2 s, else 0.",
    advice: "Play goes on, and nothing is saved: look at the disk, or at PostgreSQL. The log says what is wrong, `saves.status` how much waits.",
};

pub(super) const ANALYTICS_AWAY: Figure = Figure {
    name: "analytics.is_away",
    help: "1 while files of analytics events cannot be written or their receiver takes none, else 0.",
    advice: "Play goes on, and events wait for so long: the log says what is wrong. `analytics.dropped_*` say what did not find room.",
};

/// With the labels `capture`, `trigger`, `cause` and `kind`.
pub(super) const CAPTURE_AT: Figure = Figure {
    name: "profiler.capture_at_ms",
    help: "When what a capture shows happened, since 1970, of each of the latest 32.",
    advice: "Labels: `capture` is the name of the file, `trigger` and `cause` say what was slow, `kind` in which kind of world. `http://ADMIN_ADDRESS/captures/NAME` gives the file, `/captures` lists all.",
};

pub(super) const LONG_TASKS_STUCK: Figure = Figure {
    name: "server.long_tasks_stuck",
    help: "Long tasks that block, or take far longer than others of their kind, now.",
    advice: "The log names the kind and the stack; other long tasks wait for its thread.",
};

pub(super) fn stuck_gauge(figure: &Figure, count: u64) -> LabelledGauges {
    let help = figure.help.trim_end_matches('.');
    LabelledGauges { name: figure.name, help, keys: &[], rows: vec![(Vec::new(), count as f64)] }
}

pub(super) const BUILD: Figure = Figure {
    name: "build.info",
    help: "Always 1. Its labels `version` and `commit` say which build the server is.",
    advice: "A figure that changed with the commit is a change of the code; one that changed without is a change of the load or the host.",
};
