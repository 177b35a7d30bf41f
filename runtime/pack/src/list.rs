//! List: at most so many values.
//!
//! ```text
//! | count varint | value | value | ...
//! ```
//!
//! It cannot hold more than its maximum, so whatever a game has in one can be packed. An empty list has no memory of
//! its own.

use std::ops::{Deref, DerefMut};

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
        out.varint(self.0.len() as u64);
        self.0.iter().try_for_each(|value| value.pack(out))
    }

    fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
        let claimed = from.varint()?;
        let count = usize::try_from(claimed).ok().filter(|count| *count <= N);
        let count = count.ok_or(Fault::ListTooLong { count: claimed, count_max: N as u64 })?;
        // Values that may take no bytes at all are let through one by one, with room for as many as there are bytes.
        let fitting = from.remaining_bytes() / T::BYTES_MIN.max(1);
        if T::BYTES_MIN > 0 && count > fitting {
            return Err(Fault::Truncated.into());
        }
        let mut values = Vec::with_capacity(count.min(fitting));
        for _ in 0..count {
            values.push(T::unpack(from)?);
        }
        Ok(Self(values))
    }
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

    #[test]
    fn a_list_never_holds_more_than_its_maximum() {
        let mut list = List::<u8, 2>::new();
        assert_eq!((list.push(1), list.push(2), list.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!(*list, [1, 2]);
        assert_eq!(List::<u8, 2>::try_from(vec![1, 2, 3]), Err(vec![1, 2, 3]));
        assert_eq!((list.remove(0), list.push(3), list.into_vec()), (1, Ok(()), vec![2, 3]));
    }
}
