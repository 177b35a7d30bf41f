//! The whole game without a server: the same systems in a Bevy schedule, scripted players instead of clients.

use bevy_ecs::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_net::protocol::ClientId;
use throng_platform::{
    allocator::{CountingAllocator, thread_counts},
    process::thread_cpu_time,
};
use throng_replication::{
    Concealed, InterestSettings, NetId, Team, WorldReplication,
    ecs::{Collector, Replicated},
};

use crate::{
    FrontierSettings,
    actors::{Actor, Actors},
    blows::DEATH_MS,
    close::{Close, Question},
    components::{Animation, Effects, HEALTH_MAX, Kind, Look, Name, Points, Pose, Vitals},
    concealment,
    landscape::{Landscape, distance_m2},
    npc::{Mind, Minds, population, think::LEASH_M},
    parties::MEMBERS_MAX,
    players::{RUN_M_PER_S, Roster},
    protocol::{Ability, ClientMessage, Input},
    schema,
    signals::{HANDLE_MS, MAILBOX_MAX, Mailboxes},
    tally::Tally,
    worlds::{TICK_HZ, fill, prepare, schedule},
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// One world, its schedule, and as much of replication as gives entities their names.
struct Headless {
    world: World,
    schedule: Schedule,
    collector: Collector,
    replication: WorldReplication,
    tick: u32,
}

impl Headless {
    fn empty(seed: u64) -> Self {
        let mut world = World::new();
        let mut collector = Collector::new(schema());
        collector.replicate::<Pose>(&mut world);
        collector.replicate::<Vitals>(&mut world);
        collector.replicate::<Points>(&mut world);
        collector.replicate::<Animation>(&mut world);
        collector.replicate::<Effects>(&mut world);
        collector.replicate::<Look>(&mut world);
        collector.replicate::<Name>(&mut world);
        collector.placed_by::<Pose>(&mut world);
        let rate = Hertz(TICK_HZ);
        world.insert_resource(TickInfo { tick: 0, dt_s: 1.0 / f32::from(TICK_HZ), rate, world: WorldId(0) });
        world.insert_resource(WorldRng(Xoshiro256PlusPlus::seed_from_u64(seed)));
        world.insert_resource(Events::new(schema()));
        world.init_resource::<Inbox>();
        world.init_resource::<Outbox>();
        world.init_resource::<Arrivals>();
        world.init_resource::<Departures>();
        let replication = WorldReplication::new(schema(), InterestSettings::default());
        Self { world, schedule: schedule(), collector, replication, tick: 0 }
    }

    fn new(settings: &FrontierSettings) -> Self {
        let mut zone = Self::empty(settings.seed);
        fill(&mut zone.world, settings, settings.seed);
        zone
    }

    /// NPCs of these kinds, all of one camp, around the middle of the first town, where it is flat: their places are aside from it. After
    /// them so many players, at the middle.
    fn scene(npcs: &[(Kind, [f32; 2])], players: u32) -> Self {
        let mut zone = Self::empty(7);
        prepare(&mut zone.world, &FrontierSettings { npcs: npcs.len(), ..FrontierSettings::default() });
        let minds =
            Minds { mailboxes: Mailboxes::new(1), awake_until: vec![0; 1], camps: vec![middle()], ..Minds::default() };
        zone.world.insert_resource(minds);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for &(kind, aside) in npcs {
            population::add_npc(&mut zone.world, kind, 1, beside(aside), 0, &mut rng);
        }
        for client in 0..players {
            let index = zone.arrive(client);
            zone.put(index, [0.0, 0.0]);
        }
        // Clients' names for them are known a tick after they came.
        zone.tick();
        zone
    }

    fn tick(&mut self) {
        self.begin_tick();
        self.schedule.run(&mut self.world);
        self.end_tick();
    }

    fn begin_tick(&mut self) {
        self.world.resource_mut::<TickInfo>().tick = self.tick;
    }

    fn end_tick(&mut self) {
        self.world.resource_mut::<Inbox>().clear();
        self.world.resource_mut::<Events>().clear();
        self.world.resource_mut::<Outbox>().clear();
        self.tick += 1;
        self.replication.begin_tick(self.tick);
        self.collector.collect(&mut self.world, &mut self.replication);
        self.world.clear_trackers();
    }

    fn ticks(&mut self, count: u32) {
        (0..count).for_each(|_| self.tick());
    }

    /// Ticks until something holds, `count` times at most; whether it did.
    fn until(&mut self, count: u32, holds: impl Fn(&Self) -> bool) -> bool {
        for _ in 0..count {
            self.tick();
            if holds(self) {
                return true;
            }
        }
        false
    }

    /// The actor of a new client.
    fn arrive(&mut self, client: u32) -> u32 {
        let client = ClientKey(client);
        self.world.resource_mut::<Arrivals>().0.push(Arrival {
            client,
            client_id: ClientId(u64::from(client.0)),
            user_data: Box::new([0; 256]),
            luggage: None,
        });
        self.tick();
        self.player(client.0)
    }

    fn leave(&mut self, client: u32) {
        self.world.resource_mut::<Departures>().0.push(ClientKey(client));
        self.tick();
    }

    fn player(&self, client: u32) -> u32 {
        self.world.resource::<Roster>().actor(ClientKey(client)).expect("who arrives is seated in the same tick")
    }

    fn input(&mut self, client: u32, input: Input) {
        let kind = MessageKind::Input { number: 0 };
        self.world.resource_mut::<Inbox>().push(ClientKey(client), kind, &input.encode());
    }

    fn say(&mut self, client: u32, message: ClientMessage<'_>) {
        self.world.resource_mut::<Inbox>().push(ClientKey(client), MessageKind::Reliable, &message.encode());
    }

    /// Has a player cast, and waits until it is done.
    fn cast(&mut self, client: u32, ability: Ability) {
        self.input(client, standing().casting(ability));
        let player = self.player(client);
        self.tick();
        assert!(self.actor(player).casting.is_some(), "{ability:?} was begun");
        let done = self.until(200, |zone| zone.actor(player).casting.is_none());
        assert!(done, "{ability:?} came to an end");
    }

    fn target(&mut self, client: u32, target: u32) {
        let id = self.actor(target).id.expect("it has been here for a tick");
        self.say(client, ClientMessage::Target(Some(id)));
        self.tick();
    }

    fn actor(&self, index: u32) -> &Actor {
        &self.world.resource::<Actors>()[index]
    }

    fn actor_mut(&mut self, index: u32) -> Mut<'_, Actor> {
        self.world.resource_mut::<Actors>().map_unchanged(|actors| &mut actors[index])
    }

    fn mind(&self, index: u32) -> &Mind {
        &self.world.resource::<Minds>().rows[index as usize]
    }

    /// Puts somebody somewhere, by how far it is from the middle of the first town.
    fn put(&mut self, index: u32, aside: [f32; 2]) {
        let place = beside(aside);
        self.actor_mut(index).place = place;
        self.world.resource_mut::<Actors>().mark(index, crate::actors::dirty::POSE);
        self.world.resource_mut::<Close>().moved(index, place);
        if let Some(mind) = self.world.resource_mut::<Minds>().get(index) {
            mind.home = place;
        }
    }

    fn hurt(&mut self, index: u32, health: i32) {
        self.actor_mut(index).health = health;
        self.world.resource_mut::<Actors>().mending.insert(index);
        let groups = self.actor(index).groups();
        self.world.resource_mut::<Close>().set_groups(index, groups);
    }

    fn tally(&self) -> Tally {
        *self.world.resource::<Tally>()
    }

    fn of_kind(&self, kind: Kind) -> Vec<u32> {
        let rows = self.world.resource::<Actors>().rows().iter().zip(0..);
        rows.filter(|(row, _)| row.alive && row.kind() == kind).map(|(_, index)| index).collect()
    }

    fn effects(&self, index: u32) -> Effects {
        self.actor(index).effects(self.tick)
    }

    /// One number for all that clients could see and all that rows hold.
    fn hash(&mut self) -> (u64, u64) {
        let digest = self.world.resource::<Actors>().digest();
        (digest, self.collector.hash_state(&mut self.world, self.tick))
    }

    /// Asserts what must hold after every tick.
    fn check(&mut self) {
        let tick = self.tick - 1;
        let actors = self.world.resource::<Actors>();
        for row in actors.rows().iter().filter(|row| row.look.kind.is_creature()) {
            assert!(row.place.iter().all(|metres| metres.abs() <= crate::landscape::EDGE_M), "{row:?}");
            assert!(row.health <= row.health_max, "{row:?}");
            assert!(!row.alive || row.health > 0, "{row:?}");
            assert!(row.heading.is_finite());
        }
        for &index in actors.dead.list() {
            assert!(!actors[index].alive);
            assert!(actors[index].target.is_none() && actors[index].casting.is_none());
        }
        let mut shown = self.world.query::<(&crate::actors::Slot, &Pose, &Vitals, &Animation, &Effects)>();
        let actors = self.world.resource::<Actors>();
        for (slot, pose, vitals, animation, effects) in shown.iter(&self.world) {
            let row = &actors[slot.0];
            assert_eq!([pose.x, pose.z], row.place);
            assert_eq!(*vitals, row.vitals(), "{row:?}");
            assert!(vitals.health <= HEALTH_MAX);
            assert_eq!(*animation, row.animation);
            assert_eq!((effects.sneaking, effects.singing, effects.open), (row.concealed, row.singing, row.open));
            // Clocks that run out are told a little later.
            let due = row.effects(tick);
            assert!(effects.stunned || !due.stunned, "{row:?} at {tick}");
        }
        let mut concealed = self.world.query::<(&crate::actors::Slot, Has<Concealed>)>();
        let actors = self.world.resource::<Actors>();
        for (slot, marked) in concealed.iter(&self.world) {
            assert_eq!(marked, actors[slot.0].concealed, "{:?}", actors[slot.0]);
        }
    }
}

