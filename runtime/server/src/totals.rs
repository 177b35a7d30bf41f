//! Totals: everything that a server counts, declared once with what an operator reads of it.
//!
//! A frame counts into one of these, which is then added to the totals since the start and to every window that is
//! open. What is declared here, or in a group of it, is in all that is published: Prometheus, the report, the console,
//! docs/metrics.md.
//!
//! Owned by the frame thread. Cost: one addition for each counter and frame.

use throng_analytics::AnalyticsCounts;
use throng_metrics::counters;
use throng_world::TickStats;

use crate::{
    address_table::AdmissionCounts, browser_counts::BrowserCounts, long_tasks::counts::LongTaskCounts,
    recording::RecordingFigures, saves::SaveCounts, uploads::UploadCounts,
};

counters! {
    /// What the frame thread does.
    pub(crate) struct ServerCounts {
        Sum frames: "server.frames", "frames",
            "Frames run.",
            "Follows the frame grid; less than that when all worlds sleep.";
        Sum frames_over_budget: "server.frames_over_budget", "frames",
            "Frames longer than the frame grid.",
            "Worlds or the frame thread need more time than there is. A capture of such a frame says who; \
             `subsystem.frame_us` says which subsystem.";
        Sum ticks: "server.ticks", "ticks",
            "Ticks of worlds.",
            "Follows the worlds that are awake and their rates.";
        Sum listenings: "server.listenings", "steps",
            "Steps of reactive worlds in which what came was opened and no system ran: nobody had said anything.",
            "Follows clients that rest in reactive worlds: two in five seconds for each, and one for what each is told. Many \
             more: a client keeps its world awake; the console's `clients` says who sends.";
        Sum ticks_skipped: "server.ticks_skipped", "ticks",
            "Ticks that reactive worlds left out, since there was no reason to tick.",
            "Follows how little happens in them.";
        Sum ticks_missed: "server.ticks_missed", "ticks",
            "Ticks that did not start within their period.",
            "Players feel it. Too many worlds for the cores, a world that hangs (`server.world_hangs`), or a host that \
             gives its cores to others (`server.ticks_missed_host`).";
        Sum ticks_missed_host: "server.ticks_missed_host", "ticks",
            "Of the ticks missed, those that are the host's: it took a core away for 25 ms or more, by the kernel's records \
             of steal or by stalls (`host.stalls`), and they would have been in time otherwise.",
            "The host gives its cores to others: ask for cores of your own. Those missed beyond these are the server's own, \
             or have no record to show otherwise.";
        Sum host_stalls: "host.stalls", "stalls",
            "Times a core stood still for everybody for 4 ms or more: its heartbeat, which no process can delay, woke that \
             late.",
            "The host gives its cores to others, whatever it says of steal: ask for cores of your own. Captures show when \
             and on which core.";
        Sum host_stall_ms: "host.stall_ms", "ms",
            "How long these stalls were together, core by core.",
            "As `host.stalls`.";
        Max host_stall_longest_ms: "host.stall_longest_ms", "ms",
            "Longest of these stalls.",
            "As `host.stalls`. From 25 ms on, ticks that were missed for it count as the host's.";
        Sum overload_steps: "server.overload_steps", "steps",
            "Steps up and down of worlds on the overload ladder.",
            "Worlds come near their limits; see `throng_server_overload_level` and docs/overload.md. Many without end: a \
             load that changes within seconds.";
        Sum ticks_slowed: "server.ticks_slowed", "ticks",
            "Ticks of worlds whose time was slowed, since they had too little of it for their rate.",
            "Players see slow motion. `throng_server_worlds_slowed` says how many worlds that are now, and docs/overload.md what \
             is done. More cores, or fewer players to a world.";
        Sum time_lost_us: "server.time_lost_us", "us",
            "How far worlds whose time was slowed fell behind the clock by it, added up over all of them.",
            "As `server.ticks_slowed`.";
        Sum hangs: "server.world_hangs", "hangs",
            "Times a world did not come back from a tick within 100 ms.",
            "The log names the world and the stack that it is stuck in; a capture shows the rest. The other worlds play on with a worker less.";
        Sum worlds_parked: "server.worlds_parked", "worlds",
            "Worlds taken out of service after a panic.",
            "A bug: any is one too many. The log has the panic; the world's players were given to others, see \
             `server.clients_placed_again`, or disconnected.";
        Sum worlds_reloaded: "server.worlds_reloaded", "worlds",
            "Worlds that panicked and were made again, as they were before the tick that failed.",
            "As `server.worlds_parked`: a bug, of which its players saw a stutter.";
        Sum clients_placed_again: "server.clients_placed_again", "clients",
            "Clients whose world panicked and who went on in another.",
            "As `server.worlds_parked`: what they carried is lost.";
        Sum parkings: "server.parkings", "parkings",
            "Times that the plan of a world was parked, since worlds made by it panicked again and again.",
            "A bug in what the world is made from, or in its game. The log names kind and seed; the console's \
             `world.parked` tells those that are parked now, and `world.unpark` ends it.";
        Sum parked_refusals: "server.parked_refusals", "worlds",
            "Worlds that were asked for and not made, since their plan is parked.",
            "As `server.parkings`: whoever was to be there was placed elsewhere by the game, or refused.";
        Sum directory_panics: "server.directory_panics", "panics",
            "Panics of the game's directory.",
            "A bug: any is one too many. The log has the panic. Whoever was to be placed was refused.";
        Sum worlds_created: "server.worlds_created", "worlds",
            "Worlds that were asked for at run time and made.",
            "Follows what the game asks for.";
        Sum worlds_retired: "server.worlds_retired", "worlds",
            "Worlds that were ended at run time.",
            "Follows the worlds created; if fewer, worlds pile up.";
        Sum travels_refused: "server.travels_refused", "clients",
            "Clients that were sent to a world that is no more, and stayed with all they carry.",
            "The game sends players to worlds that it has retired.";
        Sum transfers_refused: "server.transfers_refused", "clients",
            "Clients that a world turned back, because it cannot read what they carry.",
            "Two builds disagree about a transfer's type or version. The log names both.";
        Sum messages_undeliverable: "world.messages_undeliverable", "messages",
            "Messages to worlds that are no more.",
            "A few follow worlds that end. Many: the game keeps ids of worlds that it has retired.";
        Sum disconnects: "server.disconnects", "connections",
            "Connections that ended, for whatever reason.",
            "The log says why each ended. Many at once: a network fault, or a world that was parked.";
        Sum messages_dropped: "world.messages_dropped", "messages",
            "Messages from one world to another that found its mailbox full.",
            "The receiving world does not tick, or is told more than it can read. What was in them is lost.";
        Sum impossible_states: "server.impossible_states", "states",
            "States that only a bug of the server's own can make, met and recovered from.",
            "Any is one too many: report it with the line that the log has for each.";
        Sum allocations: "server.allocations", "allocations",
            "Allocations of the frame thread.",
            "A steady frame makes a few a second, for what is published.";
        Sum worker_send_dropped: "net.worker_send_dropped", "datagrams",
            "Datagrams of worlds to their clients that the kernel did not take. They are sent again when their loss is \
             noticed.",
            "As `net.send_dropped`.";
    }
}

counters! {
    /// Everything that a server counts. What is declared in a group is in all that is published.
    pub(crate) struct Totals {
    }
    with {
        server: ServerCounts,
        long_tasks: LongTaskCounts,
        admission: AdmissionCounts,
        ticks: TickStats,
        saves: SaveCounts,
        recording: RecordingFigures,
        analytics: AnalyticsCounts,
        uploads: UploadCounts,
        browsers: BrowserCounts,
    }
}

/// What was counted since the last status.
pub(crate) struct LastSecond<'a> {
    pub counts: &'a Totals,
    pub seconds: f64,
}
