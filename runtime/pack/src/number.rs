//! Numbers: integers and floats as bytes, and the ranges they are held to.
//!
//! Integers of one byte are themselves; larger ones are varints, signed ones after zigzag, since most numbers of a game
//! are small. `#[pack(fixed)]` writes those that are large as a rule (a hash takes 10 bytes as a varint, 8 as it is).
//! Floats are written in full and must be finite: one NaN in a place spreads through everything that is computed from
//! it.

use arrayvec::ArrayVec;

use crate::{Kind, List, Pack, PackError, Reader, Writer, compound::array_of, derived::varint_bytes, error::Fault};

/// An integer or a float.
pub trait Number: Copy + PartialOrd {
    const LEAST: Self;
    const MOST: Self;
    const IS_FLOAT: bool;
}

/// What `min` and `max` can be asked of: a number, or options, arrays and lists of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no numbers for `min` and `max`",
    label = "`min` and `max` are for numbers, and for options, arrays and lists of them"
)]
pub trait Numbers {
    type Number: Number;

    /// Whether every number in it lies in `min..=max`.
    fn lies_within(&self, min: Self::Number, max: Self::Number) -> bool;
}

/// What `#[pack(fixed)]` can be asked of: integers that would be varints, and arrays of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` takes no `fixed`",
    label = "`fixed` is for u16, u32, u64, i16, i32, i64 and arrays of them"
)]
pub trait PackFixed: Pack {
    const FIXED_BYTES: usize;

    fn pack_fixed(&self, out: &mut Writer<'_>) -> Result<(), PackError>;
    fn unpack_fixed(from: &mut Reader<'_>) -> Result<Self, PackError>;
}

macro_rules! numbers {
    ($($number:ty, $is_float:literal;)*) => {$(
        impl Number for $number {
            const LEAST: Self = <$number>::MIN;
            const MOST: Self = <$number>::MAX;
            const IS_FLOAT: bool = $is_float;
        }

        impl Numbers for $number {
            type Number = Self;

            #[inline]
            fn lies_within(&self, min: Self, max: Self) -> bool {
                min <= *self && *self <= max
            }
        }
    )*};
}
numbers!(
    u8, false; u16, false; u32, false; u64, false;
    i8, false; i16, false; i32, false; i64, false;
    f32, true; f64, true;
);

impl<T: Numbers> Numbers for Option<T> {
    type Number = T::Number;

    fn lies_within(&self, min: T::Number, max: T::Number) -> bool {
        self.as_ref().is_none_or(|value| value.lies_within(min, max))
    }
}

impl<T: Numbers, const N: usize> Numbers for [T; N] {
    type Number = T::Number;

    fn lies_within(&self, min: T::Number, max: T::Number) -> bool {
        self.iter().all(|value| value.lies_within(min, max))
    }
}

impl<T: Numbers, const N: usize> Numbers for List<T, N> {
    type Number = T::Number;

    fn lies_within(&self, min: T::Number, max: T::Number) -> bool {
        self.iter().all(|value| value.lies_within(min, max))
    }
}

impl<T: Numbers, const N: usize> Numbers for ArrayVec<T, N> {
    type Number = T::Number;

    fn lies_within(&self, min: T::Number, max: T::Number) -> bool {
        self.iter().all(|value| value.lies_within(min, max))
    }
}

impl Pack for bool {
    const KIND: Kind = Kind::Bool;
    const BYTES_MIN: usize = 1;
    const BYTES_MAX: usize = 1;

    #[inline]
    fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
        out.u8((*self).into());
        Ok(())
    }

    #[inline]
    fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
        Ok(from.flag()?)
    }
}

macro_rules! bytes {
    ($($number:ty, $kind:ident;)*) => {$(
        impl Pack for $number {
            const KIND: Kind = Kind::$kind { bits: 8 };
            const BYTES_MIN: usize = 1;
            const BYTES_MAX: usize = 1;

            #[inline]
            fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
                out.u8(*self as u8);
                Ok(())
            }

            #[inline]
            fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
                Ok(from.u8()? as Self)
            }
        }
    )*};
}
bytes!(u8, Unsigned; i8, Signed;);

macro_rules! varints {
    ($($number:ty, $kind:ident, $write:ident;)*) => {$(
        impl Pack for $number {
            const KIND: Kind = Kind::$kind { bits: <$number>::BITS as u8 };
            const BYTES_MIN: usize = 1;
            const BYTES_MAX: usize = varint_bytes(u64::MAX >> (u64::BITS - <$number>::BITS));

            #[inline]
            fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
                out.$write((*self).into());
                Ok(())
            }

            #[inline]
            fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
                Ok(from.$write()?.try_into().map_err(|_| Fault::OutOfRange)?)
            }
        }

        impl PackFixed for $number {
            const FIXED_BYTES: usize = size_of::<$number>();

            #[inline]
            fn pack_fixed(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
                out.bytes(&self.to_le_bytes());
                Ok(())
            }

            #[inline]
            fn unpack_fixed(from: &mut Reader<'_>) -> Result<Self, PackError> {
                Ok(Self::from_le_bytes(from.array()?))
            }
        }
    )*};
}
varints!(
    u16, Unsigned, varint; u32, Unsigned, varint; u64, Unsigned, varint;
    i16, Signed, zigzag; i32, Signed, zigzag; i64, Signed, zigzag;
);

impl<T: PackFixed, const N: usize> PackFixed for [T; N] {
    const FIXED_BYTES: usize = T::FIXED_BYTES.saturating_mul(N);

    fn pack_fixed(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
        self.iter().try_for_each(|value| value.pack_fixed(out))
    }

    fn unpack_fixed(from: &mut Reader<'_>) -> Result<Self, PackError> {
        array_of(|| T::unpack_fixed(from))
    }
}

macro_rules! floats {
    ($($number:ty, $bits:literal;)*) => {$(
        impl Pack for $number {
            const KIND: Kind = Kind::Float { bits: $bits };
            const BYTES_MIN: usize = size_of::<$number>();
            const BYTES_MAX: usize = size_of::<$number>();

            #[inline]
            fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
                out.bytes(&finite(*self, self.is_finite())?.to_le_bytes());
                Ok(())
            }

            #[inline]
            fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
                let number = Self::from_le_bytes(from.array()?);
                finite(number, number.is_finite())
            }
        }
    )*};
}
floats!(f32, 32; f64, 64;);

#[inline]
fn finite<T>(number: T, is_finite: bool) -> Result<T, PackError> {
    if is_finite { Ok(number) } else { Err(Fault::NotFinite.into()) }
}
