//! Bytes: the writer and reader that component codecs use, and the whole-byte parts of messages.
//!
//! Inside a component the fields are packed bit by bit, lowest bit first, and the last byte is filled with
//! zeros: 3 x 15 bits of place and 7 bits of heading are 7 bytes. Between components everything is whole
//! bytes, so that an encoded value can be copied into a packet without shifting it.
//!
//! The writer never fails: what does not fit is dropped and shows in `overflowed`. The reader trusts
//! nothing: every read is checked, it never panics and never allocates.

use thiserror::Error;

/// Why bytes from the network were refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    #[error("the message ends too early")]
    Truncated,
    #[error("a number is outside its declared range")]
    OutOfRange,
    #[error("a number is NaN or infinite")]
    NotFinite,
    #[error("bits that must be zero are not")]
    Padding,
    #[error("the message is of another kind")]
    WrongKind,
    #[error("a component that is not in the schema")]
    UnknownComponent,
    #[error("the same slot twice, or slots out of order")]
    SlotOrder,
    #[error("a slot number above the limit")]
    SlotLimit,
    #[error("more entities than this client accepts")]
    TooManyEntities,
    #[error("bytes after the end of the message")]
    TrailingBytes,
}

/// Writes bits into a buffer that the caller owns.
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    len: usize,
    pending: u64,
    pending_bits: u32,
    overflowed: bool,
    poisoned: bool,
    clamped: bool,
}

impl<'a> Writer<'a> {
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, len: 0, pending: 0, pending_bits: 0, overflowed: false, poisoned: false, clamped: false }
    }

    /// Appends the lowest `count` bits of `value`. [count: 0 to 32]
    #[inline]
    pub fn bits(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 32);
        let kept = u64::from(value) & ((1_u64 << count) - 1);
        self.pending |= kept << self.pending_bits;
        self.pending_bits += count;
        while self.pending_bits >= 8 {
            self.push_byte(self.pending as u8);
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
    }

    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.bits(value.into(), 8);
    }

    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.bits(value.into(), 16);
    }

    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.bits(value, 32);
    }

    /// All 32 bits of a number. One that is NaN or infinite is written as 0 and marked as poison.
    #[inline]
    pub fn f32(&mut self, value: f32) {
        if value.is_finite() {
            self.bits(value.to_bits(), 32);
        } else {
            self.mark_poisoned();
            self.bits(0, 32);
        }
    }

    /// Fills the last byte with zeros. What follows begins on a whole byte.
    #[inline]
    pub fn align(&mut self) {
        if self.pending_bits > 0 {
            self.push_byte(self.pending as u8);
            self.pending = 0;
            self.pending_bits = 0;
        }
    }

    /// Notes that a value was NaN or infinite, so that the world that made it is found out.
    #[inline]
    pub fn mark_poisoned(&mut self) {
        self.poisoned = true;
    }

    /// Notes that a value was outside its declared range and was moved to the nearest end.
    #[inline]
    pub fn mark_clamped(&mut self) {
        self.clamped = true;
    }

    /// Whole bytes written so far.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0 && self.pending_bits == 0
    }

    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    pub fn poisoned(&self) -> bool {
        self.poisoned
    }

    pub fn clamped(&self) -> bool {
        self.clamped
    }

    #[inline]
    fn push_byte(&mut self, byte: u8) {
        match self.bytes.get_mut(self.len) {
            Some(place) => {
                *place = byte;
                self.len += 1;
            }
            None => self.overflowed = true,
        }
    }
}

