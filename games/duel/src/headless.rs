//! A whole match without a server: the world that ships, with scripted players instead of clients.

use std::collections::BTreeMap;

use glam::Vec3;
use throng::prelude::*;
use throng_pack::envelope;
use throng_platform::allocator::CountingAllocator;
use throng_world::testing::TestWorld;

use crate::{
    components::{Phase, Pose, Spike, Vitals},
    economy::Purse,
    map::Map,
    movement::{EYE_M, Motion},
    protocol::Input,
    rounds::Rounds,
    schema,
    seats::Seats,
    settings::MatchRules,
    spike::SpikeState,
    teams::{SEATS, TEAM_SIZE},
    travel::{MatchPlan, Passport, Traveller},
    weapons::{Weapon, WeaponKind},
    worlds::Match,
};

mod actions;
mod lag_switch;
mod rounds;
mod server_side;
mod shots;
mod speed;
mod state_hash;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Short rounds, so that tests are.
const RULES: MatchRules = MatchRules {
    rounds_to_win: 3,
    warm_up_ticks: 4,
    stagger_ticks: 0,
    buy_ticks: 64,
    round_ticks: 2_000,
    spike_ticks: 600,
    plant_ticks: 100,
    defuse_ticks: 200,
    over_ticks: 50,
};

const LOBBY_WORLD: WorldId = WorldId::new(0, 0);
const ALL: [u8; SEATS] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
/// Seats of an attacker and of a defender, in the first half.
const ATTACKER: u8 = 0;
const DEFENDER: u8 = TEAM_SIZE as u8;

/// One match, as it ships. The client of a seat has the seat's number.
struct Headless {
    world: TestWorld,
    /// What each player's client sends, in every tick.
    held: BTreeMap<u8, Input>,
}

impl Headless {
    /// A match with players in these seats, who have just come.
    fn new(rules: MatchRules, seats: &[u8], seed: u64) -> Self {
        let (mut plan, kind) = (Vec::new(), Match { map: Map::load(), rules, faults: Vec::new() });
        envelope::write(&MatchPlan { lobby: LOBBY_WORLD, ordinal: 0 }, &mut plan).expect("it has no limits");
        let mut world = TestWorld::with_id(kind, &schema(), WorldId::new(1, 0), seed, Some(&plan));
        for &seat in seats {
            let carries = Traveller { passport: Passport::default(), seat };
            world.arrive_from(client(seat), LOBBY_WORLD, &carries).expect("the match can read it");
        }
        world.tick();
        Self { world, held: BTreeMap::new() }
    }

    /// One against one, with the spike in the attacker's hands.
    fn duel() -> Self {
        Self::new(RULES, &[ATTACKER, DEFENDER], 1)
    }

    /// Five against five.
    fn full(seed: u64) -> Self {
        Self::new(RULES, &ALL, seed)
    }

    fn tick(&mut self) {
        for (seat, input) in &self.held {
            self.world.input(client(*seat), input);
        }
        self.world.tick();
    }

    fn ticks(&mut self, count: u32) {
        (0..count).for_each(|_| self.tick());
    }

    /// Ticks until a phase is there.
    #[track_caller]
    fn until(&mut self, phase: Phase) {
        for _ in 0..10_000 {
            if self.phase() == phase {
                return;
            }
            self.tick();
        }
        panic!("{phase:?} does not come: {:?}", self.rounds());
    }

    fn rounds(&self) -> Rounds {
        *self.world.ecs().resource::<Rounds>()
    }

    fn phase(&self) -> Phase {
        self.rounds().phase()
    }

    fn spike(&self) -> Spike {
        self.world.ecs().resource::<SpikeState>().spike
    }

    fn entity(&self, seat: u8) -> Entity {
        self.world.ecs().resource::<Seats>().entity(seat)
    }

    fn get<T: Component + Copy>(&self, seat: u8) -> T {
        *self.world.ecs().get::<T>(self.entity(seat)).expect("each player has it")
    }

    fn edit<T: Component<Mutability = bevy_ecs::component::Mutable>>(&mut self, seat: u8, edit: impl FnOnce(&mut T)) {
        let entity = self.entity(seat);
        edit(&mut self.world.ecs_mut().get_mut::<T>(entity).expect("each player has it"));
    }

    fn is_alive(&self, seat: u8) -> bool {
        self.get::<Vitals>(seat).is_alive
    }

    fn counted(&self, name: &str) -> u64 {
        self.world.counted().of(name)
    }

    /// Puts a player somewhere, at rest.
    fn put(&mut self, seat: u8, at: Vec3) {
        self.edit::<Motion>(seat, |motion| *motion = Motion::standing(at));
        self.edit::<Pose>(seat, |pose| pose.set_feet(at));
    }

    fn arm(&mut self, seat: u8, kind: WeaponKind) {
        self.edit::<Weapon>(seat, |weapon| *weapon = Weapon::new(kind));
    }

    fn credits(&self, seat: u8) -> u16 {
        self.get::<Purse>(seat).credits
    }

    fn hold(&mut self, seat: u8, input: Input) {
        self.held.insert(seat, input);
    }

    /// Has a player look from where it is at a point.
    fn aim(&self, seat: u8, at: Vec3) -> Input {
        let away = at - (self.get::<Motion>(seat).at + Vec3::Y * EYE_M);
        Input::new([0.0; 2], away.x.atan2(away.z), away.y.atan2(away.x.hypot(away.z)))
    }

    /// Has one player shoot another, who stands still, until it is dead or so many ticks are over.
    fn shoot(&mut self, seat: u8, victim: u8, ticks_max: u32) {
        let chest = self.get::<Motion>(victim).at + Vec3::Y * 1.25;
        for _ in 0..ticks_max {
            if !self.is_alive(victim) {
                break;
            }
            let input = self.aim(seat, chest).and_fire();
            self.hold(seat, input);
            self.tick();
        }
        // Let go: what was sent last would hold for a while.
        self.hold(seat, Input::default());
    }
}

fn client(seat: u8) -> ClientKey {
    ClientKey(seat.into())
}
