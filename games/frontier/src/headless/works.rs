//! Land in the world that ships: who may do what to it, who is told, and what comes back with a player.

use super::*;
use crate::{
    characters::{Character, kept},
    land::{
        Cell, Ground, Growth, Map, Piece, PieceKind,
        ground::{DEPTH_MAX, PIECE_HEALTH},
        map::Wanted,
        store::{LoadedSector, SavedCell},
    },
    protocol::{CellSeen, LandSeen, Realm, Site, Whose, Work},
    works::{BLOW, PER_TREE},
};

/// Away from all towns, in nobody's land.
const FIELD: [f32; 2] = [400.0, 400.0];
/// Ticks of the pause between two works.
const PAUSE: u32 = 10;

fn field() -> [f32; 2] {
    beside(FIELD)
}

impl Headless {
    fn settler(&mut self, client: u32, aside: [f32; 2]) -> u32 {
        let player = self.arrive(client);
        self.put(player, [FIELD[0] + aside[0], FIELD[1] + aside[1]]);
        self.world.ticks(PAUSE);
        player
    }

    /// Asks for a work, with its pause before it. Whether it was done.
    fn work(&mut self, client: u32, work: Work) -> bool {
        self.world.ticks(PAUSE);
        let before = self.tally().of("works");
        self.world.request(ClientKey(client), &work);
        self.tick();
        self.ecs().resource::<Map>().check();
        self.tally().of("works") > before
    }

    fn ground(&self, cell: Cell) -> Ground {
        self.ecs().resource::<Map>().ground(cell).expect("somebody is near")
    }

    fn set_ground(&mut self, cell: Cell, ground: Ground) {
        assert!(self.ecs_mut().resource_mut::<Map>().change(cell, ground));
    }

    fn character(&self, client: u32) -> Character {
        let entity = self.ecs().resource::<Inbox>().players().entity(ClientKey(client)).unwrap();
        kept(self.ecs(), entity).expect("it has a player")
    }
}

/// The cell that is so many cells from the field's middle.
fn cell(right: i32, down: i32) -> Cell {
    let middle = Cell::at(field()).middle();
    Cell::at([middle[0] + right as f32 * 2.0, middle[1] + down as f32 * 2.0])
}

fn lone(clients: u32) -> Headless {
    let mut zone = Headless::scene(&[], 0);
    for client in 0..clients {
        zone.settler(client, [client as f32 * 0.5, 0.0]);
    }
    zone
}

#[test]
fn a_player_builds_on_its_own_plot_with_what_it_carries_and_others_do_not() {
    let mut zone = lone(2);
    let site = cell(1, 0);
    zone.set_ground(site, Ground::BARE);
    let build = Work::Build(Site { cell: site, kind: PieceKind::Wall });
    assert!(!zone.work(0, build), "it is nobody's land");
    assert!(zone.work(0, Work::Claim(site)));
    assert!(!zone.work(1, Work::Claim(site)), "it is another's");
    assert!(!zone.work(0, build), "it carries nothing");
    let row = |zone: &Headless, client| zone.actor(zone.player(client)).player;
    for client in 0..2 {
        let row = row(&zone, client);
        zone.ecs_mut().resource_mut::<Roster>().earn(row, 3);
    }
    assert!(!zone.work(1, build), "not on another's plot");
    assert!(zone.work(0, build));
    assert_eq!(zone.ground(site).piece, Some(Piece { kind: PieceKind::Wall, health: PIECE_HEALTH }));
    assert!(!zone.work(0, build), "something stands there");
    assert!(!zone.work(0, Work::Build(Site { cell: cell(0, 0), kind: PieceKind::Wall })), "it stands in it");
    assert_eq!(zone.character(0).carried, 2);
    assert!(!zone.work(0, Work::Claim(cell(-3, 0))), "one plot each");
    let far = Cell::at([field()[0] + 9.0, field()[1]]);
    assert!(!zone.work(0, Work::Dig(far)), "out of reach");
    assert!(!zone.work(1, Work::Abandon), "it has none");
    assert!(zone.work(0, Work::Abandon));
    assert!(zone.work(1, Work::Claim(site)), "it is nobody's again");
}

