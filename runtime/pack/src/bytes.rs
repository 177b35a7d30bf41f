//! Bytes: the writer and the reader that packed values go through.
//!
//! ```text
//! varint   7 bits a byte, lowest first; the top bit says that more follow; no more bytes than the number needs
//! zigzag   0, -1, 1, -2, .. as 0, 1, 2, 3, .., then as a varint
//! fixed    little endian
//! ```
//!
//! The writer appends to a buffer that the caller keeps, and cannot fail. The reader trusts nothing: every read is
//! checked, it never panics and never allocates. It also carries the versions of the types in its bytes, if they are
//! not all the current ones.

use crate::{
    error::Fault,
    schema::{Schema, Versions},
};

/// Appends to a buffer that the caller owns and may use again.
pub struct Writer<'a>(&'a mut Vec<u8>);

impl<'a> Writer<'a> {
    pub fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self(bytes)
    }

    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// 1 to 10 bytes.
    #[inline]
    pub fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    /// 1 to 10 bytes; few for numbers near zero on either side.
    #[inline]
    pub fn zigzag(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }
}

/// Reads what a `Writer` wrote, from anyone.
pub struct Reader<'a> {
    rest: &'a [u8],
    /// None: every type is in its current version.
    versions: Option<&'a Versions>,
}

impl<'a> Reader<'a> {
    /// Of bytes in which every type is in its current version.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, versions: None }
    }

    pub(crate) fn with_versions(bytes: &'a [u8], versions: &'a Versions) -> Self {
        Self { rest: bytes, versions: Some(versions) }
    }

    /// The version that values of this type have in these bytes. A search only for bytes that are not current.
    #[inline]
    pub fn version_of(&self, schema: &Schema) -> u16 {
        self.versions.map_or(schema.version, |versions| versions.version_of(schema))
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.rest.split_first().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(*first)
    }

    /// The next `count` bytes, not copied.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub fn varint(&mut self) -> Result<u64, Fault> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(first.into());
        }
        let mut value = u64::from(first & 0x7F);
        let mut shift = 7;
        loop {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                return Err(Fault::OutOfRange);
            }
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return if byte == 0 { Err(Fault::Overlong) } else { Ok(value) };
            }
            shift += 7;
        }
    }

    #[inline]
    pub fn zigzag(&mut self) -> Result<i64, Fault> {
        let code = self.varint()?;
        Ok((code >> 1) as i64 ^ -((code & 1) as i64))
    }

    /// A byte that is 0 or 1.
    #[inline]
    pub fn flag(&mut self) -> Result<bool, Fault> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Fault::NoFlag),
        }
    }

    /// How many bytes are left.
    pub fn remaining_bytes(&self) -> usize {
        self.rest.len()
    }

    /// What is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Refuses what is left over.
    pub fn end(self) -> Result<(), Fault> {
        if self.rest.is_empty() { Ok(()) } else { Err(Fault::TrailingBytes) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut Writer::new(&mut bytes));
        bytes
    }

    #[test]
    fn varints_that_no_writer_writes_are_refused() {
        let check = |bytes: &[u8], expect| assert_eq!(Reader::new(bytes).varint(), expect, "{bytes:02x?}");
        check(&[0x7F], Ok(127));
        check(&[0x80, 0x01], Ok(128));
        check(&[0x80, 0x00], Err(Fault::Overlong));
        check(&[0xFF, 0x80, 0x00], Err(Fault::Overlong));
        check(&[], Err(Fault::Truncated));
        check(&[0xFF; 9], Err(Fault::Truncated));
        check(&[&[0xFF; 9][..], &[1]].concat(), Ok(u64::MAX));
        check(&[&[0xFF; 9][..], &[2]].concat(), Err(Fault::OutOfRange));
        check(&[0xFF; 10], Err(Fault::OutOfRange));
    }

    proptest! {
        #[test]
        fn numbers_come_back_as_they_went_in(small in any::<i16>(), large in any::<i64>(), bits in 0_u32..64) {
            for value in [i64::from(small), large >> bits] {
                let bytes = written(|out| out.zigzag(value));
                prop_assert_eq!(Reader::new(&bytes).zigzag(), Ok(value));
                let bytes = written(|out| out.varint(value as u64));
                prop_assert_eq!(bytes.len(), (64 - (value as u64).leading_zeros()).max(1).div_ceil(7) as usize);
                prop_assert_eq!(Reader::new(&bytes).varint(), Ok(value as u64));
            }
        }
    }
}