fn middle() -> [f32; 2] {
    Landscape::load().towns()[0]
}

fn beside([x, z]: [f32; 2]) -> [f32; 2] {
    let [middle_x, middle_z] = middle();
    [middle_x + x, middle_z + z]
}

fn standing() -> Input {
    Input::new([0.0, 0.0], 0.0)
}

// --- Each question. -----------------------------------------------------------------------------------------------------------

#[test]
fn a_monster_notices_who_is_near_enough_for_its_kind() {
    for (kind, away_m, expect) in [
        (Kind::Wolf, 20.0, true),
        (Kind::Wolf, 23.0, false),
        (Kind::Bandit, 17.0, true),
        (Kind::Bandit, 20.0, false),
        (Kind::Brute, 24.0, true),
        (Kind::Guard, 10.0, false),
        (Kind::Banker, 2.0, false),
    ] {
        let mut zone = Headless::scene(&[(kind, [away_m, 0.0])], 1);
        let noticed = zone.until(25, |zone| zone.mind(0).hates_anybody());
        assert_eq!(noticed, expect, "{kind:?} at {away_m} m");
    }
}

/// Five monsters think in five different ticks; the player's own question reaches all of them in the first.
#[test]
fn a_player_that_walks_up_is_noticed_at_once() {
    let monsters: Vec<_> = (0..5).map(|index| (Kind::Wolf, [30.0 + index as f32, 0.0])).collect();
    let mut zone = Headless::scene(&monsters, 1);
    zone.ticks(20);
    assert!((0..5).all(|monster| !zone.mind(monster).hates_anybody()));
    let player = zone.player(0);
    zone.put(player, [20.0, 0.0]);
    zone.tick();
    assert!((0..5).all(|monster| zone.mind(monster).hates_anybody()));
}

