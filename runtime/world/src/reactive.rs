//! Reactive worlds: they tick when there is something to tick for, and rest otherwise.
//!
//! A kind says so in one line ([`WorldKind::pace`](crate::world_kind::WorldKind::pace)). Its worlds keep the grid of
//! their tick rate: a tick's number is its position there, and positions at which there is no reason to tick are
//! *skipped*. So time goes on while a world rests, as evenly as ever, and what comes is seen at the next position.
//!
//! ```text
//! position     0   1   2   3   4   5   6   7   8   9  10  11  12
//!              T   l   .   .   .   T   l   .   l   .   .   T   .       T tick   l listening   . skipped
//!              ^               message^      ack^    a rate ^
//! dt           1               5                       6
//! ```
//!
//! **Ticks.** There is a reason to tick when clients said something that the world declares, when somebody came or went,
//! when another world, a long task, an operator or the host has sent something; when the game asked for a tick
//! ([`Outbox::wake_after`](crate::tick_resources::Outbox::wake_after)), a system with a rate of its own is due
//! ([`WorldBuilder::add_systems_every`](crate::world_builder::WorldBuilder::add_systems_every)), and when the world has
//! rested for [`REST_S_MAX`]. What is counted in ticks and time goes by positions: `TickInfo::dt_s` and `Time::delta` of
//! a tick are all the time since the tick before, so [`REST_S_MAX`] at most, and `TickInfo::now` is exact. A world with
//! systems in the fixed schedules (`FixedUpdate` and its neighbours) ticks at every position: there they run once for
//! each. A world that has Bevy's messages or states ticks once more after each reason, for what they leave to the next
//! tick.
//!
//! **Listening.** Clients' datagrams are sealed, so whether they say anything is known when they have been opened. So
//! what comes, and what is due to a client (an answer, what was lost, a keep-alive), has the world *listen*: a step of
//! its grid in which datagrams are opened and clients are told what they are owed, and no system runs. It changes nothing
//! of the world's state. A client that says nothing has its world listen once in two seconds or three; one that floods it
//! has it listen or tick at its rate, which it would do anyway were it not reactive.
//!
//! **The same mail at the same positions gives the same world**, on any number of workers: whether there is a reason
//! follows from the mail and the world. An [input log](crate::input_log) has the ticks alone, with their positions.
//!
//! A world that was loaded from a checkpoint ticks at once.
//!
//! An empty world that may be dormant falls dormant as others do, and its time stands still then.

use throng_platform::time::Nanos;
use throng_scheduler::Hertz;

/// The longest time between two ticks of a world that is not dormant (s): so long a tick's `dt` may be. At the end of it
/// an hour of rest has cost 360 ticks.
pub const REST_S_MAX: u32 = 10;

/// When a reactive world ticks.
#[derive(Debug)]
pub(crate) struct Reactive {
    /// Rates at which some of its systems run.
    rates: Vec<Hertz>,
    /// The game has Bevy's messages or states, which leave something to the next tick.
    echoes: bool,
    /// The last tick. Before the first: -1.
    last_tick: u32,
    /// The next tick that comes without a reason in the mail.
    wake_at: u32,
    /// Clients may be owed something that depends on whose turn it is, up to here.
    settled_at: u32,
    /// Positions that the host has left out since the last step, and before it.
    skipped: u32,
    rested: u32,
    /// When a client is due, by its connection; as of the last step.
    pub client_due: Nanos,
}

impl Reactive {
    pub fn new(mut rates: Vec<Hertz>, echoes: bool) -> Self {
        rates.sort_unstable();
        rates.dedup();
        Self {
            rates,
            echoes,
            last_tick: u32::MAX,
            wake_at: 0,
            settled_at: 0,
            skipped: 0,
            rested: 0,
            client_due: Nanos::MAX,
        }
    }

    /// The host leaves out so many positions.
    pub fn skip(&mut self, positions: u32) {
        self.skipped = self.skipped.saturating_add(positions);
    }

    /// A step begins: how many positions were left out before it.
    pub fn begin_step(&mut self) -> u32 {
        self.rested = std::mem::take(&mut self.skipped);
        self.rested
    }

    /// Positions that were left out before this step.
    pub fn rested(&self) -> u32 {
        self.rested
    }

    /// Its next tick is `tick`, and comes at once.
    pub fn begin_at(&mut self, tick: u32) {
        (self.last_tick, self.wake_at, self.settled_at) = (tick.wrapping_sub(1), tick, tick);
    }

    /// Its next step is a tick.
    pub fn wake(&mut self) {
        self.wake_at = 0;
    }

    /// Ticks from the last one to this one [>= 1].
    pub fn ticks_since_last(&self, tick: u32) -> u32 {
        tick.wrapping_sub(self.last_tick).max(1)
    }

