//! What a server counts of its long tasks.

use throng_metrics::counters;

counters! {
    /// What was counted of long tasks.
    pub(crate) struct LongTaskCounts {
        Sum started: "server.long_tasks_started", "tasks",
            "Long tasks that were started: worlds made and dropped, values dropped, what the game has done beside its ticks.",
            "Follows worlds that come and go. The console's `tasks` tells the kinds.";
        Sum finished: "server.long_tasks_finished", "tasks",
            "Long tasks that are done.",
            "Follows those started; if fewer, they pile up.";
        Sum missed: "server.long_tasks_missed", "tasks",
            "Long tasks that were done after their deadline.",
            "Any is one too many at the usual settings. The cores are full: see `throng_server_starvation_level`, and docs/long-tasks.md.";
        Sum panicked: "server.long_tasks_panicked", "tasks",
            "Long tasks that panicked.",
            "A bug: any is one too many. The log has the panic, the console's `tasks` the kind.";
        Sum refused: "server.long_tasks_refused", "tasks",
            "Long tasks that were not started, because as many waited as may (`waiting_max` in `[long_tasks]`).",
            "A rush of players for whom no world is made in time. One that gives memory back is never refused.";
        Max wait_ms: "server.long_task_wait_ms", "ms",
            "The longest that a long task waited for a thread.",
            "Long tasks pile up, or one of them takes long.";
        Sum levels_changed: "server.starvation_steps", "steps",
            "Times that a worker left its core to long tasks, or got it back.",
            "Worlds take nearly all of the cores. Many without end: bring the marks in `[long_tasks]` farther apart.";
        Sum results_undeliverable: "server.long_task_results_undeliverable", "results",
            "Results of worlds' long tasks whose world had ended or took no more messages.",
            "A few follow worlds that end.";
    }
}