#[test]
fn a_hill_hides_a_player_from_a_monster() {
    let landscape = Landscape::load();
    let mut checked = [0, 0];
    for &camp in landscape.camps().iter().take(60) {
        let other = [camp[0] + 18.0, camp[1]];
        let clear = landscape.is_line_clear(camp, other);
        if checked[usize::from(clear)] >= 4 {
            continue;
        }
        checked[usize::from(clear)] += 1;
        let mut zone = Headless::scene(&[(Kind::Wolf, [100.0, 0.0])], 1);
        let aside = |place: [f32; 2]| [place[0] - middle()[0], place[1] - middle()[1]];
        zone.world.resource_mut::<Minds>().camps[0] = camp;
        zone.put(0, aside(camp));
        let player = zone.player(0);
        zone.put(player, aside(other));
        // It strolls by and by, so only the first look counts.
        let noticed = zone.until(12, |zone| zone.mind(0).hates_anybody());
        assert_eq!(noticed, clear, "{camp:?}");
    }
    assert_eq!(checked, [4, 4], "there are hills and plains");
}

#[test]
fn guards_help_who_is_struck_and_monsters_fall_to_them() {
    let mut zone =
        Headless::scene(&[(Kind::Wolf, [2.0, 0.0]), (Kind::Guard, [35.0, 0.0]), (Kind::Guard, [80.0, 0.0])], 1);
    assert!(zone.until(200, |zone| zone.mind(1).hates_anybody()), "{:?}", zone.tally());
    assert!(zone.tally().assists > 0);
    assert!(!zone.mind(2).hates_anybody(), "80 m are too far to hear it");
    assert!(zone.until(600, |zone| !zone.actor(0).alive), "the guard has come");
}

#[test]
fn a_yell_brings_the_camp_half_a_second_later() {
    // The two behind are too far to notice the player themselves.
    let camp = [(Kind::Bandit, [15.0, 0.0]), (Kind::Bandit, [40.0, 0.0]), (Kind::Shaman, [44.0, 0.0])];
    let mut zone = Headless::scene(&camp, 1);
    assert!(zone.until(60, |zone| zone.tally().yells > 0));
    assert!(!zone.mind(1).hates_anybody(), "not before its mailbox is opened");
    let handled = zone.until(HANDLE_MS * u32::from(TICK_HZ) / 1_000, |zone| zone.tally().signals_handled > 0);
    assert!(handled);
    assert!(zone.mind(1).hates_anybody() && zone.mind(2).hates_anybody());
    assert!(zone.until(200, |zone| zone.actor(2).target.is_some()));
}

#[test]
fn a_blast_hurts_all_around_and_a_taunt_turns_them() {
    let monsters: Vec<_> = (0..6).map(|index| (Kind::Brute, [4.0 + 3.0 * index as f32, 0.0])).collect();
    let mut zone = Headless::scene(&monsters, 2);
    zone.input(0, standing().casting(Ability::Blast));
    zone.ticks(1);
    let full = zone.actor(0).health_max;
    assert!(zone.until(60, |zone| zone.tally().area_spells > 0));
    zone.tick();
    let hurt: Vec<u32> = (0..6).filter(|&monster| zone.actor(monster).health < full).collect();
    assert!(hurt.len() >= 3 && zone.effects(hurt[0]).snared, "{hurt:?}");
    let other = zone.world.resource::<Actors>().who(zone.player(1));
    zone.cast(1, Ability::Taunt);
    zone.ticks(6);
    let turned = (0..6).filter(|&monster| zone.actor(monster).target == Some(other)).count();
    assert!(turned >= 3 && zone.tally().taunts >= 3, "{turned}");
}

#[test]
fn a_brute_strikes_everybody_around_it() {
    let mut zone = Headless::scene(&[(Kind::Brute, [3.0, 0.0])], 4);
    assert!(zone.until(120, |zone| zone.tally().rampages > 0));
    zone.tick();
    let hurt = (0..4).filter(|&client| zone.actor(zone.player(client)).vitals().health < HEALTH_MAX).count();
    assert_eq!(hurt, 4, "all within eight metres");
}

#[test]
fn a_song_soothes_who_is_hurt_and_in_hearing() {
    let mut zone = Headless::scene(&[], 3);
    let [singer, near, far] = [0, 1, 2].map(|client| zone.player(client));
    zone.put(near, [15.0, 0.0]);
    zone.put(far, [25.0, 0.0]);
    [near, far].into_iter().for_each(|player| zone.hurt(player, 20));
    zone.cast(0, Ability::Sing);
    assert!(zone.effects(singer).singing);
    zone.ticks(45);
    assert!(zone.effects(near).soothed && !zone.effects(far).soothed);
    assert!(zone.actor(near).health > zone.actor(far).health, "and so it heals faster");
    zone.ticks(60);
    zone.cast(0, Ability::Sing);
    assert!(!zone.effects(singer).singing, "the same again ends it");
    zone.ticks(80);
    assert!(!zone.effects(near).soothed);
}

