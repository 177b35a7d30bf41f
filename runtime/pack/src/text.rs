//! Text: a short text that is held in place.
//!
//! ```text
//! | bytes u8 | UTF-8 ... |
//! ```
//!
//! A value with a text in it allocates nothing. What a game accepts as a text (control characters, direction marks) is
//! the game's part, on the way in.

use std::{fmt, ops::Deref};

use crate::{Kind, Pack, PackError, Reader, Writer, error::Fault};

/// A text of at most `N` bytes of UTF-8. [N: 1 to 255]
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    len: u8,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    /// `None` if it is too long.
    pub fn new(text: &str) -> Option<Self> {
        const { assert!(N >= 1 && N <= 255, "a text takes 1 to 255 bytes") };
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { len: text.len() as u8, bytes })
    }
}

impl<const N: usize> Pack for Text<N> {
    const KIND: Kind = {
        assert!(N >= 1 && N <= 255, "a text takes 1 to 255 bytes");
        Kind::Text { bytes_max: N as u8 }
    };
    const BYTES_MIN: usize = 1;
    const BYTES_MAX: usize = 1 + N;

    fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError> {
        out.u8(self.len);
        out.bytes(self.as_bytes());
        Ok(())
    }

    fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError> {
        let len = from.u8()?;
        if usize::from(len) > N {
            return Err(Fault::TextTooLong { bytes: len.into(), bytes_max: N as u32 }.into());
        }
        let text = str::from_utf8(from.bytes(len.into())?).map_err(|_| Fault::NotUtf8)?;
        Ok(Self::new(text).expect("its length was held against N"))
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

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, out)
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, out)
    }
}
