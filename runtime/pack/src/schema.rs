//! Schema: what a packed type is made of, as a value that can be printed, compared and exported.
//!
//! Schemas are constants; the derive writes them, and the compiler computes ids and hashes from them. Printed, one
//! reads
//!
//! ```text
//! example.traveller 2
//!   name: text 24
//!   health: u8 0..=100
//!   items: list 32 of Item
//!   ammunition: u16 since 2
//! Item 1
//!   0 Medkit
//!   1 Weapon
//!     kind: u8
//!     rounds: option of u16
//! ```
//!
//! A schema tells three things apart:
//!
//! | | over | for |
//! | --- | --- | --- |
//! | [`Schema::id`] | the name | which type bytes are of |
//! | [`Schema::layout`] | names and kinds of all fields in one version, parts' too | whether bytes are read as written |
//! | [`Schema::hash`] | that, limits and versions | whether two programs agree in everything |

use std::fmt;

mod hash;
mod versions;

pub(crate) use versions::{PARTS_MAX, Versions};

/// A struct or an enum with its name and version.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Schema {
    pub name: &'static str,
    /// Hash of the name.
    pub id: u64,
    /// The version that this program writes. [>= 1]
    pub version: u16,
    pub shape: Shape,
}

#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Shape {
    Struct(&'static [Field]),
    Enum(&'static [Variant]),
}

/// A field of a struct or of a variant; those of tuples are named `0`, `1`, ..
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// Integers of full size, not varints.
    pub fixed: bool,
    /// All numbers in the field lie in it.
    pub range: Option<Range>,
    /// The first version that has the field.
    pub since: u16,
}

/// One case of an enum; its place among them is its number in the bytes.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Variant {
    pub name: &'static str,
    pub fields: &'static [Field],
    /// The first version that has the variant.
    pub since: u16,
}

/// What a value is.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Kind {
    Bool,
    Unsigned { bits: u8 },
    Signed { bits: u8 },
    Float { bits: u8 },
    Text { bytes_max: u8 },
    Option { of: &'static Kind },
    Array { of: &'static Kind, count: u32 },
    List { of: &'static Kind, count_max: u32 },
    Named(&'static Schema),
}

/// Limits of numbers, both ends included.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Range {
    Integers { min: i128, max: i128 },
    Floats { min: f64, max: f64 },
}

impl Schema {
    pub const fn new(name: &'static str, version: u16, shape: Shape) -> Self {
        Self { name, id: hash::of_name(name), version, shape }
    }

    /// The same in two programs that agree in everything: names, fields, kinds, limits and versions, of parts too.
    ///
    /// For ends that compare it when they meet and do without envelopes from then on.
    pub const fn hash(&self) -> u64 {
        hash::of_schema(self, None, hash::Of::Everything)
    }

    /// The same in two programs that read the bytes of the current version alike: [`Schema::hash`] without limits.
    pub const fn layout(&self) -> u64 {
        hash::of_schema(self, None, hash::Of::Layout)
    }

    /// The layout of bytes that another version has written.
    pub(crate) fn layout_at(&self, versions: &Versions) -> u64 {
        hash::of_schema(self, Some(versions), hash::Of::Layout)
    }

    /// Fields of a struct; of all variants of an enum, one after the other.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        let (fields, variants): (&'static [Field], &'static [Variant]) = match self.shape {
            Shape::Struct(fields) => (fields, &[]),
            Shape::Enum(variants) => (&[], variants),
        };
        fields.iter().chain(variants.iter().flat_map(|variant| variant.fields))
    }

    /// The named types that values of this type hold, itself first, each once, in the order in which they are met.
    pub fn parts(&'static self) -> Vec<&'static Schema> {
        let (mut parts, mut next) = (vec![self], 0);
        while let Some(schema) = parts.get(next).copied() {
            for part in schema.fields().filter_map(|field| field.kind.named()) {
                if parts.iter().all(|known| known.id != part.id) {
                    parts.push(part);
                }
            }
            next += 1;
        }
        parts
    }
}

impl Kind {
    /// The named type that it is or holds.
    pub const fn named(&self) -> Option<&'static Schema> {
        match self {
            Self::Named(schema) => Some(*schema),
            Self::Option { of } | Self::Array { of, .. } | Self::List { of, .. } => of.named(),
            _ => None,
        }
    }
}

impl Range {
    pub const fn integers(min: i128, max: i128) -> Self {
        Self::Integers { min, max }
    }

    pub const fn floats(min: f64, max: f64) -> Self {
        assert!(min.is_finite() && max.is_finite(), "`min` and `max` are finite");
        Self::Floats { min, max }
    }
}

impl fmt::Display for Schema {
    /// The type and its fields; [`Schema::parts`] has the types of the fields.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.name, self.version)?;
        match self.shape {
            Shape::Struct(fields) => write_fields(fields, "\n  ", out),
            Shape::Enum(variants) => variants.iter().enumerate().try_for_each(|(number, variant)| {
                write!(out, "\n  {number} {}{}", variant.name, Since(variant.since))?;
                write_fields(variant.fields, "\n    ", out)
            }),
        }
    }
}

fn write_fields(fields: &[Field], indent: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    fields.iter().try_for_each(|field| write!(out, "{indent}{field}"))
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.name, self.kind)?;
        if self.fixed {
            out.write_str(" fixed")?;
        }
        match self.range {
            Some(Range::Integers { min, max }) => write!(out, " {min}..={max}")?,
            Some(Range::Floats { min, max }) => write!(out, " {min:?}..={max:?}")?,
            None => {}
        }
        fmt::Display::fmt(&Since(self.since), out)
    }
}

struct Since(u16);

impl fmt::Display for Since {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 1 { write!(out, " since {}", self.0) } else { Ok(()) }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => out.write_str("bool"),
            Self::Unsigned { bits } => write!(out, "u{bits}"),
            Self::Signed { bits } => write!(out, "i{bits}"),
            Self::Float { bits } => write!(out, "f{bits}"),
            Self::Text { bytes_max } => write!(out, "text {bytes_max}"),
            Self::Option { of } => write!(out, "option of {of}"),
            Self::Array { of, count } => write!(out, "array {count} of {of}"),
            Self::List { of, count_max } => write!(out, "list {count_max} of {of}"),
            Self::Named(schema) => out.write_str(schema.name),
        }
    }
}
