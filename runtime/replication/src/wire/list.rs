//! List: how a few values go as one field of a replicated component or event.
//!
//! ```text
//! bits   count | value | value | ...      count: as many bits as the list's maximum needs; values: as fields go
//! ```
//!
//! Two types are lists: `arrayvec`'s [`ArrayVec`], which holds its values in place and never allocates, and `throng_pack`'s
//! [`List`], which can be packed, too, and allocates where it grows and where a client decodes it; and, with links in it,
//! where it is encoded, since links become ids in a copy.

use arrayvec::ArrayVec;
use throng_pack::List;

use crate::wire::bytes::{DecodeError, Reader, Writer};

/// What a list must offer to be a field of a replicated component: [`ArrayVec<T, N>`] and [`List<T, N>`] do.
/// [N: 1 to 255]
pub trait ReplicateList: Default {
    type Value;
    const COUNT_MAX: usize;

    fn values(&self) -> &[Self::Value];
    fn values_mut(&mut self) -> &mut [Self::Value];

    /// Adds a value at the end; to a full list none is added.
    fn add(&mut self, value: Self::Value);
}

impl<T, const N: usize> ReplicateList for ArrayVec<T, N> {
    type Value = T;
    const COUNT_MAX: usize = N;

    fn values(&self) -> &[T] {
        self
    }

    fn values_mut(&mut self) -> &mut [T] {
        self
    }

    fn add(&mut self, value: T) {
        let _ = self.try_push(value);
    }
}

impl<T, const N: usize> ReplicateList for List<T, N> {
    type Value = T;
    const COUNT_MAX: usize = N;

    fn values(&self) -> &[T] {
        self
    }

    fn values_mut(&mut self) -> &mut [T] {
        self
    }

    fn add(&mut self, value: T) {
        let _ = self.push(value);
    }
}

/// How many values a list has, in as few bits as its maximum needs. Made by the derive, as a constant.
#[derive(Copy, Clone, Debug)]
pub struct Count {
    max: u32,
}

impl Count {
    /// [max: 1 to 255]
    pub const fn new(max: usize) -> Self {
        assert!(max >= 1 && max <= 255, "a list takes at most 1 to 255 values");
        Self { max: max as u32 }
    }

    pub const fn max(&self) -> u32 {
        self.max
    }

    pub const fn bits(&self) -> u32 {
        u32::BITS - self.max.leading_zeros()
    }

    #[inline]
    pub fn encode(&self, count: usize, out: &mut Writer<'_>) {
        debug_assert!(count <= self.max as usize);
        out.bits(count as u32, self.bits());
    }

    #[inline]
    pub fn decode(&self, from: &mut Reader<'_>) -> Result<u32, DecodeError> {
        let count = from.bits(self.bits())?;
        if count <= self.max { Ok(count) } else { Err(DecodeError::OutOfRange) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_above_the_maximum_is_refused() {
        let count = Count::new(5);
        assert_eq!(count.bits(), 3);
        assert_eq!(count.decode(&mut Reader::new(&[5])), Ok(5));
        assert_eq!(count.decode(&mut Reader::new(&[6])), Err(DecodeError::OutOfRange));
        assert_eq!((Count::new(1).bits(), Count::new(255).bits()), (1, 8));
    }

    #[test]
    fn a_full_list_takes_no_more() {
        fn check<L: ReplicateList<Value = u8>>() {
            let mut list = L::default();
            (1..=3).for_each(|value| list.add(value));
            assert_eq!((list.values(), L::COUNT_MAX), (&[1, 2][..], 2));
        }
        check::<ArrayVec<u8, 2>>();
        check::<List<u8, 2>>();
    }
}
