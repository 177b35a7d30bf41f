//! Errors: what is wrong with a value or with bytes, and where.

use std::fmt;

use thiserror::Error;

/// Why a value was not packed, or bytes were not unpacked. Names the innermost type and field that it concerns.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PackError {
    /// The type's name in its schema; empty if it is not known.
    pub type_name: &'static str,
    /// `field`, or `Variant.field`; empty if it concerns the type as a whole.
    pub field: &'static str,
    pub fault: Fault,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    #[error("the bytes are of another type, {got:016x}")]
    WrongType { got: u64 },
    #[error("version {got} is newer than {known}, which this program knows")]
    NewerVersion { got: u16, known: u16 },
    #[error("there is no version 0")]
    NoVersion,
    #[error(
        "its fields are not those that version {version} has in this program; a change of fields needs a new version"
    )]
    LayoutChanged { version: u16 },
    #[error("the bytes hold a type {got:016x} that is no part of it")]
    UnknownPart { got: u64 },
    #[error("the versions of its parts are not as they are written")]
    Parts,
    #[error("the bytes end too early")]
    Truncated,
    #[error("there are bytes after the end")]
    TrailingBytes,
    #[error("a number is out of range")]
    OutOfRange,
    #[error("a number has more bytes than it needs")]
    Overlong,
    #[error("a number is NaN or infinite")]
    NotFinite,
    #[error("a byte that should be 0 or 1 is not")]
    NoFlag,
    #[error("a text of {bytes} bytes; {bytes_max} are possible")]
    TextTooLong { bytes: u32, bytes_max: u32 },
    #[error("a text is not UTF-8")]
    NotUtf8,
    #[error("a list of {count} values; {count_max} are possible")]
    ListTooLong { count: u64, count_max: u64 },
    #[error("there is no variant {got}")]
    UnknownVariant { got: u8 },
    #[error("the program does not take this value")]
    Refused,
}

impl PackError {
    /// The same at a place, unless a place further inside is already told.
    #[must_use]
    pub fn at(self, type_name: &'static str, field: &'static str) -> Self {
        if self.type_name.is_empty() { Self { type_name, field, ..self } } else { self }
    }
}

impl From<Fault> for PackError {
    fn from(fault: Fault) -> Self {
        Self { type_name: "", field: "", fault }
    }
}

impl fmt::Display for PackError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.type_name, self.field) {
            ("", _) => {}
            (type_name, "") => write!(out, "`{type_name}`: ")?,
            (type_name, field) => write!(out, "`{type_name}`, `{field}`: ")?,
        }
        fmt::Display::fmt(&self.fault, out)
    }
}

impl std::error::Error for PackError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_and_what() {
        let check = |error: PackError, expect: &str| assert_eq!(error.to_string(), expect);
        let error = PackError::from(Fault::OutOfRange);
        check(error, "a number is out of range");
        check(error.at("Item", "count"), "`Item`, `count`: a number is out of range");
        check(error.at("Item", "count").at("Bag", "items"), "`Item`, `count`: a number is out of range");
        let newer = PackError::from(Fault::NewerVersion { got: 3, known: 2 });
        check(newer.at("Bag", ""), "`Bag`: version 3 is newer than 2, which this program knows");
    }
}
