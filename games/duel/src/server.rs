//! The server: puts the lobby into a [`Server`], and says how it makes matches.

use throng::{Server, directory::OneWorld, lifecycle::NewWorld, prelude::*, server::ServerError};
use throng_replication::ReplicationRules;

use crate::{budgets, lobby::Lobby, map::Map, settings::DuelSettings, worlds::Match};

/// The worlds of a server that are there from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuelWorlds {
    pub lobby: WorldId,
}

/// Makes the lobby, into which everybody comes; it has matches made as they are needed.
///
/// Sketch of the cost: 0.2 s for the map.
pub fn build(server: &mut Server, settings: &DuelSettings) -> Result<DuelWorlds, ServerError> {
    build_with(server, settings, |matches| matches)
}

/// The same with another kind of world in the place of matches: one that adds to a match, for tests.
pub fn build_with<K: WorldKind>(
    server: &mut Server,
    settings: &DuelSettings,
    make: impl FnOnce(Match) -> K,
) -> Result<DuelWorlds, ServerError> {
    server.set_game("duel");
    let faults = settings.faults.clone();
    let matches = server.add_kind(make(Match { map: Map::load(), rules: settings.rules(), faults }))?;
    let lobby = server.add_kind(Lobby {
        control: server.control(),
        matches,
        match_size: settings.match_size(),
        fill_s: settings.fill_s,
    })?;
    let seed = settings.seed.unwrap_or_else(|| server.draw_seed());
    let plan = NewWorld::new(lobby, seed);
    let lobby = server.create_world_as(plan.clone())?;
    // Who is far away is shot at, too: everybody in sight is told of in every tick.
    let rules = ReplicationRules { tiers: Vec::new(), ..server.replication_rules().clone() };
    server.set_replication_rules(rules);
    budgets::suggest(server);
    let match_faults = settings.faults.iter().map(|faulty| faulty.fault);
    throng_faults::start(server, match_faults, &settings.background_faults)?;
    server.set_directory(OneWorld::new(server.control(), plan, lobby));
    Ok(DuelWorlds { lobby })
}
