//! Report: what a tick did, and what it asks of whoever hosts the world.

use throng_metrics::counters;
use throng_pack::PackError;
use throng_platform::time::Nanos;
use throng_replication::ReplicationStats;

use crate::{
    client::Client,
    failures::FailedSystem,
    ids::{ClientKey, WorldId},
    long_task::WorldLongTask,
    saving::SaveReport,
    transfer::{Transfer, WorldMessage},
};

counters! {
    /// What a tick did, for the frame to add up.
    pub struct TickStats {
        Sum datagrams_in: "world.datagrams_in", "datagrams",
            "Datagrams that worlds found in their mailboxes, still sealed.",
            "Follows players. Much less than `net.packets_in`: the address table holds something back; see \
             `net.refused_by_handshake` and its neighbours.";
        Sum bytes_in: "world.bytes_in", "bytes",
            "Bytes of those datagrams.",
            "As `world.datagrams_in`.";
        Sum datagrams_refused: "net.refused_by_connection", "datagrams",
            "Datagrams under a client's address that did not open with its key, were late or doubled, or broke the \
             rules of the channels.",
            "Few are late or doubled by the network. Many: somebody writes a player's address on datagrams of their \
             own, or a client is broken.";
        Sum messages_refused: "net.messages_refused", "messages",
            "Messages of clients that are neither inputs nor requests, of a kind that their world does not declare, or \
             longer than any of their kind. The game is not given them.",
            "A client is broken, or is not the game's own program. One now and then: it was for any world, and the one \
             that its client came into does not declare it.";
        Sum schema_mismatches: "net.schema_mismatches", "clients",
            "Clients that left because they replicate by another schema than this server.",
            "Client and server were built from different versions of the game: bring both to the same one.";
        Sum said_over_limit: "net.said_over_limit", "messages",
            "Inputs and requests that were dropped because their client sends more of their kind than the game lets \
             it.",
            "A client that asks too often. If honest ones do, raise `PER_S_MAX` of that kind in the game.";
        Sum packets_out: "net.packets_out", "packets",
            "Packets sent to connected clients.",
            "Follows players and tick rates.";
        Sum bytes_out: "net.bytes_out", "bytes",
            "Bytes of packets sent to connected clients.",
            "The console's `packets` says what they hold. Lower rates and ranges in the rules file, or the budget in \
             the settings.";
        Sum packets_lost: "net.packets_lost", "packets",
            "Packets to clients that were reported lost.",
            "A few per cent are usual on players' lines. If all clients lose at once, look at this host's network and \
             at `net.send_dropped`.";
        Sum inputs_stale: "net.inputs_stale", "inputs",
            "Inputs that a client sent for a world that it had left.",
            "Follows travels: one or two for each.";
        Sum inputs_repeated: "net.inputs_repeated", "inputs",
            "Inputs that came again and were taken before, or came so late that nobody knows whether they were. The game \
             is given each once.",
            "Follows players of games whose inputs are repeated (`ClientInput::REPEATS`): up to so many for each input. \
             Much more: a client says old inputs again, which gains it nothing.";
        Sum inputs_late: "net.inputs_late", "inputs",
            "Inputs that came after a newer one of their client, and were given to the game all the same, marked as late.",
            "A few are usual: packets overtake each other on their way. Many: lines are bad, or a client sends its inputs \
             in another order than that of their numbers.";
        Sum requests_stale: "net.requests_stale", "requests",
            "Requests that a client sent for a world that it had left.",
            "Follows travels of players on slow lines. If players miss what they asked for, make the kind one \
             `FOR_ANY_WORLD`.";
        Sum inputs_over_allowance: "net.inputs_over_allowance", "inputs",
            "Inputs that were dropped because their client sends more than its allowance.",
            "A client that sends too often. It is dismissed if it goes on; raise the allowance in the settings if \
             honest ones are.";
        Sum messages_over_allowance: "net.messages_over_allowance", "messages",
            "Messages of price 1, inputs among them, that were dropped because their client sends more than its allowance.",
            "A client that packs many messages into few packets. It is dismissed if it goes on, or if a \
             request does not fit into the next second's allowance either; raise `client_messages_per_s_max` in the \
             settings if honest ones are.";
        Sum dear_messages_over_allowance: "net.dear_messages_over_allowance", "messages",
            "Messages with a price above 1 that were dropped because they ask for more work than their client's \
             allowance has left.",
            "As `net.messages_over_allowance`. The console's `clients` says who; if honest ones are, the game's price \
             is too high.";
        Sum message_work: "world.message_work", "units",
            "Work that clients asked of their worlds, by the prices of their messages; an ordinary input is 1.",
            "Follows players and what they do. The console's `clients` says who asks for most.";
        Sum players_unreplicated: "world.players_unreplicated", "clients",
            "Clients that were given a player whose entity has no `Replicated`, or is gone.",
            "A bug in the game: the client steers nothing, and sees nothing around it. The log names client and world.";
        Sum allocations: "world.allocations", "allocations",
            "Allocations in ticks of worlds, on all workers.",
            "A steady tick makes none. A capture with memory on names the scope that allocates.";
        Max allocations_in_tick: "world.allocations_in_tick", "allocations",
            "Most allocations in one tick of a world.",
            "As `world.allocations`; a spike is a world that starts, or a crowd that comes at once.";
        Sum systems_failed: "world.systems_failed", "failures",
            "Systems of games that could not run, or returned an error, run conditions that could not be asked, and \
             commands and observers that failed.",
            "A bug: any is one too many. The log names world, system and what is missing, at most once in ten seconds for \
             each system of a kind. A debug build parks the world.";
        Sum events: "replication.events", "events",
            "Events told by games.",
            "Follows what happens in the game.";
        Sum event_copies: "replication.event_copies", "messages",
            "Copies of events that went to clients: one for each that heard.",
            "Grows with the square of a crowd. Lower the event's range in the rules file.";
        Sum events_throttled: "replication.events_throttled", "events",
            "Events that came faster than their rule allows, and were told to nobody.",
            "Rules at work. If players miss something, raise the event's rate in the rules file.";
    }
    with {
        /// What replication did in the tick.
        replication: ReplicationStats,
    }
}

