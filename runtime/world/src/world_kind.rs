//! World kinds and plugins: how a game says what its worlds are made of.
//!
//! A world kind is built once per world, always the same way: it adds the same plugins, systems and replicated
//! components in the same order. Only values (resources, entities) may differ between worlds of a kind.

use crate::world_builder::WorldBuilder;
pub use throng_scheduler::Hertz;

/// One kind of world, such as "hideout" or "dark zone".
pub trait WorldKind: Send + Sync + 'static {
    /// Name in reports, metrics and logs, and what clients are told on entering.
    fn name(&self) -> &str;

    /// How often a world of this kind ticks. [Hz, 1..=255]
    ///
    /// A world lives for 2^32 ticks at most: 6.8 years at 20 Hz, 388 days at 128 Hz, 195 days at 255 Hz. After that it
    /// ends as one that panics; a game whose worlds may live so long retires them and makes them anew in time.
    fn tick_rate(&self) -> Hertz;

    /// Fills a new world. Runs on the thread that creates worlds, once per world and once more for the first of the
    /// kind, whose order of systems is computed on a template.
    fn build(&self, world: &mut WorldBuilder);

    /// Whether a world with no client in it and no message waiting may stop ticking until somebody comes. Its gauges
    /// count for nothing meanwhile.
    fn dormant_when_empty(&self) -> bool {
        true
    }
}

/// A reusable part of a world kind: components, resources and systems that belong together.
pub trait WorldPlugin {
    fn build(&self, world: &mut WorldBuilder);
}

/// One plugin or a tuple of them.
pub trait WorldPlugins {
    fn build_all(&self, world: &mut WorldBuilder);
}

impl<P: WorldPlugin> WorldPlugins for P {
    fn build_all(&self, world: &mut WorldBuilder) {
        self.build(world);
    }
}

macro_rules! tuple_of_plugins {
    ($($name:ident),+) => {
        impl<$($name: WorldPlugins),+> WorldPlugins for ($($name,)+) {
            fn build_all(&self, world: &mut WorldBuilder) {
                #[allow(non_snake_case, reason = "one variable per type parameter, of the same name")]
                let ($($name,)+) = self;
                $($name.build_all(world);)+
            }
        }
    };
}

tuple_of_plugins!(A);
tuple_of_plugins!(A, B);
tuple_of_plugins!(A, B, C);
tuple_of_plugins!(A, B, C, D);
tuple_of_plugins!(A, B, C, D, E);
tuple_of_plugins!(A, B, C, D, E, F);
tuple_of_plugins!(A, B, C, D, E, F, G);
tuple_of_plugins!(A, B, C, D, E, F, G, H);
