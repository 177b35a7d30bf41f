//! Time factor: how fast a world's time runs against a clock's.
//!
//! A world that has too little time for its ticks has them come less often (time dilation), while each stands for as much
//! of the world's time as ever. Clients must know, or they would run ahead of it. So snapshots of such a world say the
//! factor (`view::snapshot`): whichever of them comes through says what holds from its tick on.

/// Parts in a hundred at which a world's time runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeFactor(u8);

impl TimeFactor {
    /// As fast as a clock's.
    pub const USUAL: Self = Self(100);

    /// No world's time is slower, at any overload.
    pub const SLOWEST: Self = Self(10);

    pub const HALF: Self = Self(50);

    /// The nearest that is not faster than this share of a clock's time, or the slowest.
    pub fn of_share(share: f32) -> Self {
        // A share of many digits, such as 0.7, may be a little less than it is said to be.
        Self::from_percent((share * 100.0 + 1e-3) as u32)
    }

    /// So many percent, or what is nearest of 10 to 100.
    pub fn from_percent(percent: u32) -> Self {
        Self(percent.clamp(Self::SLOWEST.0.into(), Self::USUAL.0.into()) as u8)
    }

    /// As it is on the wire; `None` for what no server says.
    pub fn decode(percent: u8) -> Option<Self> {
        (Self::SLOWEST.0..=Self::USUAL.0).contains(&percent).then_some(Self(percent))
    }

    pub fn percent(self) -> u8 {
        self.0
    }

    /// The world's time for one of a clock's [0.1 to 1].
    pub fn share(self) -> f32 {
        f32::from(self.0) / 100.0
    }

    pub fn is_usual(self) -> bool {
        self == Self::USUAL
    }
}

impl Default for TimeFactor {
    fn default() -> Self {
        Self::USUAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_server_says_is_refused() {
        let said = |percent| TimeFactor::decode(percent).map(TimeFactor::percent);
        assert_eq!([0, 9, 10, 55, 100, 101, 255].map(said), [None, None, Some(10), Some(55), Some(100), None, None]);
        assert_eq!([0, 9, 55, 101].map(|percent| TimeFactor::from_percent(percent).percent()), [10, 10, 55, 100]);
    }
}