#[test]
fn anybody_batters_a_piece_down_blow_by_blow_and_all_who_are_near_know() {
    let mut zone = lone(2);
    let site = cell(1, 0);
    zone.set_ground(
        site,
        Ground { piece: Some(Piece { kind: PieceKind::Floor, health: PIECE_HEALTH }), ..Ground::BARE },
    );
    for blow in 1..=PIECE_HEALTH / BLOW {
        assert!(zone.work(1, Work::Batter(site)));
        let left = PIECE_HEALTH - blow * BLOW;
        assert_eq!(zone.ground(site).piece.map_or(0, |piece| piece.health), left);
    }
    assert!(!zone.work(1, Work::Batter(site)));
    assert_eq!(zone.tally().of("pieces_destroyed"), 1);
}

#[test]
fn a_player_does_one_work_in_half_a_second_however_often_it_asks() {
    let mut zone = lone(1);
    let hole = cell(0, 1);
    zone.set_ground(hole, Ground::BARE);
    for _ in 0..2 * PAUSE {
        zone.world.request(ClientKey(0), &Work::Dig(hole));
        zone.tick();
    }
    assert_eq!((zone.ground(hole).depth, zone.tally().of("works_refused")), (2, u64::from(2 * PAUSE) - 2));
}

#[test]
fn trees_give_and_are_gone_and_holes_have_a_bottom() {
    let mut zone = lone(2);
    let (tree, hole) = (cell(1, 1), cell(0, 1));
    zone.set_ground(tree, Ground { growth: Growth::Tree, ..Ground::BARE });
    zone.set_ground(hole, Ground { growth: Growth::Boulder, ..Ground::BARE });
    assert!(zone.work(0, Work::Harvest(tree)) && !zone.work(1, Work::Harvest(tree)));
    assert_eq!((zone.character(0).carried, zone.ground(tree).growth), (PER_TREE, Growth::Bare));
    let digs = (0..DEPTH_MAX + 3).filter(|_| zone.work(0, Work::Dig(hole))).count();
    assert_eq!((digs, zone.ground(hole).depth), (usize::from(DEPTH_MAX) + 1, DEPTH_MAX), "the boulder first");
}

#[test]
fn nobody_walks_into_a_wall_and_everybody_over_a_floor() {
    let mut zone = lone(1);
    let player = zone.player(0);
    let walk = |zone: &mut Headless| {
        for _ in 0..20 {
            zone.input(0, Input::new([1.0, 0.0], 0.0));
            zone.tick();
        }
        zone.actor(player).place[0]
    };
    let wall = cell(2, 0);
    let ground = |kind| Ground { piece: Some(Piece { kind, health: 1 }), ..Ground::BARE };
    zone.set_ground(wall, ground(PieceKind::Wall));
    let stopped = walk(&mut zone);
    assert!(stopped <= wall.middle()[0] - 1.0, "{stopped}");
    assert!(zone.tally().of("walks_into_walls") > 0);
    zone.set_ground(wall, ground(PieceKind::Floor));
    assert!(walk(&mut zone) > wall.middle()[0] + 1.0);
}

