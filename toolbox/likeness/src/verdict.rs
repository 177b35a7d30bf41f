//! Verdict: what is said of a measure in the end.

use serde::Serialize;

/// What is found of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// `b` does it more often, by more than a tenth.
    More,
    /// `a` does it more often, by more than a tenth.
    Less,
    /// Of places: more than a tenth of the time is spent elsewhere.
    Elsewhere,
    /// They are a tenth apart at most.
    Within,
    /// Too little was played to say.
    Unclear,
}

impl Verdict {
    /// The word for it in tables and sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Less => "less",
            Self::Elsewhere => "elsewhere",
            Self::Within => "within",
            Self::Unclear => "unclear",
        }
    }

    /// Whether a difference is beyond doubt.
    pub fn is_named(self) -> bool {
        matches!(self, Self::More | Self::Less | Self::Elsewhere)
    }
}
