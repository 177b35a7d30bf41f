//! Tick time: Bevy's `Time`, moved on by ticks.
//!
//! A world that uses `Res<Time>`, `Timer`s or `on_timer` has them without a plugin. What they say follows from the
//! number of the tick and the world's rate alone, so a replay sees the same times: in tick `n`, counted from 0, the time
//! elapsed is `(n + 1) / rate`, rounded down to a nanosecond, and `delta` is what has been added since the tick before.
//! So delta is `1 / rate`, at some rates a nanosecond more in some ticks, and a timer of one second ends after as many
//! ticks as there are in a second. In `Startup` no time has elapsed. In a reactive world (`reactive`) the tick before may be
//! more than one number back, and `delta` is as much longer.
//!
//! `Time<Fixed>` is the same, since the fixed schedules run once in a tick. `Time<Virtual>` obeys `pause` and
//! `set_relative_speed`, and `Time` follows it; the fixed schedules run on, and what it says of itself by `was_paused`,
//! `effective_speed` and `max_delta` holds in an app only. `Time<Real>` is the time of a clock, which no world reads: a
//! kind that asks for it is refused. (`TimePlugin` makes one, which is taken out again; a function that asks
//! `&mut World` for it finds none.)
//!
//! A world has those of the three that something in it names when it has been built: a system's or a condition's
//! parameter, an observer's, a plugin, the kind itself by `init_resource`. (A function that asks `&mut World` names
//! nothing.) A resource of Bevy's costs some 9 KB of each world, so worlds that ask for none have none. Cost: one
//! look-up of a resource in a tick for each.

use std::time::Duration;

use bevy_ecs::{component::Mutable, prelude::*, system::SystemAccess};
use bevy_time::{Fixed, Real, Time, Virtual};
use throng_scheduler::Hertz;

/// How far a time step may be from the length of a tick to be the same: what rounding can do.
const ROUNDING: Duration = Duration::from_micros(1);

/// Which of Bevy's times a world has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickTime {
    rate: Hertz,
    has_generic: bool,
    has_virtual: bool,
    has_fixed: bool,
}

/// The game asks for a fixed time step that is not the tick's: it is this long.
pub(crate) struct OtherTimestep(pub Duration);

impl TickTime {
    /// Gives a world the times that it uses; `None` if it uses none.
    pub fn give(world: &mut World, rate: Hertz) -> Result<Option<Self>, OtherTimestep> {
        let has_generic = give::<()>(world);
        let has_virtual = give::<Virtual>(world);
        let has_fixed = give::<Fixed>(world);
        if has_fixed {
            set_timestep(&mut world.resource_mut::<Time<Fixed>>(), rate)?;
        }
        let has_any = has_generic || has_virtual || has_fixed;
        Ok(has_any.then_some(Self { rate, has_generic, has_virtual, has_fixed }))
    }

    /// Moves on to tick number `tick`, which is so many ticks after the one before [>= 1].
    pub fn advance(&self, world: &mut World, tick: u32, since_last: u32) {
        let ticks = u64::from(tick) + 1;
        let delta = self.elapsed(ticks) - self.elapsed(ticks.saturating_sub(since_last.into()));
        if self.has_fixed {
            advance::<Fixed>(world, delta);
        }
        if !self.has_virtual {
            if self.has_generic {
                advance::<()>(world, delta);
            }
            return;
        }
        let Some(mut time) = world.get_resource_mut::<Time<Virtual>>() else { return };
        let speed = if time.is_paused() { 0.0 } else { time.relative_speed_f64() };
        // Without rounding at the usual speed.
        time.advance_by(if speed == 1.0 { delta } else { delta.mul_f64(speed) });
        let generic = time.as_generic();
        if let Some(mut time) = world.get_resource_mut::<Time>() {
            *time = generic;
        }
    }

    /// As after so many ticks, at the usual speed.
    pub fn restore(&self, world: &mut World, ticks: u32) {
        let elapsed = self.elapsed(ticks.into());
        for (has, advance) in [
            (self.has_generic, advance::<()> as fn(&mut World, Duration)),
            (self.has_virtual, advance::<Virtual>),
            (self.has_fixed, advance::<Fixed>),
        ] {
            if has {
                advance(world, elapsed);
            }
        }
    }

    fn elapsed(&self, ticks: u64) -> Duration {
        // 2^32 ticks at 1 Hz are 4.3e18 ns, which a u64 holds.
        Duration::from_nanos(ticks * 1_000_000_000 / u64::from(self.rate.0))
    }
}

