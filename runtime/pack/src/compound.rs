//! Compound: options and arrays of packed values.

use crate::{Kind, Pack, PackError, Reader, Writer};

impl<T: Pack> Pack for Option<T> {
    const KIND: Kind = Kind::Option { of: &T::KIND };
    const BYTES_MIN: usize = 1;
    const BYTES_MAX: usize = T::BYTES_MAX.saturating_add(1);

    fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
        out.u8(self.is_some().into());
        self.as_ref().map_or(Ok(()), |value| value.pack(out))
    }

    fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
        if from.flag()? { T::unpack(from).map(Some) } else { Ok(None) }
    }
}

impl<T: Pack, const N: usize> Pack for [T; N] {
    const KIND: Kind = {
        assert!(N <= u32::MAX as usize, "an array takes at most 4,294,967,295 values");
        Kind::Array { of: &T::KIND, count: N as u32 }
    };
    const BYTES_MIN: usize = T::BYTES_MIN.saturating_mul(N);
    const BYTES_MAX: usize = T::BYTES_MAX.saturating_mul(N);

    fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
        self.iter().try_for_each(|value| value.pack(out))
    }

    fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
        array_of(|| T::unpack(from))
    }
}

/// An array of what `next` gives, which is not asked again after an error.
pub(crate) fn array_of<T, const N: usize>(mut next: impl FnMut() -> Result<T, PackError>) -> Result<[T; N], PackError> {
    let mut failed = None;
    let values: [Option<T>; N] = std::array::from_fn(|_| match failed {
        Some(_) => None,
        None => next().map_err(|error| failed = Some(error)).ok(),
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(values.map(|value| value.expect("none failed"))),
    }
}
