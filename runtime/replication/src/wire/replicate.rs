//! Replicate: what a component must offer to be copied to clients.
//!
//! A component has two encodings. The *quantised* one goes out in snapshots: few bytes, numbers rounded to
//! the step that the game declared. The *exact* one goes out in audit samples (see `audit_sample`), rarely, and lets a
//! client check that what it holds really is the server's value.
//!
//! `#[derive(Replicate)]` writes all of it from the declared ranges:
//!
//! ```
//! use throng_replication::Replicate;
//!
//! #[derive(Clone, Debug, PartialEq, Replicate)]
//! struct Pose {
//!     #[replicate(min = -256.0, max = 256.0, step = 0.02)]
//!     place: [f32; 3],
//!     #[replicate(angle, bits = 7)]
//!     heading: f32,
//! }
//! assert_eq!(Pose::BYTES_MAX, 7); // 3 x 15 + 7 bits
//! ```

use crate::wire::{
    bytes::{DecodeError, Reader, Writer},
    ids::{NetId, SLOTS_MAX},
    link::EntityLink,
    quantise::mix,
    shape::FieldShape,
};

/// A component whose value clients hold a copy of. Usually derived.
///
/// Implementations must keep these promises, which the schema's tests and audit samples check:
/// `encode` writes at most `BYTES_MAX` bytes and `encode_exact` at most `EXACT_BYTES_MAX`, both whole bytes;
/// equal values give equal bytes; `decode` returns only finite numbers in their declared ranges.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be replicated", label = "add `#[derive(Replicate)]` to it")]
pub trait Replicate: Clone + Send + Sync + 'static {
    /// Name in errors, reports and the schema's hash.
    const NAME: &'static str;
    /// Ranges and steps as one number. Part of the schema's hash: two programs that disagree on it must not talk.
    const LAYOUT: u64 = 0;
    /// Longest quantised encoding. [bytes, 0 to 255]
    const BYTES_MAX: usize;
    /// Longest exact encoding. [bytes, 0 to 255]
    const EXACT_BYTES_MAX: usize;
    /// Whether it may refer to entities. Such a component is cloned before it is encoded, to enter their ids.
    const LINKS: bool = false;

    fn encode(&self, out: &mut Writer<'_>);
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError>;

    fn encode_exact(&self, out: &mut Writer<'_>);
    fn decode_exact(from: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Whether `self`, which came through the quantised encoding, is what `exact` rounds to: every number
    /// within half a step, everything else equal.
    fn agrees_with(&self, exact: &Self) -> bool;

    /// Shows every link in it, for its id to be entered. Nothing, unless `LINKS`.
    fn visit_links(&mut self, _visit: &mut dyn FnMut(&mut EntityLink)) {}

    /// What it is made of, for clients in other languages. Allocates.
    fn shape() -> FieldShape {
        FieldShape::Unsaid
    }
}

/// A value of at most 32 bits that can be a field of a replicated component, in fewer bits if the field says so: `bool`,
/// integers, [`NetId`], and enums without fields that derive `Replicate`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a replicated component in this way",
    label = "neither a type that `#[derive(Replicate)]` knows how to pack nor one that takes `bits = ..`",
    note = "fields may be f32, [f32; N], Vec2, Vec3 (with min, max and step, or angle and bits, or exact), bool, u8, u16, \
            u32, i8, i16, i32, Text<N>, NetId, EntityLink, a type that derives Replicate, and Option<T>, List<T, N> and \
            ArrayVec<T, N> of these; `bits = ..` is for integers, bool and enums without fields"
)]
pub trait ReplicateBits: Sized {
    /// How many bits any value fits in, without a `bits` attribute. [1 to 32]
    const BITS: u32;
    /// Part of the layout of what it is a field of.
    const LAYOUT: u64 = mix(3, Self::BITS as u64);

    fn to_code(&self) -> u32;
    fn from_code(code: u32) -> Result<Self, DecodeError>;

    /// The code of the value nearest to this one whose code fits into so many bits. [bits: 1 to 32]
    fn code_within(&self, bits: u32) -> u32 {
        self.to_code().min((u64::MAX >> (u64::BITS - bits)) as u32)
    }

    /// What it is made of where so many bits of it are sent.
    fn shape_in(_bits: u32) -> FieldShape {
        FieldShape::Unsaid
    }
}

/// An integer, which a field may give a range.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no range",
    label = "`min` and `max` are for u8, u16, u32, i8, i16 and i32, and with `step` for f32"
)]
pub trait ReplicateInteger: ReplicateBits + Copy + Into<i64> + TryFrom<i64> {
    const MIN: i64;
    const MAX: i64;
}

impl ReplicateBits for bool {
    const BITS: u32 = 1;
    fn to_code(&self) -> u32 {
        (*self).into()
    }
    fn from_code(code: u32) -> Result<Self, DecodeError> {
        match code {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::OutOfRange),
        }
    }
    fn shape_in(bits: u32) -> FieldShape {
        FieldShape::Bool { bits }
    }
}

/// Slot and generation, so that components and events can name entities.
impl ReplicateBits for NetId {
    const BITS: u32 = SLOTS_MAX.trailing_zeros() + 8;
    fn to_code(&self) -> u32 {
        self.slot << 8 | u32::from(self.generation)
    }
    fn from_code(code: u32) -> Result<Self, DecodeError> {
        Ok(Self { slot: code >> 8, generation: code as u8 })
    }
    fn shape_in(_bits: u32) -> FieldShape {
        FieldShape::Id
    }
}

const _: () = assert!(SLOTS_MAX.is_power_of_two() && NetId::BITS <= 32);

macro_rules! unsigned {
    ($($kind:ty),*) => {$(
        impl ReplicateBits for $kind {
            const BITS: u32 = <$kind>::BITS;
            fn to_code(&self) -> u32 {
                (*self).into()
            }
            fn from_code(code: u32) -> Result<Self, DecodeError> {
                code.try_into().map_err(|_| DecodeError::OutOfRange)
            }
            fn shape_in(bits: u32) -> FieldShape {
                FieldShape::Unsigned { bits, full: <$kind>::BITS }
            }
        }
    )*};
}
unsigned!(u8, u16, u32);

macro_rules! signed {
    ($($kind:ty),*) => {$(
        /// Zigzag (0, -1, 1, -2, ..), so that `n` bits hold -2^(n-1) to 2^(n-1) - 1 of any of them.
        impl ReplicateBits for $kind {
            const BITS: u32 = <$kind>::BITS;
            const LAYOUT: u64 = mix(12, <$kind>::BITS as u64);
            fn to_code(&self) -> u32 {
                let value = i32::from(*self);
                (value << 1 ^ value >> 31) as u32
            }
            fn from_code(code: u32) -> Result<Self, DecodeError> {
                let value = (code >> 1) as i32 ^ -((code & 1) as i32);
                value.try_into().map_err(|_| DecodeError::OutOfRange)
            }
            fn code_within(&self, bits: u32) -> u32 {
                let end = 1_i64 << (bits - 1);
                (i64::from(*self).clamp(-end, end - 1) as i32).to_code()
            }
            fn shape_in(bits: u32) -> FieldShape {
                FieldShape::Signed { bits, full: <$kind>::BITS }
            }
        }
    )*};
}
signed!(i8, i16, i32);

macro_rules! integers {
    ($($kind:ty),*) => {$(
        impl ReplicateInteger for $kind {
            const MIN: i64 = <$kind>::MIN as i64;
            const MAX: i64 = <$kind>::MAX as i64;
        }
    )*};
}
integers!(u8, u16, u32, i8, i16, i32);
