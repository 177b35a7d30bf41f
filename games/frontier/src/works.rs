//! Works: what players do to the land: claim plots, build houses on them, batter them down, fell trees and dig.
//!
//! | asked | needs |
//! |---|---|
//! | claim | no plot of one's own yet, one that is nobody's, away from towns |
//! | abandon | one's own plot near |
//! | build | one's own plot; a bare, level and empty cell; one of what is carried |
//! | batter | a piece of a house, whoever's it is |
//! | harvest | a tree that does not stand on another's plot |
//! | dig | a boulder, or a bare and empty cell that can be dug deeper, not on another's plot |
//!
//! All within [`REACH_M`], by the living, with [`PAUSE_MS`] between two. What a player may own is bounded by its plot: 64
//! cells. What cannot be done is counted (`works_refused`).
//!
//! Clients are told of land in the nine sectors around their player: of what was changed there when a sector comes near,
//! and of each change from then on. Nothing is walked for it: a sector knows who is near.
//!
//! Cost: 5 ns for each player and tick, for its sector; 300 ns for a sector that comes near; 200 ns for a change, and 60
//! for each player near.

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_pack::List;

use crate::{
    analytics::{PieceDestroyed, PiecePlaced, PlotClaimed},
    characters::GOODS,
    events::CellChanged,
    land::{
        Cell, Ground, Growth, Map, Piece, PieceKind, Plot, Sector,
        ground::{DEPTH_MAX, PIECE_HEALTH},
        map::Wanted,
        store::LoadedSector,
    },
    landscape::{TOWN_RADIUS_M, distance_m2},
    protocol::{CellSeen, LandSeen, Site, Whose, Work},
    roster::{PlayerRow, Roster},
    zone::Zone,
};

/// How far from a player a cell's middle may be. (m)
pub const REACH_M: f32 = 6.0;
/// How far from its player the corner of a plot may be that is given up. (m)
const PLOT_REACH_M: f32 = 30.0;
/// Between two works of one player. (ms)
pub const PAUSE_MS: u32 = 500;
/// What a blow takes of a piece.
pub const BLOW: u8 = 25;
/// What a tree gives.
pub const PER_TREE: u16 = 2;
/// Nobody settles nearer to the middle of a town. (m)
const TOWN_M: f32 = TOWN_RADIUS_M + 20.0;

/// Whether there is anything for [`hear`] to do.
pub fn something_came(messages: Res<WorldMessages>) -> bool {
    !messages.0.is_empty()
}

/// What was saved of sectors has come.
pub fn hear(
    mut messages: ResMut<WorldMessages>,
    mut map: ResMut<Map>,
    roster: Res<Roster>,
    mut outbox: ResMut<Outbox>,
) {
    for message in messages.0.drain(..) {
        if message.is::<LongTaskLost>() {
            throng::count!("sectors_lost");
            map.ask_again();
            continue;
        }
        let Ok(LoadedSector { sector, ask, cells }) = message.read() else {
            throng::count!("world_messages_refused");
            continue;
        };
        let Some(cells) = cells else {
            throng::count!("sectors_unreadable", map.not_arrived(Wanted { sector, ask }));
            continue;
        };
        if map.arrived(Wanted { sector, ask }, cells.iter().map(|cell| (cell.index, cell.ground))) {
            throng::count!("sectors_loaded");
            for &row in map.near(sector) {
                show(&map, sector, &roster, row, &mut outbox);
            }
        }
    }
}

/// Whether there is anything for [`grant`] to do.
pub fn something_is_asked(works: Requests<Work>) -> bool {
    !works.is_empty()
}

/// Does what was asked for, in the order in which it was.
pub fn grant(mut zone: Zone, mut map: ResMut<Map>, works: Requests<Work>, rows: Query<&PlayerRow>) {
    for (sender, &work) in works.read() {
        // Who has left in an earlier tick has no row.
        let Some(Ok(&row)) = sender.entity.map(|player| rows.get(player)) else { continue };
        let done = attempt(&mut zone, &mut map, row, work);
        throng::count!("works", u64::from(done.is_some()));
        throng::count!("works_refused", u64::from(done.is_none()));
    }
}

