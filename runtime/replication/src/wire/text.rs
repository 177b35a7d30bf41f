//! Text: a short text as a field of a replicated component or event.
//!
//! Held in place, so that a value with a text in it allocates nothing; on the wire one byte of length and the bytes of
//! UTF-8. What a game accepts as a text (control characters, direction marks) is the game's part, on the way in.

use std::ops::Deref;

use crate::wire::bytes::{DecodeError, Reader, Writer};

/// A text of at most `N` bytes of UTF-8. [N: 1 to 250]
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    len: u8,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    /// Length and bytes on the wire at most. (bits)
    pub const BITS_MAX: u32 = {
        assert!(N >= 1 && N <= 250, "a text takes 1 to 250 bytes");
        8 + 8 * N as u32
    };

    /// `None` if it is too long.
    pub fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { len: text.len() as u8, bytes })
    }

    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u8(self.len);
        self.bytes[..self.len.into()].iter().for_each(|byte| out.u8(*byte));
    }

    /// Refuses what is longer than `N` and what is no UTF-8.
    pub fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = from.u8()?;
        let mut bytes = [0; N];
        for byte in bytes.get_mut(..len.into()).ok_or(DecodeError::OutOfRange)? {
            *byte = from.u8()?;
        }
        str::from_utf8(&bytes[..len.into()]).map_err(|_| DecodeError::OutOfRange)?;
        Ok(Self { len, bytes })
    }
}

impl<const N: usize> Deref for Text<N> {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len.into()]).expect("made from UTF-8 only")
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self { len: 0, bytes: [0; N] }
    }
}

impl<const N: usize> PartialEq for Text<N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<const N: usize> Eq for Text<N> {}

impl<const N: usize> std::fmt::Debug for Text<N> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&**self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(bytes: &[u8]) -> Result<Text<8>, DecodeError> {
        Text::decode(&mut Reader::new(bytes))
    }

    #[test]
    fn texts_come_back_and_what_is_none_is_refused() {
        let text = Text::<8>::new("Fluß").unwrap();
        let mut bytes = [0; 9];
        let mut out = Writer::new(&mut bytes);
        text.encode(&mut out);
        assert_eq!(out.len(), 6);
        assert_eq!(through(&bytes[..6]), Ok(text));
        assert_eq!(&*text, "Fluß");
        assert_eq!(Text::<3>::new("Fluß"), None);
        assert_eq!(through(&bytes[..5]), Err(DecodeError::Truncated));
        assert_eq!(through(&[9, 65, 65, 65, 65, 65, 65, 65, 65, 65]), Err(DecodeError::OutOfRange));
        assert_eq!(through(&[2, 0xC3, 0x28]), Err(DecodeError::OutOfRange));
    }
}
