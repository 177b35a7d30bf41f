//! Tally: what happened in the world since its last report, in plain numbers that any system may add to.
//!
//! The last system of a tick hands them, every few ticks, to the server's telemetry, where they become `game.NAME` of
//! the report. How often each question was asked of the close lists comes from these themselves. Systems know only this
//! resource, so they run without a server.

use bevy_ecs::prelude::*;
use throng::prelude::*;

use crate::close::{Close, Question};

/// Ticks between two reports: counts may be so much late, and cost so much less.
const REPORT_PERIOD: u32 = 8;

macro_rules! tally {
    (
        counters { $($(#[$counter_doc:meta])* $counter:ident,)+ }
        gauges { $($(#[$gauge_doc:meta])* $gauge:ident,)+ }
    ) => {
        /// Counters since the last report and gauges as they stand.
        #[derive(Resource, Debug, Clone, Copy, Default, PartialEq, Eq)]
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
            questions: [CounterHandle; Question::ALL.len()],
            close_scans: CounterHandle,
            close_fallbacks: CounterHandle,
        }

        impl TallyNames {
            pub fn register(world: &mut WorldBuilder) -> Self {
                Self {
                    $($counter: world.counter(stringify!($counter)),)+
                    $($gauge: world.gauge(stringify!($gauge)),)+
                    questions: std::array::from_fn(|index| world.counter(Question::ALL[index].name())),
                    close_scans: world.counter("close_scans"),
                    close_fallbacks: world.counter("close_fallbacks"),
                }
            }
        }

        /// Hands counters and gauges to the server; counters start again from zero.
        pub fn report(
            tick: Res<TickInfo>,
            names: Res<TallyNames>,
            mut tally: ResMut<Tally>,
            mut close: ResMut<Close>,
            mut telemetry: ResMut<Telemetry>,
        ) {
            if !tick.tick.is_multiple_of(REPORT_PERIOD) {
                return;
            }
            $(
                if tally.$counter > 0 {
                    telemetry.add(names.$counter, std::mem::take(&mut tally.$counter));
                }
            )+
            $(telemetry.set(names.$gauge, tally.$gauge);)+
            for (name, asked) in names.questions.into_iter().zip(close.take_asked()) {
                telemetry.add(name, asked);
            }
            let (scans, fallbacks) = close.take_counts();
            telemetry.add(names.close_scans, scans);
            telemetry.add(names.close_fallbacks, fallbacks);
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
        /// Messages beyond what one tick takes.
        messages_dropped,
        /// Lines said to others.
        lines_said,
        /// Lines, names and emotes dropped because their speaker says too much.
        lines_dropped,
        /// Thoughts of NPCs.
        thoughts,
        /// Steps of NPCs.
        steps,
        /// NPCs that noticed an enemy.
        aggros,
        /// NPCs that came to help.
        assists,
        yells,
        rampages,
        /// NPCs turned by taunts.
        taunts,
        targets_changed,
        signals_sent,
        signals_handled,
        /// Signals that found a full mailbox.
        signals_dropped,
        casts,
        /// Spells that came to nothing.
        casts_failed,
        area_spells,
        buffs,
        heals,
        stuns,
        /// Songs heard.
        pulses,
        traps_sprung,
        things_refused,
        infections,
        swings,
        hits,
        criticals,
        deaths,
        /// Blows beyond what one tick takes.
        blows_dropped,
        lines_of_sight,
        doors_opened,
        deposits,
        gathered,
        /// Players that joined a party.
        joins,
        /// Recalls.
        teleports,
    }
    gauges {
        players,
        npcs,
        npcs_moving,
        /// Actors with a target.
        fighters,
        diseased,
        dead,
        camps_awake,
    }
}