fn attempt(zone: &mut Zone, map: &mut Map, row: PlayerRow, work: Work) -> Option<()> {
    let (now, actor) = (zone.now(), zone.roster.actor(row)?);
    let (place, is_able) = (zone.actors[actor].place, zone.actors[actor].alive && !zone.actors[actor].is_stunned(now));
    let player = zone.roster.get(row.0)?;
    let (account, own_plot) = (player.account, player.plot);
    if !is_able || player.works_tick > now {
        return None;
    }
    let near = |cell: Cell| (cell.away_m2(place) <= REACH_M * REACH_M).then_some(cell);
    match work {
        Work::Claim(cell) => {
            let corner = near(cell)?.plot().corner();
            let is_in_town =
                zone.land.0.towns().iter().any(|town| distance_m2(*town, corner.middle()) < TOWN_M * TOWN_M);
            let ground = map.ground(corner)?;
            // Whose is its own already, and does not know, is told so.
            if own_plot.is_some() || ground.owner.is_some_and(|owner| owner != account) || is_in_town {
                return None;
            }
            change(zone, map, corner, Ground { owner: Some(account), ..ground })?;
            zone.roster.get_mut(row.0)?.plot = Some(cell.plot());
            throng::count!("plots_claimed");
            let [x_m, z_m] = corner.middle();
            PlotClaimed { account, x_m, z_m }.emit();
        }
        Work::Abandon => {
            let corner = own_plot?.corner();
            let ground = map.ground(corner).filter(|ground| ground.owner == Some(account))?;
            if corner.away_m2(place) > PLOT_REACH_M * PLOT_REACH_M {
                return None;
            }
            change(zone, map, corner, Ground { owner: None, ..ground })?;
            zone.roster.get_mut(row.0)?.plot = None;
        }
        Work::Build(Site { cell, kind }) => {
            let ground = map.ground(near(cell)?)?;
            let is_site = ground.growth == Growth::Bare && ground.depth == 0 && ground.piece.is_none();
            // Nobody walls itself in.
            let stands_in_it = kind == PieceKind::Wall && Cell::at(place) == cell;
            if !is_site || stands_in_it || owner(map, cell.plot())? != Some(account) || !zone.roster.pay(row.0, 1) {
                return None;
            }
            change(zone, map, cell, Ground { piece: Some(Piece { kind, health: PIECE_HEALTH }), ..ground })?;
            zone.tell_purse(row.0);
            throng::count!("pieces_built");
            let [x_m, z_m] = cell.middle();
            PiecePlaced { account, x_m, z_m, is_wall: kind == PieceKind::Wall }.emit();
        }
        Work::Batter(cell) => {
            let ground = map.ground(near(cell)?)?;
            let piece = ground.piece?;
            let health = piece.health.saturating_sub(BLOW);
            let left = (health > 0).then_some(Piece { health, ..piece });
            change(zone, map, cell, Ground { piece: left, ..ground })?;
            if left.is_none() {
                zone.outbox.items_created(GOODS, -1);
                throng::count!("pieces_destroyed");
                let [x_m, z_m] = cell.middle();
                PieceDestroyed { by_account: account, x_m, z_m }.emit();
            }
        }
        Work::Harvest(cell) => {
            let ground = map.ground(near(cell)?).filter(|ground| ground.growth == Growth::Tree)?;
            may_touch(map, cell, account)?;
            change(zone, map, cell, Ground { growth: Growth::Bare, ..ground })?;
            zone.earn(row.0, PER_TREE);
            throng::count!("trees_felled");
        }
        Work::Dig(cell) => {
            let ground = map.ground(near(cell)?).filter(|ground| ground.piece.is_none())?;
            may_touch(map, cell, account)?;
            let dug = match ground.growth {
                Growth::Boulder => Ground { growth: Growth::Bare, ..ground },
                Growth::Bare if ground.depth < DEPTH_MAX => Ground { depth: ground.depth + 1, ..ground },
                _ => return None,
            };
            change(zone, map, cell, dug)?;
            throng::count!("cells_dug");
        }
    }
    zone.roster.get_mut(row.0)?.works_tick = now + zone.ticks(PAUSE_MS);
    Some(())
}

/// Whose a plot is. `None`: it is not known yet.
fn owner(map: &Map, plot: Plot) -> Option<Option<u64>> {
    map.ground(plot.corner()).map(|ground| ground.owner)
}

/// Whether a cell is not another's.
fn may_touch(map: &Map, cell: Cell, account: u64) -> Option<()> {
    owner(map, cell.plot())?.is_none_or(|owner| owner == account).then_some(())
}

/// Changes a cell, and tells those near.
fn change(zone: &mut Zone, map: &mut Map, cell: Cell, ground: Ground) -> Option<()> {
    map.change(cell, ground).then_some(())?;
    for &row in map.near(cell.sector()) {
        let Some(player) = zone.roster.get(row) else { continue };
        let changed = CellChanged {
            cell: cell.number(),
            growth: ground.growth,
            depth: ground.depth,
            piece: ground.piece.map(|piece| piece.kind),
            health: ground.piece.map_or(0, |piece| piece.health),
            whose: whose(ground.owner, player.account),
        };
        zone.events.send(&changed, Audience::Client(player.client), "land.change");
    }
    Some(())
}

fn whose(owner: Option<u64>, account: u64) -> Whose {
    match owner {
        None => Whose::Nobodys,
        Some(owner) if owner == account => Whose::Own,
        Some(_) => Whose::Others,
    }
}

/// Players who have come into another sector are told of the land that has come near.
pub fn follow(mut zone: Zone, mut map: ResMut<Map>) {
    let mut players = zone.scratch.take();
    players.extend(zone.roster.actors());
    for &actor in &players {
        let (row, here) = (zone.actors[actor].player, Sector::at(zone.actors[actor].place));
        let Some(player) = zone.roster.get_mut(row) else { continue };
        let before = player.sector.replace(here);
        if before == Some(here) {
            continue;
        }
        for sector in before.into_iter().flat_map(Sector::around).filter(|sector| !sector.is_around(here)) {
            map.leave(sector, row);
        }
        for sector in here.around().filter(|sector| !before.is_some_and(|before| sector.is_around(before))) {
            if map.enter(sector, row) {
                show(&map, sector, &zone.roster, row, &mut zone.outbox);
            }
        }
    }
    zone.scratch.give_back(players);
}

/// Shows a player what was changed in a sector; nothing if nothing was.
fn show(map: &Map, sector: Sector, roster: &Roster, row: u32, outbox: &mut Outbox) {
    let (Some(changed), Some(player)) = (map.changed(sector), roster.get(row)) else { return };
    if changed.is_empty() {
        return;
    }
    let seen = |&(index, Ground { growth, depth, piece, owner }): &(u16, Ground)| CellSeen {
        index,
        growth,
        depth,
        piece,
        whose: whose(owner, player.account),
    };
    let cells: Vec<CellSeen> = changed.iter().map(seen).collect();
    // There are no more cells in a sector than fit.
    let Ok(cells) = List::try_from(cells) else { return };
    outbox.send(player.client, &LandSeen { sector, cells }).expect("it has no other limits");
    throng::count!("sectors_shown");
}
