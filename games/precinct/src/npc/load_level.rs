//! Load levels: how much of the server's time an NPC gets, by how near the nearest player is.
//!
//! | level | nearest player    | walks every  | perceives        | thinks            |
//! |-------|-------------------|--------------|------------------|-------------------|
//! | full  | under 40 m        | tick         | 5 times a second | at every look     |
//! | near  | under 80 m        | second tick  | 4 times a second | at every look     |
//! | far   | farther, or none  | 1/4 second   | 4 times a second | every second look |
//!
//! An NPC that walks less often takes longer steps, so its speed is the same at every level. Nobody is ever
//! switched off: fights between NPCs go on behind the player's back.

use bevy_ecs::component::Component;
use throng_pack::Pack;

/// Nearer than this to a player is [`LoadLevel::Full`]. (m)
pub const FULL_M: f32 = 40.0;
/// Nearer than this to a player is [`LoadLevel::Near`]. (m)
pub const NEAR_M: f32 = 80.0;
/// Looks around per second that every NPC gets at least.
pub const PERCEPTIONS_PER_S_MIN: u16 = 4;
const PERCEPTIONS_PER_S_FULL: u16 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.load_level")]
pub enum LoadLevel {
    Full,
    Near,
    Far,
}

impl LoadLevel {
    /// The level at a squared distance to the nearest player. (m²)
    pub fn at_m2(nearest_player_m2: f32) -> Self {
        if nearest_player_m2 < FULL_M * FULL_M {
            Self::Full
        } else if nearest_player_m2 < NEAR_M * NEAR_M {
            Self::Near
        } else {
            Self::Far
        }
    }

    /// Ticks between two looks around.
    pub fn perceive_period(self, tick_hz: u16) -> u32 {
        let per_s = if self == Self::Full { PERCEPTIONS_PER_S_FULL } else { PERCEPTIONS_PER_S_MIN };
        // Rounded down: a look a little too often rather than one too few.
        u32::from((tick_hz / per_s).max(1))
    }

    /// Ticks between two steps along a path.
    pub fn step_period(self, tick_hz: u16) -> u32 {
        match self {
            Self::Full => 1,
            Self::Near => 2,
            Self::Far => u32::from((tick_hz / 4).max(1)),
        }
    }

    /// Looks around between two thoughts.
    pub fn looks_per_thought(self) -> u32 {
        if self == Self::Far { 2 } else { 1 }
    }
}

/// When an NPC did what last: its share of the server's time.
#[derive(Component, Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.pace")]
pub struct Pace {
    pub level: LoadLevel,
    perceived_tick: u32,
    stepped_tick: u32,
    looks: u32,
}

impl Pace {
    /// `stagger` spreads NPCs that are made in the same tick over the ticks of a period: any number, such as the slot.
    pub fn new(stagger: u32) -> Self {
        // A past tick, in wrapping arithmetic: the first looks fall due one after the other.
        let past = 0u32.wrapping_sub(1 + stagger % 5);
        Self { level: LoadLevel::Far, perceived_tick: past, stepped_tick: past, looks: stagger }
    }

    /// Whether a look around is due; notes it as done if so.
    pub fn take_look(&mut self, tick: u32, tick_hz: u16) -> bool {
        let due = tick.wrapping_sub(self.perceived_tick) >= self.level.perceive_period(tick_hz);
        if due {
            self.perceived_tick = tick;
            self.looks = self.looks.wrapping_add(1);
        }
        due
    }

    /// Whether this tick's look is followed by a thought.
    pub fn thinks(&self, tick: u32) -> bool {
        self.perceived_tick == tick && self.looks.is_multiple_of(self.level.looks_per_thought())
    }

    /// How many ticks the step that is due now stands for; `None` if none is due.
    pub fn take_step(&mut self, tick: u32, tick_hz: u16) -> Option<u32> {
        let period = self.level.step_period(tick_hz);
        let elapsed = tick.wrapping_sub(self.stepped_tick);
        if elapsed < period {
            return None;
        }
        self.stepped_tick = tick;
        Some(elapsed.min(period))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_looks_at_least_four_times_in_every_second() {
        for tick_hz in [20, 30, 60, 128] {
            for (stagger, level) in
                [LoadLevel::Full, LoadLevel::Near, LoadLevel::Far].into_iter().cycle().take(9).enumerate()
            {
                let mut pace = Pace::new(stagger as u32);
                pace.level = level;
                let looks: Vec<u32> =
                    (0..u32::from(tick_hz) * 10).filter(|&tick| pace.take_look(tick, tick_hz)).collect();
                let gap_max = looks.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
                assert!(gap_max * 4 <= u32::from(tick_hz), "{level:?} at {tick_hz} Hz: {gap_max} ticks");
            }
        }
    }

    #[test]
    fn looks_are_spread_over_the_ticks() {
        let mut paces: Vec<Pace> = (0..20).map(Pace::new).collect();
        for tick in 0..100 {
            let looking = paces.iter_mut().filter_map(|pace| pace.take_look(tick, 20).then_some(())).count();
            assert!(tick < 5 || looking == 4, "tick {tick}: {looking}");
        }
    }

    #[test]
    fn steps_of_every_level_cover_the_same_time() {
        for level in [LoadLevel::Full, LoadLevel::Near, LoadLevel::Far] {
            let mut pace = Pace::new(3);
            pace.level = level;
            let ticks: u32 = (0..1_000).filter_map(|tick| pace.take_step(tick, 20)).sum();
            assert!((995..=1_005).contains(&ticks), "{level:?}: {ticks}");
        }
    }
}
