//! Plain Bevy: eight small systems, each with its own query, a resource for each thing, conditions and messages.

use throng::prelude::*;

use crate::walkers::{Bite, Breath, Goal, Ground, Health, Place, Tally, Wind, is_second_over};

/// Makes a world one of this style.
pub fn add(world: &mut WorldBuilder, ground: Ground) {
    world.insert_resource(ground).init_resource::<Wind>().init_resource::<Tally>().add_message::<Bite>();
    let systems = (
        turn_wind,
        choose_goals,
        walk,
        stay_inside,
        lose_breath,
        bite,
        hurt.run_if(on_message::<Bite>),
        mend.run_if(a_second_is_over),
    );
    world.add_systems(Update, systems.chain());
}

fn a_second_is_over(tick: Res<TickInfo>) -> bool {
    is_second_over(&tick)
}

fn turn_wind(mut rng: ResMut<WorldRng>, mut wind: ResMut<Wind>) {
    wind.turn(&mut rng.0);
}

fn choose_goals(ground: Res<Ground>, mut rng: ResMut<WorldRng>, mut walkers: Query<(&Place, &mut Goal)>) {
    for (place, mut goal) in &mut walkers {
        goal.choose(place, &ground, &mut rng.0);
    }
}

fn walk(tick: Res<TickInfo>, wind: Res<Wind>, mut walkers: Query<(&mut Place, &Goal, &Breath)>) {
    for (mut place, goal, breath) in &mut walkers {
        place.step(goal, breath, &wind, tick.dt_s);
    }
}

fn stay_inside(ground: Res<Ground>, mut walkers: Query<&mut Place>) {
    for mut place in &mut walkers {
        place.stay_inside(&ground);
    }
}

fn lose_breath(tick: Res<TickInfo>, mut walkers: Query<&mut Breath>) {
    for mut breath in &mut walkers {
        breath.lose(tick.dt_s);
    }
}

/// A walker bites the next in the row, if that is near.
fn bite(walkers: Query<(Entity, &Place)>, mut bites: MessageWriter<Bite>) {
    let mut last: Option<&Place> = None;
    for (walker, place) in &walkers {
        if last.is_some_and(|last| last.can_bite(place)) {
            bites.write(Bite { of: walker });
        }
        last = Some(place);
    }
}

fn hurt(mut bites: MessageReader<Bite>, mut tally: ResMut<Tally>, mut walkers: Query<&mut Health>) {
    for Bite { of } in bites.read() {
        tally.bites += 1;
        if let Ok(mut health) = walkers.get_mut(*of) {
            health.hurt();
        }
    }
}

fn mend(mut tally: ResMut<Tally>, mut walkers: Query<&mut Health>) {
    for mut health in &mut walkers {
        if !health.is_full() {
            health.mend(&tally);
        }
    }
    tally.bites = 0;
}