/// A client that leaves its world, for the host to act on.
pub enum Leaving {
    Travel {
        client: Box<Client>,
        to: WorldId,
        transfer: Transfer,
    },
    /// It did not come in, since what it carries cannot be read here: back to where it was, with it.
    Returned {
        client: Box<Client>,
        to: Option<WorldId>,
        transfer: Transfer,
        error: PackError,
    },
    /// Its connection is closed, and it has been told.
    Gone {
        client: ClientKey,
        reason: &'static str,
    },
}

/// What a tick did and asks for. The host empties the lists before the world's next tick.
#[derive(Default)]
pub struct TickReport {
    pub stats: TickStats,
    pub leaving: Vec<Leaving>,
    /// Messages to other worlds.
    pub messages: Vec<(WorldId, WorldMessage)>,
    /// What it wants done beside its ticks.
    pub long_tasks: Vec<WorldLongTask>,
    /// Systems that failed, as far as they are to have a line in the log.
    pub failed: Vec<FailedSystem>,
    /// How much longer than its last ones the next tick will take, as far as the game knows.
    pub next_tick_hint: Nanos,
    /// Nobody is here and the game allows sleep: unless there is mail, the next tick would do nothing.
    pub has_nothing_to_do: bool,
    /// No system ran: the world is reactive, and nothing had come for it but what clients' connections say to each other.
    pub was_listening: bool,
    /// How many ticks from the next one on need not be run unless mail comes; 0 in worlds that are not reactive.
    pub rests: u32,
    /// What is to be saved.
    pub saves: SaveReport,
    /// An operator's command was carried out in it, which may have changed anything: it is in no log.
    pub was_changed_from_outside: bool,
    /// One number for the world's state, if it was asked for.
    pub state_hash: Option<u64>,
}