/// Reads what a `Writer` wrote, from anyone.
#[derive(Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    pending: u64,
    pending_bits: u32,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, pending: 0, pending_bits: 0 }
    }

    /// The next `count` bits. [count: 0 to 32]
    #[inline]
    pub fn bits(&mut self, count: u32) -> Result<u32, DecodeError> {
        debug_assert!(count <= 32);
        while self.pending_bits < count {
            let byte = *self.bytes.get(self.at).ok_or(DecodeError::Truncated)?;
            self.pending |= u64::from(byte) << self.pending_bits;
            self.pending_bits += 8;
            self.at += 1;
        }
        let value = (self.pending & ((1_u64 << count) - 1)) as u32;
        self.pending >>= count;
        self.pending_bits -= count;
        Ok(value)
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.bits(8)? as u8)
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(self.bits(16)? as u16)
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.bits(32)
    }

    /// A finite number.
    #[inline]
    pub fn f32(&mut self) -> Result<f32, DecodeError> {
        let value = f32::from_bits(self.bits(32)?);
        if value.is_finite() { Ok(value) } else { Err(DecodeError::NotFinite) }
    }

    /// Goes to the next whole byte; the bits up to there must be zero.
    #[inline]
    pub fn align(&mut self) -> Result<(), DecodeError> {
        if self.pending != 0 {
            return Err(DecodeError::Padding);
        }
        self.pending_bits = 0;
        Ok(())
    }

    /// A number in 7-bit groups, lowest first, as `put_varint` writes it: at most 5 bytes.
    #[inline]
    pub fn varint(&mut self) -> Result<u32, DecodeError> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(first.into());
        }
        let mut value = u32::from(first & 0x7F);
        for shift in [7, 14, 21, 28] {
            let byte = self.u8()?;
            let group = u32::from(byte & 0x7F);
            if shift == 28 && group > 0x0F {
                return Err(DecodeError::OutOfRange);
            }
            value |= group << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::OutOfRange)
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len() && self.pending_bits == 0
    }

    /// Bytes not yet looked at.
    pub fn remaining(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }
}

/// Longest `put_varint`.
pub(crate) const VARINT_BYTES_MAX: usize = 5;

/// Writes `value` at `at` in 7-bit groups, lowest first, and returns where it ends. The caller has made room.
#[inline]
pub(crate) fn put_varint(out: &mut [u8], at: usize, value: u32) -> usize {
    let (mut at, mut rest) = (at, value);
    while rest >= 0x80 {
        out[at] = rest as u8 | 0x80;
        rest >>= 7;
        at += 1;
    }
    out[at] = rest as u8;
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_as_they_went_in() {
        let mut bytes = [0; 16];
        let mut writer = Writer::new(&mut bytes);
        for (value, count) in [(5, 3), (0, 0), (0xFFFF_FFFF, 32), (1, 1), (300, 9)] {
            writer.bits(value, count);
        }
        writer.align();
        let len = writer.len();
        assert_eq!(len, (3 + 32 + 1 + 9_usize).div_ceil(8));
        let mut reader = Reader::new(&bytes[..len]);
        for (value, count) in [(5, 3), (0, 0), (0xFFFF_FFFF, 32), (1, 1), (300, 9)] {
            assert_eq!(reader.bits(count), Ok(value));
        }
        assert_eq!(reader.align(), Ok(()));
        assert!(reader.is_at_end());
    }

    #[test]
    fn a_full_writer_drops_and_says_so() {
        let mut bytes = [0; 2];
        let mut writer = Writer::new(&mut bytes);
        writer.u32(7);
        assert!(writer.overflowed());
        assert_eq!(writer.len(), 2);
    }

    #[test]
    fn readers_refuse_what_writers_never_write() {
        assert_eq!(Reader::new(&[1]).u16(), Err(DecodeError::Truncated));
        assert_eq!(Reader::new(&f32::NAN.to_le_bytes()).f32(), Err(DecodeError::NotFinite));
        let mut padded = Reader::new(&[0b1000_0001]);
        assert_eq!(padded.bits(1), Ok(1));
        assert_eq!(padded.align(), Err(DecodeError::Padding));
        assert_eq!(Reader::new(&[0xFF; 4]).varint(), Err(DecodeError::Truncated));
        assert_eq!(Reader::new(&[0xFF; 6]).varint(), Err(DecodeError::OutOfRange));
        assert_eq!(Reader::new(&[0xFF, 0xFF, 0xFF, 0xFF, 0x10]).varint(), Err(DecodeError::OutOfRange));
    }

    #[test]
    fn varints_come_back_as_they_went_in() {
        for value in [0, 1, 127, 128, 16_383, 16_384, 1 << 20, u32::MAX] {
            let mut bytes = [0; VARINT_BYTES_MAX];
            let end = put_varint(&mut bytes, 0, value);
            assert_eq!(Reader::new(&bytes[..end]).varint(), Ok(value));
        }
    }

    #[test]
    fn poison_is_marked_and_written_as_zero() {
        let mut bytes = [9; 4];
        let mut writer = Writer::new(&mut bytes);
        writer.f32(f32::INFINITY);
        assert!(writer.poisoned());
        assert_eq!(bytes, [0; 4]);
    }
}