#[test]
fn a_trap_springs_under_an_enemy_and_under_nobody_else() {
    let mut zone = Headless::scene(&[(Kind::Brute, [60.0, 0.0])], 2);
    zone.cast(0, Ability::Trap);
    zone.tick();
    let [trap] = zone.of_kind(Kind::Trap)[..] else { panic!("a trap lies there") };
    assert!(zone.actor(trap).concealed);
    zone.ticks(40);
    assert_eq!(zone.tally().traps_sprung, 0, "players stand in it");
    zone.put(0, [1.0, 0.0]);
    assert!(zone.until(10, |zone| zone.tally().traps_sprung == 1));
    zone.tick();
    assert!(zone.effects(0).stunned && zone.actor(0).health < zone.actor(0).health_max);
    assert!(zone.of_kind(Kind::Trap).is_empty(), "once");
    zone.check();
}

#[test]
fn a_totem_mends_and_goes_after_its_time() {
    let mut zone = Headless::scene(&[], 2);
    let [near, far] = [0, 1].map(|client| zone.player(client));
    zone.put(far, [40.0, 0.0]);
    zone.cast(0, Ability::Totem);
    [near, far].into_iter().for_each(|player| zone.hurt(player, 20));
    zone.ticks(100);
    assert!(zone.actor(near).health >= zone.actor(far).health + 12, "four points a second");
    assert_eq!(zone.of_kind(Kind::Totem).len(), 1);
    zone.ticks(400);
    assert!(zone.of_kind(Kind::Totem).is_empty());
}

#[test]
fn a_blessing_is_for_the_party_that_is_around() {
    let mut zone = Headless::scene(&[], 4);
    let [caster, member, far, stranger] = [0, 1, 2, 3].map(|client| zone.player(client));
    let id = zone.actor(caster).id.unwrap();
    for client in [1, 2] {
        zone.say(client, ClientMessage::Join(id));
    }
    zone.tick();
    zone.put(far, [70.0, 0.0]);
    zone.cast(0, Ability::Bless);
    let blessed = [caster, member, far, stranger].map(|player| zone.effects(player).blessed);
    assert_eq!(blessed, [true, true, false, false]);
}

#[test]
fn a_shaman_heals_the_worst_off_and_a_player_whom_it_means() {
    let camp = [(Kind::Shaman, [70.0, 0.0]), (Kind::Bandit, [75.0, 0.0]), (Kind::Bandit, [78.0, 0.0])];
    let mut zone = Headless::scene(&camp, 2);
    zone.hurt(1, 60);
    zone.hurt(2, 20);
    assert!(zone.until(100, |zone| zone.tally().heals > 0));
    zone.tick();
    assert!(zone.actor(2).health >= 60, "{}", zone.actor(2).health);

    let patient = zone.player(1);
    zone.hurt(patient, 10);
    zone.target(0, patient);
    zone.cast(0, Ability::Heal);
    zone.tick();
    assert!(zone.actor(patient).health >= 50, "{}", zone.actor(patient).health);
}

#[test]
fn a_disease_spreads_to_who_stands_too_near_and_burns_out() {
    let pack: Vec<_> = (0..8).map(|index| (Kind::Brute, [30.0 + 2.0 * index as f32, 0.0])).collect();
    let mut zone = Headless::scene(&pack, 1);
    zone.target(0, 0);
    zone.cast(0, Ability::Plague);
    zone.tick();
    assert!(zone.effects(0).diseased);
    let player = zone.player(0);
    zone.put(player, [-75.0, 0.0]);
    assert!(zone.until(400, |zone| zone.tally().infections >= 2), "{:?}", zone.tally());
    let burnt_out = zone.until(3_000, |zone| zone.world.resource::<Actors>().diseased.is_empty());
    assert!(burnt_out);
    assert!(!zone.effects(player).diseased, "monsters' diseases are for monsters");
}

#[test]
fn townsfolk_in_earshot_answer_a_hail() {
    let mut zone = Headless::scene(&[(Kind::Banker, [10.0, 0.0]), (Kind::Guard, [20.0, 0.0])], 1);
    zone.ticks(60);
    zone.say(0, ClientMessage::Say("Hail, banker!"));
    zone.ticks(12);
    let tally = zone.tally();
    assert_eq!((tally.lines_said, tally.signals_handled), (1, 1), "the guard is 20 m away");
}

#[test]
fn doors_bankers_and_nodes_serve_who_is_near() {
    let mut zone = Headless::scene(&[(Kind::Banker, [0.0, 4.0])], 1);
    let mut add = |kind, aside| population::add_thing(&mut zone.world, kind, beside(aside));
    let (door, far_door, node) =
        (add(Kind::Door, [3.0, 0.0]), add(Kind::Door, [9.0, 0.0]), add(Kind::Node, [2.0, 0.0]));
    zone.ticks(2);
    let ids = [door, far_door, 0].map(|index| zone.actor(index).id.unwrap());
    ids.into_iter().for_each(|id| zone.say(0, ClientMessage::Use(id)));
    zone.tick();
    assert!(zone.actor(door).open && !zone.actor(far_door).open);
    assert_eq!(zone.tally().deposits, 0, "nothing is carried yet");

    let before = zone.actor(node).stock;
    for _ in 0..100 {
        zone.input(0, standing().gathering(true));
        zone.tick();
    }
    assert_eq!(zone.tally().gathered, 2, "one every two seconds");
    assert_eq!(zone.actor(node).stock, before - 2);
    assert!(zone.actor(door).open, "somebody stands in it");
    zone.say(0, ClientMessage::Use(ids[2]));
    zone.tick();
    assert_eq!(zone.tally().deposits, 1);
    let player = zone.player(0);
    zone.put(player, [-30.0, 0.0]);
    zone.put(0, [-30.0, 4.0]);
    assert!(zone.until(40, |zone| !zone.actor(door).open));
}