/// What clients are told of land: all that was changed in a sector that comes near, and whose it is to them.
#[test]
fn land_is_shown_when_it_comes_near() {
    let mut zone = lone(1);
    assert!(zone.work(0, Work::Claim(cell(0, 0))));
    let corner = cell(0, 0).plot().corner();
    let seed = zone.ecs().resource::<Map>().seed();
    let shown = |zone: &mut Headless, client: u32| {
        zone.arrive(client);
        let told = zone.world.told::<Realm>(ClientKey(client));
        assert_eq!(told, [Realm { seed }]);
        let player = zone.player(client);
        zone.put(player, FIELD);
        zone.tick();
        zone.world.told::<LandSeen>(ClientKey(client))
    };
    let other = shown(&mut zone, 5);
    let [LandSeen { sector, cells }] = &other[..] else { panic!("one sector: {other:?}") };
    let [CellSeen { index, whose, .. }] = cells[..] else { panic!("one cell: {cells:?}") };
    assert_eq!((sector.cell(index), whose), (corner, Whose::Others));
    // Who comes again is told that it is its own.
    zone.leave(0);
    let own = shown(&mut zone, 0);
    assert_eq!(own[0].cells[0].whose, Whose::Own);
    zone.world.ticks(5);
    assert!(zone.world.told::<LandSeen>(ClientKey(0)).is_empty(), "once");
    zone.ecs().resource::<Map>().check();
}

#[test]
fn a_character_comes_back_as_it_went() {
    let mut zone = lone(1);
    assert!(zone.work(0, Work::Claim(cell(0, 0))));
    let player = zone.player(0);
    let row = zone.actor(player).player;
    zone.ecs_mut().resource_mut::<Roster>().earn(row, 7);
    let half = zone.actor(player).health_max / 2;
    zone.hurt(player, half);
    let went = zone.character(0);
    assert!((49..=51).contains(&went.health) && went.plot.is_some() && went.carried == 7, "{went:?}");
    zone.leave(0);
    zone.world.arrive_from(ClientKey(0), WorldId::new(0, 0), &went).unwrap();
    zone.tick();
    let came = zone.character(0);
    assert_eq!(Character { health: went.health, ..came }, went);
    assert!(came.health.abs_diff(went.health) <= 1, "{came:?}");
    zone.world.ticks(PAUSE);
    assert!(!zone.work(0, Work::Claim(cell(0, 3))), "it still has its plot");

    // Who was dead stands up at its hearth, well.
    zone.leave(0);
    let dead = Character { health: 0, ..went };
    zone.world.arrive_from(ClientKey(0), WorldId::new(0, 0), &dead).unwrap();
    zone.tick();
    let came = zone.character(0);
    assert_eq!((came.health, came.carried, came.hearth), (HEALTH_MAX, 7, went.hearth));
    assert!(distance_m2(came.place, came.hearth).sqrt() < 12.0);
}

/// A world with a store: land is nobody's to touch before what is saved of it has come.
#[test]
fn land_that_has_not_come_yet_is_neither_shown_nor_changed() {
    let mut zone = Headless::scene(&[], 0);
    zone.ecs_mut().insert_resource(Map::new(1, true));
    zone.settler(0, [0.0, 0.0]);
    let hole = cell(0, 1);
    let wanted: Vec<_> = zone.ecs_mut().resource_mut::<Map>().take_wanted().collect();
    let Some(&Wanted { sector, ask }) = wanted.iter().find(|wanted| wanted.sector == hole.sector()) else {
        panic!("{wanted:?}");
    };
    assert!(!zone.work(0, Work::Dig(hole)));
    let ground = Ground { depth: 1, ..Ground::BARE };
    let mut cells = List::new();
    cells.push(SavedCell { index: hole.index(), ground }).unwrap();
    zone.world.post(WorldId::new(0, 0), &LoadedSector { sector, ask, cells: Some(cells) }).unwrap();
    zone.tick();
    assert_eq!(zone.tally().of("sectors_loaded"), 1);
    assert_eq!(zone.world.told::<LandSeen>(ClientKey(0)).len(), 1);
    assert!(zone.work(0, Work::Dig(hole)));
    assert_eq!(zone.ground(hole).depth, 2);
    let dirty = zone.ecs_mut().resource_mut::<Map>().take_dirty(1);
    assert_eq!(dirty, [(hole, Some(Ground { depth: 2, ..Ground::BARE }))]);
}
