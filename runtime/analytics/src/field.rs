//! Fields: the types that an event may have, and how they lie in a page.
//!
//! ```text
//! whole number  | u64 or i64, 8 bytes |        f32  | 4 bytes |      f64  | 8 bytes |      bool  | 1 byte |
//! text          | bytes u16 | UTF-8 ... |
//! ```
//!
//! Numbers are little-endian. Types are known by the event's declaration, so no byte says them.

use throng_pack::Text;

/// Longer texts are cut at a character's end (bytes).
pub const TEXT_BYTES_MAX: usize = 255;

/// What a field is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    Unsigned,
    Signed,
    F32,
    F64,
    Bool,
    Text,
}

/// A type that a field may have.
pub trait Field {
    const TYPE: FieldType;
    /// How many bytes `write` adds.
    fn size_bytes(&self) -> usize;
    /// Adds the value; never more than `size_bytes`.
    fn write(&self, out: &mut Vec<u8>);
}

macro_rules! whole_numbers {
    ($($number:ty, $widest:ty, $kind:ident;)*) => {$(
        impl Field for $number {
            const TYPE: FieldType = FieldType::$kind;

            #[inline]
            fn size_bytes(&self) -> usize {
                size_of::<$widest>()
            }

            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&(*self as $widest).to_le_bytes());
            }
        }
    )*};
}

whole_numbers! {
    u8, u64, Unsigned;
    u16, u64, Unsigned;
    u32, u64, Unsigned;
    u64, u64, Unsigned;
    usize, u64, Unsigned;
    i8, i64, Signed;
    i16, i64, Signed;
    i32, i64, Signed;
    i64, i64, Signed;
    f32, f32, F32;
    f64, f64, F64;
}

impl Field for bool {
    const TYPE: FieldType = FieldType::Bool;

    #[inline]
    fn size_bytes(&self) -> usize {
        1
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }
}

impl Field for &'static str {
    const TYPE: FieldType = FieldType::Text;

    #[inline]
    fn size_bytes(&self) -> usize {
        2 + cut(self).len()
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        let text = cut(self);
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
}

impl<const N: usize> Field for Text<N> {
    const TYPE: FieldType = FieldType::Text;

    #[inline]
    fn size_bytes(&self) -> usize {
        2 + self.len()
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.len() as u16).to_le_bytes());
        out.extend_from_slice(self.as_bytes());
    }
}

#[inline]
fn cut(text: &str) -> &str {
    if text.len() <= TEXT_BYTES_MAX { text } else { &text[..text.floor_char_boundary(TEXT_BYTES_MAX)] }
}

/// A field's value, as it is read out of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldValue<'a> {
    Unsigned(u64),
    Signed(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    Text(&'a str),
}

impl<'a> FieldValue<'a> {
    /// Takes a value off the front of `bytes`; `None` if they are not one.
    pub fn read(of: FieldType, bytes: &mut &'a [u8]) -> Option<FieldValue<'a>> {
        Some(match of {
            FieldType::Unsigned => FieldValue::Unsigned(u64::from_le_bytes(*bytes.split_off_first_chunk()?)),
            FieldType::Signed => FieldValue::Signed(i64::from_le_bytes(*bytes.split_off_first_chunk()?)),
            FieldType::F32 => FieldValue::F32(f32::from_le_bytes(*bytes.split_off_first_chunk()?)),
            FieldType::F64 => FieldValue::F64(f64::from_le_bytes(*bytes.split_off_first_chunk()?)),
            FieldType::Bool => FieldValue::Bool(*bytes.split_off_first_chunk::<1>()? != [0]),
            FieldType::Text => {
                let len = u16::from_le_bytes(*bytes.split_off_first_chunk()?);
                FieldValue::Text(str::from_utf8(bytes.split_off(..usize::from(len))?).ok()?)
            }
        })
    }
}

/// `split_off_first` of several at once.
trait SplitOffChunk<'a> {
    fn split_off_first_chunk<const N: usize>(&mut self) -> Option<&'a [u8; N]>;
}

impl<'a> SplitOffChunk<'a> for &'a [u8] {
    fn split_off_first_chunk<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (chunk, rest) = self.split_first_chunk()?;
        *self = rest;
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Field>(value: T, expect: FieldValue<'_>) {
        let mut bytes = Vec::new();
        value.write(&mut bytes);
        assert_eq!(bytes.len(), value.size_bytes());
        let mut left = &bytes[..];
        assert_eq!(FieldValue::read(T::TYPE, &mut left), Some(expect));
        assert!(left.is_empty());
        for torn in 0..bytes.len() {
            assert_eq!(FieldValue::read(T::TYPE, &mut &bytes[..torn]), None, "torn at {torn}");
        }
    }

    #[test]
    fn every_type_reads_back_as_it_was_written_and_not_when_torn() {
        check(200_u8, FieldValue::Unsigned(200));
        check(u64::MAX, FieldValue::Unsigned(u64::MAX));
        check(-3_i16, FieldValue::Signed(-3));
        check(0.25_f32, FieldValue::F32(0.25));
        check(-0.1_f64, FieldValue::F64(-0.1));
        check(true, FieldValue::Bool(true));
        check("hub", FieldValue::Text("hub"));
        check(Text::<12>::new("Ärmel").unwrap(), FieldValue::Text("Ärmel"));
    }

    #[test]
    fn a_text_that_is_too_long_ends_with_a_whole_character() {
        let long: &'static str = "ä".repeat(200).leak();
        let mut bytes = Vec::new();
        long.write(&mut bytes);
        assert_eq!(FieldValue::read(FieldType::Text, &mut &bytes[..]), Some(FieldValue::Text(&long[..254])));
    }
}
