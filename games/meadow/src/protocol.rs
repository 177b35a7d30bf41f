//! What clients and worlds say to each other. Declared here once: server, bots and every other client are built with it,
//! and who was built with another one is turned away and told why.

use throng::prelude::*;

/// Half of the field's side (m).
pub const FIELD_HALF_M: f32 = 100.0;

/// Where somebody or something is. Clients are told to a centimetre.
#[derive(Component, Clone, Copy, Debug, PartialEq, Replicate, Pack)]
pub struct Position {
    #[replicate(min = -FIELD_HALF_M, max = FIELD_HALF_M, step = 0.01)]
    pub x: f32,
    #[replicate(min = -FIELD_HALF_M, max = FIELD_HALF_M, step = 0.01)]
    pub z: f32,
}

impl Placed for Position {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

impl Position {
    /// In a square with sides of twice `half_m`.
    pub fn anywhere(rng: &mut impl Rng, half_m: f32) -> Self {
        Self { x: rng.random_range(-half_m..half_m), z: rng.random_range(-half_m..half_m) }
    }

    pub fn distance_m(&self, other: &Self) -> f32 {
        (self.x - other.x).hypot(self.z - other.z)
    }
}

/// What it is, so that a client knows what to draw.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Replicate, Pack)]
pub enum Sort {
    Player,
    Sheep,
    Flower,
}

/// Where a player wants to go: west or east, south or north, 127 at full speed. It holds until the next one comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pack)]
pub struct Walk {
    pub x: i8,
    pub z: i8,
}

impl ClientInput for Walk {}

/// Picks a flower within reach.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
pub struct Pick;

impl ClientRequest for Pick {
    const PER_S_MAX: u16 = 5;
}

/// Goes through the door, if that is within reach, into the other world.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
pub struct GoThrough;

impl ClientRequest for GoThrough {
    const PER_S_MAX: u16 = 1;
}

/// What a player has picked. The player is told when it changes, and takes it along into the other world.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, Pack)]
#[pack(name = "game.basket")]
pub struct Basket {
    pub flowers: u16,
}

impl ClientMessage for Basket {}

/// All of it.
pub fn protocol() -> Protocol {
    Protocol::new()
        .component::<Position>()
        .component::<Sort>()
        .input::<Walk>()
        .request::<Pick>()
        .request::<GoThrough>()
        .message::<Basket>()
}
