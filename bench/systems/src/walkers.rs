//! Walkers: what lives in the bench's worlds, and what is done to one of them.
//!
//! Both styles call these functions in the same order, so they leave the same worlds, to the bit.

use throng::prelude::*;

/// How many live in a world.
pub const WALKERS: u32 = 20;
/// Of whoever is well.
const POINTS_MAX: u8 = 100;
const POINTS_PER_BITE: u8 = 7;
/// Nearer than this to its goal a walker chooses another (m).
const ARRIVED_M: f32 = 1.0;
/// How near a walker must be to bite (m).
const BITE_M: f32 = 4.0;
/// The strongest wind along either axis (m/s).
const WIND_M_PER_S_MAX: f32 = 1.0;

#[derive(Component, Clone, Copy, Replicate)]
pub struct Place {
    #[replicate(min = -64.0, max = 64.0, step = 0.01)]
    x: f32,
    #[replicate(min = -64.0, max = 64.0, step = 0.01)]
    z: f32,
}

/// Where a walker is going.
#[derive(Component, Clone, Copy)]
pub struct Goal(Place);

/// How much breath a walker has left. (0..=1)
#[derive(Component, Clone, Copy)]
pub struct Breath(f32);

#[derive(Component, Clone, Copy, Replicate)]
pub struct Health {
    #[replicate(bits = 7)]
    points: u8,
}

/// A square; never changes.
#[derive(Resource, Clone, Copy)]
pub struct Ground {
    pub half_m: f32,
}

/// Changes in every tick. (m/s)
#[derive(Resource, Default)]
pub struct Wind([f32; 2]);

/// What has happened since all were mended.
#[derive(Resource, Default)]
pub struct Tally {
    pub bites: u32,
}

/// A walker was bitten.
#[derive(Message)]
pub struct Bite {
    pub of: Entity,
}

impl Placed for Place {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

impl Place {
    fn anywhere(ground: &Ground, rng: &mut impl Rng) -> Self {
        let along = -ground.half_m..ground.half_m;
        Self { x: rng.random_range(along.clone()), z: rng.random_range(along) }
    }

    fn distance_m(&self, other: &Self) -> f32 {
        (self.x - other.x).hypot(self.z - other.z)
    }

    pub fn step(&mut self, goal: &Goal, breath: &Breath, wind: &Wind, dt_s: f32) {
        let (x, z) = (goal.0.x - self.x, goal.0.z - self.z);
        let step = (1.0 + 4.0 * breath.0) * dt_s / x.hypot(z).max(ARRIVED_M);
        self.x += x * step + wind.0[0] * dt_s;
        self.z += z * step + wind.0[1] * dt_s;
    }

    pub fn stay_inside(&mut self, ground: &Ground) {
        self.x = self.x.clamp(-ground.half_m, ground.half_m);
        self.z = self.z.clamp(-ground.half_m, ground.half_m);
    }

    pub fn can_bite(&self, other: &Self) -> bool {
        self.distance_m(other) < BITE_M
    }
}

impl Goal {
    /// Chooses another one when this one is reached.
    pub fn choose(&mut self, place: &Place, ground: &Ground, rng: &mut impl Rng) {
        if place.distance_m(&self.0) < ARRIVED_M {
            self.0 = Place::anywhere(ground, rng);
        }
    }
}

impl Breath {
    /// Runs out in ten seconds, and is back at once.
    pub fn lose(&mut self, dt_s: f32) {
        self.0 -= 0.1 * dt_s;
        if self.0 <= 0.0 {
            self.0 = 1.0;
        }
    }
}

impl Health {
    pub fn is_full(&self) -> bool {
        self.points == POINTS_MAX
    }

    /// Who has no points left begins anew.
    pub fn hurt(&mut self) {
        self.points = self.points.saturating_sub(POINTS_PER_BITE);
        if self.points == 0 {
            self.points = POINTS_MAX;
        }
    }

    /// After a bad second they mend faster.
    pub fn mend(&mut self, tally: &Tally) {
        self.points = (self.points + 1 + tally.bites.min(5) as u8).min(POINTS_MAX);
    }
}

impl Wind {
    pub fn turn(&mut self, rng: &mut impl Rng) {
        for along in &mut self.0 {
            *along = (*along + rng.random_range(-0.1..0.1)).clamp(-WIND_M_PER_S_MAX, WIND_M_PER_S_MAX);
        }
    }
}

/// Whether a second is over with this tick.
pub fn is_second_over(tick: &TickInfo) -> bool {
    (tick.tick + 1).is_multiple_of(tick.rate.0.into())
}

/// Puts a world's walkers in. Before a style's own resources, so that the entities are the same ones in both.
pub fn spawn(world: &mut World, ground: &Ground) {
    for _ in 0..WALKERS {
        let mut rng = world.resource_mut::<WorldRng>();
        let (place, goal) = (Place::anywhere(ground, &mut rng.0), Place::anywhere(ground, &mut rng.0));
        world.spawn((Replicated::default(), place, Goal(goal), Breath(1.0), Health { points: POINTS_MAX }));
    }
}
