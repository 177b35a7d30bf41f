//! A field to run about on: the world, and the step that it and its clients take alike.

use bevy_ecs::prelude::*;
use throng::{Server, prelude::*, server::ServerError};
use throng_client::{interpolation::Interpolate, prediction::Predict};
use throng_net::transport::Impairment;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_simulator::SimulationSettings;

pub const TICKS_PER_S: u16 = 20;

/// A runner, with all that its next step depends on.
#[derive(Component, Clone, Debug, Default, PartialEq, Replicate)]
pub struct Runner {
    #[replicate(min = -1024.0, max = 1024.0, step = 0.0078125)]
    pub place: [f32; 2],
    #[replicate(min = -16.0, max = 16.0, step = 0.0078125)]
    pub speed: [f32; 2],
    /// Steps so far.
    pub steps: u16,
}

/// What makes a step, in m/s on both axes, in kinds that differ in how often they are said again.
pub trait Step: ClientInput + Clone {
    fn new(push: [i8; 2]) -> Self;
    fn push(&self) -> [i8; 2];
}

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident: $repeats:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Pack, Debug, Clone, Copy)]
        pub struct $name(i8, i8);

        impl ClientInput for $name {
            const REPEATS: u8 = $repeats;
        }

        impl Step for $name {
            fn new([x, z]: [i8; 2]) -> Self {
                Self(x, z)
            }

            fn push(&self) -> [i8; 2] {
                [self.0, self.1]
            }
        }
    )*};
}

steps! {
    /// Comes in four packets.
    Repeated: 3;
    /// Comes in one, and is lost with it.
    Once: 0;
}

/// How everybody runs: a tenth of the way to what is wished for in each step, so that what is wrong stays wrong for long.
pub struct Rules;

impl Rules {
    pub fn run(state: &Runner, push: [i8; 2]) -> Runner {
        let speed = [0, 1].map(|axis| state.speed[axis] * 0.9 + f32::from(push[axis]) * 0.1);
        let place = [0, 1].map(|axis| state.place[axis] + speed[axis] * (1.0 / f32::from(TICKS_PER_S)));
        Runner { place, speed, steps: state.steps.wrapping_add(1) }
    }
}

/// What a client predicts with this kind of steps.
pub struct Predicted<S>(pub std::marker::PhantomData<fn() -> S>);

impl<S: Step> Predict for Predicted<S> {
    type State = Runner;
    type Input = S;

    fn step(&self, state: &Runner, input: &S) -> Runner {
        Rules::run(state, input.push())
    }

    fn place(&self, state: &Runner) -> [f32; 3] {
        [state.place[0], 0.0, state.place[1]]
    }

    fn shifted(&self, state: &Runner, [x, _, z]: [f32; 3]) -> Runner {
        Runner { place: [state.place[0] + x, state.place[1] + z], ..state.clone() }
    }
}

impl Interpolate for Runner {
    fn between(&self, later: &Self, share: f32) -> Self {
        let place = [0, 1].map(|axis| self.place[axis] + (later.place[axis] - self.place[axis]) * share);
        Self { place, ..self.clone() }
    }
}

struct Field;

impl WorldKind for Field {
    fn name(&self) -> &str {
        "field"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(TICKS_PER_S)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Runner>().input::<Repeated>().input::<Once>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Update, (welcome, run::<Repeated>, run::<Once>).chain());
    }
}

/// Where everybody begins: between two steps of what is told. (m)
pub const BEGIN_M: [f32; 2] = [3.1452, -2.7191];

fn welcome(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for arrival in &arrivals.0 {
        let begin = Runner { place: BEGIN_M, ..Runner::default() };
        outbox.set_player(arrival.client, commands.spawn((Replicated::default(), begin)).id());
    }
}

/// Every input is a step.
fn run<S: Step>(steps: Inputs<S>, mut runners: Query<&mut Runner>) {
    for (sender, step) in steps.read() {
        if let Some(Ok(mut runner)) = sender.entity.map(|own| runners.get_mut(own)) {
            *runner = Rules::run(&runner, step.push());
        }
    }
}

/// A line with this loss and way, and clients that look at their world once a frame.
pub fn settings(loss: f64, one_way: Nanos) -> SimulationSettings {
    let impairment = Impairment { loss, delay: one_way, ..Impairment::NONE };
    SimulationSettings { impairment, think_hz: 60, ..SimulationSettings::new(Field.protocol().schema(), 21) }
}

pub fn field(server: &mut Server) -> Result<(), ServerError> {
    let field = server.add_kind(Field)?;
    server.create_world(field, 1).map(drop)
}
