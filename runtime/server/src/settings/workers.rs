//! How many threads run worlds.

use serde::Deserialize;
use serde::de::{Deserializer, Unexpected, Visitor};

/// How many threads run worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// One per core that this process may use.
    Auto,
    Count(u16),
}

impl<'de> Deserialize<'de> for Workers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct AutoOrCount;
        impl Visitor<'_> for AutoOrCount {
            type Value = Workers;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("\"auto\" or a whole number from 1 to 256")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Workers, E> {
                match text {
                    "auto" => Ok(Workers::Auto),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
            fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<Workers, E> {
                let count = u16::try_from(count).map_err(|_| E::invalid_value(Unexpected::Signed(count), &self))?;
                Ok(Workers::Count(count))
            }
        }
        from.deserialize_any(AutoOrCount)
    }
}
