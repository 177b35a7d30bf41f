//! Text: how a short text goes as a field of a replicated component or event.
//!
//! One byte of length and the bytes of UTF-8. What a game accepts as a text (control characters, direction marks) is
//! the game's part, on the way in.

use throng_pack::Text;

use crate::wire::{
    bytes::{DecodeError, Reader, Writer},
    field::ReplicateField,
    quantise::mix,
    shape::FieldShape,
};

/// [N: 1 to 250]
impl<const N: usize> ReplicateField for Text<N> {
    const BITS_MAX: u32 = {
        assert!(N >= 1 && N <= 250, "a text takes 1 to 250 bytes");
        8 + 8 * N as u32
    };
    const EXACT_BITS_MAX: u32 = Self::BITS_MAX;
    const LAYOUT: u64 = mix(5, Self::BITS_MAX as u64);

    fn encode_field(&self, out: &mut Writer<'_>) {
        let text: &str = self;
        out.u8(text.len() as u8);
        text.bytes().for_each(|byte| out.u8(byte));
    }

    /// Refuses what is longer than `N` and what is no UTF-8.
    fn decode_field(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = usize::from(from.u8()?);
        let mut bytes = [0_u8; N];
        let text = bytes.get_mut(..len).ok_or(DecodeError::OutOfRange)?;
        for byte in text.iter_mut() {
            *byte = from.u8()?;
        }
        str::from_utf8(text).ok().and_then(Self::new).ok_or(DecodeError::OutOfRange)
    }

    fn encode_field_exact(&self, out: &mut Writer<'_>) {
        self.encode_field(out);
    }

    fn decode_field_exact(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_field(from)
    }

    fn field_agrees(&self, exact: &Self) -> bool {
        self == exact
    }

    fn shape() -> FieldShape {
        FieldShape::Text { bytes_max: N }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(bytes: &[u8]) -> Result<Text<8>, DecodeError> {
        Text::decode_field(&mut Reader::new(bytes))
    }

    #[test]
    fn texts_come_back_and_what_is_none_is_refused() {
        let text = Text::<8>::new("Fluß").unwrap();
        let mut bytes = [0; 9];
        let mut out = Writer::new(&mut bytes);
        text.encode_field(&mut out);
        assert_eq!(out.len(), 6);
        assert_eq!(through(&bytes[..6]), Ok(text));
        assert_eq!(&*text, "Fluß");
        assert_eq!(Text::<3>::new("Fluß"), None);
        assert_eq!(through(&bytes[..5]), Err(DecodeError::Truncated));
        assert_eq!(through(&[9, 65, 65, 65, 65, 65, 65, 65, 65, 65]), Err(DecodeError::OutOfRange));
        assert_eq!(through(&[2, 0xC3, 0x28]), Err(DecodeError::OutOfRange));
    }
}
