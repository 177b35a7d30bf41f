//! What is counted of saves, and what their log lines are under.

use throng_metrics::counters;
use throng_profiler::log_category;

log_category!(pub(crate) SAVES = "server.saves");

counters! {
    /// What became of saves.
    pub(crate) struct SaveCounts {
        Sum cuts: "saves.cuts", "cuts",
            "Worlds that were saved with everybody in them, as far as they are handed to the writer.",
            "Follows worlds and `period_s`, and players who leave or travel.";
        Sum cuts_failed: "saves.cuts_failed", "cuts",
            "Cuts that could not be taken: a world has what its type does not allow.",
            "A bug in the game: the log names world and reason. Nothing of that world is saved until it is mended, and nobody travels from it.";
        Sum players_left_out: "saves.players_left_out", "players",
            "Players whom a cut was taken without, since they have what their type does not allow; each time.",
            "A bug in the game: the log names player and reason. Their records stay as they were before, and are older than those of whom they deal with: if the server dies before a save has them again, they are not let in before `player.admit`.";
        Sum players_quarantined: "saves.players_quarantined", "players",
            "Players who left with what could not be saved. They are not let in before the console's `player.admit` says so.",
            "As `saves.players_left_out`. Whoever is let in has what their old record says: look at what they gave away since.";
        Sum commits: "saves.commits", "commits",
            "Commits that are on disk.",
            "At most one for each frame with a cut.";
        Sum bytes: "saves.bytes", "bytes",
            "Bytes of those commits.",
            "What is saved, before the store adds its own. If the disk is busy, raise `period_s` in the settings.";
        Sum transactions: "saves.transactions", "transactions",
            "Transactions that the commits were written in, with two fsyncs each.",
            "Fewer than commits where several wait together.";
        Max transaction_us: "saves.transaction_us", "us",
            "What the longest transaction took, its fsyncs included.",
            "Players and worlds wait so long until they are on disk, and ticks never. Long: a slow or busy disk.";
        Sum thread_cpu_us: "saves.thread_cpu_us", "us",
            "Processor time of the thread that saves.",
            "Follows bytes. With a file some pages of 4 KiB are packed for each record; with PostgreSQL the server has its own share elsewhere.";
        Sum refused: "saves.refused", "commits",
            "Commits that the store refused. What they held is handed in again.",
            "The disk is full or fails: the log says which. Nothing is lost while the server runs.";
        Sum put_off: "saves.put_off", "frames",
            "Frames in which the writer took nothing, since too much waited already or the store was down.",
            "The disk is too slow for what is saved, or dead. The console's `saves.status` says how much waits.";
        Sum store_errors: "saves.store_errors", "errors",
            "Failures of the store, each try to open it anew included.",
            "As `saves.refused`.";
        Sum records_damaged: "saves.records_damaged", "records",
            "Damaged records that were met. The ones before them were read instead.",
            "The disk has lost something: look at it, and at its backups.";
        Sum records_unreadable: "saves.records_unreadable", "records",
            "Records of players and worlds that could not be read. They are left as they are, and whoever they are of is not let in.",
            "The log names each. An older build than the one that wrote it, or damage.";
        Sum leases_held: "saves.leases_held", "log-ins",
            "Times that a player who logs in was with another process.",
            "A few follow players who change servers. Many: a process that shares the store has died, and its leases run on.";
        Sum leases_lost: "saves.leases_lost", "players",
            "Players that another process took over while they played here. They were sent away.",
            "Any is one too many: this process stood still for longer than `lease_s`, or the store was away for so long.";
        Sum players_loaded: "saves.players_loaded", "players",
            "Players who came in with what was saved of them.",
            "Follows log-ins of players who were here before.";
        Sum players_not_read: "saves.players_not_read", "log-ins",
            "Log-ins that were refused, since what is saved of the player was not read within `load_within_s`.",
            "The store hangs, or is too slow: the log names each. They may log in again.";
        Sum worlds_loaded: "saves.worlds_loaded", "worlds",
            "Worlds that were made with what was saved of them.",
            "Follows the worlds that are made again.";
        Sum worlds_lost: "saves.worlds_lost", "worlds",
            "Worlds that another process took over while they ran here. They ended.",
            "As `saves.leases_lost`.";
        Sum worlds_not_read: "saves.worlds_not_read", "worlds",
            "Worlds that were not made, since what is saved of them was not read within `load_within_s`.",
            "The store hangs, or is too slow for a rush of worlds: the log names each world. They may be asked for again.";
        Sum worlds_taken_back: "saves.worlds_taken_back", "worlds",
            "Worlds that went back to their last save, since a player who had been in them since, or they themselves, had become another process's.",
            "As `saves.leases_lost`: `lease_s` is to be longer than this process ever stands still, or its store is away.";
        Sum away: "saves.away", "frames",
            "Frames in which the store was away: it has failed, takes nothing, or has not answered for 2 s. Play went on, and nothing was saved.",
            "Any for longer than a moment: look at the disk, or at PostgreSQL. The log says what is wrong, `saves.status` how much waits.";
    }
}
