//! Stats: what replication counts about itself, declared once with what an operator reads of it.
//!
//! Entities and each view count into a struct of their own, without a lock; `WorldReplication::take_stats` adds them
//! up.

use throng_metrics::counters;

counters! {
    /// What replication did since its counts were last taken: of a world's entities, of one view, or of all together.
    pub struct ReplicationStats {
        Sum components_encoded: "replication.components_encoded", "components",
            "Components encoded, whether their bytes changed or not.",
            "Follows what the game writes. Much more than changes says that systems touch components without need: \
             write only what is new.";
        Sum postponed: "replication.postponed", "changes",
            "Changes that came earlier than their rule allows, and were put aside until it does.",
            "Rules at work. If players see jerks, raise the kind's rate in the rules file.";
        Sum entity_updates: "replication.entity_updates", "records",
            "Records written into snapshots: updates, spawns and despawns.",
            "Follows players and what moves near them. The console's `packets` says which kinds.";
        Sum spawns: "replication.spawns", "records",
            "Spawns written into snapshots, also those written again because a packet was lost.",
            "Crowds that move, or an interest radius in which many come and go: widen the gap between enter and leave \
             radius.";
        Sum despawns: "replication.despawns", "records",
            "Despawns written into snapshots.",
            "As `replication.spawns`.";
        Sum snapshots: "replication.snapshots", "messages",
            "Snapshots written.",
            "Follows players and the tick rate.";
        Sum snapshot_bytes: "replication.snapshot_bytes", "bytes",
            "Bytes of snapshots, before sealing.",
            "The console's `packets` says which kinds of components; lower their rates or ranges in the rules file.";
        Sum audit_samples: "replication.audit_samples", "messages",
            "Samples of the exact state sent for clients to hold their copies against.",
            "Follows players: two a second each.";
        Sum owed_again: "replication.owed_again", "components",
            "Components that a lost packet carried last, and that are sent again.",
            "Clients' lines lose packets. Compare with `net.packets_lost`; if all clients lose at once, look at this \
             host's network.";
        Sum poisoned: "replication.poisoned", "values",
            "Values that were NaN or infinite when they were encoded. They are not sent, and their entity is no longer \
             replicated.",
            "A bug in the game: any is one too many. Clients see the entity vanish; look for a division by zero.";
        Sum clamped: "replication.clamped", "values",
            "Values outside their declared range when they were encoded, moved to its nearer end.",
            "Clients see another value than the server has: widen the range in the component's declaration, or mend \
             the game.";
        Sum spawns_refused: "replication.spawns_refused", "entities",
            "Entities that a full world could not replicate.",
            "Players do not see them. Something in the game is spawned and never despawned, or the world is too large \
             for one.";
        Sum entries_visited: "replication.entries_visited", "entries",
            "Entries of clients' sets that were looked at one by one.",
            "The cost of replication. In a world in which nothing happens, none are; it grows with spawns, losses and \
             small budgets.";
        Sum answers_unknown: "replication.answers_unknown", "packets",
            "Acknowledgements and losses of packets that carried no snapshot, or were answered before. They change \
             nothing.",
            "Follows players. Much more than `net.packets_out`: a client makes up acknowledgements.";
    }
}
