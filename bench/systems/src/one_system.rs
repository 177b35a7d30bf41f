//! The games' style: one system with one query, whose steps are phases, and one resource for all that is beside the
//! entities.

use throng::{
    prelude::*,
    profiler::{Phases, site},
    replication::table_resource,
};

use crate::walkers::{Bite, Breath, Goal, Ground, Health, Place, Tally, Wind, is_second_over};

/// All that a world has beside its entities.
struct Arena {
    ground: Ground,
    wind: Wind,
    tally: Tally,
    bites: Vec<Bite>,
}

table_resource!(Arena);

type Row = (Entity, &'static mut Place, &'static mut Goal, &'static mut Breath, &'static mut Health);

/// Makes a world one of this style.
pub fn add(world: &mut WorldBuilder, ground: Ground) {
    let arena = Arena { ground, wind: Wind::default(), tally: Tally::default(), bites: Vec::new() };
    world.insert_resource(arena).add_systems(Update, live);
}

fn live(tick: Res<TickInfo>, mut arena: ResMut<Arena>, mut rng: ResMut<WorldRng>, mut walkers: Query<Row>) {
    let Arena { ground, wind, tally, bites } = &mut *arena;
    let rng = &mut rng.0;
    let mut phases = Phases::split(site!("walkers.move"));
    wind.turn(rng);
    let mut last: Option<Place> = None;
    for (walker, mut place, mut goal, mut breath, _) in &mut walkers {
        goal.choose(&place, ground, rng);
        place.step(&goal, &breath, wind, tick.dt_s);
        place.stay_inside(ground);
        breath.lose(tick.dt_s);
        if last.is_some_and(|last| last.can_bite(&place)) {
            bites.push(Bite { of: walker });
        }
        last = Some(*place);
    }
    if !bites.is_empty() {
        phases.next(site!("walkers.hurt"));
        for Bite { of } in bites.drain(..) {
            tally.bites += 1;
            if let Ok((.., mut health)) = walkers.get_mut(of) {
                health.hurt();
            }
        }
    }
    if is_second_over(&tick) {
        phases.next(site!("walkers.mend"));
        for (.., mut health) in &mut walkers {
            if !health.is_full() {
                health.mend(tally);
            }
        }
        tally.bites = 0;
    }
}