#[test]
fn a_fighter_that_loses_sight_takes_whom_it_sees() {
    let landscape = Landscape::load();
    // A place from which one way is hidden and another is open.
    let found = landscape.camps().iter().find_map(|&camp| {
        let place = |turn: usize| {
            let (sin, cos) = (turn as f32 * 0.4).sin_cos();
            [camp[0] + 25.0 * sin, camp[1] + 25.0 * cos]
        };
        // Hidden also from the first steps of the chase.
        let hidden = (0..15).map(place).find(|&place| {
            let part = |part: f32| [camp[0] + (place[0] - camp[0]) * part, camp[1] + (place[1] - camp[1]) * part];
            [0.0, 0.15, 0.3].into_iter().all(|from| !landscape.is_line_clear(part(from), place))
        })?;
        let open = (0..15).map(place).find(|&place| landscape.is_line_clear(camp, place))?;
        Some((camp, hidden, open))
    });
    let (camp, hidden, open) = found.expect("there are hills");
    let aside = |place: [f32; 2]| [place[0] - middle()[0], place[1] - middle()[1]];
    let mut zone = Headless::scene(&[(Kind::Bandit, [100.0, 0.0])], 2);
    zone.world.resource_mut::<Minds>().camps[0] = camp;
    let players = [0, 1].map(|client| zone.player(client));
    zone.put(0, aside(camp));
    zone.put(players[0], aside(hidden));
    zone.put(players[1], aside(open));
    let lost = zone.world.resource::<Actors>().who(players[0]);
    zone.world.resource_mut::<Minds>().rows[0].hate(lost, 5);
    assert!(zone.until(20, |zone| zone.tally().targets_changed > 0));
    let seen = zone.world.resource::<Actors>().who(players[1]);
    assert!(zone.until(10, |zone| zone.actor(0).target == Some(seen)));
}

// --- Rules. -------------------------------------------------------------------------------------------------------------------

/// A crowd of players with all sorts of wishes, the same for the same seed.
struct Crowd {
    rng: Xoshiro256PlusPlus,
    headings: Vec<f32>,
    walks: Vec<bool>,
    goals: Vec<[f32; 2]>,
}

impl Crowd {
    fn arrive(zone: &mut Headless, players: u32, seed: u64) -> Self {
        for client in 0..players {
            zone.arrive(client);
        }
        let landscape = Landscape::load();
        let nodes = zone.of_kind(Kind::Node);
        // Some to camps, some to the town, some to what grows.
        let goals: Vec<[f32; 2]> = (0..players as usize)
            .map(|client| match client % 5 {
                3 => landscape.towns()[0],
                4 => zone.actor(nodes[client / 5 % nodes.len()]).place,
                _ => landscape.camps()[client % 4],
            })
            .collect();
        for client in 0..players {
            // Most of the way is done already.
            let (player, goal) = (zone.player(client), goals[client as usize]);
            let away_m = if client % 5 == 4 { 1.0 } else { 30.0 };
            zone.put(player, [goal[0] + away_m - middle()[0], goal[1] + (client % 7) as f32 * 0.2 - middle()[1]]);
        }
        Self::new(goals, seed)
    }

    fn new(goals: Vec<[f32; 2]>, seed: u64) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { rng, headings: vec![0.0; goals.len()], walks: vec![false; goals.len()], goals }
    }

    fn act(&mut self, zone: &mut Headless) {
        for client in 0..self.goals.len() as u32 {
            let rng = &mut self.rng;
            let player = zone.player(client);
            let (place, goal) = (zone.actor(player).place, self.goals[client as usize]);
            let heading = &mut self.headings[client as usize];
            if rng.random_bool(0.1) {
                *heading = (goal[0] - place[0]).atan2(goal[1] - place[1]) + rng.random_range(-0.6..0.6);
            }
            if rng.random_bool(0.02) {
                let far = distance_m2(place, goal) > 400.0;
                self.walks[client as usize] = client % 5 != 4 && rng.random_bool(if far { 0.8 } else { 0.3 });
            }
            let walks = self.walks[client as usize];
            let way = if walks { [heading.sin(), heading.cos()] } else { [0.0, 0.0] };
            let ability = Ability::ALL[rng.random_range(0..Ability::ALL.len() - 1)];
            let input = Input::new(way, heading.rem_euclid(6.28))
                .attacking(true)
                .running(client % 3 == 0)
                .sneaking(client % 11 == 5)
                .gathering(client % 5 == 4)
                .casting(if rng.random_bool(0.1) { ability } else { Ability::None });
            zone.input(client, input);
            if rng.random_bool(0.02) {
                self.ask(zone, client);
            }
        }
    }

    fn ask(&mut self, zone: &mut Headless, client: u32) {
        let others = zone.world.resource::<Actors>().len() as u32;
        let player = zone.player(client);
        // The nearest of some: what a player would see.
        let some: Vec<u32> = (0..40).map(|_| self.rng.random_range(0..others)).collect();
        let nearest = some.into_iter().filter(|&other| other != player && zone.actor(other).alive).min_by(|&a, &b| {
            let away = |other: u32| distance_m2(zone.actor(other).place, zone.actor(player).place);
            away(a).total_cmp(&away(b))
        });
        let Some(id) = nearest.and_then(|other| zone.actor(other).id) else { return };
        let joined = zone.actor(zone.player(self.rng.random_range(0..self.goals.len() as u32))).id;
        let message = match self.rng.random_range(0..5) {
            0 => ClientMessage::Say("hail and well met"),
            1 => joined.map_or(ClientMessage::Leave, ClientMessage::Join),
            2 => ClientMessage::Use(id),
            _ => ClientMessage::Target(Some(id)),
        };
        zone.say(client, message);
    }
}

