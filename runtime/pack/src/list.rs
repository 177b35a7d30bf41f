//! List: at most so many values.
//!
//! ```text
//! | count varint | value | value | ...
//! ```
//!
//! It cannot hold more than its maximum, so whatever a game has in one can be packed. An empty list has no memory of
//! its own. An `ArrayVec` has none at all: for what clients and worlds say to each other in every tick. Both are the same
//! bytes, and the same to a schema.

use std::ops::{Deref, DerefMut};

use arrayvec::ArrayVec;

use crate::{Kind, Pack, PackError, Reader, Writer, derived::varint_bytes, error::Fault};

/// At most `N` values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T, const N: usize>(Vec<T>);

impl<T, const N: usize> List<T, N> {
    pub const COUNT_MAX: usize = N;

    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a value at the end, or hands it back if the list is full.
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.0.len() == N {
            return Err(value);
        }
        self.0.push(value);
        Ok(())
    }

    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    /// Takes the value at `index` out; those behind it move up.
    ///
    /// # Panics
    /// If there is none.
    pub fn remove(&mut self, index: usize) -> T {
        self.0.remove(index)
    }

    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.0.retain(keep);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T: Pack, const N: usize> Pack for List<T, N> {
    const KIND: Kind = {
        assert!(N <= u32::MAX as usize, "a list takes at most 4,294,967,295 values");
        Kind::List { of: &T::KIND, count_max: N as u32 }
    };
    const BYTES_MIN: usize = 1;
    const BYTES_MAX: usize = varint_bytes(N as u64).saturating_add(N.saturating_mul(T::BYTES_MAX));

    fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
        pack_all(self, out)
    }

    fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
        let count = unpack_count::<T, N>(from)?;
        let mut values = Vec::with_capacity(count.min(fitting::<T>(from)));
        for _ in 0..count {
            values.push(T::unpack(from)?);
        }
        Ok(Self(values))
    }
}

impl<T: Pack, const N: usize> Pack for ArrayVec<T, N> {
    const KIND: Kind = List::<T, N>::KIND;
    const BYTES_MIN: usize = List::<T, N>::BYTES_MIN;
    const BYTES_MAX: usize = List::<T, N>::BYTES_MAX;

    fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
        pack_all(self, out)
    }

    fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
        let mut values = Self::new();
        for _ in 0..unpack_count::<T, N>(from)? {
            values.push(T::unpack(from)?);
        }
        Ok(values)
    }
}

fn pack_all<T: Pack>(values: &[T], out: &mut Writer<'_>) -> Result<(), PackError> {
    out.varint(values.len() as u64);
    values.iter().try_for_each(|value| value.pack(out))
}

/// How many values there are; no more than `N`, nor than bytes.
fn unpack_count<T: Pack, const N: usize>(from: &mut Reader<'_>) -> Result<usize, PackError> {
    let claimed = from.varint()?;
    let count = usize::try_from(claimed).ok().filter(|count| *count <= N);
    let count = count.ok_or(Fault::ListTooLong { count: claimed, count_max: N as u64 })?;
    // Values that may take no bytes at all are let through one by one.
    if T::BYTES_MIN > 0 && count > fitting::<T>(from) {
        return Err(Fault::Truncated.into());
    }
    Ok(count)
}

/// How many values the bytes that are left may hold; of such as may take none, as many as there are bytes.
fn fitting<T: Pack>(from: &Reader<'_>) -> usize {
    from.remaining_bytes() / T::BYTES_MIN.max(1)
}

impl<T, const N: usize> TryFrom<Vec<T>> for List<T, N> {
    /// The values, if they are too many.
    type Error = Vec<T>;

    fn try_from(values: Vec<T>) -> Result<Self, Vec<T>> {
        if values.len() <= N { Ok(Self(values)) } else { Err(values) }
    }
}

impl<T, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Deref for List<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for List<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T, const N: usize> IntoIterator for List<T, N> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a List<T, N> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{pack_body, unpack_body};

    #[test]
    fn a_list_never_holds_more_than_its_maximum() {
        let mut list = List::<u8, 2>::new();
        assert_eq!((list.push(1), list.push(2), list.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!(*list, [1, 2]);
        assert_eq!(List::<u8, 2>::try_from(vec![1, 2, 3]), Err(vec![1, 2, 3]));
        assert_eq!((list.remove(0), list.push(3), list.into_vec()), (1, Ok(()), vec![2, 3]));
    }

    #[test]
    fn one_in_place_goes_as_a_list_does() {
        let in_place = ArrayVec::<u16, 3>::from_iter([1, 300]);
        let mut bytes = Vec::new();
        pack_body(&in_place, &mut bytes).unwrap();
        assert_eq!(bytes, [2, 1, 0xAC, 0x02]);
        assert_eq!(unpack_body(&bytes), Ok(List::<u16, 3>::try_from(vec![1, 300]).unwrap()));
        assert_eq!(unpack_body(&bytes), Ok(in_place));
        let check = |bytes: &[u8], expect: Fault| {
            assert_eq!(unpack_body::<ArrayVec<u16, 3>>(bytes).unwrap_err().fault, expect, "{bytes:?}");
            assert_eq!(unpack_body::<List<u16, 3>>(bytes).unwrap_err().fault, expect, "{bytes:?}");
        };
        check(&[4, 1, 1, 1, 1], Fault::ListTooLong { count: 4, count_max: 3 });
        check(&[3, 1, 1], Fault::Truncated);
        check(&[1, 0x80, 0x80, 0x04], Fault::OutOfRange);
    }
}
