//! World kinds and plugins: how a game says what its worlds are made of.
//!
//! A world kind is built once per world, always the same way: it adds the same plugins and systems in the same order,
//! and what it replicates is said once ([`WorldKind::protocol`]). Only values (resources, entities) may differ between worlds of a kind.

use throng_replication::Protocol;

use bevy_app::{Plugin, PluginGroup};

use crate::console::WorldConsole;
use crate::world_builder::WorldBuilder;
pub use throng_scheduler::Hertz;

/// When the worlds of a kind tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pace {
    /// At the kind's tick rate, whatever happens.
    #[default]
    Fixed,
    /// When there is something to tick for, and at the kind's tick rate at most: see [`reactive`](crate::reactive). For
    /// worlds of talk, turns and waiting.
    Reactive,
}

/// One kind of world, such as "hideout" or "dark zone".
pub trait WorldKind: Send + Sync + 'static {
    /// Name in reports, metrics and logs, and what clients are told on entering.
    fn name(&self) -> &str;

    /// How often a world of this kind ticks. [Hz, 1..=255]
    ///
    /// A world lives for 2^32 ticks at most: 6.8 years at 20 Hz, 388 days at 128 Hz, 195 days at 255 Hz. After that it
    /// ends as one that panics; a game whose worlds may live so long retires them and makes them anew in time.
    fn tick_rate(&self) -> Hertz;

    /// Whether its worlds tick at that rate whatever happens, or only when there is something to tick for, and that often
    /// at most.
    fn pace(&self) -> Pace {
        Pace::Fixed
    }

    /// What a world of this kind and its clients say to each other: the components that it replicates, its events, and
    /// the inputs, requests and messages that go between them. All of it must be in the server's schema
    /// ([`Protocol::union`]). Asked once.
    fn protocol(&self) -> Protocol {
        Protocol::new()
    }

    /// Which commands its worlds carry out for an operator, and which of their values he may change. Asked once.
    fn console(&self) -> WorldConsole {
        WorldConsole::new()
    }

    /// Fills a new world. Runs on the thread that creates worlds, once per world and once more for the first of the
    /// kind, whose order of systems is computed on a template. So what is to happen once for each world, and not only in
    /// it, belongs into a `Startup` system, which the template does not run.
    fn build(&self, world: &mut WorldBuilder);

    /// Whether a world with no client in it and no message waiting may stop ticking until somebody comes. Its gauges
    /// count for nothing meanwhile.
    fn dormant_when_empty(&self) -> bool {
        true
    }
}

/// A reusable part of a world kind: components, resources and systems that belong together, and what only a world of ours
/// has, such as what is replicated. What needs no more than Bevy is a `bevy_app::Plugin` as well.
pub trait WorldPlugin {
    fn build(&self, world: &mut WorldBuilder);
}

/// One plugin, ours or Bevy's, a group of Bevy's, or a tuple of them. `Marker` tells these apart; it is inferred.
pub trait WorldPlugins<Marker> {
    fn build_all(self, world: &mut WorldBuilder);
}

/// See [`WorldPlugins`].
pub struct Ours;

/// See [`WorldPlugins`].
pub struct Bevys;

/// See [`WorldPlugins`].
pub struct GroupOfBevys;

/// See [`WorldPlugins`].
pub struct Several;

impl<P: WorldPlugin> WorldPlugins<Ours> for P {
    fn build_all(self, world: &mut WorldBuilder) {
        self.build(world);
    }
}

impl<P: Plugin> WorldPlugins<Bevys> for P {
    fn build_all(self, world: &mut WorldBuilder) {
        world.add_bevy_plugins(self);
    }
}

impl<P: PluginGroup> WorldPlugins<GroupOfBevys> for P {
    fn build_all(self, world: &mut WorldBuilder) {
        world.add_bevy_plugins(self);
    }
}

macro_rules! tuple_of_plugins {
    ($($name:ident $marker:ident),+) => {
        impl<$($name: WorldPlugins<$marker>, $marker),+> WorldPlugins<(Several, $($marker,)+)> for ($($name,)+) {
            fn build_all(self, world: &mut WorldBuilder) {
                #[allow(non_snake_case, reason = "one variable per type parameter, of the same name")]
                let ($($name,)+) = self;
                $($name.build_all(world);)+
            }
        }
    };
}

tuple_of_plugins!(A MA);
tuple_of_plugins!(A MA, B MB);
tuple_of_plugins!(A MA, B MB, C MC);
tuple_of_plugins!(A MA, B MB, C MC, D MD);
tuple_of_plugins!(A MA, B MB, C MC, D MD, E ME);
tuple_of_plugins!(A MA, B MB, C MC, D MD, E ME, F MF);
tuple_of_plugins!(A MA, B MB, C MC, D MD, E ME, F MF, G MG);
tuple_of_plugins!(A MA, B MB, C MC, D MD, E ME, F MF, G MG, H MH);