fn crowded(settings: &FrontierSettings, players: u32, ticks: u32) -> (Headless, Vec<(u64, u64)>) {
    let mut zone = Headless::new(settings);
    let mut crowd = Crowd::arrive(&mut zone, players, 5);
    let mut hashes = Vec::new();
    for tick in 0..ticks {
        crowd.act(&mut zone);
        zone.tick();
        if tick % 50 == 49 {
            zone.check();
            hashes.push(zone.hash());
        }
    }
    (zone, hashes)
}

/// Promise: close lists and looking at everybody give the same world, tick by tick; and every kind of question was asked in it.
#[test]
fn lists_and_scanning_everything_give_the_same_world() {
    let lists = FrontierSettings { npcs: 300, ..FrontierSettings::default() };
    let scan = FrontierSettings { scan_everything: true, ..lists.clone() };
    let (mut zone, hashes) = crowded(&lists, 40, 600);
    let (other, other_hashes) = crowded(&scan, 40, 600);
    assert_eq!(hashes, other_hashes);
    assert_eq!(zone.tally(), other.tally());
    zone.world.resource::<Close>().check();
    let asked = zone.world.resource_mut::<Close>().take_asked();
    let never: Vec<&str> = Question::ALL
        .iter()
        .filter(|&&question| asked[question as usize] == 0)
        .map(|question| question.name())
        .collect();
    assert!(never.is_empty(), "never asked: {never:?}; {:?}", zone.tally());
    let (scans, _) = zone.world.resource_mut::<Close>().take_counts();
    println!("{} questions, {scans} lists made; {:?}", asked.iter().sum::<u64>(), zone.tally());
}

/// Promise: the same seed and the same inputs give the same world, bit for bit.
#[test]
fn the_same_seed_gives_the_same_world() {
    let run = |seed| crowded(&FrontierSettings { npcs: 100, seed, ..FrontierSettings::default() }, 10, 200).1;
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

/// Promise: what is sent without throttles is more, and the game is the same.
#[test]
fn throttles_change_what_is_told_and_not_what_happens() {
    let throttled = FrontierSettings { npcs: 100, ..FrontierSettings::default() };
    let open = FrontierSettings { no_throttles: true, ..throttled.clone() };
    let (zone, _) = crowded(&throttled, 10, 300);
    let (mut other, _) = crowded(&open, 10, 300);
    assert_eq!(zone.world.resource::<Actors>().digest(), other.world.resource::<Actors>().digest());
    let mut points = other.world.query::<&Points>();
    assert!(points.iter(&other.world).count() >= 110);
}

/// Cheats against the speed limit: whatever a client sends, its player covers at most what the limit and one step allow.
#[test]
fn no_script_of_inputs_is_faster_than_the_limit() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(13);
    for script in 0..20 {
        let mut zone = Headless::scene(&[], 1);
        let player = zone.player(0);
        let mut places = vec![zone.actor(player).place];
        let mut heading = 0.0_f32;
        for tick in 0..120_u32 {
            let inputs = match script % 5 {
                0 => 1,                               // honest
                1 => 10,                              // a clock ten times too fast
                2 => u32::from(tick % 40 == 0) * 128, // banks time, then bursts
                3 => rng.random_range(0..20),
                _ => u32::from(tick % 6 == 0), // lossy
            };
            heading += rng.random_range(-0.3..0.3);
            for _ in 0..inputs {
                let direction = [heading.sin() * 1e9, heading.cos() * 1e9];
                zone.input(0, Input::new(direction, heading.rem_euclid(6.0)).running(true));
            }
            zone.tick();
            places.push(zone.actor(player).place);
        }
        let step_m = RUN_M_PER_S / f32::from(TICK_HZ);
        for window in places.windows(21) {
            let walked: f32 = window.windows(2).map(|pair| distance_m2(pair[0], pair[1]).sqrt()).sum();
            assert!(walked <= RUN_M_PER_S * 1.05 + step_m, "{walked} m in one second by script {script}");
        }
    }
}

#[test]
fn nonsense_from_a_client_is_counted_and_does_nothing() {
    let mut zone = Headless::scene(&[], 1);
    let player = zone.player(0);
    zone.tick();
    let before = zone.actor(player).place;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    for _ in 0..2_000 {
        let mut bytes = [0_u8; 40];
        rng.fill(&mut bytes);
        bytes[0] = 0x80; // a move of -128, a kind that does not exist
        let length = rng.random_range(0..bytes.len());
        let mut inbox = zone.world.resource_mut::<Inbox>();
        inbox.push(ClientKey(0), MessageKind::Input { number: 1 }, &bytes[..length]);
        inbox.push(ClientKey(0), MessageKind::Reliable, &bytes[..length]);
        inbox.push(ClientKey(77), MessageKind::Reliable, &bytes[..length]);
    }
    zone.tick();
    assert_eq!(zone.actor(player).place, before);
    assert_eq!((zone.tally().inputs_refused, zone.tally().messages_refused), (2_000, 2_000));
}