/// Whether a system or a condition asks for the time of a clock.
pub(crate) fn asks_for_clock(access: &SystemAccess, world: &World) -> bool {
    let SystemAccess::Shared(access) = access else { return false };
    let Some(real) = world.components().component_id::<Time<Real>>() else { return false };
    let access = access.combined_access();
    // Who reads all entities (`EntityRef`) has not named this one.
    access.has_read(real) && !access.has_read_all()
}

/// Whether anything in a world has named the time of a clock, be it an observer.
pub(crate) fn names_clock(world: &World) -> bool {
    world.components().component_id::<Time<Real>>().is_some()
}

/// Makes sure that a world has this time if it is to have it.
fn give<T: Default + Send + Sync + 'static>(world: &mut World) -> bool
where
    Time<T>: Resource<Mutability = Mutable> + Default,
{
    let is_named = world.components().component_id::<Time<T>>().is_some();
    if is_named && !world.contains_resource::<Time<T>>() {
        world.insert_resource(Time::<T>::default());
    }
    is_named
}

fn advance<T: Default + Send + Sync + 'static>(world: &mut World, delta: Duration)
where
    Time<T>: Resource<Mutability = Mutable>,
{
    if let Some(mut time) = world.get_resource_mut::<Time<T>>() {
        time.advance_by(delta);
    }
}

/// A step of fixed time is a tick. Another one, unless it is Bevy's default, is what somebody asked for and cannot have.
fn set_timestep(time: &mut Time<Fixed>, rate: Hertz) -> Result<(), OtherTimestep> {
    let tick = Duration::from_secs(1) / u32::from(rate.0);
    let asked = time.timestep();
    if asked != Time::<Fixed>::default().timestep() && asked.abs_diff(tick) > ROUNDING {
        return Err(OtherTimestep(asked));
    }
    time.set_timestep(tick);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world_with_time(rate: u16) -> (World, TickTime) {
        let mut world = World::new();
        world.init_resource::<Time>();
        let time = TickTime::give(&mut world, Hertz(rate)).ok().flatten().expect("it has a time");
        (world, time)
    }

    /// Floats, or a delta rounded once, would be short of a second after as many ticks.
    #[test]
    fn a_second_has_as_many_ticks_as_the_rate_says() {
        for rate in [1, 7, 20, 30, 60, 64, 128, 144, 255] {
            let (mut world, time) = world_with_time(rate);
            (0..3 * u32::from(rate)).for_each(|tick| time.advance(&mut world, tick, 1));
            assert_eq!(world.resource::<Time>().elapsed(), Duration::from_secs(3), "{rate} Hz");
        }
    }

    #[test]
    fn deltas_of_a_rate_differ_by_a_nanosecond_at_most() {
        let (mut world, time) = world_with_time(30);
        for tick in 0..90 {
            time.advance(&mut world, tick, 1);
            let delta = world.resource::<Time>().delta().as_nanos();
            assert!((33_333_333..=33_333_334).contains(&delta), "{delta}");
        }
    }

    #[test]
    fn the_tick_after_a_rest_brings_all_the_time_of_it() {
        let (mut world, time) = world_with_time(30);
        time.advance(&mut world, 0, 1);
        time.advance(&mut world, 59, 59);
        assert_eq!(world.resource::<Time>().elapsed(), Duration::from_secs(2));
        assert!(world.resource::<Time>().delta() > Duration::from_millis(1_966));
    }

    #[test]
    fn a_world_that_names_no_time_has_none() {
        let mut world = World::new();
        assert!(TickTime::give(&mut world, Hertz(20)).ok().flatten().is_none());
        assert!(!world.contains_resource::<Time>());
    }

    #[test]
    fn virtual_time_can_be_paused_and_time_follows_it() {
        let mut world = World::new();
        world.init_resource::<Time>();
        world.init_resource::<Time<Virtual>>();
        let time = TickTime::give(&mut world, Hertz(20)).ok().flatten().expect("it has times");
        time.advance(&mut world, 0, 1);
        world.resource_mut::<Time<Virtual>>().pause();
        time.advance(&mut world, 1, 1);
        assert_eq!(world.resource::<Time>().elapsed(), Duration::from_millis(50));
        assert_eq!(world.resource::<Time>().delta(), Duration::ZERO);
    }

    #[test]
    fn a_time_step_that_is_no_tick_is_refused_and_one_that_is_may_be_rounded() {
        let give = |hz: f64, rate: u16| {
            let mut world = World::new();
            world.insert_resource(Time::<Fixed>::from_hz(hz));
            TickTime::give(&mut world, Hertz(rate)).is_ok()
        };
        assert!(give(20.0, 20) && give(30.0, 30) && give(144.0, 144));
        assert!(give(64.0, 20), "Bevy's default is what nobody has asked for");
        assert!(!give(50.0, 20));
    }
}
