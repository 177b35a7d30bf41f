//! Derived: what the code that `#[derive(Pack)]` writes calls. Not for hands.

use crate::{Fault, Numbers, PackError, Schema, schema::Versions};

/// The value, if its numbers are in range.
#[inline]
pub fn within<T: Numbers>(value: T, min: T::Number, max: T::Number) -> Result<T, PackError> {
    check_within(&value, min, max).map(|()| value)
}

#[inline]
pub fn check_within<T: Numbers>(value: &T, min: T::Number, max: T::Number) -> Result<(), PackError> {
    if value.lies_within(min, max) { Ok(()) } else { Err(Fault::OutOfRange.into()) }
}

/// The field's value of what it went as.
pub fn converted<F: TryFrom<T>, T>(value: T) -> Result<F, PackError> {
    F::try_from(value).map_err(|_| Fault::Refused.into())
}

/// Fails, while compiling, if the versions of the types in it cannot be told.
pub const fn check_parts(schema: &Schema) {
    Versions::of_parts(schema);
}

/// Bytes of a number as a varint.
pub const fn varint_bytes(number: u64) -> usize {
    let bits = u64::BITS - number.leading_zeros();
    if bits == 0 { 1 } else { bits.div_ceil(7) as usize }
}

pub const fn sum(bytes: &[usize]) -> usize {
    let (mut sum, mut index) = (0_usize, 0);
    while index < bytes.len() {
        sum = sum.saturating_add(bytes[index]);
        index += 1;
    }
    sum
}

/// The least of what is never empty.
pub const fn least(bytes: &[usize]) -> usize {
    let (mut least, mut index) = (bytes[0], 1);
    while index < bytes.len() {
        if bytes[index] < least {
            least = bytes[index];
        }
        index += 1;
    }
    least
}

/// The most of what is never empty.
pub const fn most(bytes: &[usize]) -> usize {
    let (mut most, mut index) = (bytes[0], 1);
    while index < bytes.len() {
        if bytes[index] > most {
            most = bytes[index];
        }
        index += 1;
    }
    most
}