/// Names of entities that a client cannot know, or that are gone, or never were.
#[test]
fn a_client_can_mean_only_what_is_near_and_seen() {
    let mut zone =
        Headless::scene(&[(Kind::Brute, [60.0, 0.0]), (Kind::Brute, [85.0, 0.0]), (Kind::Stalker, [40.0, 0.0])], 1);
    let player = zone.player(0);
    let made_up = [NetId { slot: 9_999, generation: 0 }, NetId { slot: 0, generation: 77 }];
    for (index, expect) in [(0, true), (1, false), (2, false)] {
        assert!(zone.actor(2).concealed);
        zone.say(0, ClientMessage::Target(None));
        zone.target(0, index);
        assert_eq!(zone.actor(player).target.is_some(), expect, "{index}");
    }
    zone.say(0, ClientMessage::Target(None));
    for id in made_up {
        for message in [ClientMessage::Target(Some(id)), ClientMessage::Join(id), ClientMessage::Use(id)] {
            zone.say(0, message);
        }
    }
    zone.tick();
    assert!(zone.actor(player).target.is_none());
    assert_eq!(zone.actor(player).party, 0);
}

/// A hundred NPCs that all yell at once cost their camp no more than its mailbox holds.
#[test]
fn signals_are_bounded_and_what_is_dropped_is_counted() {
    let camp: Vec<_> =
        (0..100).map(|index| (Kind::Bandit, [10.0 + (index / 10) as f32, (index % 10) as f32])).collect();
    let mut zone = Headless::scene(&camp, 1);
    let victim = zone.world.resource::<Actors>().who(zone.player(0));
    let mut handled = 0;
    for tick in 0..100 {
        if tick == 20 {
            for bandit in 0..50 {
                zone.world.resource_mut::<Minds>().rows[bandit].hate(victim, 1);
            }
        }
        zone.tick();
        let now = zone.tally().signals_handled;
        assert!(now - handled <= MAILBOX_MAX as u64, "one mailbox is opened in one tick");
        handled = now;
    }
    let tally = zone.tally();
    assert!(tally.yells > 20 && tally.signals_dropped > 100, "{tally:?}");
    assert!(tally.signals_sent <= 10 * MAILBOX_MAX as u64 + MAILBOX_MAX as u64);
    assert!(tally.signals_sent - tally.signals_handled <= MAILBOX_MAX as u64);
}

#[test]
fn who_sneaks_is_concealed_until_it_strikes() {
    let mut zone = Headless::scene(&[(Kind::Brute, [0.0, 10.0])], 2);
    zone.world.resource_mut::<Minds>().rows[0].errand = crate::npc::minds::Errand::Return; // it sees nobody
    let [sneaker, other] = [0, 1].map(|client| zone.player(client));
    zone.input(0, standing().sneaking(true));
    zone.tick();
    zone.check();
    let entity = zone.actor(sneaker).entity;
    assert!(zone.world.get::<Concealed>(entity).is_some() && zone.effects(sneaker).sneaking);

    let sees = |zone: &Headless, client: u32| {
        let player = Some(zone.actor(zone.player(client)).entity);
        concealment::may_see(&zone.world, Viewer { client: ClientKey(client), player, team: None }, entity)
    };
    assert!(sees(&zone, 0), "oneself");
    assert!(sees(&zone, 1), "who stands beside it");
    zone.put(other, [12.0, 0.0]);
    assert!(!sees(&zone, 1), "who looks elsewhere");
    zone.actor_mut(other).heading = -std::f32::consts::FRAC_PI_2;
    assert!(sees(&zone, 1), "who looks its way");
    zone.put(other, [30.0, 0.0]);
    assert!(!sees(&zone, 1), "who is far");
    let nobody = Viewer { client: ClientKey(9), player: None, team: None };
    assert!(!concealment::may_see(&zone.world, nobody, entity));
    let id = zone.actor(sneaker).id.unwrap();
    zone.put(other, [3.0, 0.0]);
    zone.say(1, ClientMessage::Join(id));
    zone.input(0, standing().sneaking(true));
    zone.tick();
    zone.put(other, [30.0, 0.0]);
    assert!(sees(&zone, 1), "its party");

    zone.put(0, [0.0, 2.0]);
    zone.target(0, 0);
    zone.input(0, standing().sneaking(true).attacking(true));
    zone.tick();
    zone.input(0, standing().sneaking(true));
    zone.tick();
    assert!(zone.world.get::<Concealed>(entity).is_none(), "it has struck");
    zone.check();
}

#[test]
fn parties_are_six_and_teams_follow_them() {
    let mut zone = Headless::scene(&[], 9);
    let id = zone.actor(zone.player(0)).id.unwrap();
    for client in 0..9 {
        zone.say(client, ClientMessage::Join(id));
    }
    zone.ticks(2);
    let teams = |zone: &mut Headless| {
        let mut query = zone.world.query::<(&Team, &Replicated)>();
        query.iter(&zone.world).map(|(team, _)| team.0).collect::<Vec<_>>()
    };
    assert_eq!(teams(&mut zone), [1; MEMBERS_MAX]);
    zone.say(0, ClientMessage::Leave);
    zone.leave(1);
    zone.tick();
    assert_eq!(teams(&mut zone).len(), MEMBERS_MAX - 2);
    zone.leave(0);
    (2..9).for_each(|client| zone.leave(client));
    assert_eq!(zone.world.resource::<Roster>().count(), 0);
    assert_eq!(zone.world.query::<&Replicated>().iter(&zone.world).count(), 0, "nobody is left");
}

