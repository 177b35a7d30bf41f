//! Tally: what happened in a world since its last report, in plain numbers that any system may add to.
//!
//! [`crate::report`] hands them, every few ticks, to the server's telemetry, where a thousand worlds are summed
//! into `game.NAME` of the report. Systems only add to it, so they run without a server.

use bevy_ecs::prelude::*;
use throng::prelude::*;

macro_rules! tally {
    (
        counters { $($(#[$counter_doc:meta])* $counter:ident,)+ }
        gauges { $($(#[$gauge_doc:meta])* $gauge:ident,)+ }
    ) => {
        /// Counters since the last report and gauges as they stand.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Tally {
            $($(#[$counter_doc])* pub $counter: u64,)+
            $($(#[$gauge_doc])* pub $gauge: i64,)+
        }

        #[cfg(test)]
        impl Tally {
            /// All since the start: what has gathered, and what was reported of each counter.
            pub fn and_reported(mut self, reported: impl Fn(&str) -> u64) -> Self {
                $(self.$counter += reported(stringify!($counter));)+
                self
            }
        }

        /// The names of the tally in the server's telemetry.
        #[derive(Resource, Clone, Copy)]
        pub struct TallyNames {
            $($counter: CounterHandle,)+
            $($gauge: GaugeHandle,)+
        }

        impl TallyNames {
            pub fn register(world: &mut WorldBuilder) -> Self {
                Self {
                    $($counter: world.counter(stringify!($counter)),)+
                    $($gauge: world.gauge(stringify!($gauge)),)+
                }
            }

            /// Hands the counters and the gauges to the server; counters start again from zero.
            pub fn report(&self, tally: &mut Tally, telemetry: &mut Telemetry) {
                $(
                    if tally.$counter > 0 {
                        telemetry.add(self.$counter, std::mem::take(&mut tally.$counter));
                    }
                )+
                $(telemetry.set(self.$gauge, tally.$gauge);)+
            }
        }
    };
}

tally! {
    counters {
        /// Inputs applied.
        inputs,
        /// Inputs that made no sense.
        inputs_refused,
        /// Inputs beyond what one tick takes from one client.
        inputs_excess,
        /// Reliable messages that made no sense or broke the rules of text.
        messages_refused,
        /// Lines said to others.
        lines_said,
        /// Lines dropped because their speaker says too much.
        lines_dropped,
        /// Players sent to another world.
        travels,
        /// Shots fired, by anyone.
        shots,
        /// Shots that hurt somebody.
        hits,
        /// Deaths of players and NPCs.
        deaths,
        /// Looks around by NPCs.
        perceptions,
        /// Rays and lines of sight cast.
        casts,
        /// Steps of behaviour.
        thoughts,
        /// Nodes of the behaviour graph visited.
        thought_nodes,
        /// Path searches finished.
        paths,
        /// Nav polygons expanded by them.
        path_nodes,
        /// Path requests refused because too many were waiting.
        paths_refused,
    }
    gauges {
        /// Players in the world, dead or alive.
        players,
        npcs,
        npcs_alive,
        /// NPCs that fired or were hit within the last seconds.
        npcs_in_combat,
        npcs_full,
        npcs_near,
        npcs_far,
        /// Path requests that wait.
        paths_waiting,
    }
}
