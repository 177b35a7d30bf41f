//! The witness: the match that ships, and how all of it was at the end of each tick, written down for the judge. It asks
//! nothing of replication, of the fog, nor of what they remember.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bevy_ecs::prelude::*;
use duel::{
    components::{Arms, CLOUDS_MAX, Cloud, Phase, Player, Pose, Spike, Vitals},
    economy::Purse,
    movement::{Motion, RUN_M_PER_S},
    protocol::Kit,
    rounds::Rounds,
    seats::{Seats, Senses},
    sight::{FOG, Sight, body},
    smoke::Smoke,
    spike::SpikeState,
    teams::{SEATS, TeamId},
    weapons::Weapon,
    worlds::{Match, Step},
};
use throng::prelude::*;
use throng_query::occlusion::{Body, FogSettings};

/// So many ticks are kept: those in which it may have been found out who may be seen, and some more.
const PAGES: usize = 8;

/// How one player is.
#[derive(Debug, Clone, Copy)]
pub struct Person {
    /// Nobody, with a life of 0, if it is dead.
    pub body: Body,
    pub pose: Pose,
    pub arms: Arms,
    pub vitals: Vitals,
    pub kit: Kit,
    /// It sees nobody before this tick.
    pub blind_until_tick: u32,
}

/// How all of a match was at the end of a tick.
#[derive(Debug, Clone)]
pub struct Page {
    pub tick: u32,
    pub phase: Phase,
    pub attackers: TeamId,
    pub spike: Spike,
    pub clouds: ArrayVec<Cloud, CLOUDS_MAX>,
    /// By seat.
    pub people: [Person; SEATS],
    /// Who has which seat: the simulation's players, by seat.
    pub clients: [Option<usize>; SEATS],
}

/// The simulation's players by the keys that the match has for them.
#[derive(Resource, Default)]
struct Names(BTreeMap<ClientKey, usize>);

/// The last ticks, the newest last. Written by the match, read by the judge between two frames.
#[derive(Resource, Clone, Default)]
pub struct Chronicle(Arc<Mutex<VecDeque<Page>>>);

impl Chronicle {
    pub fn pages(&self) -> MutexGuard<'_, VecDeque<Page>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By which filter a match goes: the one that ships, or one that must be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    AsItShips,
    /// Everybody is told everything.
    Open,
    /// Whoever will be seen when both have run 2 m farther is told, too.
    TooFar,
    /// Who is seen is told after some ticks.
    Hesitant,
}

/// A match with a witness in it.
pub struct Witnessed {
    pub inner: Match,
    pub chronicle: Chronicle,
    pub filter: Filter,
}

impl WorldKind for Witnessed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn tick_rate(&self) -> Hertz {
        self.inner.tick_rate()
    }

    fn protocol(&self) -> Protocol {
        self.inner.protocol()
    }

    fn dormant_when_empty(&self) -> bool {
        self.inner.dormant_when_empty()
    }

    fn build(&self, world: &mut WorldBuilder) {
        self.inner.build(world);
        world.insert_resource(self.chronicle.clone()).insert_resource(Names::default());
        world.add_systems(Update, (learn_names, note).chain().after(Step::Tell));
        match self.filter {
            Filter::AsItShips => {}
            Filter::Open => {
                world.filter_visibility_in_batches_by(|_, _, entities, may_see| {
                    (0..entities.len()).for_each(|at| may_see.allow(at));
                });
            }
            Filter::TooFar => {
                let farther_ms = 2.0 / RUN_M_PER_S * 1_000.0;
                let settings = FogSettings { grace_ms: FOG.grace_ms + farther_ms, ..FOG };
                let mut sight = Sight::new(self.inner.map.clone(), settings);
                world.filter_visibility_in_batches_by(move |world, viewer, entities, may_see| {
                    sight.ask(world, viewer, entities, may_see);
                });
            }
            Filter::Hesitant => self.hesitate(world),
        }
    }
}

/// A hesitant filter tells nobody before it was to tell for so many ticks.
const HESITATES_TICKS: u32 = 12;

impl Witnessed {
    fn hesitate(&self, world: &mut WorldBuilder) {
        let mut sight = Sight::new(self.inner.map.clone(), FogSettings { grace_ms: 0.0, ..FOG });
        let mut since = BTreeMap::new();
        world.filter_visibility_in_batches_by(move |world, viewer, entities, may_see| {
            let mut words = [0];
            sight.ask(world, viewer, entities, &mut MaySee::new(&mut words, entities.len()));
            let tick = world.resource::<TickInfo>().tick;
            for (at, entity) in entities.iter().enumerate() {
                if words[0] >> at & 1 == 0 {
                    since.remove(&(viewer.client, *entity));
                } else if tick - *since.entry((viewer.client, *entity)).or_insert(tick) >= HESITATES_TICKS {
                    may_see.allow(at);
                }
            }
        });
    }
}

type Everything = (
    &'static Player,
    &'static Motion,
    &'static Pose,
    &'static Arms,
    &'static Vitals,
    &'static Purse,
    &'static Weapon,
    &'static Senses,
);

/// The simulation's tokens count players from 1.
fn learn_names(arrivals: Res<Arrivals>, mut names: ResMut<Names>) {
    names.0.extend(arrivals.0.iter().map(|arrival| (arrival.client, arrival.client_id.0 as usize - 1)));
}

fn note(
    tick: Res<TickInfo>,
    rounds: Res<Rounds>,
    spike_state: Res<SpikeState>,
    smoke: Res<Smoke>,
    (seats, names): (Res<Seats>, Res<Names>),
    players: Query<Everything>,
    chronicle: Res<Chronicle>,
) {
    let mut people = [None; SEATS];
    for (player, motion, pose, arms, vitals, purse, weapon, senses) in &players {
        let life = if vitals.is_alive { senses.life } else { 0 };
        let Purse { credits, smokes, flashes } = *purse;
        people[usize::from(player.seat)] = Some(Person {
            body: body(life, motion),
            pose: *pose,
            arms: *arms,
            vitals: *vitals,
            kit: Kit { credits, weapon: weapon.kind, rounds: weapon.rounds, smokes, flashes },
            blind_until_tick: senses.blind_until_tick,
        });
    }
    let mut pages = chronicle.pages();
    if pages.len() == PAGES {
        pages.pop_front();
    }
    pages.push_back(Page {
        tick: tick.tick,
        phase: rounds.phase(),
        attackers: rounds.attackers,
        spike: spike_state.spike,
        clouds: smoke.clouds.clone(),
        people: people.map(|person| person.expect("there is a player for each seat")),
        clients: seats.clients.map(|client| client.and_then(|client| names.0.get(&client).copied())),
    });
}