#[test]
fn the_dead_rise_at_home_and_who_is_chased_too_far_is_let_go() {
    let mut zone = Headless::scene(&[(Kind::Brute, [3.0, 0.0])], 1);
    let player = zone.player(0);
    let hearth = zone.world.resource::<Roster>().hearth(zone.actor(player).player).unwrap();
    assert!(zone.until(2_000, |zone| !zone.actor(player).alive));
    assert_eq!(zone.tally().deaths, 1);
    zone.check();
    zone.ticks(DEATH_MS * u32::from(TICK_HZ) / 1_000 + 1);
    assert!(zone.actor(player).alive);
    assert!(distance_m2(zone.actor(player).place, hearth).sqrt() < 15.0);
    assert!(zone.until(20, |zone| zone.actor(0).target.is_none()));

    zone.put(player, [20.0, 0.0]);
    assert!(zone.until(100, |zone| zone.actor(0).target.is_some()));
    let mut farthest_m = 0.0_f32;
    for _ in 0..1_200 {
        zone.input(0, Input::new([1.0, 0.0], 0.0).running(true));
        zone.tick();
        farthest_m = farthest_m.max(distance_m2(zone.actor(0).place, zone.mind(0).home).sqrt());
    }
    assert!(farthest_m <= LEASH_M + 5.0, "{farthest_m}");
    assert!(zone.actor(0).target.is_none());
}

#[test]
fn who_says_too_much_is_not_heard() {
    let mut zone = Headless::scene(&[], 1);
    for _ in 0..200 {
        for _ in 0..5 {
            zone.say(0, ClientMessage::Say("buy gold at example.com"));
        }
        zone.tick();
    }
    let tally = zone.tally();
    assert_eq!(tally.lines_said + tally.lines_dropped, 1_000);
    assert!(tally.lines_said <= 6, "{tally:?}");
}

/// Promise: once its buffers have grown, a world in which all sorts of things happen ticks without allocating.
#[test]
fn a_steady_tick_allocates_nothing() {
    let settings = FrontierSettings { npcs: 300, ..FrontierSettings::default() };
    let (mut zone, _) = crowded(&settings, 40, 1_500);
    let goals = (0..40).map(|client| zone.actor(zone.player(client)).place).collect();
    let mut crowd = Crowd::new(goals, 8);
    let hits = zone.tally().hits;
    let mut allocations = 0;
    for _ in 0..200 {
        crowd.act(&mut zone);
        zone.begin_tick();
        let before = thread_counts().allocations;
        zone.schedule.run(&mut zone.world);
        allocations += thread_counts().allocations - before;
        zone.end_tick();
    }
    assert!(zone.tally().hits > hits, "something happened");
    assert_eq!(allocations, 0);
}

/// Prints what a tick of a full world costs, with lists and without; the bound is wide, since hosts differ and this build is not optimised.
#[test]
fn a_tick_of_a_full_world_is_cheap() {
    let cost_us = |scan_everything: bool, ticks: u32| {
        let settings = FrontierSettings { npcs: 10_000, scan_everything, ..FrontierSettings::default() };
        let (mut zone, _) = crowded(&settings, 200, 40);
        let begin = thread_cpu_time();
        zone.ticks(ticks);
        thread_cpu_time().saturating_sub(begin).as_secs_f64() * 1e6 / f64::from(ticks)
    };
    let (lists, scan) = (cost_us(false, 40), cost_us(true, 20));
    println!("{lists:.0} us per tick of 10,000 NPCs and 200 players with lists, {scan:.0} us scanning everything");
    assert!(lists < scan, "{lists:.0} us with lists, {scan:.0} us without");
}

/// The size of a full server: prints what each kind of question and a tick cost.
#[test]
#[ignore = "a minute; run it optimised"]
fn a_full_world_of_two_thousand_players() {
    for scan_everything in [false, true] {
        let settings = FrontierSettings { npcs: 10_000, scan_everything, ..FrontierSettings::default() };
        let mut zone = Headless::new(&settings);
        let goals: Vec<[f32; 2]> = (0..2_000_u32)
            .map(|client| zone.arrive(client))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|player| {
                // From its hearth a player goes to the camp beside it.
                let place = zone.actor(player).place;
                let camps = Landscape::load();
                let near = camps
                    .camps()
                    .iter()
                    .copied()
                    .min_by(|&a, &b| distance_m2(a, place).total_cmp(&distance_m2(b, place)));
                near.unwrap()
            })
            .collect();
        let mut crowd = Crowd::new(goals, 3);
        crowd.walks.fill(true);
        let ticks = if scan_everything { 40 } else { 600 };
        let (mut cost_us, mut dearest_us) = (0.0, 0.0_f64);
        zone.world.resource_mut::<Close>().take_asked();
        let before = zone.tally();
        for _ in 0..ticks {
            crowd.act(&mut zone);
            zone.begin_tick();
            let begin = thread_cpu_time();
            zone.schedule.run(&mut zone.world);
            let us = thread_cpu_time().saturating_sub(begin).as_secs_f64() * 1e6;
            cost_us += us;
            dearest_us = dearest_us.max(us);
            zone.end_tick();
        }
        let asked = zone.world.resource_mut::<Close>().take_asked();
        let named: Vec<_> = Question::ALL.iter().map(|&each| (each.name(), asked[each as usize] / ticks)).collect();
        println!(
            "scan_everything {scan_everything}: {:.0} us a tick, dearest {dearest_us:.0} us; a tick asks {named:?}; {:?}; from {:?}",
            cost_us / ticks as f64,
            zone.tally(),
            before.thoughts,
        );
    }
}
