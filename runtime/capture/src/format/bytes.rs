//! Numbers and texts as bytes, both ways.
//!
//! A varint is 7 bits per byte, lowest first, the top bit saying that more follow: at most 10 bytes for 64 bits. A step
//! is the difference to the number before, as a varint in which the lowest bit is the sign, so that small steps either
//! way are short. Differences wrap, so that every pair of numbers has one and nothing is lost.

use super::{ReadError, WriteError, maximum};

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// From `from` to `to`.
pub(super) fn put_step(out: &mut Vec<u8>, from: u64, to: u64) {
    let step = to.wrapping_sub(from) as i64;
    put_varint(out, ((step << 1) ^ (step >> 63)) as u64);
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str, what: &'static str) -> Result<(), WriteError> {
    if text.len() > maximum::TEXT_BYTES {
        return Err(WriteError::TextTooLong { what });
    }
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// `None` is 0, `Some(n)` is n + 1.
pub(super) fn put_optional_u32(out: &mut Vec<u8>, value: Option<u32>) {
    put_varint(out, value.map_or(0, |value| u64::from(value) + 1));
}

/// A payload that is being read; knows where in the file it stands.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, offset }
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], ReadError> {
        let (taken, rest) =
            self.bytes.split_at_checked(len).ok_or(ReadError::CutShort { offset: self.offset + self.bytes.len() })?;
        self.bytes = rest;
        self.offset += len;
        Ok(taken)
    }

    pub(super) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], ReadError> {
        let mut array = [0; LEN];
        array.copy_from_slice(self.take(LEN)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ReadError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    pub(super) fn varint(&mut self) -> Result<u64, ReadError> {
        let offset = self.offset;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ReadError::OutOfRange { offset, what: "a number of more than 64 bits" })
    }

    pub(super) fn step(&mut self, from: u64) -> Result<u64, ReadError> {
        let step = self.varint()?;
        Ok(from.wrapping_add((step >> 1) ^ (step & 1).wrapping_neg()))
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, ReadError> {
        let offset = self.offset;
        u32::try_from(self.varint()?).map_err(|_| ReadError::OutOfRange { offset, what })
    }

    pub(super) fn optional_u32(&mut self, what: &'static str) -> Result<Option<u32>, ReadError> {
        let offset = self.offset;
        match self.varint()? {
            0 => Ok(None),
            more => u32::try_from(more - 1).map(Some).map_err(|_| ReadError::OutOfRange { offset, what }),
        }
    }

    /// An index into a list of `count`.
    pub(super) fn index(&mut self, what: &'static str, count: usize) -> Result<u32, ReadError> {
        let offset = self.offset;
        let index = self.u32(what)?;
        if (index as usize) < count { Ok(index) } else { Err(ReadError::NoSuch { offset, what, index, count }) }
    }

    pub(super) fn optional_index(&mut self, what: &'static str, count: usize) -> Result<Option<u32>, ReadError> {
        let offset = self.offset;
        match self.optional_u32(what)? {
            Some(index) if index as usize >= count => Err(ReadError::NoSuch { offset, what, index, count }),
            index => Ok(index),
        }
    }

    pub(super) fn text(&mut self, what: &'static str) -> Result<String, ReadError> {
        let offset = self.offset;
        let len = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        if len > maximum::TEXT_BYTES {
            return Err(ReadError::OutOfRange { offset, what });
        }
        let text = std::str::from_utf8(self.take(len)?).map_err(|_| ReadError::BadText { offset, what })?;
        Ok(text.to_owned())
    }

    pub(super) fn bool(&mut self, what: &'static str) -> Result<bool, ReadError> {
        let offset = self.offset;
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(ReadError::OutOfRange { offset, what }),
        }
    }
}