    /// Whether the world ticks at this position though nothing has come.
    pub fn wakes(&self, tick: u32) -> bool {
        self.wake_at <= tick
    }

    /// A tick was done at this position. `asked` is the game's wish, in ticks from this one; in `settles_in`
    /// ticks, this one included, all clients have had their turn to be told of it [>= 1].
    pub fn ticked(&mut self, tick: u32, has_reason: bool, asked: Option<u32>, rate: Hertz, settles_in: u32) {
        self.last_tick = tick;
        let rest_max = REST_S_MAX * u32::from(rate.0);
        let after = |ticks: u32| tick.saturating_add(ticks.max(1));
        let by_rates = self.rates.iter().map(|own| next_turn(tick, *own, rate));
        let by_game = asked.map(after).into_iter().chain((self.echoes && has_reason).then(|| after(1)));
        self.wake_at = by_rates.chain(by_game).fold(after(rest_max), u32::min);
        self.settled_at = tick.saturating_add(settles_in - 1);
    }

    /// How many positions from `next` on may be left out unless mail comes. `position` is how long one lasts.
    pub fn rests(&self, next: u32, now: Nanos, position: Nanos) -> u32 {
        if next <= self.settled_at {
            return 0;
        }
        let until_due = self.client_due.saturating_sub(now).0.div_ceil(position.0.max(1)).saturating_sub(1);
        self.wake_at.saturating_sub(next).min(u32::try_from(until_due).unwrap_or(u32::MAX))
    }
}

/// Whether what is to be done at `own` rate is done in this tick of a world with that `rate`: as often as the rate says,
/// evenly, whichever other ticks there are.
pub(crate) fn is_turn(tick: u32, own: Hertz, rate: Hertz) -> bool {
    turns_before(tick.into(), own, rate) < turns_before(u64::from(tick) + 1, own, rate)
}

/// The first tick after this one in which it is done.
fn next_turn(tick: u32, own: Hertz, rate: Hertz) -> u32 {
    let turn = turns_before(u64::from(tick) + 1, own, rate) + 1;
    let after = (turn * u64::from(rate.0)).div_ceil(u64::from(own.0).max(1));
    u32::try_from(after - 1).unwrap_or(u32::MAX)
}

fn turns_before(tick: u64, own: Hertz, rate: Hertz) -> u64 {
    tick * u64::from(own.0) / u64::from(rate.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_its_own_is_kept_exactly_and_its_next_turn_is_known() {
        for rate in [1, 7, 20, 30, 128, 255] {
            for own in (1..=rate).step_by(3) {
                let (own, rate) = (Hertz(own), Hertz(rate));
                let turns: Vec<u32> = (0..5 * u32::from(rate.0)).filter(|tick| is_turn(*tick, own, rate)).collect();
                assert_eq!(turns.len(), 5 * usize::from(own.0), "{own:?} of {rate:?}");
                for pair in turns.windows(2) {
                    assert!(
                        (pair[0]..pair[1]).all(|tick| next_turn(tick, own, rate) == pair[1]),
                        "{own:?} of {rate:?}"
                    );
                }
            }
        }
    }

    fn rested(reactive: &Reactive, next: u32) -> u32 {
        reactive.rests(next, Nanos::ZERO, Nanos::from_millis(50))
    }

    #[test]
    fn a_world_rests_until_the_first_of_what_it_waits_for() {
        let rate = Hertz(20);
        let mut world = Reactive::new(vec![Hertz(2)], false);
        assert!(world.wakes(0), "the first tick has a reason");
        world.ticked(0, true, None, rate, 2);
        assert_eq!(rested(&world, 1), 0, "clients are told in turns");
        assert_eq!(rested(&world, 2), 7, "2 Hz are due in ticks 9, 19, ...");
        world.ticked(9, false, Some(3), rate, 1);
        assert_eq!(rested(&world, 11), 1, "the game has asked");
        assert!(!world.wakes(11) && world.wakes(12));
        world.client_due = Nanos::from_millis(90);
        assert_eq!(rested(&world, 11), 1, "a client is due two positions later");
        world.client_due = Nanos::from_millis(40);
        assert_eq!(rested(&world, 11), 0);
    }

    #[test]
    fn nobody_rests_for_longer_than_the_longest_time() {
        let mut world = Reactive::new(Vec::new(), false);
        world.ticked(100, true, Some(u32::MAX), Hertz(20), 1);
        assert!(!world.wakes(299) && world.wakes(300));
        assert_eq!(world.ticks_since_last(300), 200);
    }

    #[test]
    fn what_is_left_to_the_next_tick_has_one_and_no_more() {
        let mut world = Reactive::new(Vec::new(), true);
        world.ticked(100, true, None, Hertz(20), 1);
        assert!(world.wakes(101));
        world.ticked(101, false, None, Hertz(20), 1);
        assert!(!world.wakes(102));
    }
}
